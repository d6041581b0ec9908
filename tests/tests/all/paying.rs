//! From an order to a ticket by card, over the wire: what is sold, what is refused, and what the buyer is told.

use chrono::TimeDelta;
use ed25519_dalek::VerifyingKey;
use fullhouse::{payment::signature, ticket::code};
use fullhouse_tests::{
    eventually,
    fan::{self, Fan},
    provider::{CARD, CHALLENGED, DECLINED, key, order, until},
    rows::Rows,
    scene::Scene,
};
use serde_json::{Value, json};

#[tokio::test]
async fn a_card_buys_seats_and_their_tickets_can_be_checked_without_us() {
    let scene = Scene::open(Rows { fee_minor: 250, ..Rows::new(4, 10) }).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1, 2]).await;
    assert_eq!(open["total_minor"], 9_250);
    let paid = fan.pay(&open, &key(), CARD).await;
    assert_eq!(paid.status, 202);
    let paid = until(&fan, &open, &["captured"]).await;
    assert_eq!((&paid["state"], &paid["attempt"]["phase"]), (&json!("confirmed"), &json!("paid")));

    let (id, public): (i16, Vec<u8>) = sqlx::query_as("select id, public from ticket_key")
        .fetch_one(scene.database.pool())
        .await
        .expect("the key was made at first use");
    let public = VerifyingKey::from_bytes(&public.try_into().expect("32 bytes")).expect("a key");
    let tickets = paid["tickets"].as_array().expect("tickets");
    assert_eq!(tickets.len(), 2);
    for ticket in tickets {
        assert_eq!(ticket["state"], "valid");
        let code = ticket["code"].as_str().expect("a code");
        let claim = code::verify(code, |key| (key == id as u16).then_some(&public)).expect("genuine");
        assert_eq!((claim.event_id, i64::from(claim.seat_no)), (scene.event, ticket["seat_no"].as_i64().unwrap()));
    }
    assert_eq!(scene.provider.ledger().await.captured(), 9_250);
    assert_eq!(fan.pay(&open, &key(), CARD).await.code(), "order_not_open");
    scene.close().await;
}

#[tokio::test]
async fn a_declined_card_leaves_the_seats_and_another_card_pays() {
    let scene = Scene::open(Rows::new(4, 10)).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1, 2, 3]).await;
    fan.pay(&open, &key(), DECLINED).await.ok();
    let declined = until(&fan, &open, &["declined"]).await;
    assert_eq!(declined["attempt"]["phase"], "declined");
    assert_eq!(declined["attempt"]["decline_code"], "generic_decline");
    let hold = fan.my_hold(scene.event).await.ok();
    assert_eq!((&hold["hold"]["seats"], &hold["hold"]["frozen"]), (&json!([1, 2, 3]), &json!(false)));
    assert_eq!(hold["hold"]["held_until"], declined["held_until"], "a failed card moves no deadline");

    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["captured"]).await;
    // What the provider still had of the first try was let go.
    eventually("the declined intent is cancelled", || async {
        scene.provider.ledger().await.intents().iter().any(|i| i["status"] == "canceled").then_some(())
    })
    .await;
    scene.close().await;
}

#[tokio::test]
async fn a_card_that_nobody_knows_is_refused_and_another_pays() {
    let scene = Scene::open(Rows::new(4, 10)).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    fan.pay(&open, &key(), "pm_nobody").await.ok();
    let refused = until(&fan, &open, &["declined"]).await;
    assert_eq!(refused["attempt"]["outcome"], "refused");
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["captured"]).await;
    scene.close().await;
}

#[tokio::test]
async fn a_challenge_is_met_or_failed() {
    let scene = Scene::open(Rows::new(4, 10)).await;
    for (answer, state) in [("fail", "declined"), ("approve", "captured")] {
        let fan = scene.fan().await;
        let seat = i32::from(answer == "fail");
        let open = order(&fan, scene.event, &[seat]).await;
        fan.pay(&open, &key(), CHALLENGED).await.ok();
        let asked = until(&fan, &open, &["action_required"]).await;
        assert_eq!(asked["attempt"]["phase"], "action_required");
        assert!(fan.release(hold_of(&fan, scene.event).await["id"].as_str().unwrap()).await.code() == "hold_frozen");
        scene.provider.answer_challenge(&asked["attempt"], answer).await;
        let id = open["id"].as_str().expect("an id");
        assert_eq!(fan.post(&format!("/api/orders/{id}/resume"), json!({})).await.status, 202);
        until(&fan, &open, &[state]).await;
    }
    scene.close().await;
}

async fn hold_of(fan: &Fan, event: i64) -> Value {
    fan.my_hold(event).await.ok()["hold"].clone()
}

#[tokio::test]
async fn what_is_not_the_orders_price_is_not_charged() {
    let scene = Scene::open(Rows { currency: "JPY", price_minor: 10_000, ..Rows::new(4, 10) }).await;
    let (fan, stranger) = (scene.fan().await, scene.fan().await);
    let open = order(&fan, scene.event, &[1]).await;
    let path = format!("/api/orders/{}/pay", open["id"].as_str().expect("an id"));
    let pay =
        |amount: Value, currency: &str| json!({ "payment_method": CARD, "amount_minor": amount, "currency": currency });
    let before = (scene.now(&open).await, fan.my_hold(scene.event).await.ok()["hold"].clone());
    for (amount, currency) in [
        (0, "JPY"),
        (-10_000, "JPY"),
        (9_999, "JPY"),
        (1_000_000, "JPY"),
        (100_000_000, "JPY"), // more than any order may cost
        (i64::MAX, "JPY"),
        (i64::MIN, "JPY"),
        (10_000, "EUR"),
        (10_000, "jpy"),
    ] {
        assert_eq!(fan.post_once(&path, &key(), pay(json!(amount), currency)).await.code(), "amount_mismatch");
    }
    for amount in [json!(1e308), json!(u64::MAX), json!("10000"), json!(100.5), json!(null)] {
        assert_eq!(fan.post_once(&path, &key(), pay(amount, "JPY")).await.code(), "json_invalid");
    }
    assert_eq!(fan.post(&path, pay(json!(10_000), "JPY")).await.code(), "idempotency_key_missing");
    assert_eq!(stranger.post_once(&path, &key(), pay(json!(10_000), "JPY")).await.code(), "order_unknown");
    let gone = path.replace(open["id"].as_str().unwrap(), "00000000-0000-0000-0000-000000000000");
    assert_eq!(fan.post_once(&gone, &key(), pay(json!(10_000), "JPY")).await.code(), "order_unknown");
    assert!(scene.provider.ledger().await.intents().is_empty());
    assert_eq!(
        (scene.now(&open).await, fan.my_hold(scene.event).await.ok()["hold"].clone()),
        before,
        "nothing has changed"
    );
    assert_eq!(scene.count("select count(*) from attempt").await, 0);

    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["captured"]).await;
    let ledger = scene.provider.ledger().await;
    assert_eq!(
        (ledger.captured(), &ledger.intents()[0]["currency"]),
        (10_000, &json!("jpy")),
        "yen have no hundredths"
    );
    scene.close().await;
}

#[tokio::test]
async fn no_payment_starts_in_the_last_minute_and_none_after_the_end() {
    let scene = Scene::open(Rows::new(4, 10)).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    scene.clock.advance(TimeDelta::seconds(425)).await;
    assert_eq!(fan.pay(&open, &key(), CARD).await.code(), "too_late_to_pay");
    scene.clock.advance(TimeDelta::seconds(60)).await;
    let late = fan.pay(&open, &key(), CARD).await;
    assert!(matches!(late.code(), "hold_ended" | "order_not_open"), "{late:?}");
    assert!(scene.provider.ledger().await.intents().is_empty());
    scene.close().await;
}

#[tokio::test]
async fn a_closed_gate_stops_new_payments_and_no_others() {
    let scene = Scene::open(Rows::new(4, 10)).await;
    let (fan, other) = (scene.fan().await, scene.fan().await);
    let open = order(&fan, scene.event, &[1]).await;
    scene.provider.first("confirm", json!({ "latency": { "kind": "fixed", "ms": 300 } })).await;
    fan.pay(&open, &key(), CARD).await.ok();
    sqlx::query("insert into checkout_gate (reason, by_person, closed_at) values ('test', true, db_clock())")
        .execute(scene.database.pool())
        .await
        .expect("the gate closes");
    let late = order(&other, scene.event, &[2]).await;
    assert_eq!(other.pay(&late, &key(), CARD).await.code(), "payment_gate_closed");
    until(&fan, &open, &["captured"]).await;
    scene.close().await;
}

#[tokio::test]
async fn a_webhook_is_believed_only_if_it_is_the_providers() {
    let scene = Scene::open(Rows::new(4, 10)).await;
    let url = format!("{}/api/webhooks/payments", scene.hub.url());
    let http = reqwest::Client::new();
    let body = json!({ "id": "evt_1", "type": "payment_intent.succeeded", "livemode": false,
        "data": { "object": { "object": "payment_intent", "id": "pi_unknown" } } });
    let send = async |header: String, body: String| {
        let request = http.post(&url).header("stripe-signature", header).body(body);
        fan::Answer::read(request.send().await.expect("the hub answers")).await.expect("the hub answers")
    };
    let now = chrono::Utc::now().timestamp();
    let signed = |body: &str, at: i64| signature::sign(scene.provider.secrets(), at, body.as_bytes());
    let text = body.to_string();
    assert_eq!(send("t=1,v1=00".into(), text.clone()).await.code(), "signature_invalid");
    assert_eq!(send(String::new(), text.clone()).await.code(), "signature_invalid");
    assert_eq!(send(signed(&text, now - 400), text.clone()).await.code(), "signature_invalid");
    assert_eq!(send(signed(&text, now + 400), text.clone()).await.code(), "signature_invalid");
    assert_eq!(send(signed(&text, now), text.replace("pi_", "pi-")).await.code(), "signature_invalid");
    let big = format!("{{\"id\":\"{}\"}}", "x".repeat(10 << 20));
    assert_eq!(send(signed(&big, now), big).await.code(), "body_too_large");
    let junk = "[1]".to_owned();
    assert_eq!(send(signed(&junk, now), junk).await.code(), "bad_request");
    assert_eq!(stored(&scene).await, []);

    let live = text.replace("false", "true").replace("evt_1", "evt_live");
    assert_eq!(send(signed(&live, now), live.clone()).await.status, 200);
    for _ in 0..3 {
        assert_eq!(send(signed(&text, now), text.clone()).await.status, 200);
    }
    assert_eq!(
        stored(&scene).await,
        [("evt_1".to_owned(), None), ("evt_live".to_owned(), Some("wrong_mode".to_owned()))],
        "stored once; what is about nothing of ours is kept and tried again"
    );
    scene.clock.advance(TimeDelta::minutes(11)).await;
    eventually("it is an orphan", || async { (stored(&scene).await[0].1.as_deref() == Some("orphan")).then_some(()) })
        .await;
    scene.close().await;
}

async fn stored(scene: &Scene) -> Vec<(String, Option<String>)> {
    sqlx::query_as("select event_id, outcome from webhook_event order by event_id")
        .fetch_all(scene.database.pool())
        .await
        .expect("the test's database answers")
}
