//! The provider's addresses over a socket: keys and modes, idempotency, and the faults that rules ask for.
//!
//! A request is worked on in a task of its own: a client that hangs up does not stop a provider.

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts},
    response::IntoResponse,
};
use base64::Engine;
use serde_json::{Value, json};

use super::{
    Simulator,
    api::{self, Reply},
    cards::Behaviour,
    params::Params,
    reader,
    rules::{self, Effect, Latency, Network, Status, Subject},
    settlement, state,
    world::{Key, World},
};

const BODY_MAX_BYTES: usize = 1 << 20;
/// An idempotency key may be forgotten after a day; it then executes anew.
const KEY_TTL_MS: i64 = 86_400_000;
/// How long nobody listens after a rule has refused a request.
const REFUSED_MS: i64 = 1_000;

/// On a response: the connection is to be broken instead of sending it.
#[derive(Clone, Copy)]
pub struct Break;

/// What a client gets to see.
enum Fate {
    Answer(Response<Body>),
    Silence,
    Break,
}

pub async fn v1(State(sim): State<Simulator>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_MAX_BYTES).await else {
        let error = json!({"type": "invalid_request_error", "code": "body_too_large",
            "message": "The body of a request is at most 1 MiB."});
        return (StatusCode::PAYLOAD_TOO_LARGE, Json(json!({ "error": error }))).into_response();
    };
    let works = sim.clone();
    let work = tokio::spawn(async move { Work::new(works, parts, body).run().await });
    match work.await {
        Ok(Fate::Answer(response)) => {
            state::keep_now(&sim).await;
            response
        }
        Ok(Fate::Break) | Err(_) => {
            let mut response = Response::new(Body::empty());
            response.extensions_mut().insert(Break);
            response
        }
        // Until the client gives up and closes; then this future is dropped.
        Ok(Fate::Silence) => std::future::pending().await,
    }
}

struct Work {
    sim: Simulator,
    method: Method,
    path: String,
    headers: HeaderMap,
    params: Params,
}

impl Work {
    fn new(sim: Simulator, parts: Parts, body: Bytes) -> Self {
        let params = if parts.method == Method::GET {
            Params::parse(parts.uri.query().unwrap_or_default().as_bytes())
        } else {
            Params::parse(&body)
        };
        Self { sim, method: parts.method, path: parts.uri.path().to_owned(), headers: parts.headers, params }
    }

    async fn run(self) -> Fate {
        let Some((op, id)) = route(&self.method, &self.path) else {
            return self.plain(Reply::invalid(404, "url_invalid", None, "Unrecognized request URL."));
        };
        if !self.authorised(op) {
            return self.plain(Reply::invalid(401, "api_key_invalid", None, "Invalid API Key provided."));
        }
        let key = self.header("idempotency-key");
        if key.as_ref().is_some_and(|k| k.len() > 255) {
            return self.plain(Reply::invalid(400, "idempotency_key_too_long", None, "At most 255 characters."));
        }
        let (effect, request_id, latency_ms) = self.arrive(op, id, key.as_deref());
        match effect.network {
            Some(Network::TimeoutBefore) => return Fate::Silence,
            Some(Network::ResetBefore) => return Fate::Break,
            Some(Network::Refuse) => {
                let mut world = self.sim.world();
                world.refused_until = world.now() + REFUSED_MS;
                return Fate::Break;
            }
            _ => {}
        }
        let head = Head { request_id, effect: &effect, key: key.as_deref() };
        if let Some(reply) = refused_before(&effect) {
            sleep(latency_ms).await;
            return self.fate(&head, reply.status, reply.body, None);
        }
        let idempotency = effect.idempotency.unwrap_or_default();
        let key = key.as_deref().filter(|_| self.method == Method::POST && !idempotency.ignore);
        if let Some(key) = key {
            match self.claim(key, &head.request_id, idempotency.ttl_ms.unwrap_or(KEY_TTL_MS)) {
                Claim::Ours => {}
                Claim::Refused(reply) => return self.fate(&head, reply.status, reply.body, None),
                Claim::Stored(status, body, original) => {
                    sleep(latency_ms).await;
                    return self.fate(&head, status, body, Some(original));
                }
            }
        }
        sleep(latency_ms / 2).await;
        let (status, body) = self.execute(op, id, &effect, key);
        self.sim.deliver_outgoing().await;
        sleep(latency_ms - latency_ms / 2).await;
        self.fate(&head, status, body, None)
    }

    /// Finds what is to happen to this request, and writes it into the log.
    fn arrive(&self, op: &str, id: Option<&str>, key: Option<&str>) -> (Effect, String, u64) {
        let mut world = self.sim.world();
        world.settle();
        let collected =
            id.and_then(|id| world.readers.get(id)).and_then(|r| r.action.as_ref()).map(|a| a.intent.as_str());
        let at = id.or(collected).and_then(|id| world.intent(id)).or_else(|| world.intent(collected?));
        let named = self.params.get("payment_intent").and_then(|id| world.intent(id));
        let attempt = at
            .or(named)
            .and_then(|at| world.intents[at].metadata.get("attempt").cloned())
            .or_else(|| self.params.get("metadata[attempt]").map(str::to_owned));
        let token = self.params.get("payment_method").map(str::to_owned);
        let token = token.or_else(|| at.and_then(|at| world.intents[at].payment_method.clone()));
        let method = token.as_ref().and_then(|t| world.methods.get(t)).cloned();
        let known_as = method.as_ref().map(|m| m.token.clone()).or(token);
        let now = world.now();
        let World { rules, rng, .. } = &mut *world;
        let subject = Subject { op, attempt: attempt.as_deref(), payment_method: known_as.as_deref() };
        let mut effect = rules::apply(rules, rng, subject, now);
        if op == "confirm" && at.is_some_and(|at| world.intents[at].status == "requires_confirmation") {
            match method.map(|m| m.behaviour()) {
                Some(Behaviour::Slow(ms)) => effect.latency = effect.latency.or(Some(Latency::Fixed { ms })),
                Some(Behaviour::LostAnswer) => effect.network = effect.network.or(Some(Network::TimeoutAfter)),
                _ => {}
            }
        }
        let latency_ms = effect.latency.unwrap_or(self.sim.config().latency).sample_ms(&mut world.rng);
        let request_id = world.id("req");
        world.log.push(json!({
            "at_ms": now, "request_id": request_id, "op": op, "method": self.method.as_str(), "path": self.path,
            "idempotency_key": key, "attempt": attempt, "params": self.params.to_json(), "effect": effect,
            "latency_ms": latency_ms,
        }));
        (effect, request_id, latency_ms)
    }

    fn claim(&self, name: &str, request_id: &str, ttl_ms: i64) -> Claim {
        let mut world = self.sim.world();
        let now = world.now();
        world.keys.retain(|_, k| now - k.at < KEY_TTL_MS || k.answer.is_none());
        if world.keys.get(name).is_some_and(|k| now - k.at >= ttl_ms && k.answer.is_some()) {
            world.keys.remove(name);
        }
        let params = self.params.sorted();
        let Some(found) = world.keys.get(name) else {
            let (path, request_id) = (self.path.clone(), request_id.to_owned());
            world.keys.insert(name.to_owned(), Key { path, params, answer: None, request_id, at: now });
            return Claim::Ours;
        };
        if found.path != self.path || found.params != params {
            let error = json!({"type": "idempotency_error",
                "message": "Keys for idempotent requests can only be used with the same parameters they were first used with."});
            return Claim::Refused(Reply { status: 400, body: json!({"error": error}), began: false });
        }
        match &found.answer {
            Some((status, body)) => Claim::Stored(*status, body.clone(), found.request_id.clone()),
            None => Claim::Refused(in_use()),
        }
    }

    fn execute(&self, op: &str, id: Option<&str>, effect: &Effect, key: Option<&str>) -> (u16, Value) {
        let mut world = self.sim.world();
        world.settle();
        let mut reply = match effect.status {
            Some(Status::Stored500) => broken(),
            Some(Status::Stored402) => declined(),
            _ => self.perform(&mut world, op, id.unwrap_or_default(), effect),
        };
        if effect.status == Some(Status::After500) {
            reply = broken();
        }
        world.changed |= self.method == Method::POST;
        if let Some(key) = key {
            if reply.began {
                let answer = (reply.status, reply.body.clone());
                world.keys.entry(key.to_owned()).and_modify(|k| k.answer = Some(answer));
            } else {
                world.keys.remove(key);
            }
        }
        for (field, said) in effect.echo.iter().flatten() {
            match (said, reply.body.as_object_mut()) {
                (Value::Null, Some(body)) => drop(body.remove(field)),
                (said, Some(body)) => drop(body.insert(field.clone(), said.clone())),
                _ => {}
            }
        }
        (reply.status, reply.body)
    }

    fn perform(&self, world: &mut World, op: &str, id: &str, effect: &Effect) -> Reply {
        let (params, public_url) = (&self.params, self.sim.config().public_url.as_str());
        let mut reply = match op {
            "create" => api::create(world, params, effect, public_url),
            "confirm" => api::confirm(world, id, params, effect, public_url),
            "capture" => api::capture(world, id, params, effect),
            "cancel" => api::cancel(world, id, effect),
            "get" => api::get(world, id),
            "list" => api::list_intents(world, params),
            "search" => api::search(world, params, effect.search_lag_ms.unwrap_or(0)),
            "refund" => api::refund(world, params, effect),
            "get_refund" => api::get_refund(world, id),
            "list_refunds" => api::list_refunds(world, params),
            "charge" => api::get_charge(world, id),
            "balance_transactions" => settlement::list(world, params, &effect.how().settlement),
            "events" => api::list_events(world, params),
            "event" => api::get_event(world, id),
            "readers" => reader::list(world),
            "reader" => reader::get(world, id),
            "process" => reader::process(world, id, params, effect),
            "cancel_action" => reader::cancel_action(world, id, effect),
            "present" => reader::present(world, id, params, effect),
            _ => api::payment_method(world, params),
        };
        if params.all("expand").any(|path| path == "latest_charge") {
            api::show_charge(world, &mut reply.body);
        }
        reply
    }

    /// The secret key may do everything; the publishable one, which browsers have, may only make payment methods.
    fn authorised(&self, op: &str) -> bool {
        let config = self.sim.config();
        let Some(value) = self.header("authorization") else { return false };
        let key = match value.split_once(' ') {
            Some(("Bearer", key)) => key.to_owned(),
            Some(("Basic", pair)) => {
                let pair = base64::engine::general_purpose::STANDARD.decode(pair).unwrap_or_default();
                String::from_utf8_lossy(&pair).trim_end_matches(':').to_owned()
            }
            _ => return false,
        };
        key == config.secret_key.reveal() || (op == "payment_method" && key == config.publishable_key)
    }

    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
    }

    fn plain(&self, reply: Reply) -> Fate {
        let request_id = self.sim.world().id("req");
        let effect = Effect::default();
        self.fate(&Head { request_id, effect: &effect, key: None }, reply.status, reply.body, None)
    }

    fn fate(&self, head: &Head<'_>, status: u16, body: Value, replay_of: Option<String>) -> Fate {
        let text = body.to_string();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let mut set = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        set("content-type", "application/json");
        set("request-id", &head.request_id);
        // By the simulator's own clock, which may be set.
        if let Some(now) = chrono::DateTime::from_timestamp_millis(self.sim.world().now()) {
            set("date", &now.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
        }
        set("stripe-version", self.header("stripe-version").as_deref().unwrap_or(super::API_VERSION));
        set("access-control-allow-origin", "*");
        if let Some(key) = head.key {
            set("idempotency-key", key);
        }
        if let Some(original) = &replay_of {
            set("idempotent-replayed", "true");
            set("original-request", original);
        }
        if let Some(seconds) = head.effect.retry_after {
            set("retry-after", &seconds.to_string());
        }
        if let Some(should) = head.effect.should_retry {
            set("stripe-should-retry", if should { "true" } else { "false" });
        }
        match head.effect.network {
            Some(Network::TimeoutAfter) => return Fate::Silence,
            Some(Network::ResetAfter) => return Fate::Break,
            Some(Network::Garbage2xx) => {
                *response.status_mut() = StatusCode::OK;
                *response.body_mut() = Body::from("<html>upstream said hello</html>");
            }
            Some(Network::HalfBody) => {
                response.headers_mut().insert(header::CONTENT_LENGTH, text.len().into());
                let half = Bytes::from(text.as_bytes()[..text.len() / 2].to_vec());
                let cut = futures_util::stream::iter([Ok(half), Err(std::io::Error::other("the rest is lost"))]);
                *response.body_mut() = Body::from_stream(cut);
            }
            _ => *response.body_mut() = Body::from(text),
        }
        Fate::Answer(response)
    }
}

struct Head<'a> {
    request_id: String,
    effect: &'a Effect,
    key: Option<&'a str>,
}

enum Claim {
    Ours,
    Refused(Reply),
    /// Status and body as stored, and the request that they were stored by.
    Stored(u16, Value, String),
}

/// Refusals that come before any work and are kept under no key.
fn refused_before(effect: &Effect) -> Option<Reply> {
    let error = |status: u16, kind: &str, code: &str| {
        let error = json!({"type": kind, "code": code, "message": "An error was asked for."});
        Some(Reply { status, body: json!({"error": error}), began: false })
    };
    match effect.status? {
        Status::Before500 => Some(broken()),
        Status::Unavailable503 => error(503, "api_error", "service_unavailable"),
        Status::TooMany429 => error(429, "invalid_request_error", "rate_limit"),
        Status::InUse409 => Some(in_use()),
        Status::Bad400 => error(400, "invalid_request_error", "parameter_invalid"),
        Status::Declined402 => error(402, "card_error", "card_declined"),
        Status::Unauthorised401 => error(401, "invalid_request_error", "api_key_expired"),
        Status::Forbidden403 => error(403, "invalid_request_error", "more_permissions_required"),
        Status::Missing404 => error(404, "invalid_request_error", "resource_missing"),
        Status::Stored500 | Status::After500 | Status::Stored402 => None,
    }
}

fn broken() -> Reply {
    let error = json!({"type": "api_error", "message": "An unknown error occurred."});
    Reply { status: 500, body: json!({"error": error}), began: true }
}

fn declined() -> Reply {
    let error = json!({"type": "card_error", "code": "card_declined", "message": "As the script says."});
    Reply { status: 402, body: json!({"error": error}), began: true }
}

fn in_use() -> Reply {
    let error = json!({"type": "idempotency_error", "code": "idempotency_key_in_use",
        "message": "There is currently another in-progress request using this Idempotent Key."});
    Reply { status: 409, body: json!({"error": error}), began: false }
}

fn route<'p>(method: &Method, path: &'p str) -> Option<(&'static str, Option<&'p str>)> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let get = method == Method::GET;
    let found = match (get, &segments[..]) {
        (true, ["v1", "payment_intents"]) => ("list", None),
        (true, ["v1", "payment_intents", "search"]) => ("search", None),
        (true, ["v1", "payment_intents", id]) => ("get", Some(*id)),
        (true, ["v1", "refunds"]) => ("list_refunds", None),
        (true, ["v1", "refunds", id]) => ("get_refund", Some(*id)),
        (true, ["v1", "balance_transactions"]) => ("balance_transactions", None),
        (true, ["v1", "charges", id]) => ("charge", Some(*id)),
        (true, ["v1", "events"]) => ("events", None),
        (true, ["v1", "events", id]) => ("event", Some(*id)),
        (true, ["v1", "terminal", "readers"]) => ("readers", None),
        (true, ["v1", "terminal", "readers", id]) => ("reader", Some(*id)),
        (false, ["v1", "terminal", "readers", id, "process_payment_intent"]) => ("process", Some(*id)),
        (false, ["v1", "terminal", "readers", id, "cancel_action"]) => ("cancel_action", Some(*id)),
        (false, ["v1", "test_helpers", "terminal", "readers", id, "present_payment_method"]) => ("present", Some(*id)),
        (false, ["v1", "payment_intents"]) => ("create", None),
        (false, ["v1", "payment_intents", id, "confirm"]) => ("confirm", Some(*id)),
        (false, ["v1", "payment_intents", id, "capture"]) => ("capture", Some(*id)),
        (false, ["v1", "payment_intents", id, "cancel"]) => ("cancel", Some(*id)),
        (false, ["v1", "refunds"]) => ("refund", None),
        (false, ["v1", "payment_methods"]) => ("payment_method", None),
        _ => return None,
    };
    (get || method == Method::POST).then_some(found)
}

async fn sleep(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}
