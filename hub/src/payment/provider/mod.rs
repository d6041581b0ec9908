//! Our client of the provider's v1 wire (Stripe's): small, and honest about what it does not know.
//!
//! Invariants
//! - A timeout is not a decline. [`Outcome::NotSent`] is claimed only when no byte of the request can
//!   have left; everything that is neither a clear yes nor a clear no is [`Outcome::Unknown`].
//! - Nothing is repeated here: whoever wrote the call down decides that.
//! - Keys never reach a log or `Debug`; live and test mode can't be mixed.

pub mod money; // minor units, ours and theirs
pub mod call; // a call as it is written down
pub mod wire; // the provider's objects
pub mod figures; // how it does

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use reqwest::{
    StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
};
use serde_json::Value;

pub use call::{Back, Book, CARD_PRESENT, Call, NewIntent, Op};
pub use figures::Figures;
pub use wire::{BalanceTransaction, Card, IntentStatus, Page, PaymentIntent, Reader, Refund, RefundStatus, Refusal};

use crate::config;

/// More than the largest honest answer; a longer one is garbage.
const ANSWER_MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Test,
    Live,
}

impl Mode {
    fn of_key(key: &str) -> Option<Mode> {
        let rest = ["sk_", "rk_", "pk_"].iter().find_map(|p| key.strip_prefix(p))?;
        [("test_", Mode::Test), ("live_", Mode::Live)].into_iter().find(|(p, _)| rest.starts_with(p)).map(|(_, m)| m)
    }

    pub fn is_live(self) -> bool {
        self == Mode::Live
    }
}

/// What a call came to.
#[derive(Debug)]
pub enum Outcome {
    /// Done, and this is the object.
    Done(Value),
    /// The card was refused.
    Declined(Refusal),
    /// The request was refused: nothing was done, and the same request will not fare better.
    Rejected(Refusal),
    /// Our key or our rights were refused (401, 403): nothing was done and nothing is kept under the call's key. It
    /// says nothing about the card, the intent or the refund; the same request is made again once we are let in.
    NotServed(Refusal),
    /// Not one byte was sent.
    NotSent,
    /// It may have been done or not: ask first.
    Unknown,
}

/// An outcome, and what is written down beside it.
#[derive(Debug)]
pub struct Answer {
    pub outcome: Outcome,
    pub http: Option<StatusCode>,
    /// The JSON as it came, without the client's secret.
    pub body: Option<Value>,
    pub request_id: Option<String>,
    /// The provider answered from what it had stored under the key.
    pub replayed: bool,
    pub retry_after: Option<Duration>,
    /// By the provider's clock, to the second.
    pub date: Option<DateTime<Utc>>,
    /// From sending to knowing, or to giving up.
    pub took: Duration,
}

impl Answer {
    /// The provider is there for us: it answered, and neither put us off nor turned our key away.
    pub fn was_served(&self) -> bool {
        let turned_away = matches!(self.outcome, Outcome::NotServed(_))
            || matches!(self.http, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN));
        self.http.is_some_and(|s| !turned_away && !s.is_server_error() && s != StatusCode::TOO_MANY_REQUESTS)
    }

    /// The object of a call that was done. An answer that can't be read, or comes from the other mode, is not known.
    pub fn object<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        match &self.outcome {
            Outcome::Done(value) => serde_json::from_value(value.clone()).ok(),
            _ => None,
        }
    }

    fn nothing(outcome: Outcome) -> Self {
        Self {
            outcome,
            http: None,
            body: None,
            request_id: None,
            replayed: false,
            retry_after: None,
            date: None,
            took: Duration::ZERO,
        }
    }
}

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    headers: HeaderMap,
    mode: Mode,
    timeout: Duration,
    read_timeout: Duration,
    figures: Arc<Figures>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Client {
    /// Refuses keys of different modes, and a live key on its way over an open line.
    pub fn new(config: &config::Payment) -> anyhow::Result<Self> {
        let key = config.secret_key.reveal();
        let mode = Mode::of_key(key).context("payment.secret_key is neither a test key nor a live one")?;
        let publishable = Mode::of_key(&config.publishable_key);
        ensure!(
            publishable == Some(mode) && config.publishable_key.starts_with("pk_") && !key.starts_with("pk_"),
            "payment.secret_key and payment.publishable_key are not of one mode"
        );
        let url: Url = config.provider_url.parse().context("payment.provider_url")?;
        ensure!(mode == Mode::Test || url.scheme() == "https", "a live key travels over https only");
        let loopback = url.host_str().is_some_and(|h| matches!(h, "localhost" | "127.0.0.1" | "[::1]"));

        let mut headers = HeaderMap::new();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {key}")).context("payment.secret_key")?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        headers.insert("stripe-version", HeaderValue::from_str(&config.api_version).context("payment.api_version")?);

        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("fullhouse/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never()) // whoever wrote the call down decides
            .connect_timeout(Duration::from_secs(3));
        if loopback {
            builder = builder.no_proxy();
        }
        let timeout = Duration::from_millis(config.timeout_ms);
        Ok(Self {
            http: builder.build().context("the HTTP client")?,
            base: config.provider_url.trim_end_matches('/').to_owned(),
            headers,
            mode,
            timeout,
            read_timeout: timeout / 2,
            figures: Arc::default(),
        })
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How the provider does, as far as this client has noticed.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Makes the call once, and waits for its answer no longer than its time.
    pub async fn send(&self, call: &Call) -> Answer {
        let sent = Instant::now();
        let mut answer = self.try_once(call).await;
        answer.took = sent.elapsed();
        self.figures.note(call.op, answer.took, answer.was_served(), answer.date);
        answer
    }

    async fn try_once(&self, call: &Call) -> Answer {
        let url = format!("{}{}", self.base, call.path);
        let timeout = if call.op.is_read() { self.read_timeout } else { self.timeout };
        let mut request = if call.op.is_read() {
            self.http.get(url)
        } else {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            self.http.post(url).header(CONTENT_TYPE, form).body(call.body.clone())
        };
        request = request.headers(self.headers.clone()).timeout(timeout);
        if let Some(key) = &call.idem_key {
            request = request.header("idempotency-key", key);
        }
        let response = match request.send().await {
            Ok(response) => response,
            // A connection that was never made carried nothing. Whatever else failed may have been heard.
            Err(error) if error.is_connect() || error.is_builder() => return Answer::nothing(Outcome::NotSent),
            Err(_) => return Answer::nothing(Outcome::Unknown),
        };
        let status = response.status();
        let text = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let mut answer = Answer {
            outcome: Outcome::Unknown,
            http: Some(status),
            body: None,
            request_id: text("request-id"),
            replayed: text("idempotent-replayed").as_deref() == Some("true"),
            retry_after: text(RETRY_AFTER.as_str()).and_then(|s| s.parse().ok()).map(Duration::from_secs),
            date: text(DATE.as_str()).and_then(|s| DateTime::parse_from_rfc2822(&s).ok()).map(|d| d.to_utc()),
            took: Duration::ZERO,
        };
        if let Some(mut body) = read_json(response).await {
            redact(&mut body);
            answer.outcome = self.judge(status, &body);
            answer.body = Some(body);
        }
        answer
    }

    fn judge(&self, status: StatusCode, body: &Value) -> Outcome {
        let refusal = || serde_json::from_value::<wire::ErrorBody>(body.clone()).map(|e| e.error).unwrap_or_default();
        let explained = body.get("error").is_some_and(Value::is_object);
        match status.as_u16() {
            200..=299 if body.get("object").is_none_or(|o| !o.is_string()) => Outcome::Unknown,
            200..=299 if body.get("livemode").and_then(Value::as_bool).is_some_and(|l| l != self.mode.is_live()) => {
                tracing::error!("the provider answered in the other mode than that of our key");
                Outcome::Unknown
            }
            200..=299 => Outcome::Done(body.clone()),
            401 | 403 if explained => Outcome::NotServed(refusal()),
            400..=499 if explained && refusal().is_about_our_key() => Outcome::NotServed(refusal()),
            402 if explained => Outcome::Declined(refusal()),
            // In use, or too many: what became of the first request is not known yet.
            409 | 429 => Outcome::Unknown,
            400..=499 if explained => Outcome::Rejected(refusal()),
            _ => Outcome::Unknown,
        }
    }
}

/// The body, if all of it arrived, it is no longer than it may be, and it is JSON.
async fn read_json(mut response: reqwest::Response) -> Option<Value> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if bytes.len() + chunk.len() > ANSWER_MAX_BYTES {
            return None;
        }
        bytes.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&bytes).ok()
}

/// With its client secret a browser may act on an intent: it is not ours to keep.
fn redact(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("client_secret");
            map.values_mut().for_each(redact);
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Secret};

    fn config(url: &str, secret: &str, publishable: &str) -> config::Payment {
        let mut config = Config::defaults().payment;
        config.provider_url = url.into();
        config.secret_key = Secret::new(secret);
        config.publishable_key = publishable.into();
        config
    }

    #[test]
    fn live_and_test_keys_do_not_mix() {
        assert!(Client::new(&config("http://127.0.0.1:1", "sk_test_a", "pk_test_a")).is_ok());
        assert!(Client::new(&config("https://api.example", "sk_live_a", "pk_live_a")).is_ok());
        for (url, secret, publishable) in [
            ("https://api.example", "sk_live_a", "pk_test_a"),
            ("https://api.example", "sk_test_a", "pk_live_a"),
            ("http://api.example", "sk_live_a", "pk_live_a"),
            ("https://api.example", "pk_test_a", "pk_test_a"),
            ("https://api.example", "sk_test_a", "sk_test_a"),
            ("https://api.example", "secret", "pk_test_a"),
        ] {
            assert!(Client::new(&config(url, secret, publishable)).is_err(), "{url} {secret} {publishable}");
        }
    }

    #[test]
    fn keys_are_not_printed() {
        let client = Client::new(&config("http://127.0.0.1:1", "sk_test_hush", "pk_test_a")).unwrap();
        assert!(!format!("{client:?} {:?}", client.headers).contains("hush"));
    }

    #[test]
    fn answers_are_judged_by_what_is_certain() {
        let client = Client::new(&config("http://127.0.0.1:1", "sk_test_a", "pk_test_a")).unwrap();
        let judge = |status: u16, body: Value| client.judge(StatusCode::from_u16(status).unwrap(), &body);
        let intent = serde_json::json!({"object": "payment_intent", "livemode": false});
        let error = serde_json::json!({"error": {"type": "card_error", "code": "card_declined"}});
        assert!(matches!(judge(200, intent.clone()), Outcome::Done(_)));
        assert!(matches!(judge(200, serde_json::json!({"object": "x", "livemode": true})), Outcome::Unknown));
        assert!(matches!(judge(200, serde_json::json!({"html": 1})), Outcome::Unknown));
        assert!(matches!(judge(402, error.clone()), Outcome::Declined(r) if r.reason() == "card_declined"));
        assert!(matches!(judge(400, error.clone()), Outcome::Rejected(_)));
        assert!(matches!(judge(403, error.clone()), Outcome::NotServed(_)));
        let expired = serde_json::json!({"error": {"type": "invalid_request_error", "code": "api_key_expired"}});
        for status in [400, 401, 402] {
            assert!(matches!(judge(status, expired.clone()), Outcome::NotServed(_)), "{status}");
        }
        assert!(matches!(judge(401, serde_json::json!("a proxy's page")), Outcome::Unknown));
        for status in [402, 404] {
            assert!(matches!(judge(status, serde_json::json!("a proxy's page")), Outcome::Unknown), "{status}");
        }
        for status in [301, 409, 429, 500, 502, 503] {
            assert!(matches!(judge(status, error.clone()), Outcome::Unknown), "{status}");
        }
    }

    #[tokio::test]
    async fn a_line_that_was_never_open_carried_nothing() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::new(&config(&url, "sk_test_a", "pk_test_a")).unwrap();
        assert!(matches!(client.send(&Call::get("pi_1")).await.outcome, Outcome::NotSent));
    }
}
