//! Where a race of paying begins: a fan with an order for two seats at 45.00, about to pay, and all that decides about it.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse::{config::Config, payment::signature};
use serde_json::Value;

use crate::{
    clock::Clock,
    database::Database,
    fan::{self, Fan},
    hub::Hub,
    provider::{CARD, Provider, key, order, until_in_time},
    proxy::Proxy,
    rows::Rows,
    till::Till,
};

/// What the order costs.
pub const TOTAL: i64 = 9_000;

pub struct Race {
    pub database: Database,
    pub clock: Clock,
    pub provider: Provider,
    pub hub: Hub,
    pub event: i64,
    pub fan: Fan,
    pub order: Value,
}

impl Race {
    /// Webhooks arrive.
    pub async fn ready() -> Self {
        Self::with(true, |_| {}).await
    }

    pub async fn with(webhooks: bool, more: impl FnOnce(&mut Config)) -> Self {
        let (database, clock) = Database::with_clock().await;
        let config = database.config().await;
        Self::begin(database, clock, config, webhooks, more).await
    }

    /// The hub's wire to its database is this one; webhooks do not arrive.
    pub async fn over_wire(proxy: &Proxy, more: impl FnOnce(&mut Config)) -> Self {
        let (database, clock) = Database::with_clock().await;
        let config = database.config_through(proxy);
        Self::begin(database, clock, config, false, more).await
    }

    async fn begin(
        database: Database,
        clock: Clock,
        mut config: Config,
        webhooks: bool,
        more: impl FnOnce(&mut Config),
    ) -> Self {
        let event = Rows::new(2, 10).open(database.pool()).await;
        let provider = Provider::start().await;
        provider.configure(&mut config);
        more(&mut config);
        let hub = Hub::start(config).await;
        if webhooks {
            provider.webhooks_to(&hub.url()).await;
        }
        let fan = fan::many(&database, &hub.url(), 1).await.remove(0);
        let order = order(&fan, event, &[1, 2]).await;
        Self { database, clock, provider, hub, event, fan, order }
    }

    pub async fn pay(&self) -> Value {
        self.pay_with(CARD).await
    }

    pub async fn pay_with(&self, card: &str) -> Value {
        self.fan.pay(&self.order, &key(), card).await.ok()["attempt"].clone()
    }

    /// Somebody else, who wants the same seats.
    pub async fn other(&self) -> Fan {
        fan::many(&self.database, &self.hub.url(), 1).await.remove(0)
    }

    /// A counter.
    pub async fn till(&self) -> Till {
        Till::enrol(&self.database, &self.hub.url(), "Window 1").await
    }

    /// The buyer wants no more.
    pub async fn cancel(&self) -> fan::Answer {
        let id = self.order["id"].as_str().expect("an id");
        self.fan.post(&format!("/api/orders/{id}/cancel"), serde_json::json!({})).await
    }

    /// The order as it is now.
    pub async fn now(&self) -> Value {
        self.fan.order(self.order["id"].as_str().expect("an id")).await.ok()["order"].clone()
    }

    pub async fn until(&self, state: &str) -> Value {
        until_in_time(&self.clock, &self.fan, &self.order, &[state]).await
    }

    /// Calls of a kind, as they were written down: key and how often it was sent.
    pub async fn calls(&self, op: &str) -> Vec<(String, i32)> {
        calls(&self.database, op).await
    }

    /// What the provider said, each time that it was asked for the intent.
    pub async fn looks(&self) -> Vec<String> {
        sqlx::query_scalar(
            "select answer ->> 'status' from provider_call where op = 'get' and answer is not null order by id",
        )
        .fetch_all(self.database.pool())
        .await
        .expect("the test's database answers")
    }

    /// One number, from behind the wire.
    pub async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.database.pool()).await.expect("the test's database answers")
    }

    /// Names of what the gate is closed for.
    pub async fn closed_for(&self) -> Vec<String> {
        sqlx::query_scalar("select reason from checkout_gate where reopened_at is null order by closed_at")
            .fetch_all(self.database.pool())
            .await
            .expect("the test's database answers")
    }

    /// All that is known of payments and webhooks, to be compared with what it is later.
    pub async fn books(&self) -> Value {
        sqlx::query_scalar(
            "select jsonb_build_object(
                 'attempts', (select jsonb_agg(to_jsonb(a) order by a.id) from attempt a),
                 'calls', (select jsonb_agg(to_jsonb(c) order by c.id) from provider_call c),
                 'refunds', (select jsonb_agg(to_jsonb(r) order by r.id) from refund r),
                 'events', (select jsonb_agg(to_jsonb(e) order by e.event_id) from webhook_event e))",
        )
        .fetch_one(self.database.pool())
        .await
        .expect("the test's database answers")
    }

    /// Delivers an event as the provider does; what it was answered.
    pub async fn deliver(&self, event: &Value) -> u16 {
        let body = event.to_string();
        let header = signature::sign(self.provider.secrets(), Utc::now().timestamp(), body.as_bytes());
        self.deliver_as(header, body).await
    }

    /// These bytes under this signature.
    pub async fn deliver_as(&self, header: String, body: String) -> u16 {
        let url = format!("{}/api/webhooks/payments", self.hub.url());
        let request = reqwest::Client::new().post(url).header("stripe-signature", header).body(body);
        request.send().await.expect("the hub answers").status().as_u16()
    }

    pub async fn set(&self, sql: &str) {
        let done = sqlx::query(sql).execute(self.database.pool()).await.expect("the test's database answers");
        assert_eq!(done.rows_affected(), 1, "{sql}");
    }

    /// If nothing but time is waited for, it passes.
    pub async fn database_in_time(&self) {
        let next: Option<DateTime<Utc>> = sqlx::query_scalar(
            "select min(next_run_at) from attempt where leased_until is null having bool_and(next_run_at > db_clock())",
        )
        .fetch_optional(self.database.pool())
        .await
        .expect("the test's database answers")
        .flatten();
        if let Some(next) = next {
            self.clock.advance(next - self.clock.now().await + TimeDelta::milliseconds(1)).await;
        }
    }

    /// Money and seats agree, and nothing is left over.
    pub async fn over(self) {
        self.provider.ledger().await.agrees_with(&self.database).await;
        self.hub.stop().await;
        self.database.finish().await;
    }
}

/// Calls of a kind, as they were written down: key and how often it was sent.
pub async fn calls(database: &Database, op: &str) -> Vec<(String, i32)> {
    sqlx::query_as("select idem_key, sends from provider_call where op = $1 order by id")
        .bind(op)
        .fetch_all(database.pool())
        .await
        .expect("the test's database answers")
}

/// Between the first and the last request of this kind the intent was asked for.
#[track_caller]
pub fn asked_in_between(ops: &[String], op: &str) {
    let first = ops.iter().position(|o| o == op).expect("it was asked for");
    let last = ops.iter().rposition(|o| o == op).expect("it was asked for");
    assert!(first < last && ops[first..last].iter().any(|o| o == "get"), "{op} once more without a look: {ops:?}");
}
