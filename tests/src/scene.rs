//! Where a test about money begins: a hall on sale, a provider, a hub, a till, and a clock that can be moved.

use fullhouse::{
    config::Config,
    payment::{
        gate, installation,
        reconcile::{self, Outcome, Report, finding::Class},
    },
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    clock::Clock,
    database::Database,
    eventually,
    fan::{self, Fan},
    hub::Hub,
    provider::{CARD, Provider, key, order, until},
    rows::Rows,
    till::Till,
};

pub struct Scene {
    pub database: Database,
    pub clock: Clock,
    pub provider: Provider,
    pub hub: Hub,
    pub till: Till,
    pub event: i64,
}

impl Scene {
    /// Webhooks arrive.
    pub async fn open(rows: Rows) -> Self {
        let scene = Self::without_webhooks(rows, |_| {}).await;
        scene.provider.webhooks_to(&scene.hub.url()).await;
        scene
    }

    /// The provider tells nothing by itself until it is told where; `more` changes the hub's settings.
    pub async fn without_webhooks(rows: Rows, more: impl FnOnce(&mut Config)) -> Self {
        let (database, clock) = Database::with_clock().await;
        let event = rows.open(database.pool()).await;
        let provider = Provider::start().await;
        let mut config = database.config().await;
        provider.configure(&mut config);
        more(&mut config);
        let hub = Hub::start(config).await;
        let till = Till::enrol(&database, &hub.url(), "Window 1").await;
        Self { database, clock, provider, hub, till, event }
    }

    /// Two rows; the books are compared only when the test says so, and nothing is told by itself.
    pub async fn of_books(more: impl FnOnce(&mut Config)) -> Self {
        Self::without_webhooks(Rows::new(2, 10), |config| {
            config.reconcile.interval_s = 1_000_000_000;
            config.reconcile.settle_s = 1;
            more(config);
        })
        .await
    }

    pub async fn fan(&self) -> Fan {
        fan::many(&self.database, &self.hub.url(), 1).await.remove(0)
    }

    pub async fn operator(&self) -> Fan {
        let operator = self.fan().await;
        sqlx::query("update account set role = 'operator' where email = $1")
            .bind(&operator.email)
            .execute(self.database.pool())
            .await
            .expect("an operator");
        operator
    }

    /// An order for these seats that is paid by card.
    pub async fn bought(&self, fan: &Fan, seats: &[i32]) -> Value {
        self.bought_at(fan, self.event, seats).await
    }

    /// The same, of another event.
    pub async fn bought_at(&self, fan: &Fan, event: i64, seats: &[i32]) -> Value {
        let open = order(fan, event, seats).await;
        fan.pay(&open, &key(), CARD).await.ok();
        until(fan, &open, &["captured"]).await
    }

    /// What staff do with an order, under a key of its own.
    pub async fn staff(&self, order: &Value, verb: &str, body: Value) -> fan::Answer {
        let id = order["id"].as_str().expect("an order's id");
        self.till.post_once(&format!("/api/staff/orders/{id}/{verb}"), &key(), body).await
    }

    /// The order as it is now.
    pub async fn now(&self, order: &Value) -> Value {
        let id = order["id"].as_str().expect("an order's id");
        self.till.get(&format!("/api/staff/orders/{id}")).await.ok()["order"].clone()
    }

    /// Until nothing is on its way back any more; what is not there then has failed.
    pub async fn until_settled(&self) {
        eventually("refunds are settled", || async {
            let open: i64 = self.count("select count(*) from refund where state in ('pending', 'accepted')").await;
            (open == 0).then_some(())
        })
        .await;
    }

    /// The books are compared.
    pub async fn reconcile(&self) -> Report {
        let parts = self.hub.parts();
        reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books are read")
    }

    pub async fn found(&self) -> Vec<(Class, Outcome)> {
        self.reconcile().await.found.into_iter().map(|(found, outcome)| (found.class, outcome)).collect()
    }

    pub async fn closed_for(&self) -> Vec<String> {
        let reasons = gate::reasons(self.database.pool()).await.expect("the test's database answers");
        reasons.into_iter().map(|r| r.reason).collect()
    }

    pub async fn until_closed_for(&self, wanted: &[&str]) {
        eventually(&format!("the gate is closed for {wanted:?}"), || async {
            (self.closed_for().await == wanted).then_some(())
        })
        .await;
    }

    /// A payment that bears this metadata, and that no attempt of ours explains.
    pub async fn charge(&self, metadata: &str, capture: bool) -> String {
        let body = format!(
            "amount=700&currency=eur&payment_method={CARD}&capture_method=manual&confirmation_method=manual{metadata}"
        );
        let id = self.provider.beside("payment_intents", &body).await["id"].as_str().expect("an id").to_owned();
        self.provider.beside(&format!("payment_intents/{id}/confirm"), "").await;
        if capture {
            self.provider.beside(&format!("payment_intents/{id}/capture"), "").await;
        }
        id
    }

    /// Metadata as an attempt of ours would have written it.
    pub async fn of_ours(&self) -> String {
        let house = installation::id(self.database.pool()).await.expect("the test's database answers");
        format!("&metadata[attempt]={}&metadata[installation]={house}", Uuid::new_v4())
    }

    pub async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.database.pool()).await.expect("the test's database answers")
    }

    pub async fn run(&self, sql: &str) {
        sqlx::query(sql).execute(self.database.pool()).await.expect("the test's database answers");
    }

    /// A seat of the event: 0 free, 1 held, 2 sold, 3 blocked.
    pub async fn status(&self, seat: i32) -> i16 {
        self.status_at(self.event, seat).await
    }

    pub async fn status_at(&self, event: i64, seat: i32) -> i16 {
        sqlx::query_scalar("select status from event_seat where event_id = $1 and seat_no = $2")
            .bind(event)
            .bind(seat)
            .fetch_one(self.database.pool())
            .await
            .expect("a seat")
    }

    /// The provider's truth is ours, and nothing is left over.
    pub async fn close(self) {
        self.provider.ledger().await.agrees_with(&self.database).await;
        self.end().await;
    }

    /// Where the test itself made the books differ, money is not compared.
    pub async fn end(self) {
        self.hub.stop().await;
        self.database.finish().await;
    }
}

/// A refund's body: these seats, and what becomes of them.
pub fn seats(seats: &[i32], become_: &str) -> Value {
    json!({ "what": { "kind": "seats", "seats": seats }, "seats_become": become_, "reason": "asked for" })
}
