//! Money that was taken in another currency than was asked for: the gate closes, people are told, and what was taken for
//! nothing goes back as a whole.

use fullhouse::{
    payment::reconcile::{Outcome, finding::Class},
    watch,
};
use fullhouse_tests::{
    eventually,
    provider::{CARD, key, order, until_in_time},
    scene::Scene,
};
use serde_json::{Value, json};

const TAKEN: &str = r#"{ "kind": "taken_in", "currency": "usd" }"#;

/// A fan pays for two seats, and the provider takes another currency at this call.
async fn taken_at(op: &str) -> (Scene, Value, Value) {
    let scene = Scene::of_books(|_| {}).await;
    let taken: Value = serde_json::from_str(TAKEN).expect("JSON");
    scene.provider.first(op, json!({ "outcome": taken })).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1, 2]).await;
    fan.pay(&open, &key(), CARD).await.ok();
    let end = if op == "capture" { "captured" } else { "refunded" };
    let ended = until_in_time(&scene.database, &scene.clock, &fan, &open, &[end]).await;
    (scene, open, ended)
}

async fn holds(scene: &Scene) {
    let broken = watch::check(scene.database.pool()).await.expect("the test's database answers");
    assert!(broken.is_empty(), "{broken:?}");
}

#[tokio::test]
async fn what_was_taken_for_nothing_in_another_currency_goes_back_as_a_whole() {
    let (scene, open, ended) = taken_at("confirm").await;
    assert_eq!((&ended["state"], &ended["tickets"]), (&json!("open"), &json!([])), "nothing was sold");
    let ledger = scene.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.refunded(), ledger.confirms()), (9_000, 9_000, 1));
    assert_eq!(scene.provider.requests("refund").await.len(), 1);
    assert_eq!(scene.closed_for().await, ["amount_differs"], "and no new payments begin");
    // The books say the same, once: a person has to look, and nothing is repaired.
    scene.clock.advance(chrono::TimeDelta::minutes(11)).await;
    assert_eq!(scene.found().await, [(Class::M3, Outcome::Listed)]);
    let listed = scene.operator().await.get("/api/staff/money").await.ok();
    let finding = &listed["findings"][0];
    assert_eq!((&finding["class"], &finding["order_code"]), (&json!("M3"), &open["code"]), "{listed}");
    assert_eq!(finding["currency"], "usd", "{finding}");
    holds(&scene).await;
    scene.end().await;
}

#[tokio::test]
async fn a_sale_whose_money_was_taken_in_another_currency_stays_sold_and_a_person_looks() {
    let (scene, _, ended) = taken_at("capture").await;
    assert_eq!(ended["state"], "confirmed", "the buyer has agreed to all of it");
    assert!(ended["tickets"].as_array().expect("tickets").iter().all(|t| t["state"] == "valid"));
    assert_eq!(scene.closed_for().await, ["amount_differs"]);
    assert_eq!(scene.count("select captured_minor from attempt").await, 0, "of our currency nothing came");
    // Given back, there is nothing of ours to send to the card: a person does that where it was taken.
    scene
        .staff(&ended, "refunds", json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" }))
        .await
        .ok();
    eventually("its seats are free", || async { (scene.status(1).await == 0).then_some(()) }).await;
    assert_eq!(scene.provider.requests("refund").await.len(), 0);
    holds(&scene).await;
    scene.end().await;
}
