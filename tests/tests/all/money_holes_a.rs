//! Holes that an attack on the money found: refusals that say nothing, odd echoes, another amount, another house.

use chrono::TimeDelta;
use fullhouse::{
    payment::{
        gate, installation,
        reconcile::{self, Outcome, finding::Class},
    },
    watch,
};
use fullhouse_tests::{
    database::Database,
    eventually,
    fan::{self, Fan},
    hub::Hub,
    provider::{CARD, Provider, key, order, until},
    race::Race,
    rows::Rows,
    till::Till,
};
use serde_json::{Value, json};

async fn closed_for(race: &Race) -> Vec<String> {
    let reasons = gate::reasons(race.database.pool()).await.expect("the test's database answers");
    reasons.into_iter().map(|r| r.reason).collect()
}

async fn captured_minor(race: &Race) -> i64 {
    sqlx::query_scalar("select captured_minor from attempt where state = 'captured'")
        .fetch_one(race.database.pool())
        .await
        .expect("a captured attempt")
}

async fn holds(race: &Race) {
    let broken = watch::check(race.database.pool()).await.expect("the test's database answers");
    assert!(broken.is_empty(), "{broken:?}");
}

#[tokio::test]
async fn one_refusal_of_a_capture_throws_no_sale_away() {
    for status in ["400", "401", "402", "403", "404"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("capture", json!({ "status": status })).await;
        race.pay().await;
        let paid = race.until("captured").await;
        assert_eq!((&paid["state"], &paid["tickets"][0]["state"]), (&json!("confirmed"), &json!("valid")), "{status}");
        let calls = race.calls("capture").await;
        assert_eq!((calls.len(), calls[0].1), (1, 2), "{status}: the same bytes once more: {calls:?}");
        race.over().await;
    }
}

#[tokio::test]
async fn a_refusal_that_is_kept_under_the_key_costs_the_key_and_not_the_sale() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("capture", json!({ "status": "402_stored" })).await;
    race.pay().await;
    let paid = race.until("captured").await;
    assert_eq!(paid["state"], "confirmed");
    let calls = race.calls("capture").await;
    assert_eq!((calls.len(), calls[0].1), (2, 2), "asked twice, then under another key: {calls:?}");
    race.over().await;
}

#[tokio::test]
async fn a_key_that_is_not_accepted_for_a_while_loses_no_capture() {
    let race = Race::with(false, |_| {}).await;
    let turned_away = |op| json!({ "match": { "op": op }, "effect": { "status": "401" } });
    race.provider.rules(json!([turned_away("capture"), turned_away("get")])).await;
    race.pay().await;
    until(&race.fan, &race.order, &["capture_unknown"]).await;
    eventually("it was looked at in vain", || async {
        race.database_in_time().await;
        (race.provider.requests("get").await.len() >= 2).then_some(())
    })
    .await;
    let doubt = race.fan.order(race.order["id"].as_str().expect("an id")).await.ok()["order"].clone();
    assert_eq!((&doubt["state"], &doubt["attempt"]["phase"]), (&json!("confirmed"), &json!("working")));
    race.provider.rules(json!([])).await;
    race.until("captured").await;
    race.over().await;
}

#[tokio::test]
async fn a_buyer_is_not_blamed_for_our_key_and_nothing_is_charged() {
    for op in ["create", "confirm"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first(op, json!({ "status": "401" })).await;
        race.pay().await;
        let told = until(&race.fan, &race.order, &["voided"]).await;
        let attempt = &told["attempt"];
        assert_eq!((&attempt["phase"], &attempt["outcome"]), (&json!("not_charged"), &json!("not_served")), "{op}");
        assert_eq!((&attempt["decline_code"], &told["state"]), (&Value::Null, &json!("open")), "{op}");
        // The seats are theirs still, and the card is as good as it was.
        race.pay().await;
        race.until("captured").await;
        eventually("the intent that nobody waits for is let go", || async {
            race.database_in_time().await;
            let ledger = race.provider.ledger().await;
            ledger.intents().iter().all(|i| i["status"] != "requires_confirmation").then_some(())
        })
        .await;
        race.over().await;
    }
}

#[tokio::test]
async fn the_gate_closes_while_our_key_is_not_accepted_and_opens_by_itself() {
    let race = Race::with(false, |config| {
        config.gate.provider_calls = 2;
        config.gate.provider_calls_to_open = 1;
    })
    .await;
    race.provider.rules(json!([{ "effect": { "status": "403" } }])).await;
    eventually("no payment begins any more", || async {
        let answer = race.fan.pay(&race.order, &key(), CARD).await;
        until(&race.fan, &race.order, &["voided"]).await;
        (answer.body["code"] == "payment_gate_closed").then_some(())
    })
    .await;
    assert_eq!(closed_for(&race).await, [gate::PROVIDER]);
    race.provider.rules(json!([])).await;
    eventually("it is over", || async { closed_for(&race).await.is_empty().then_some(()) }).await;
    race.pay().await;
    race.until("captured").await;
    race.over().await;
}

#[tokio::test]
async fn a_refund_waits_for_our_key_and_is_not_called_failed() {
    let race = Race::with(false, |_| {}).await;
    race.pay().await;
    let paid = race.until("captured").await;
    let till = Till::enrol(&race.database, &race.hub.url(), "Window 1").await;
    race.provider.first("refund", json!({ "status": "401" })).await;
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    till.refund(&paid, &key(), all).await.ok();
    eventually("it has gone back", || async {
        race.database_in_time().await;
        (race.provider.ledger().await.refunded() == 9_000).then_some(())
    })
    .await;
    let calls = race.calls("refund").await;
    assert_eq!((calls.len(), calls[0].1), (1, 2), "the same bytes once more: {calls:?}");
    race.over().await;
}

#[tokio::test]
async fn a_confirmation_that_is_said_to_be_cancelled_is_looked_at_and_its_money_is_not_left_reserved() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("confirm", json!({ "echo": { "status": "canceled" } })).await;
    race.pay().await;
    let paid = race.until("captured").await;
    assert_eq!((captured_minor(&race).await, &paid["state"]), (9_000, &json!("confirmed")));
    assert_eq!(race.provider.ledger().await.confirms(), 1, "it was reserved by the first");
    race.over().await;
}

#[tokio::test]
async fn an_odd_echo_of_a_capture_is_looked_at_before_it_is_believed() {
    for echo in [
        json!({ "amount_received": 1 }),
        json!({ "amount_received": null }),
        json!({ "currency": "usd" }),
        json!({ "status": "canceled" }),
    ] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("capture", json!({ "echo": echo })).await;
        race.pay().await;
        let paid = race.until("captured").await;
        assert_eq!((captured_minor(&race).await, &paid["state"]), (9_000, &json!("confirmed")), "{echo}");
        assert!(closed_for(&race).await.is_empty(), "{echo}");
        race.over().await;
    }
}

#[tokio::test]
async fn another_amount_is_written_as_what_it_is_closes_the_gate_and_can_be_given_back() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("capture", json!({ "network": "timeout_before" })).await;
    race.pay().await;
    until(&race.fan, &race.order, &["capture_unknown"]).await;
    let intent = race.provider.ledger().await.intents()[0]["id"].as_str().expect("an id").to_owned();
    race.provider.beside(&format!("payment_intents/{intent}/capture"), "amount_to_capture=1000").await;
    let paid = race.until("captured").await;
    assert_eq!((captured_minor(&race).await, &paid["state"]), (1_000, &json!("confirmed")));
    assert_eq!(closed_for(&race).await, ["amount_differs"]);
    let listed: Vec<(String, String)> =
        sqlx::query_as("select class, subject from money_finding where cleared_at is null")
            .fetch_all(race.database.pool())
            .await
            .expect("findings");
    assert_eq!(listed, [("M3".to_owned(), format!("intent:{intent}"))]);
    holds(&race).await;
    // What the card gave goes back to it, and there is no more to hand over.
    let till = Till::enrol(&race.database, &race.hub.url(), "Window 1").await;
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    let back = till.refund(&paid, &key(), all).await.ok();
    let flows: Vec<(&Value, &Value)> =
        back["refunds"].as_array().expect("refunds").iter().map(|r| (&r["kind"], &r["amount_minor"])).collect();
    assert!(flows.contains(&(&json!("card"), &json!(1_000))), "{flows:?}");
    assert!(flows.contains(&(&json!("comp"), &json!(8_000))), "{flows:?}");
    eventually("it has gone back", || async {
        race.database_in_time().await;
        (race.provider.ledger().await.refunded() == 1_000).then_some(())
    })
    .await;
    holds(&race).await;
    // The card's tender says what was asked for, so the harness's own sum would count what was never taken.
    let ledger = race.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.refunded(), ledger.authorised()), (1_000, 1_000, 0));
    race.hub.stop().await;
    race.database.finish().await;
}

#[tokio::test]
async fn a_voided_attempt_that_holds_money_lets_it_go() {
    let race = Race::with(false, |_| {}).await;
    race.provider
        .rules(json!([
            { "match": { "op": "confirm" }, "effect": { "network": "timeout_after" } },
            { "match": { "op": "get" }, "effect": { "status": "401" } },
        ]))
        .await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    // Called void by mistake, with no cancellation written down.
    race.set("update attempt set state = 'voided', version = version + 1, next_run_at = db_clock()").await;
    race.set("update hold set attempt_id = null where attempt_id is not null").await;
    assert_eq!(race.provider.ledger().await.authorised(), 9_000);
    race.provider.rules(json!([])).await;
    eventually("it is let go", || async {
        race.database_in_time().await;
        (race.provider.ledger().await.authorised() == 0).then_some(())
    })
    .await;
    race.over().await;
}

#[tokio::test]
async fn money_that_we_believed_in_and_is_reserved_still_is_asked_for_again() {
    let race = Race::with(false, |config| config.reconcile.interval_s = 1_000_000_000).await;
    race.provider.rules(json!([{ "match": { "op": "capture" }, "effect": { "network": "timeout_before" } }])).await;
    race.pay().await;
    until(&race.fan, &race.order, &["capture_unknown"]).await;
    // What an earlier version made of an answer that it should not have believed.
    race.set(
        "update attempt set state = 'captured', captured_minor = amount_minor, version = version + 1,
                next_run_at = null, unknown_since = null",
    )
    .await;
    race.clock.advance(TimeDelta::minutes(11)).await;
    race.provider.rules(json!([])).await;
    let parts = race.hub.parts();
    let report = reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books are read");
    let found: Vec<(Class, Outcome)> = report.found.iter().map(|(found, outcome)| (found.class, *outcome)).collect();
    assert_eq!(found, [(Class::M2, Outcome::Repaired)]);
    assert_eq!(race.provider.ledger().await.captured(), 9_000);
    race.over().await;
}

/// A second house on the provider's account.
struct House {
    database: Database,
    hub: Hub,
    event: i64,
    fan: Fan,
}

impl House {
    async fn open(provider: &Provider, own_id: bool) -> Self {
        let database = Database::new().await;
        if own_id {
            installation::renew(database.pool()).await.expect("another id");
        }
        let event = Rows::new(2, 10).open(database.pool()).await;
        let mut config = database.config().await;
        provider.configure(&mut config);
        config.reconcile.interval_s = 1_000_000_000;
        let hub = Hub::start(config).await;
        let fan = fan::many(&database, &hub.url(), 1).await.remove(0);
        Self { database, hub, event, fan }
    }

    async fn buy(&self, seat: i32) -> Value {
        let open = order(&self.fan, self.event, &[seat]).await;
        self.fan.pay(&open, &key(), CARD).await.ok();
        until(&self.fan, &open, &["captured"]).await
    }

    async fn end(self) {
        self.hub.stop().await;
        self.database.finish().await;
    }
}

async fn found(race: &Race) -> Vec<Class> {
    let parts = race.hub.parts();
    let report = reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books are read");
    report.found.iter().map(|(found, _)| found.class).collect()
}

/// The control: a house with our id (a database that was copied) looks like ours, and its sale like money without an order.
#[tokio::test]
async fn two_houses_of_one_id_undo_each_other() {
    let race = Race::with(false, |config| config.reconcile.interval_s = 1_000_000_000).await;
    let twin = House::open(&race.provider, false).await;
    twin.buy(1).await;
    assert_eq!(found(&race).await, [Class::M1]);
    twin.end().await;
    race.hub.stop().await;
    race.database.finish().await;
}

#[tokio::test]
async fn two_houses_on_one_account_leave_each_other_alone() {
    let race = Race::with(true, |config| config.reconcile.interval_s = 1_000_000_000).await;
    let house = House::open(&race.provider, true).await;
    let theirs = house.buy(2).await;
    let reserved = {
        let id = installation::id(house.database.pool()).await.expect("its id");
        let body = format!(
            "amount=700&currency=eur&payment_method={CARD}&capture_method=manual&confirmation_method=manual\
             &metadata[attempt]={}&metadata[installation]={id}",
            uuid::Uuid::new_v4()
        );
        let id = race.provider.beside("payment_intents", &body).await["id"].as_str().expect("an id").to_owned();
        race.provider.beside(&format!("payment_intents/{id}/confirm"), "").await;
        id
    };
    let count = async |sql: &str| -> i64 {
        sqlx::query_scalar(sql).fetch_one(race.database.pool()).await.expect("the test's database answers")
    };
    eventually("we have heard of their payments", || async {
        (count("select count(*) from webhook_event where outcome = 'foreign'").await >= 4).then_some(())
    })
    .await;
    race.clock.advance(TimeDelta::minutes(11)).await;
    assert_eq!(found(&race).await, [Class::M7], "what was taken is listed");
    assert!(closed_for(&race).await.is_empty());
    let ledger = race.provider.ledger().await;
    let of = |id: &str| ledger.intents().iter().find(|i| i["id"] == id).expect("an intent")["status"].clone();
    assert_eq!((of(&reserved), ledger.refunded()), (json!("requires_capture"), 0));
    let now = house.fan.order(theirs["id"].as_str().expect("an id")).await.ok()["order"].clone();
    assert_eq!(now["state"], "confirmed");
    house.end().await;
    race.hub.stop().await;
    race.database.finish().await;
}

#[tokio::test]
async fn a_copy_of_a_house_drives_nothing_that_came_with_it() {
    let race = Race::with(false, |_| {}).await;
    race.provider.rules(json!([{ "match": { "op": "capture" }, "effect": { "network": "timeout_before" } }])).await;
    race.pay().await;
    until(&race.fan, &race.order, &["capture_unknown"]).await;
    let first = installation::id(race.database.pool()).await.expect("its id");
    assert_ne!(installation::renew(race.database.pool()).await.expect("another id"), first);
    race.provider.rules(json!([])).await;
    race.clock.advance(TimeDelta::minutes(1)).await;
    // What is begun under the new id is driven.
    let other = fan::many(&race.database, &race.hub.url(), 1).await.remove(0);
    let open = order(&other, race.event, &[5]).await;
    other.pay(&open, &key(), CARD).await.ok();
    until(&other, &open, &["captured"]).await;
    let left = race.fan.order(race.order["id"].as_str().expect("an id")).await.ok()["order"].clone();
    assert_eq!(left["attempt"]["state"], "capture_unknown");
    assert_eq!(race.provider.ledger().await.authorised(), 9_000, "the first house's to take");
    race.hub.stop().await;
    race.database.finish().await;
}
