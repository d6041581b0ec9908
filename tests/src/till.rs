//! A till: a terminal's token and the box office's addresses.

use fullhouse::auth;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{clock::Clock, database::Database, eventually, fan::Answer};

#[derive(Clone)]
pub struct Till {
    base: String,
    token: String,
    /// Of whoever has signed in at it.
    staff: Option<String>,
    http: reqwest::Client,
}

impl Till {
    /// A counter's terminal, enrolled as the command line does it.
    pub async fn enrol(database: &Database, hub_url: &str, name: &str) -> Self {
        Self::enrol_as("counter", database, hub_url, name).await
    }

    /// A terminal of this role: `counter` or `kiosk`.
    pub async fn enrol_as(role: &str, database: &Database, hub_url: &str, name: &str) -> Self {
        let (_, token) = auth::enrol(database.pool(), name, role).await.expect("the terminal is enrolled");
        Self::with_token(hub_url, token.reveal())
    }

    /// A card reader stands at this terminal from now on.
    pub async fn place_reader(database: &Database, terminal: &str, reader: &str) {
        auth::place_reader(database.pool(), terminal, reader).await.expect("a terminal");
    }

    /// Whoever has the token is the terminal.
    pub fn with_token(hub_url: &str, token: &str) -> Self {
        Self { base: hub_url.to_owned(), token: token.to_owned(), staff: None, http: reqwest::Client::new() }
    }

    /// The same terminal with somebody behind it, by their session.
    pub fn attended_by(mut self, staff: &str) -> Self {
        self.staff = Some(staff.to_owned());
        self
    }

    /// The session of whoever is signed in.
    pub fn staff(&self) -> Option<&str> {
        self.staff.as_deref()
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        match &self.staff {
            Some(staff) => request.header("fullhouse-staff", staff),
            None => request,
        }
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.try_post(path, body).await.expect("the hub answers")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_unless(path, "").await
    }

    /// Unless it is what this tag names.
    pub async fn get_unless(&self, path: &str, tag: &str) -> Answer {
        let request = self.request(Method::GET, path).header("if-none-match", tag);
        Answer::read(request.send().await.expect("the hub answers")).await.expect("the hub answers")
    }

    /// Under a key of the test's own.
    pub async fn post_once(&self, path: &str, key: &str, body: Value) -> Answer {
        self.send(path, key, body).await.expect("the hub answers")
    }

    /// Gives back of an order, under a key.
    pub async fn refund(&self, order: &Value, key: &str, body: Value) -> Answer {
        let id = order["id"].as_str().expect("an order's id");
        self.post_once(&format!("/api/staff/orders/{id}/refunds"), key, body).await
    }

    /// Under a key, of a hub that may die meanwhile.
    pub async fn try_post_once(&self, path: &str, key: &str, body: Value) -> reqwest::Result<Answer> {
        self.send(path, key, body).await
    }

    /// From a hub that may die meanwhile.
    pub async fn try_get(&self, path: &str) -> reqwest::Result<Answer> {
        Answer::read(self.request(Method::GET, path).send().await?).await
    }

    async fn try_post(&self, path: &str, body: Value) -> reqwest::Result<Answer> {
        self.send(path, &Uuid::new_v4().to_string(), body).await
    }

    async fn send(&self, path: &str, key: &str, body: Value) -> reqwest::Result<Answer> {
        let request = self.request(Method::POST, path).header("idempotency-key", key).json(&body);
        Answer::read(request.send().await?).await
    }

    /// Holds seats for a walk-in customer, who is a buyer of their own.
    pub async fn hold(&self, event: i64, seats: &[i32]) -> Answer {
        self.try_hold(event, seats).await.expect("the hub answers")
    }

    /// The same, of a hub that may die meanwhile.
    pub async fn try_hold(&self, event: i64, seats: &[i32]) -> reqwest::Result<Answer> {
        self.try_post("/api/box-office/holds", json!({ "event_id": event, "seats": seats })).await
    }

    /// Sells what [`Till::hold`] answered for cash that is handed over.
    pub async fn sell_for_cash(&self, held: &Value, received_minor: i64) -> Answer {
        self.try_sell_for_cash(held, received_minor).await.expect("the hub answers")
    }

    /// The same, of a hub that may die meanwhile.
    pub async fn try_sell_for_cash(&self, held: &Value, received_minor: i64) -> reqwest::Result<Answer> {
        let tender = json!({ "kind": "cash", "received_minor": received_minor });
        let body =
            json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [], "tender": tender });
        self.try_post("/api/box-office/sales", body).await
    }

    /// Has what [`Till::hold`] answered paid by a card at a reader.
    pub async fn sell_by_card(&self, held: &Value, key: &str, reader: &str) -> Answer {
        let body =
            json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [], "reader": reader });
        self.post_once("/api/box-office/card-sales", key, body).await
    }

    /// How a sale by card goes.
    pub async fn card_sale(&self, order: &Value) -> Answer {
        let path = format!("/api/box-office/card-sales/{}", order["id"].as_str().expect("an order"));
        Answer::read(self.request(Method::GET, &path).send().await.expect("the hub answers"))
            .await
            .expect("the hub answers")
    }

    /// Until the attempt of a sale by card is in one of these states; whenever only time is waited for, it is moved there.
    pub async fn until_in_time(&self, clock: &Clock, order: &Value, states: &[&str]) -> Value {
        let id: Uuid = order["id"].as_str().expect("an order").parse().expect("its id");
        eventually(&format!("the attempt is {states:?}"), || async {
            let order = self.card_sale(order).await.ok()["order"].clone();
            if states.contains(&order["attempt"]["state"].as_str().unwrap_or_default()) {
                return Some(order);
            }
            clock.advance_to_next_look(id).await;
            None
        })
        .await
    }

    /// The clerk stops the reader.
    pub async fn stop_card(&self, order: &Value, keep_if_paid: bool) -> Answer {
        let path = format!("/api/box-office/card-sales/{}/stop", order["id"].as_str().expect("an order"));
        self.post(&path, json!({ "keep_if_paid": keep_if_paid })).await
    }

    /// The same terminal at another hub.
    pub fn at(&self, hub_url: &str) -> Self {
        Self { base: hub_url.to_owned(), ..self.clone() }
    }
}
