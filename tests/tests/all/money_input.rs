//! What nobody should send about money: amounts that are none, orders that are another's or not there.

use fullhouse_tests::{
    database::Database,
    fan,
    hub::Hub,
    provider::{Provider, key, order},
    rows::Rows,
    scene::Scene,
    till::Till,
};
use serde_json::{Value, json};
use uuid::Uuid;

const READER: &str = "tmr_counter_1";

#[tokio::test]
async fn amounts_that_are_none_and_orders_that_are_anothers_are_refused_and_move_nothing() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let provider = Provider::start().await;
    let mut config = database.config().await;
    provider.configure(&mut config);
    let hub = Hub::start(config).await;
    let till = Till::enrol(&database, &hub.url(), "Window 1").await;
    let other = Till::enrol(&database, &hub.url(), "Window 2").await;
    let held = till.hold(event, &[1, 2]).await.ok();
    let sale = |received: Value| {
        json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [],
            "tender": { "kind": "cash", "received_minor": received } })
    };
    let sales = "/api/box-office/sales";
    for (received, code) in [
        (json!(0), "tender_invalid"),
        (json!(-9_000), "tender_invalid"),
        (json!(i64::MIN), "tender_invalid"),
        (json!(8_999), "tender_invalid"),
        (json!(1e308), "json_invalid"),
        (json!("9000"), "json_invalid"),
        (json!(9_000.5), "json_invalid"),
        (json!(u64::MAX), "json_invalid"),
        (Value::Null, "json_invalid"),
    ] {
        assert_eq!(till.post(sales, sale(received.clone())).await.code(), code, "{received}");
    }
    assert_eq!(other.post(sales, sale(json!(9_000))).await.code(), "hold_unknown", "another counter's hold");
    assert_eq!(other.sell_by_card(&held, &key(), READER).await.code(), "hold_unknown");

    let sold = till.post(sales, sale(json!(9_000))).await.ok()["order"].clone();
    let id = sold["id"].as_str().expect("an id").to_owned();
    let exchange = |received: Value| json!({ "seats": [{ "from": 1, "to": 11 }], "reason": "a pillar", "received_minor": received });
    for received in [json!(1e308), json!("5"), json!(0.5)] {
        let path = format!("/api/staff/orders/{id}/exchange");
        assert_eq!(till.post(&path, exchange(received.clone())).await.code(), "json_invalid", "{received}");
    }
    let part = |amount: Value| json!({ "what": { "kind": "amount", "amount_minor": amount }, "reason": "a cold hall" });
    for (amount, code) in [
        (json!(0), "bad_request"),
        (json!(-1), "bad_request"),
        (json!(9_001), "refund_too_much"),
        (json!(i64::MAX), "refund_too_much"),
        (json!(i64::MIN), "bad_request"),
        (json!(1e308), "json_invalid"),
        (json!("1"), "json_invalid"),
    ] {
        assert_eq!(till.refund(&sold, &key(), part(amount.clone())).await.code(), code, "{amount}");
    }
    // Orders that are not there, not paid, or not this buyer's; refunds that are not there.
    let nobodys = json!({ "id": Uuid::nil() });
    assert_eq!(till.refund(&nobodys, &key(), part(json!(1))).await.code(), "order_unknown");
    let fan = fan::many(&database, &hub.url(), 1).await.remove(0);
    let open = order(&fan, event, &[5]).await;
    assert_eq!(till.refund(&open, &key(), part(json!(1))).await.code(), "order_not_paid");
    let retry = format!("/api/staff/refunds/{}/retry", Uuid::nil());
    assert_eq!(till.post(&retry, json!({ "reason": "again" })).await.status, 404);
    let pay = json!({ "payment_method": "pm_card_visa", "amount_minor": 9_000, "currency": "EUR" });
    for verb in ["pay", "cancel", "resume"] {
        let answer = fan.post_once(&format!("/api/orders/{id}/{verb}"), &key(), pay.clone()).await;
        assert_eq!(answer.code(), "order_unknown", "{verb}: the counter's customer's");
    }
    let moved: i64 = sqlx::query_scalar("select (select count(*) from refund) + (select count(*) from attempt)")
        .fetch_one(database.pool())
        .await
        .expect("the test's database answers");
    assert_eq!(moved, 0);
    assert!(provider.ledger().await.intents().is_empty());
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_order_of_more_than_can_be_charged_is_refused_and_changes_nothing() {
    let scene = Scene::open(Rows { price_minor: 50_000_000, ..Rows::new(2, 10) }).await;
    let fan = scene.fan().await;
    let held = fan.hold(scene.event, &[1, 2]).await.ok();
    let hold = held["hold"]["id"].as_str().expect("a hold");
    assert_eq!(fan.checkout(hold).await.code(), "tender_invalid", "1,000,000.00 and no cent less");
    let walk_in = scene.till.hold(scene.event, &[3, 4]).await.ok();
    assert_eq!(scene.till.sell_for_cash(&walk_in, 100_000_000).await.code(), "tender_invalid");
    assert_eq!(scene.count(r#"select count(*) from "order""#).await, 0);
    assert_eq!(fan.my_hold(scene.event).await.ok()["hold"]["seats"], json!([1, 2]));
    assert_eq!((scene.status(1).await, scene.status(3).await), (1, 1), "held, as before");
    // The control: one of them is within it.
    fan.release_seats(hold, &[2]).await.ok();
    assert_eq!(fan.checkout(hold).await.ok()["order"]["total_minor"], 50_000_000);
    scene.close().await;
}
