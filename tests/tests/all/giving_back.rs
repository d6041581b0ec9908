//! Buyers give a part of an order back by themselves, within what was agreed on when they bought it.

use chrono::TimeDelta;
use fullhouse_tests::{
    fan::{Answer, Fan},
    provider::key,
    rows::Rows,
    scene::{Scene, seats},
};
use serde_json::{Value, json};

/// Three seats at 33.33 and a fee of 7.00; a tenth is kept, until two days before.
async fn scene(policy: Value) -> Scene {
    let scene = Scene::open(Rows { price_minor: 3_333, fee_minor: 700, ..Rows::new(2, 10) }).await;
    agree(&scene, policy).await;
    scene
}

async fn agree(scene: &Scene, policy: Value) {
    sqlx::query("update event set refund_policy = $1 where id = $2")
        .bind(policy)
        .bind(scene.event)
        .execute(scene.database.pool())
        .await
        .expect("a policy");
}

fn tenth() -> Value {
    json!({ "until_hours": 48, "keep_percent": 10, "keep_minor": 0, "keep_fees": false })
}

fn path(order: &Value) -> String {
    format!("/api/orders/{}/cancellation", order["id"].as_str().expect("an id"))
}

async fn offer(fan: &Fan, order: &Value, seats: &str) -> Answer {
    fan.get(&format!("{}?seats={seats}", path(order))).await
}

async fn give_back(fan: &Fan, order: &Value, key: &str, seats: &[i32], back_minor: i64) -> Answer {
    fan.post_once(&path(order), key, json!({ "seats": seats, "back_minor": back_minor })).await
}

#[tokio::test]
async fn what_comes_back_is_said_before_and_is_what_comes() {
    let scene = scene(tenth()).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2, 3]).await;
    assert_eq!(paid["refund_terms"]["keep_percent"], 10);
    let told = offer(&fan, &paid, "2").await.ok();
    // 33.33 less 3.34, and the second seat's share of the fee.
    assert_eq!(
        (&told["back_minor"], &told["kept_minor"], &told["fees_back_minor"]),
        (&json!(3_232), &json!(334), &json!(233))
    );
    assert_eq!(told["seats"], json!([{ "seat_no": 2, "amount_minor": 3_333, "back_minor": 2_999 }]));
    assert_eq!(scene.status(2).await, 2, "asking changes nothing");

    let once = key();
    let wrong = give_back(&fan, &paid, &once, &[2], 3_333).await;
    assert_eq!((wrong.code(), &wrong.body["back_minor"]), ("amount_mismatch", &json!(3_232)));
    let done = give_back(&fan, &paid, &once, &[2], 3_232).await.ok();
    let dead: Vec<&Value> =
        done["order"]["tickets"].as_array().unwrap().iter().filter(|t| t["state"] == "void").collect();
    assert_eq!((dead.len(), &dead[0]["seat_no"], scene.status(2).await), (1, &json!(2), 0));
    give_back(&fan, &paid, &once, &[2], 3_232).await.ok();
    assert_eq!(give_back(&fan, &paid, &once, &[1], 3_232).await.code(), "idempotency_mismatch");
    scene.until_settled().await;
    assert_eq!(scene.provider.ledger().await.refunded(), 3_232, "the same click is one refund");

    // The last ones: what was kept of the first stays kept, and the fee is given back to the cent.
    let rest = offer(&fan, &paid, "1,3").await.ok();
    assert_eq!((&rest["back_minor"], &rest["fees_back_minor"]), (&json!(2 * 2_999 + 467), &json!(467)));
    let over = give_back(&fan, &paid, &key(), &[1, 3], 2 * 2_999 + 467).await.ok();
    assert_eq!((&over["order"]["state"], &over["order"]["cancel_reason"]), (&json!("cancelled"), &json!("refunded")));
    scene.until_settled().await;
    let ledger = scene.provider.ledger().await;
    assert_eq!(ledger.captured() - ledger.refunded(), 3 * 334, "three tenths are the house's");
    scene.close().await;
}

#[tokio::test]
async fn the_policy_is_the_one_that_was_bought_under() {
    let scene = scene(tenth()).await;
    let (early, late) = (scene.fan().await, scene.fan().await);
    let before = scene.bought(&early, &[1, 2]).await;
    agree(&scene, json!({ "until_hours": 48, "keep_percent": 0, "keep_minor": 1_000, "keep_fees": true })).await;
    let after = scene.bought(&late, &[11, 12]).await;
    assert_eq!(offer(&early, &before, "1").await.ok()["kept_minor"], 334);
    let told = offer(&late, &after, "11").await.ok();
    assert_eq!((&told["back_minor"], &told["fees_back_minor"]), (&json!(2_333), &json!(0)));
    // And one who bought when nothing could be given back asks the staff, who may all the same, with a reason.
    scene.run("update event set refund_policy = null").await;
    let never = scene.fan().await;
    let bought = scene.bought(&never, &[5]).await;
    assert_eq!(
        (&bought["refund_terms"], offer(&never, &bought, "5").await.code()),
        (&Value::Null, "refund_not_allowed")
    );
    assert_eq!(give_back(&never, &bought, &key(), &[5], 4_033).await.code(), "refund_not_allowed");
    let all = scene.staff(&bought, "refunds", seats(&[5], "on_sale")).await.ok();
    assert_eq!(all["amount_minor"], 4_033, "staff are bound by no policy");
    scene.until_settled().await;
    scene.close().await;
}

#[tokio::test]
async fn too_late_too_few_or_not_theirs_gives_nothing_back() {
    let scene = scene(tenth()).await;
    scene.run("update event set seats_min = 2").await;
    scene.run("update plan_seat set companion_of = 1 where seat_no = 2").await;
    let (fan, stranger) = (scene.fan().await, scene.fan().await);
    let paid = scene.bought(&fan, &[1, 2, 3, 4]).await;
    for (seats, code) in [
        ("", "bad_request"),
        ("x", "bad_request"),
        ("3,3", "seats_repeated"),
        ("9", "seat_unknown"),
        ("2,3,4", "seats_too_few"),
        ("1", "companion_needs_accessible"),
    ] {
        assert_eq!(offer(&fan, &paid, seats).await.code(), code, "{seats}");
    }
    assert_eq!(offer(&stranger, &paid, "3").await.code(), "order_unknown");
    assert_eq!(give_back(&stranger, &paid, &key(), &[3], 1).await.code(), "order_unknown");
    offer(&fan, &paid, "3,4").await.ok();
    offer(&fan, &paid, "1,2,3,4").await.ok();
    scene.clock.advance(TimeDelta::days(38) + TimeDelta::minutes(1)).await;
    let late = offer(&fan, &paid, "3,4").await;
    assert_eq!((late.code(), late.body["until"].is_string()), ("refund_too_late", true));
    assert_eq!(give_back(&fan, &paid, &key(), &[3, 4], 1).await.code(), "refund_too_late");
    assert_eq!(scene.provider.ledger().await.refunded(), 0);
    scene.close().await;
}
