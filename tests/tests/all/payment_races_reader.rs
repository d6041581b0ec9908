//! Race 36: a clerk stops the card reader while the customer holds a card to it. The real client, a real socket.

use chrono::TimeDelta;
use fullhouse_tests::{
    clock::Clock,
    database::Database,
    eventually,
    hub::Hub,
    provider::{Provider, key},
    rows::Rows,
    till::Till,
};
use serde_json::{Value, json};

const READER: &str = "tmr_counter_1";
const PRICE_OF_TWO: i64 = 9_000;

struct Counter {
    database: Database,
    clock: Clock,
    provider: Provider,
    hub: Hub,
    till: Till,
    held: Value,
}

impl Counter {
    /// A clerk who holds two seats for a customer with a card.
    async fn open() -> Self {
        let (database, clock) = Database::with_clock().await;
        let event = Rows::new(2, 10).open(database.pool()).await;
        let provider = Provider::start().await;
        let mut config = database.config().await;
        provider.configure(&mut config);
        let hub = Hub::start(config).await;
        provider.webhooks_to(&hub.url()).await;
        let till = Till::enrol(&database, &hub.url(), "counter 1").await;
        Till::place_reader(&database, "counter 1", READER).await;
        let held = till.hold(event, &[1, 2]).await.ok();
        Self { database, clock, provider, hub, till, held }
    }

    async fn rules(&self, op: &str, reader: Value) {
        self.provider.rules(json!([{ "match": { "op": op }, "effect": { "reader": reader } }])).await;
    }

    async fn sell(&self) -> Value {
        self.till.sell_by_card(&self.held, &key(), READER).await.ok()["order"].clone()
    }

    async fn until(&self, order: &Value, states: &[&str]) -> Value {
        self.till.until_in_time(&self.clock, order, states).await
    }

    /// The reader shows the amount and waits for a card.
    async fn collecting(&self) -> Value {
        let order = self.sell().await;
        self.until(&order, &["action_required"]).await
    }

    /// The calls to the provider, as they were written down.
    async fn calls(&self) -> Vec<String> {
        sqlx::query_scalar("select op from provider_call order by id").fetch_all(self.database.pool()).await.unwrap()
    }

    async fn over(self) {
        self.provider.ledger().await.agrees_with(&self.database).await;
        self.hub.stop().await;
        self.database.finish().await;
    }
}

#[tokio::test]
async fn a_card_at_the_reader_pays() {
    let counter = Counter::open().await;
    let key = key();
    let order = counter.till.sell_by_card(&counter.held, &key, READER).await.ok()["order"].clone();
    let waits = counter.until(&order, &["action_required"]).await;
    assert_eq!(
        (&waits["attempt"]["phase"], &waits["attempt"]["action_url"]),
        (&json!("action_required"), &Value::Null)
    );
    assert_eq!(counter.till.sell_by_card(&counter.held, &key, READER).await.ok()["order"]["id"], order["id"]);
    counter.provider.present_card(READER).await;
    let paid = counter.until(&order, &["captured"]).await;
    assert_eq!((&paid["state"], paid["tickets"].as_array().map(Vec::len)), (&json!("confirmed"), Some(2)));
    assert_eq!(counter.till.sell_by_card(&counter.held, &key, READER).await.ok()["order"]["id"], order["id"]);
    assert_eq!(counter.provider.ledger().await.captured(), PRICE_OF_TWO);
    counter.over().await;
}

#[tokio::test]
async fn a_card_that_the_reader_declines_leaves_the_seats_to_another_one() {
    let counter = Counter::open().await;
    counter.rules("process", json!({ "tap_after_ms": 0, "decline": "insufficient_funds" })).await;
    let order = counter.sell().await;
    let declined = counter.until(&order, &["declined"]).await;
    assert_eq!(declined["attempt"]["decline_code"], "insufficient_funds");
    counter.rules("process", json!({ "tap_after_ms": 0 })).await;
    let again = counter.sell().await;
    assert_eq!(again["id"], order["id"]);
    counter.until(&again, &["captured"]).await;
    counter.over().await;
}

/// What the race does to a till that believes the reader: the control.
#[tokio::test]
async fn race_36_control_a_till_that_believes_the_reader_loses_money() {
    let provider = Provider::start().await;
    provider
        .rules(json!([{ "match": { "op": "cancel_action" }, "effect": { "reader": { "cancel_race": true } } }]))
        .await;
    let create = "amount=9000&currency=eur&capture_method=manual&payment_method_types[0]=card_present";
    let intent = provider.call("payment_intents", create.to_owned()).await;
    let process = format!("payment_intent={}", intent["id"].as_str().unwrap());
    provider.call(&format!("terminal/readers/{READER}/process_payment_intent"), process).await;
    let stopped = provider.call(&format!("terminal/readers/{READER}/cancel_action"), String::new()).await;
    // The naive till: the reader has stopped, so nobody has paid; the seats are sold to the next customer.
    assert_eq!(stopped["action"], Value::Null);
    assert_eq!(provider.ledger().await.authorised(), PRICE_OF_TWO, "and yet the customer's money is held");
}

#[tokio::test]
async fn race_36_the_clerk_is_faster_than_the_card() {
    let counter = Counter::open().await;
    let order = counter.collecting().await;
    counter.till.stop_card(&order, false).await.ok();
    let over = counter.until(&order, &["voided"]).await;
    assert_eq!((&over["attempt"]["phase"], &over["state"]), (&json!("not_charged"), &json!("cancelled")));
    let calls = counter.calls().await;
    let stop = calls.iter().position(|op| op == "stop_reader").expect("the reader was told to stop");
    let (look, cancel) =
        (calls[stop..].iter().position(|op| op == "get"), calls[stop..].iter().position(|op| op == "cancel"));
    assert!(look.is_some() && look < cancel, "stopped, looked at, let go: {calls:?}");
    assert_eq!(calls.iter().filter(|op| *op == "stop_reader").count(), 1);
    // The seats are still the customer's, who now pays cash.
    counter.till.sell_for_cash(&counter.held, 10_000).await.ok();
    let ledger = counter.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.authorised()), (0, 0));
    counter.hub.stop().await;
    counter.database.finish().await;
}

#[tokio::test]
async fn race_36_the_card_is_faster_and_the_clerk_wants_none_of_it() {
    let counter = Counter::open().await;
    let order = counter.collecting().await;
    counter.rules("cancel_action", json!({ "cancel_race": true })).await;
    counter.till.stop_card(&order, false).await.ok();
    let over = counter.until(&order, &["voided"]).await;
    assert_eq!((&over["attempt"]["phase"], &over["tickets"]), (&json!("not_charged"), &json!([])));
    let ledger = counter.provider.ledger().await;
    assert_eq!((ledger.confirms(), ledger.captured(), ledger.authorised()), (1, 0, 0), "authorised, and let go");
    counter.over().await;
}

#[tokio::test]
async fn race_36_the_card_is_faster_and_the_sale_is_kept() {
    let counter = Counter::open().await;
    let order = counter.collecting().await;
    counter.rules("cancel_action", json!({ "cancel_race": true })).await;
    counter.till.stop_card(&order, true).await.ok();
    let sold = counter.until(&order, &["captured"]).await;
    assert_eq!((&sold["state"], sold["tickets"].as_array().map(Vec::len)), (&json!("confirmed"), Some(2)));
    assert_eq!(counter.provider.ledger().await.captured(), PRICE_OF_TWO);
    counter.over().await;
}

#[tokio::test]
async fn race_36_the_reader_took_the_money_at_once() {
    for keep_if_paid in [false, true] {
        let counter = Counter::open().await;
        counter.rules("process", json!({ "captures_at_once": true })).await;
        let order = counter.collecting().await;
        counter.rules("cancel_action", json!({ "cancel_race": true })).await;
        counter.till.stop_card(&order, keep_if_paid).await.ok();
        let (state, refunded) = if keep_if_paid { ("captured", 0) } else { ("refunded", PRICE_OF_TWO) };
        counter.until(&order, &[state]).await;
        let ledger = counter.provider.ledger().await;
        assert_eq!((ledger.captured(), ledger.refunded()), (PRICE_OF_TWO, refunded), "kept: {keep_if_paid}");
        counter.over().await;
    }
}

#[tokio::test]
async fn race_36_the_stop_is_lost_and_the_card_comes_after_it() {
    let counter = Counter::open().await;
    let order = counter.collecting().await;
    counter.provider.first("cancel_action", json!({ "network": "reset_before" })).await;
    counter.till.stop_card(&order, false).await.ok();
    eventually("the stop was sent", || async {
        (!counter.provider.requests("cancel_action").await.is_empty()).then_some(())
    })
    .await;
    counter.provider.present_card(READER).await;
    let over = counter.until(&order, &["voided"]).await;
    assert_eq!(over["attempt"]["phase"], "not_charged");
    let sends: i32 = sqlx::query_scalar("select sends from provider_call where op = 'stop_reader'")
        .fetch_one(counter.database.pool())
        .await
        .unwrap();
    assert_eq!(sends, 2, "the same call once more");
    counter.over().await;
}

#[tokio::test]
async fn nobody_comes_and_the_reader_is_stopped_before_the_hold_ends() {
    let counter = Counter::open().await;
    let order = counter.collecting().await;
    counter.clock.advance(TimeDelta::seconds(421)).await; // less than a minute is left
    let over = counter.until(&order, &["voided"]).await;
    assert_eq!(over["attempt"]["outcome"], "hold_ended");
    assert!(counter.calls().await.contains(&"stop_reader".to_owned()));
    counter.over().await;
}

#[tokio::test]
async fn a_lost_answer_of_the_reader_is_asked_for_again_under_the_same_key() {
    let counter = Counter::open().await;
    counter.provider.first("process", json!({ "network": "timeout_after" })).await;
    let order = counter.sell().await;
    counter.until(&order, &["action_required"]).await;
    counter.provider.present_card(READER).await;
    counter.until(&order, &["captured"]).await;
    let keys: Vec<(String, i32)> = sqlx::query_as("select idem_key, sends from provider_call where op = 'confirm'")
        .fetch_all(counter.database.pool())
        .await
        .unwrap();
    assert_eq!(keys.len(), 1, "one collection: {keys:?}");
    counter.over().await;
}

#[tokio::test]
async fn a_reader_that_is_offline_charges_nobody_and_says_why() {
    let counter = Counter::open().await;
    counter.rules("process", json!({ "offline": true })).await;
    let order = counter.sell().await;
    let over = counter.until(&order, &["voided"]).await;
    assert_eq!(
        (&over["attempt"]["outcome"], &over["attempt"]["decline_code"]),
        (&json!("refused"), &json!("terminal_reader_offline"))
    );
    counter.over().await;
}

#[tokio::test]
async fn a_sale_by_card_belongs_to_its_terminal() {
    let counter = Counter::open().await;
    let order = counter.collecting().await;
    let other = Till::enrol(&counter.database, &counter.hub.url(), "counter 2").await;
    assert_eq!(other.card_sale(&order).await.code(), "order_unknown");
    assert_eq!(other.stop_card(&order, false).await.code(), "order_unknown");
    assert_eq!(other.sell_by_card(&counter.held, &key(), READER).await.code(), "hold_unknown");
    for reader in ["", "tmr_1/../x", &"t".repeat(65)] {
        assert_eq!(counter.till.sell_by_card(&counter.held, &key(), reader).await.code(), "bad_request");
    }
    assert_eq!(counter.till.sell_by_card(&counter.held, &key(), READER).await.code(), "attempt_live");
    counter.till.stop_card(&order, false).await.ok();
    counter.until(&order, &["voided"]).await;
    counter.over().await;
}
