//! The races of paying, by their number in the specification. The real client, a real socket, the real machine.

use chrono::TimeDelta;
use fullhouse::{payment::signature, serve::Roles};
use fullhouse_tests::{
    binary::Binary,
    clock::Clock,
    database::Database,
    eventually,
    fan::{self, Fan},
    hub::Hub,
    provider::{CARD, CHALLENGED, Provider, key, order, until, until_in_time},
    proxy::Proxy,
    rows::Rows,
};
use reqwest::Method;
use serde_json::{Value, json};

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
    /// A fan with an order for two seats, about to pay.
    pub async fn ready() -> Self {
        Self::with(true, |_| {}).await
    }

    pub async fn with(webhooks: bool, more: impl FnOnce(&mut fullhouse::config::Config)) -> Self {
        let (database, clock) = Database::with_clock().await;
        let event = Rows::new(2, 10).open(database.pool()).await;
        let provider = Provider::start().await;
        let mut config = database.config().await;
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
        self.fan.pay(&self.order, &key(), CARD).await.ok()["attempt"].clone()
    }

    pub async fn until(&self, state: &str) -> Value {
        until_in_time(&self.database, &self.clock, &self.fan, &self.order, &[state]).await
    }

    /// Calls of a kind, as they were written down: key and how often it was sent.
    pub async fn calls(&self, op: &str) -> Vec<(String, i32)> {
        sqlx::query_as("select idem_key, sends from provider_call where op = $1 order by id")
            .bind(op)
            .fetch_all(self.database.pool())
            .await
            .expect("the test's database answers")
    }

    pub async fn set(&self, sql: &str) {
        let done = sqlx::query(sql).execute(self.database.pool()).await.expect("the test's database answers");
        assert_eq!(done.rows_affected(), 1, "{sql}");
    }

    /// If nothing but time is waited for, it passes.
    pub async fn database_in_time(&self) {
        let next: Option<chrono::DateTime<chrono::Utc>> = sqlx::query_scalar(
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

#[tokio::test]
async fn race_01_authorised_after_the_hold_expired() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("confirm", json!({ "network": "timeout_after" })).await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    race.clock.advance(TimeDelta::minutes(9)).await;
    // The seats are another's now.
    let other = fan::many(&race.database, &race.hub.url(), 1).await.remove(0);
    other.hold(race.event, &[1, 2]).await.ok();
    let voided = race.until("voided").await;
    assert_eq!(
        (&voided["attempt"]["phase"], &voided["attempt"]["outcome"]),
        (&json!("not_charged"), &json!("hold_ended"))
    );
    assert_eq!((&voided["state"], &voided["tickets"]), (&json!("cancelled"), &json!([])));
    assert_eq!(voided["cancel_reason"], "time_over");
    assert_eq!(other.my_hold(race.event).await.ok()["hold"]["seats"], json!([1, 2]), "never re-grabbed");
    race.over().await;
}

#[tokio::test]
async fn race_03_the_challenge_is_met_too_late() {
    let race = Race::with(false, |_| {}).await;
    race.fan.pay(&race.order, &key(), CHALLENGED).await.ok();
    let asked = until(&race.fan, &race.order, &["action_required"]).await;
    race.clock.advance(TimeDelta::seconds(425)).await;
    race.provider.answer_challenge(&asked["attempt"], "approve").await;
    let voided = race.until("voided").await;
    assert_eq!(voided["attempt"]["outcome"], "hold_ended");
    assert_eq!(race.calls("confirm").await.len(), 1, "no confirmation with less than a minute left");
    race.over().await;
}

#[tokio::test]
async fn race_04_and_05_webhooks_twice_late_and_out_of_order() {
    let race = Race::ready().await;
    race.provider.rules(json!([{ "effect": { "webhook": { "duplicate": 2, "twin": true, "delay_ms": 80 } } }])).await;
    race.pay().await;
    race.until("captured").await;
    let events = race.provider.replay().await;
    eventually("all webhooks have arrived", || async {
        let delivered = race.provider.requests("webhook").await;
        (delivered.iter().filter(|d| d["status"] == 200).count() as u64 >= 4 * events).then_some(())
    })
    .await;
    let after = race.until("captured").await;
    assert_eq!(after["tickets"].as_array().map(Vec::len), Some(2));
    assert_eq!((race.calls("capture").await.len(), race.calls("confirm").await.len()), (1, 1));
    race.over().await;
}

#[tokio::test]
async fn race_06_the_webhook_is_faster_than_the_answer() {
    let race = Race::ready().await;
    race.provider
        .rules(json!([{ "effect": { "webhook": { "before_response": true, "delay_ms": 0 }, "latency": { "kind": "fixed", "ms": 100 } } }]))
        .await;
    race.pay().await;
    race.until("captured").await;
    assert_eq!(race.calls("capture").await.len(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_07_a_webhook_about_an_intent_that_nobody_knows_yet() {
    let race = Race::ready().await;
    // The create's webhook arrives while its answer is lost: our row has no intent yet.
    race.provider
        .rules(json!([{ "match": { "op": "create", "first": 1 },
            "effect": { "network": "timeout_after", "webhook": { "before_response": true } } }]))
        .await;
    race.pay().await;
    race.until("captured").await;
    assert_eq!(race.provider.ledger().await.intents().len(), 1, "the same intent, by its key");
    race.over().await;
}

#[tokio::test]
async fn race_09_the_database_is_down_when_a_webhook_arrives() {
    let (database, _clock) = Database::with_clock().await;
    let proxy = Proxy::start().await;
    let provider = Provider::start().await;
    let mut config = database.config_through(&proxy);
    config.database.acquire_timeout_ms = 300;
    provider.configure(&mut config);
    let hub = Hub::start(config).await;
    let body = json!({ "id": "evt_1", "type": "payment_intent.succeeded", "livemode": false,
        "data": { "object": { "object": "payment_intent", "id": "pi_1" } } })
    .to_string();
    let url = format!("{}/api/webhooks/payments", hub.url());
    let deliver = async || {
        let header = signature::sign(provider.secrets(), chrono::Utc::now().timestamp(), body.as_bytes());
        let request = reqwest::Client::new().post(&url).header("stripe-signature", header).body(body.clone());
        request.send().await.expect("the hub answers").status().as_u16()
    };
    proxy.cut();
    assert!(deliver().await >= 500, "so that it comes again");
    proxy.mend();
    eventually("the next delivery is stored", || async { (deliver().await == 200).then_some(()) }).await;
    let stored: i64 = sqlx::query_scalar("select count(*) from webhook_event")
        .fetch_one(database.pool())
        .await
        .expect("the test's database answers");
    assert_eq!(stored, 1);
    hub.stop().await;
    database.finish().await;
}

/// `kill -9` while a call is on its way to the provider; another hub takes the attempt up.
async fn killed_during(op: &str) {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let provider = Provider::start().await;
    let mut config = database.config().await;
    provider.configure(&mut config);
    config.payment.lease_s = 1;
    let more = [
        ("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", config.payment.publishable_key.as_str()),
        ("FULLHOUSE__PAYMENT__LEASE_S", "1"),
    ];
    let binary = Binary::serve(&config, &more).await;
    provider.first(op, json!({ "latency": { "kind": "fixed", "ms": 1_000 } })).await;
    let fan = fan::many(&database, binary.url(), 1).await.remove(0);
    let open = order(&fan, event, &[1, 2]).await;
    fan.pay(&open, &key(), CARD).await.ok();
    provider.until_asked(op).await;
    binary.kill().await;
    let hub = Hub::start(config).await;
    until(&fan.at(&hub.url()), &open, &["captured"]).await;
    let ledger = provider.ledger().await;
    assert_eq!(ledger.confirms(), 1, "{op}");
    ledger.agrees_with(&database).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn race_11_a_crash_after_the_call_was_sent() {
    for op in ["create", "confirm", "capture"] {
        killed_during(op).await;
    }
}

/// Writes down what a worker would have written, had it lived a moment longer: authorised, and nothing after.
async fn crashed_after_authorised(expired: bool) {
    let (database, clock) = Database::with_clock().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let provider = Provider::start().await;
    let mut config = database.config().await;
    provider.configure(&mut config);
    let first = Hub::start_as(config.clone(), Roles { workers: false, ..Roles::ALL }).await;
    let fan = fan::many(&database, &first.url(), 1).await.remove(0);
    let open = order(&fan, event, &[1, 2]).await;
    fan.pay(&open, &key(), CARD).await.ok();
    let attempt: (uuid::Uuid, i64) =
        sqlx::query_as("select id, amount_minor from attempt").fetch_one(database.pool()).await.expect("the attempt");
    let intent = provider.authorise(attempt.0, attempt.1, "eur").await;
    sqlx::query(
        "update attempt set state = 'authorised', pi_id = $1, authorised_minor = amount_minor, version = version + 1",
    )
    .bind(&intent)
    .execute(database.pool())
    .await
    .expect("written down");
    first.stop().await;
    if expired {
        clock.advance(TimeDelta::minutes(9)).await;
    }
    let second = Hub::start(config).await;
    let state = if expired { "voided" } else { "captured" };
    until_in_time(&database, &clock, &fan.at(&second.url()), &open, &[state]).await;
    provider.ledger().await.agrees_with(&database).await;
    second.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn race_12_a_crash_after_authorised_was_written() {
    crashed_after_authorised(false).await;
    crashed_after_authorised(true).await;
}

#[tokio::test]
async fn race_13_a_crash_between_the_sale_and_the_capture() {
    let race = Race::with(false, |config| config.payment.lease_s = 2).await;
    // The capture is on its way when the worker dies: the hub is stopped by force, its answer never read.
    race.provider.first("capture", json!({ "network": "timeout_before" })).await;
    race.pay().await;
    race.provider.until_asked("capture").await;
    race.set("update attempt set leased_until = null, version = version + 1").await; // its worker is nobody's any more
    let sold = race.until("captured").await;
    assert_eq!(sold["state"], "confirmed");
    assert_eq!(race.calls("capture").await.len(), 1, "the same key");
    race.over().await;
}

#[tokio::test]
async fn race_14_no_answer_and_nothing_was_done() {
    for fault in ["timeout_before", "reset_before"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("confirm", json!({ "network": fault })).await;
        race.pay().await;
        race.until("captured").await;
        let calls = race.calls("confirm").await;
        assert_eq!((calls.len(), calls[0].1), (1, 2), "the same key once more: {calls:?}");
        assert_eq!(race.provider.ledger().await.confirms(), 1);
        race.over().await;
    }
}

#[tokio::test]
async fn race_15_no_answer_and_it_was_done() {
    for fault in ["timeout_after", "reset_after", "half_body", "garbage_2xx"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("confirm", json!({ "network": fault })).await;
        race.pay().await;
        let unknown = until(&race.fan, &race.order, &["auth_unknown", "captured"]).await;
        assert!(matches!(unknown["attempt"]["phase"].as_str(), Some("asking_bank" | "paid")), "{unknown}");
        race.until("captured").await;
        assert_eq!(race.provider.ledger().await.confirms(), 1, "one authorisation");
        race.over().await;
    }
}

#[tokio::test]
async fn race_16_in_use_and_too_many_are_waited_out_under_the_same_key() {
    for (op, status) in [("confirm", "409_in_use"), ("confirm", "429"), ("create", "409_in_use"), ("capture", "429")] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first(op, json!({ "status": status })).await;
        race.pay().await;
        race.until("captured").await;
        assert_eq!(race.calls(op).await.len(), 1, "{op} {status}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_17_a_500_that_is_stored_under_the_key() {
    for (op, status) in
        [("confirm", "500_stored"), ("create", "500_stored"), ("capture", "500_stored"), ("capture", "500_after")]
    {
        let race = Race::with(false, |_| {}).await;
        race.provider.first(op, json!({ "status": status })).await;
        race.pay().await;
        race.until("captured").await;
        let calls = race.calls(op).await;
        assert_eq!(calls.len(), if status == "500_after" { 1 } else { 2 }, "{op} {status}: {calls:?}");
        if op == "confirm" {
            let quiet: i64 = sqlx::query_scalar(
                "select extract(epoch from b.created_at - a.sent_at)::bigint from provider_call a, provider_call b
                 where a.op = 'confirm' and b.op = 'confirm' and a.id < b.id",
            )
            .fetch_one(race.database.pool())
            .await
            .expect("two calls");
            assert!(quiet >= 60, "another key after {quiet} s");
        }
        race.over().await;
    }
}

#[tokio::test]
async fn race_18_a_double_click_is_one_attempt() {
    let race = Race::ready().await;
    let key = key();
    let clicks = (0..4).map(|_| race.fan.pay(&race.order, &key, CARD));
    let answers = futures_util::future::join_all(clicks).await;
    let ids: Vec<String> = answers
        .into_iter()
        .map(|answer| {
            assert_eq!(answer.status, 202);
            answer.body["attempt"]["id"].as_str().expect("an id").to_owned()
        })
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    race.until("captured").await;
    // And long after: the same answer, from a reload.
    let again = race.fan.pay(&race.order, &key, CARD).await.ok();
    assert_eq!(again["attempt"]["id"], json!(ids[0]));
    assert_eq!(race.provider.ledger().await.confirms(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_19_a_key_is_used_for_another_request() {
    let race = Race::ready().await;
    let key = key();
    race.fan.pay(&race.order, &key, CARD).await.ok();
    race.until("captured").await;
    let before = race.provider.requests("create").await.len();
    let other = race.fan.pay(&race.order, &key, CHALLENGED).await;
    assert_eq!((other.status.as_u16(), other.code()), (422, "idempotency_mismatch"));
    assert_eq!(race.provider.requests("create").await.len(), before);
    race.over().await;
}

#[tokio::test]
async fn race_20_two_tabs_pay_one_order() {
    let race = Race::ready().await;
    race.provider.rules(json!([{ "effect": { "latency": { "kind": "fixed", "ms": 100 } } }])).await;
    let tabs = (0..6).map(|_| async { race.fan.pay(&race.order, &key(), CARD).await });
    let answers = futures_util::future::join_all(tabs).await;
    let won: Vec<&Value> = answers.iter().filter(|a| a.status == 202).map(|a| &a.body["attempt"]["id"]).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    for lost in answers.iter().filter(|a| a.status != 202) {
        assert_eq!((lost.code(), &lost.body["attempt_id"]), ("attempt_live", won[0]), "the live one, to follow");
    }
    race.until("captured").await;
    race.over().await;
}

#[tokio::test]
async fn race_21_and_22_nothing_new_while_the_first_is_in_doubt() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("confirm", json!({ "network": "timeout_before" })).await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    assert_eq!(race.fan.pay(&race.order, &key(), CARD).await.code(), "attempt_live");
    let hold = race.fan.my_hold(race.event).await.ok()["hold"].clone();
    let id = hold["id"].as_str().expect("a hold");
    assert_eq!(race.fan.release(id).await.code(), "hold_frozen");
    assert_eq!(race.fan.release_seats(id, &[1]).await.code(), "hold_frozen");
    assert_eq!(race.fan.hold(race.event, &[3]).await.code(), "hold_frozen");
    race.until("captured").await;
    race.over().await;
}

#[tokio::test]
async fn race_23_the_customer_cancels_while_the_bank_is_asked() {
    let race = Race::ready().await;
    race.provider.first("confirm", json!({ "latency": { "kind": "fixed", "ms": 300 } })).await;
    race.pay().await;
    race.provider.until_asked("confirm").await;
    let id = race.order["id"].as_str().expect("an id");
    race.fan.post(&format!("/api/orders/{id}/cancel"), json!({})).await.ok();
    let voided = race.until("voided").await;
    assert_eq!((&voided["state"], &voided["attempt"]["outcome"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(voided["cancel_reason"], "buyer");
    let hold = race.fan.my_hold(race.event).await.ok()["hold"].clone();
    assert_eq!((&hold["seats"], &hold["frozen"]), (&json!([1, 2]), &json!(false)), "the seats are still theirs");
    race.over().await;
}

#[tokio::test]
async fn race_25_the_bank_does_not_know_for_long() {
    let race = Race::ready().await;
    race.provider.first("confirm", json!({ "outcome": { "kind": "processing", "ms": 3_600_000 } })).await;
    race.pay().await;
    let unknown = until(&race.fan, &race.order, &["auth_unknown"]).await;
    assert_eq!(unknown["attempt"]["phase"], "asking_bank");
    race.clock.advance(TimeDelta::minutes(9)).await;
    // The seats came back on time, whatever the bank does.
    let other = fan::many(&race.database, &race.hub.url(), 1).await.remove(0);
    other.hold(race.event, &[1, 2]).await.ok();
    assert_eq!(race.fan.pay(&race.order, &key(), CARD).await.code(), "attempt_live");
    race.provider.advance(TimeDelta::hours(1)).await;
    race.until("voided").await;
    race.over().await;
}

#[tokio::test]
async fn race_26_another_amount_is_authorised() {
    let race = Race::ready().await;
    race.provider.first("confirm", json!({ "outcome": { "kind": "wrong_amount", "delta": -100 } })).await;
    race.pay().await;
    let voided = race.until("voided").await;
    assert_eq!((&voided["attempt"]["outcome"], &voided["tickets"]), (&json!("wrong_amount"), &json!([])));
    assert_eq!(race.fan.pay(&race.order, &key(), CARD).await.code(), "payment_gate_closed");
    race.over().await;
}

#[tokio::test]
async fn race_27_the_capture_is_unknown() {
    for fault in ["timeout_before", "timeout_after", "reset_before", "reset_after"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("capture", json!({ "network": fault })).await;
        race.pay().await;
        race.until("captured").await;
        assert_eq!(race.calls("capture").await.len(), 1, "{fault}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_28_the_capture_fails_for_good() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
    race.pay().await;
    let due = race.until("capture_failed").await;
    assert_eq!((&due["state"], &due["attempt"]["phase"]), (&json!("payment_due"), &json!("failed")));
    let tickets = due["tickets"].as_array().unwrap();
    assert!(tickets.iter().all(|t| t["state"] == "pending"), "they do not scan");
    assert!(
        tickets.iter().all(|t| t["code"].is_null()),
        "nor are they shown: a door without a network believes a code"
    );
    let paper = format!("/api/orders/{}/tickets.pdf", due["id"].as_str().unwrap());
    let paper = race.fan.request(Method::GET, &paper).send().await.expect("the hub answers");
    assert_eq!(paper.status(), 409);
    // Paid again in time, the same seats are theirs.
    race.pay().await;
    let paid = race.until("captured").await;
    assert_eq!(paid["state"], "confirmed");
    assert!(paid["tickets"].as_array().unwrap().iter().all(|t| t["state"] == "valid" && t["code"].is_string()));
    race.over().await;

    let race = Race::with(false, |_| {}).await;
    race.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
    race.pay().await;
    race.until("capture_failed").await;
    race.clock.advance(TimeDelta::minutes(31)).await;
    let id = race.order["id"].as_str().expect("an id");
    eventually("the seats went back", || async {
        let order = race.fan.order(id).await.ok()["order"].clone();
        (order["state"] == "cancelled").then(|| assert_eq!(order["cancel_reason"], "not_paid"))
    })
    .await;
    let other = fan::many(&race.database, &race.hub.url(), 1).await.remove(0);
    other.hold(race.event, &[1, 2]).await.ok();
    race.over().await;
}

#[tokio::test]
async fn race_29_the_cancellation_meets_a_capture() {
    let race = Race::ready().await;
    let rules = json!([
        { "match": { "op": "confirm", "first": 1 }, "effect": { "latency": { "kind": "fixed", "ms": 300 } } },
        { "match": { "op": "cancel", "first": 1 }, "effect": { "outcome": { "kind": "captured_meanwhile" } } },
    ]);
    race.provider.rules(rules).await;
    race.pay().await;
    race.provider.until_asked("confirm").await;
    let id = race.order["id"].as_str().expect("an id");
    race.fan.post(&format!("/api/orders/{id}/cancel"), json!({})).await.ok();
    let refunded = race.until("refunded").await;
    assert_eq!(refunded["attempt"]["outcome"], "refunded");
    let ledger = race.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.refunded()), (9_000, 9_000));
    race.over().await;
}

#[tokio::test]
async fn race_30_the_void_is_unknown() {
    for fault in ["timeout_before", "timeout_after"] {
        let race = Race::ready().await;
        let rules = json!([
            { "match": { "op": "confirm", "first": 1 }, "effect": { "latency": { "kind": "fixed", "ms": 300 } } },
            { "match": { "op": "cancel", "first": 1 }, "effect": { "network": fault } },
        ]);
        race.provider.rules(rules).await;
        race.pay().await;
        race.provider.until_asked("confirm").await;
        let id = race.order["id"].as_str().expect("an id");
        race.fan.post(&format!("/api/orders/{id}/cancel"), json!({})).await.ok();
        race.until("voided").await;
        assert_eq!(race.calls("cancel").await.len(), 1, "{fault}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_31_the_refund_is_unknown() {
    for fault in ["timeout_before", "timeout_after"] {
        let race = Race::ready().await;
        let rules = json!([
            { "match": { "op": "confirm", "first": 1 }, "effect": { "latency": { "kind": "fixed", "ms": 300 } } },
            { "match": { "op": "cancel", "first": 1 }, "effect": { "outcome": { "kind": "captured_meanwhile" } } },
            { "match": { "op": "refund", "first": 1 }, "effect": { "network": fault } },
        ]);
        race.provider.rules(rules).await;
        race.pay().await;
        race.provider.until_asked("confirm").await;
        let id = race.order["id"].as_str().expect("an id");
        race.fan.post(&format!("/api/orders/{id}/cancel"), json!({})).await.ok();
        race.until("refunded").await;
        assert_eq!(race.provider.ledger().await.refunded(), 9_000, "once, {fault}");
        assert_eq!(race.calls("refund").await.len(), 1, "{fault}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_35_many_workers_on_one_attempt() {
    let race = Race::ready().await;
    let parts = race.hub.parts();
    let stop = tokio_util::sync::CancellationToken::new();
    let more: Vec<_> =
        (0..4).map(|_| tokio::spawn(parts.payments.clone().run(parts.pool.clone(), stop.clone()))).collect();
    race.provider.rules(json!([{ "effect": { "webhook": { "before_response": true, "duplicate": 3 } } }])).await;
    race.pay().await;
    race.until("captured").await;
    assert_eq!((race.calls("confirm").await.len(), race.calls("capture").await.len()), (1, 1));
    assert_eq!(race.provider.ledger().await.confirms(), 1);
    stop.cancel();
    for worker in more {
        worker.await.expect("a worker ends");
    }
    race.over().await;
}
