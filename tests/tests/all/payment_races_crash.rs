//! The races of paying against `kill -9`, 10 to 13 of the specification: the real binary dies at a statement that the wire
//! to its database holds back, so that the moment is named and not guessed. Another hub takes the attempt up.

use chrono::TimeDelta;
use fullhouse::config::Config;
use fullhouse_tests::{
    binary::Binary,
    database::Database,
    fan::{self, Fan},
    hub::Hub,
    provider::{CARD, Provider, key, order, until, until_in_time},
    proxy::{Held, Proxy, Side},
    race::{asked_in_between, calls},
    rows::Rows,
};
use serde_json::Value;

/// What is written down as a call is about to leave.
const LEAVES: &str = "WITH SAME AS";
/// A call is written down.
const WRITTEN_DOWN: &str = "INSERT INTO PROVIDER_CALL";
/// The one transaction sells the seats.
const SELLS: &str = "UPDATE EVENT_SEAT SET STATUS = 2";

/// A fan who pays at a hub that will die.
struct Doomed {
    database: Database,
    provider: Provider,
    config: Config,
    proxy: Proxy,
    binary: Binary,
    fan: Fan,
    order: Value,
}

/// What is left of it.
struct Left {
    database: Database,
    provider: Provider,
    config: Config,
    fan: Fan,
    order: Value,
}

impl Doomed {
    async fn start() -> Self {
        let database = Database::new().await;
        let event = Rows::new(2, 10).open(database.pool()).await;
        let provider = Provider::start().await;
        let mut config = database.config().await;
        provider.configure(&mut config);
        let proxy = Proxy::start().await;
        let mut behind = config.clone();
        behind.database.url = database.config_through(&proxy).database.url;
        let more = [("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", config.payment.publishable_key.as_str())];
        let binary = Binary::serve(&behind, &more).await;
        let fan = fan::many(&database, binary.url(), 1).await.remove(0);
        let order = order(&fan, event, &[1, 2]).await;
        Self { database, provider, config, proxy, binary, fan, order }
    }

    async fn pay(&self) {
        self.fan.pay(&self.order, &key(), CARD).await.ok();
    }

    /// Pays, and waits until the nth such statement is held back.
    async fn pay_until(&self, word: &'static str, nth: u32) -> Held {
        let mut held = self.proxy.hold_next(word, Side::Request);
        self.pay().await;
        for _ in 1..nth {
            held.caught().await;
            let next = self.proxy.hold_next(word, Side::Request);
            held.let_go();
            held = next;
        }
        held.caught().await;
        held
    }

    /// It dies; what was held back never arrives, and its lease runs out.
    async fn dies(self, held: Option<Held>) -> Left {
        self.binary.kill().await;
        self.proxy.cut();
        drop(held);
        let Self { database, provider, config, proxy: _gone, fan, order, .. } = self;
        database.no_transaction_is_left_open().await;
        sqlx::query("update attempt set leased_until = null").execute(database.pool()).await.expect("the attempt");
        Left { database, provider, config, fan, order }
    }
}

impl Left {
    async fn state(&self) -> (String, String) {
        sqlx::query_as(r#"select a.state, o.state from attempt a join "order" o on o.id = a.order_id"#)
            .fetch_one(self.database.pool())
            .await
            .expect("the attempt")
    }

    /// Another hub sees to it; money and seats agree.
    async fn captured(self) {
        let hub = Hub::start(self.config.clone()).await;
        let paid = until(&self.fan.at(&hub.url()), &self.order, &["captured"]).await;
        assert_eq!((&paid["state"], paid["tickets"].as_array().map(Vec::len)), (&"confirmed".into(), Some(2)));
        let ledger = self.provider.ledger().await;
        assert_eq!(ledger.confirms(), 1, "one authorisation");
        for op in ["create", "confirm", "capture"] {
            let calls = calls(&self.database, op).await;
            assert_eq!(calls.len(), 1, "never a new key: {calls:?}");
        }
        ledger.agrees_with(&self.database).await;
        hub.stop().await;
        self.database.finish().await;
    }
}

#[tokio::test]
async fn race_10_a_crash_before_the_call_was_sent() {
    for (nth, op) in [(1, "create"), (2, "confirm"), (3, "capture")] {
        let doomed = Doomed::start().await;
        let held = doomed.pay_until(LEAVES, nth).await;
        let left = doomed.dies(Some(held)).await;
        assert_eq!(left.provider.requests(op).await.len(), 0, "no byte of it has left");
        let written = calls(&left.database, op).await;
        assert_eq!(written.iter().map(|(_, sends)| *sends).collect::<Vec<_>>(), [0], "{op} was written down");
        left.captured().await;
    }
}

#[tokio::test]
async fn race_11_a_crash_after_the_call_was_sent() {
    for op in ["create", "confirm", "capture"] {
        let doomed = Doomed::start().await;
        // It is on its way, and is carried out after the death of whoever asked for it.
        doomed.provider.first(op, serde_json::json!({ "latency": { "kind": "fixed", "ms": 500 } })).await;
        doomed.pay().await;
        doomed.provider.until_asked(op).await;
        let left = doomed.dies(None).await;
        let state: String = sqlx::query_scalar("select state from provider_call where op = $1")
            .bind(op)
            .fetch_one(left.database.pool())
            .await
            .expect("the call");
        assert_eq!(state, "sent", "no answer was written down: {op}");
        let hub = Hub::start(left.config.clone()).await;
        until(&left.fan.at(&hub.url()), &left.order, &["captured"]).await;
        hub.stop().await;
        // Its intent was asked for before anything was asked for again. (Of a create no id is known: the same key is asked.)
        let ops = left.provider.ops().await;
        let place = ops.iter().position(|o| o == op).expect("it was asked for");
        let next = ops.get(place + 1).map(String::as_str);
        assert_eq!(next, Some(if op == "create" { "create" } else { "get" }), "{ops:?}");
        if ops.iter().filter(|o| *o == op).count() > 1 && op != "create" {
            asked_in_between(&ops, op);
        }
        left.captured().await;
    }
}

#[tokio::test]
async fn race_12_a_crash_after_authorised_was_written() {
    for expired in [false, true] {
        let doomed = Doomed::start().await;
        let held = doomed.pay_until(SELLS, 1).await;
        let left = doomed.dies(Some(held)).await;
        assert_eq!(left.state().await, ("authorised".to_owned(), "open".to_owned()));
        assert_eq!(left.provider.ledger().await.authorised(), 9_000);
        if !expired {
            left.captured().await;
            continue;
        }
        let clock = left.database.take_clock().await;
        clock.advance(TimeDelta::minutes(9)).await;
        let hub = Hub::start(left.config.clone()).await;
        let fan = left.fan.at(&hub.url());
        let voided = until_in_time(&clock, &fan, &left.order, &["voided"]).await;
        assert_eq!((&voided["attempt"]["outcome"], &voided["tickets"]), (&"hold_ended".into(), &Value::Array(vec![])));
        left.provider.ledger().await.agrees_with(&left.database).await;
        hub.stop().await;
        left.database.finish().await;
    }
}

#[tokio::test]
async fn race_13_a_crash_between_the_sale_and_the_capture() {
    let doomed = Doomed::start().await;
    let held = doomed.pay_until(WRITTEN_DOWN, 3).await; // the create's, the confirmation's, the capture's
    let left = doomed.dies(Some(held)).await;
    assert_eq!(left.state().await, ("capture_pending".to_owned(), "confirmed".to_owned()), "sold, and not paid");
    assert_eq!(calls(&left.database, "capture").await, [], "nor asked for");
    let ledger = left.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.authorised()), (0, 9_000));
    left.captured().await;
}
