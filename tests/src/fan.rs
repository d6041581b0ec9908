//! A fan: a browser's requests and nothing else.

use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::database::Database;

/// What the hub answered.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: header::HeaderMap,
    /// `Null` if there was no JSON in it.
    pub body: Value,
}

impl Answer {
    /// The body of a success; fails the test with the problem otherwise.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "refused: {} {}", self.status, self.body);
        self.body
    }

    /// The code of a refusal; fails the test if it was none.
    #[track_caller]
    pub fn code(&self) -> &str {
        assert!(!self.status.is_success(), "not refused: {} {}", self.status, self.body);
        self.body["code"].as_str().unwrap_or_else(|| panic!("no code: {} {}", self.status, self.body))
    }

    pub async fn read(response: reqwest::Response) -> reqwest::Result<Self> {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await?;
        Ok(Self { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }
}

/// A browser and whoever sits before it.
#[derive(Clone)]
pub struct Fan {
    base: String,
    http: reqwest::Client,
    cookie: Option<String>,
    pub email: String,
}

pub const PASSWORD: &str = "correct horse battery";

impl Fan {
    /// Somebody who has not signed in.
    pub fn stranger(hub_url: &str) -> Self {
        let http = reqwest::Client::builder().timeout(std::time::Duration::from_secs(30)).build().expect("a client");
        Self { base: hub_url.to_owned(), http, cookie: None, email: format!("{}@example.com", Uuid::new_v4().simple()) }
    }

    /// Somebody with an account of their own, through the form.
    pub async fn sign_up(hub_url: &str) -> Self {
        let mut fan = Self::stranger(hub_url);
        let account = json!({ "email": fan.email, "name": "A Fan", "password": PASSWORD });
        fan.take_session(fan.post("/api/accounts", account).await);
        fan
    }

    pub async fn sign_in(hub_url: &str, email: &str, password: &str) -> Self {
        let mut fan = Self::stranger(hub_url);
        email.clone_into(&mut fan.email);
        fan.take_session(fan.post("/api/session", json!({ "email": email, "password": password })).await);
        fan
    }

    /// Somebody who brings a session that exists.
    pub fn with_session(hub_url: &str, token: &str) -> Self {
        let mut fan = Self::stranger(hub_url);
        fan.cookie = Some(format!("fh_session={token}"));
        fan
    }

    fn take_session(&mut self, answer: Answer) {
        let cookie = answer.headers.get_all(header::SET_COOKIE).iter().find_map(|c| {
            let cookie = c.to_str().ok()?.split(';').next()?;
            cookie.starts_with("fh_session=").then(|| cookie.to_owned())
        });
        answer.ok();
        self.cookie = Some(cookie.expect("a session's cookie"));
    }

    /// The same person and session at another hub.
    pub fn at(&self, hub_url: &str) -> Self {
        Self { base: hub_url.to_owned(), ..self.clone() }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// Any request, as the page would send it.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        request = request.header("sec-fetch-site", "same-origin");
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, cookie);
        }
        request
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.expect("the hub answers");
        Answer::read(response).await.expect("the hub answers")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    /// With an idempotency key.
    pub async fn post_once(&self, path: &str, key: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).header("idempotency-key", key).json(&body)).await
    }

    pub async fn hold(&self, event: i64, seats: &[i32]) -> Answer {
        self.hold_with(event, json!({ "seats": seats })).await
    }

    /// The whole body, under a key of its own.
    pub async fn hold_with(&self, event: i64, body: Value) -> Answer {
        self.post_once(&format!("/api/events/{event}/hold"), &Uuid::new_v4().to_string(), body).await
    }

    pub async fn best(&self, event: i64, count: u32) -> Answer {
        self.hold_with(event, json!({ "best": { "count": count } })).await
    }

    pub async fn my_hold(&self, event: i64) -> Answer {
        self.get(&format!("/api/events/{event}/hold")).await
    }

    pub async fn release(&self, hold: &str) -> Answer {
        self.send(self.request(Method::DELETE, &format!("/api/holds/{hold}"))).await
    }

    pub async fn release_seats(&self, hold: &str, seats: &[i32]) -> Answer {
        self.post(&format!("/api/holds/{hold}/release"), json!({ "seats": seats })).await
    }

    pub async fn checkout(&self, hold: &str) -> Answer {
        self.post(&format!("/api/holds/{hold}/checkout"), json!({ "tickets": [] })).await
    }

    pub async fn pay(&self, order: &Value, key: &str, payment_method: &str) -> Answer {
        let id = order["id"].as_str().expect("an order has an id");
        let body = json!({
            "payment_method": payment_method,
            "amount_minor": order["total_minor"],
            "currency": order["currency"],
        });
        self.post_once(&format!("/api/orders/{id}/pay"), key, body).await
    }

    pub async fn order(&self, id: &str) -> Answer {
        self.get(&format!("/api/orders/{id}")).await
    }

    pub async fn orders(&self) -> Answer {
        self.get("/api/orders").await
    }
}

/// Many fans with accounts and sessions, written down at once: signing up costs a password hash each,
/// and a race of two hundred buyers is not about that.
pub async fn many(database: &Database, hub_url: &str, count: usize) -> Vec<Fan> {
    let tokens: Vec<String> = (0..count).map(|_| Uuid::new_v4().simple().to_string()).collect();
    let hashes: Vec<Vec<u8>> = tokens.iter().map(|token| Sha256::digest(token).to_vec()).collect();
    let ids: Vec<Uuid> = tokens.iter().map(|_| Uuid::now_v7()).collect();
    let emails: Vec<String> = tokens.iter().map(|token| format!("{token}@example.com")).collect();
    let mut tx = database.pool().begin().await.expect("a transaction");
    sqlx::query(
        "insert into account (id, email, name, password_hash) \
         select id, email, 'A Fan', '' from unnest($1::uuid[], $2::text[]) as a (id, email)",
    )
    .bind(&ids)
    .bind(&emails)
    .execute(&mut *tx)
    .await
    .expect("accounts");
    sqlx::query(
        "insert into session (token_hash, account_id, expires_at) \
         select hash, id, clock_timestamp() + interval '1 year' from unnest($1::bytea[], $2::uuid[]) as s (hash, id)",
    )
    .bind(&hashes)
    .bind(&ids)
    .execute(&mut *tx)
    .await
    .expect("sessions");
    tx.commit().await.expect("accounts and sessions");
    // Behind one client, whose connections they share.
    let stranger = Fan::stranger(hub_url);
    let fan = |(token, email)| Fan { email, cookie: Some(format!("fh_session={token}")), ..stranger.clone() };
    tokens.iter().zip(emails).map(fan).collect()
}
