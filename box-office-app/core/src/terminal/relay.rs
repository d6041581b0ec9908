//! Asks the hub for what a screen wants, with the tokens that screens don't have.
//!
//! A write is sent once for each call: whether to send it again, under the same idempotency key, is its caller's to say,
//! who knows what was asked. No answer is [`AskError::NoAnswer`]; nobody may read it as "not done".

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use fullhouse_protocol::{orders::Order, shift::ShiftReport};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::{Address, Role, Token, may::may_ask};
pub use crate::pulse::Reach;
use crate::pulse::{Heart, SILENCE};

const STAFF: HeaderName = HeaderName::from_static("fullhouse-staff");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// A stadium's geometry has about 5 MB.
const ANSWER_BYTES_MAX: usize = 32 << 20;
const BODY_BYTES_MAX: usize = 1 << 20;

/// What a screen asks for.
#[derive(Debug, Clone, Deserialize)]
pub struct Ask {
    pub method: String,
    /// Path and query.
    pub target: String,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub key: Option<String>,
}

/// What the hub answered, a refusal included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// From `Retry-After`; 0 for none.
    pub retry_after_s: u16,
    pub body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("this terminal's screens don't ask for that")]
    NotAllowed,
    /// Nobody knows whether the hub did it.
    #[error("no answer from the hub")]
    NoAnswer,
    #[error("more than can be sent or read")]
    TooLarge,
    /// The hub's `application/problem+json`.
    #[error("the hub refused: {code}")]
    Refused { status: u16, code: String, detail: String },
}

/// The way to one hub. Clones share it; the heartbeat ends with the last of them.
#[derive(Clone)]
pub struct Relay(Arc<Inner>);

struct Inner {
    hub: Address,
    client: Client,
    role: Option<Role>,
    token: Option<Token>,
    staff: RwLock<Option<Token>>,
    /// Of somebody who came to approve one request.
    approver: RwLock<Option<Token>>,
    staff_id: RwLock<Option<Uuid>>,
    sockets: AtomicU32,
    heart: Heart,
}

impl Relay {
    /// To a hub of which this machine is a terminal. On a runtime: the heart begins to beat.
    pub fn of_terminal(hub: Address, role: Role, token: Token) -> reqwest::Result<Self> {
        Self::new(hub, Some(role), Some(token))
    }

    /// To a hub that doesn't know this machine yet.
    pub fn of_stranger(hub: Address) -> reqwest::Result<Self> {
        Self::new(hub, None, None)
    }

    fn new(hub: Address, role: Option<Role>, token: Option<Token>) -> reqwest::Result<Self> {
        let client = Client::builder()
            .http1_only() // the map's socket is an upgrade of it
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .redirect(reqwest::redirect::Policy::none()) // a token goes where it was meant to go
            .build()?;
        let (asks, address) = (client.clone(), format!("{}/healthz", hub.as_str()));
        let heart = Heart::of(move || is_there(asks.get(&address)));
        let (staff, approver, staff_id) = (RwLock::new(None), RwLock::new(None), RwLock::new(None));
        let sockets = AtomicU32::new(0);
        Ok(Self(Arc::new(Inner { hub, client, role, token, staff, approver, staff_id, sockets, heart })))
    }

    /// Follows whether the hub can be reached.
    pub fn reach(&self) -> watch::Receiver<Reach> {
        self.0.heart.reach()
    }

    /// The same, for a till that sells beside these screens.
    pub fn heart(&self) -> Heart {
        self.0.heart.clone()
    }

    pub fn hub(&self) -> &Address {
        &self.0.hub
    }

    /// What a screen wants; refused unless its role needs it.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, AskError> {
        let role = self.0.role.ok_or(AskError::NotAllowed)?;
        if !may_ask(role, &ask.method, &ask.target) {
            return Err(AskError::NotAllowed);
        }
        self.send(&ask).await
    }

    /// The same, in the name of whoever approves it ([`Relay::approve`]).
    pub async fn ask_approved(&self, ask: Ask) -> Result<Answer, AskError> {
        let role = self.0.role.ok_or(AskError::NotAllowed)?;
        let approver = held(&self.0.approver).ok_or(AskError::NotAllowed)?;
        if !may_ask(role, &ask.method, &ask.target) {
            return Err(AskError::NotAllowed);
        }
        answered(self.request_as(&ask, Some(approver))?).await
    }

    /// Makes this machine a terminal. `key` is the same whenever the same code is sent again.
    pub async fn enrol(&self, code: &str, key: Uuid) -> Result<Enrolled, AskError> {
        self.post("/api/box-office/enrol", json!({ "code": code, "key": key })).await
    }

    /// Who the hub says this terminal is.
    pub async fn terminal(&self) -> Result<Value, AskError> {
        let ask = Ask { method: "GET".into(), target: "/api/box-office/terminal".into(), body: None, key: None };
        read(self.send(&ask).await?)
    }

    /// Signs somebody in by `{name, password}` or `{name, pin}`: who it is, without the token, which stays here.
    pub async fn sign_in(&self, credentials: Value) -> Result<Value, AskError> {
        keep(&self.0.staff, None);
        let (who, token) = self.person(credentials).await?;
        self.works(&who);
        keep(&self.0.staff, Some(token));
        Ok(who)
    }

    /// Goes on with a session that a page has: it keeps its token itself, which the desktop's never do.
    pub async fn take_up(&self, token: Token) -> Result<(), AskError> {
        if held(&self.0.staff).is_some_and(|known| known == token) {
            return Ok(());
        }
        keep(&self.0.staff, Some(token));
        let ask = Ask { method: "GET".into(), target: "/api/box-office/staff".into(), body: None, key: None };
        self.works(&read(self.send(&ask).await?)?);
        Ok(())
    }

    /// Signs out, here at once and at the hub if it can be reached: without the token nobody can go on.
    pub async fn sign_out(&self) {
        self.leave(&self.0.staff).await;
    }

    /// Signs somebody in beside whoever is, for [`Relay::ask_approved`], until [`Relay::end_approval`].
    pub async fn approve(&self, credentials: Value) -> Result<Value, AskError> {
        let (who, token) = self.person(credentials).await?;
        keep(&self.0.approver, Some(token));
        Ok(who)
    }

    pub async fn end_approval(&self) {
        self.leave(&self.0.approver).await;
    }

    /// Who it is, and their token apart from it.
    async fn person(&self, credentials: Value) -> Result<(Value, Token), AskError> {
        let mut who: Value = self.post("/api/box-office/sign-in", credentials).await?;
        let token = who.as_object_mut().and_then(|fields| fields.remove("token"));
        let Some(Value::String(token)) = token else {
            return Err(AskError::NoAnswer);
        };
        Ok((who, Token::new(token)))
    }

    async fn leave(&self, person: &RwLock<Option<Token>>) {
        let ask = Ask { method: "POST".into(), target: "/api/box-office/sign-out".into(), body: None, key: None };
        let Some(token) = held(person) else { return };
        keep(person, None);
        if let Ok(request) = self.request_as(&ask, Some(token)) {
            let _ = request.send().await; // a session that the hub keeps ends by its time
        }
    }

    /// Whether somebody is signed in, as far as is known here.
    pub fn is_signed_in(&self) -> bool {
        held(&self.0.staff).is_some()
    }

    /// Who that is.
    pub fn staff_id(&self) -> Option<Uuid> {
        let known = *self.0.staff_id.read().unwrap_or_else(PoisonError::into_inner);
        known.filter(|_| self.is_signed_in())
    }

    pub(super) fn staff_token(&self) -> Option<Token> {
        held(&self.0.staff)
    }

    fn works(&self, who: &Value) {
        let id = who["staff_id"].as_str().and_then(|id| id.parse().ok());
        *self.0.staff_id.write().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// An order as this terminal may see it: any at a counter, its own at a kiosk.
    pub async fn order(&self, id: Uuid) -> Result<Order, AskError> {
        let target = match self.0.role {
            Some(Role::Counter) => format!("/api/staff/orders/{id}"),
            _ => format!("/api/box-office/card-sales/{id}"),
        };
        let ask = Ask { method: "GET".into(), target, body: None, key: None };
        Ok(read::<OfOrder>(self.send(&ask).await?)?.order)
    }

    /// A shift of this terminal's; none named: the open one.
    pub async fn shift(&self, id: Option<Uuid>) -> Result<ShiftReport, AskError> {
        let shift = id.map_or_else(|| "current".to_owned(), |id| id.to_string());
        let target = format!("/api/box-office/shifts/{shift}");
        read(self.send(&Ask { method: "GET".into(), target, body: None, key: None }).await?)
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, target: &str, body: Value) -> Result<T, AskError> {
        let ask = Ask { method: "POST".into(), target: target.into(), body: Some(body), key: None };
        read(self.send(&ask).await?)
    }

    pub(super) async fn send(&self, ask: &Ask) -> Result<Answer, AskError> {
        answered(self.request_as(ask, held(&self.0.staff))?).await
    }

    fn request_as(&self, ask: &Ask, person: Option<Token>) -> Result<RequestBuilder, AskError> {
        let method = Method::from_bytes(ask.method.as_bytes()).map_err(|_| AskError::NotAllowed)?;
        let mut request = self.authorized_as(method, &ask.target, person)?;
        if let Some(key) = &ask.key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(body) = &ask.body {
            let body = serde_json::to_vec(body).map_err(|_| AskError::TooLarge)?;
            if body.len() > BODY_BYTES_MAX {
                return Err(AskError::TooLarge);
            }
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        Ok(request)
    }

    /// A request with the tokens that there are.
    pub(super) fn authorized(&self, method: Method, target: &str) -> Result<RequestBuilder, AskError> {
        self.authorized_as(method, target, held(&self.0.staff))
    }

    fn authorized_as(&self, method: Method, target: &str, person: Option<Token>) -> Result<RequestBuilder, AskError> {
        let mut request = self.0.client.request(method, format!("{}{target}", self.0.hub.as_str()));
        if let Some(token) = &self.0.token {
            request = request.header(AUTHORIZATION, secret(&format!("Bearer {}", token.reveal()))?);
        }
        if let Some(person) = person {
            request = request.header(STAFF, secret(person.reveal())?);
        }
        Ok(request)
    }

    pub(super) fn sockets(&self) -> &AtomicU32 {
        &self.0.sockets
    }

    /// Sockets that are open now; for tests.
    pub fn sockets_open(&self) -> u32 {
        self.0.sockets.load(Ordering::Relaxed)
    }
}

fn held(person: &RwLock<Option<Token>>) -> Option<Token> {
    person.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn keep(person: &RwLock<Option<Token>>, token: Option<Token>) {
    *person.write().unwrap_or_else(PoisonError::into_inner) = token;
}

async fn answered(request: RequestBuilder) -> Result<Answer, AskError> {
    let response = request.send().await.map_err(|_| AskError::NoAnswer)?;
    let status = response.status().as_u16();
    let retry_after_s = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = bounded(response).await?;
    Ok(Answer { status, retry_after_s: retry_after_s.unwrap_or(0), body })
}

/// What both ways to look an order up answer with.
#[derive(Deserialize)]
struct OfOrder {
    order: Order,
}

/// `POST /api/box-office/enrol`.
#[derive(Debug, Clone, Deserialize)]
pub struct Enrolled {
    pub terminal_id: Uuid,
    pub name: String,
    pub role: Role,
    pub attended: bool,
    #[serde(deserialize_with = "token")]
    pub token: Token,
}

fn token<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Token, D::Error> {
    String::deserialize(from).map(Token::new)
}

fn secret(text: &str) -> Result<HeaderValue, AskError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| AskError::NotAllowed)?;
    value.set_sensitive(true);
    Ok(value)
}

pub(super) fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, AskError> {
    if (200..300).contains(&answer.status) {
        return serde_json::from_slice(&answer.body).map_err(|_| AskError::NoAnswer);
    }
    #[derive(Deserialize)]
    struct Problem {
        code: String,
        #[serde(default)]
        title: String,
        #[serde(default)]
        detail: Option<String>,
    }
    match serde_json::from_slice::<Problem>(&answer.body) {
        Ok(problem) => Err(AskError::Refused {
            status: answer.status,
            code: problem.code,
            detail: problem.detail.unwrap_or(problem.title),
        }),
        Err(_) => Err(AskError::NoAnswer), // a proxy's page
    }
}

async fn bounded(mut response: Response) -> Result<Vec<u8>, AskError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| AskError::NoAnswer)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(AskError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn is_there(request: RequestBuilder) -> bool {
    request.timeout(SILENCE).send().await.is_ok_and(|answer| answer.status() == StatusCode::OK)
}
