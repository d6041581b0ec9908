//! What the provider's lists may hide, repeat or get wrong: each has its class, and does to the gate what that class does.

use chrono::TimeDelta;
use fullhouse::payment::reconcile::{Outcome, finding::Class};
use fullhouse_tests::{
    eventually,
    provider::{CARD, key, order, until},
    scene::Scene,
};
use serde_json::{Value, json};

/// One seat is bought and half of it given back; the list of money says this of the one, or of the other.
async fn told(capture: Value, refund: Value) -> Scene {
    told_with(capture, refund, true).await
}

async fn told_with(capture: Value, refund: Value, account_shared: bool) -> Scene {
    let scene = Scene::of_books(|config| config.reconcile.account_shared = account_shared).await;
    scene
        .provider
        .rules(json!([
            { "match": { "op": "capture" }, "effect": { "settlement": capture } },
            { "match": { "op": "refund" }, "effect": { "settlement": refund } },
        ]))
        .await;
    let paid = scene.bought(&scene.fan().await, &[1]).await;
    let half = json!({ "what": { "kind": "amount", "amount_minor": 2_000 }, "reason": "a cold hall" });
    scene.till.refund(&paid, &key(), half).await.ok();
    eventually("the refund has arrived", || async {
        let states: Vec<String> = sqlx::query_scalar("select state from refund")
            .fetch_all(scene.database.pool())
            .await
            .expect("the test's database answers");
        (states == ["succeeded"]).then_some(())
    })
    .await;
    scene.clock.advance(TimeDelta::minutes(11)).await;
    scene
}

async fn finds(scene: &Scene, what: &str, found: &[(Class, Outcome)], closed_for: &[&str]) {
    assert_eq!(scene.found().await, found, "{what}");
    assert_eq!(scene.closed_for().await, closed_for, "{what}");
}

#[tokio::test]
async fn what_says_nothing_wrong_is_not_found() {
    for harmless in [
        json!({ "duplicate": true }),
        json!({ "fee": 4_000 }),
        // In the currency of settlement, which is not the payment's: amounts can't be compared.
        json!({ "currency": "usd", "amount_delta": 77 }),
    ] {
        let scene = told(harmless.clone(), harmless.clone()).await;
        finds(&scene, &harmless.to_string(), &[], &[]).await;
        scene.end().await;
    }
}

#[tokio::test]
async fn pages_that_overlap_are_read_like_others() {
    let scene = Scene::of_books(|config| config.reconcile.page_rows = 2).await;
    for seat in 0..5 {
        scene.bought(&scene.fan().await, &[seat]).await;
    }
    scene.clock.advance(TimeDelta::minutes(11)).await;
    let overlap = json!({ "settlement": { "page_overlap": 1 } });
    scene.provider.rules(json!([{ "match": { "op": "balance_transactions" }, "effect": overlap }])).await;
    let report = scene.reconcile().await;
    assert!(report.transactions > 5 && report.found.is_empty(), "{report:?}");
    let kept: i64 = sqlx::query_scalar("select count(*) from provider_transaction")
        .fetch_one(scene.database.pool())
        .await
        .expect("the test's database answers");
    assert_eq!(kept, 5);
    scene.end().await;
}

#[tokio::test]
async fn m3_another_amount_moved_than_was_captured_or_given_back() {
    let off = json!({ "amount_delta": -1 });
    for (capture, refund) in [(off.clone(), json!({})), (json!({}), off)] {
        let scene = told(capture, refund).await;
        finds(&scene, "amount_delta", &[(Class::M3, Outcome::Listed)], &["amount_differs"]).await;
        scene.end().await;
    }
}

#[tokio::test]
async fn m7_and_m1_money_of_nobody_we_know() {
    let foreign = json!({ "foreign_row": true });
    let scene = told_with(foreign.clone(), json!({}), true).await;
    finds(&scene, "somebody else's shop", &[(Class::M7, Outcome::Listed)], &[]).await;
    scene.end().await;
    let scene = told_with(foreign, json!({}), false).await;
    finds(&scene, "the account is ours alone", &[(Class::M1, Outcome::Listed)], &["captured_without_order"]).await;
    scene.end().await;
}

#[tokio::test]
async fn m7_a_type_that_nobody_has_heard_of() {
    let scene = told(json!({ "unknown_type": true }), json!({ "unknown_type": true })).await;
    finds(&scene, "unknown_type", &[(Class::M7, Outcome::Listed), (Class::M7, Outcome::Listed)], &[]).await;
    scene.end().await;
}

#[tokio::test]
async fn m2_sold_and_the_list_never_has_its_money() {
    let scene = told(json!({ "drop": true }), json!({})).await;
    finds(&scene, "it may be late", &[(Class::M2, Outcome::RepairFailed)], &[]).await;
    finds(&scene, "read once more", &[(Class::M2, Outcome::RepairFailed)], &["sold_not_captured"]).await;
    scene.end().await;
}

#[tokio::test]
async fn money_that_is_listed_late_is_no_difference_any_more_then() {
    let scene = told(json!({ "late_by_ms": 3_600_000 }), json!({})).await;
    finds(&scene, "late", &[(Class::M2, Outcome::RepairFailed)], &[]).await;
    scene.provider.advance(TimeDelta::hours(1)).await;
    assert!(scene.found().await.is_empty(), "now it is there");
    let cleared: i64 = sqlx::query_scalar("select count(*) from money_finding where cleared_at is not null")
        .fetch_one(scene.database.pool())
        .await
        .expect("the test's database answers");
    assert_eq!(cleared, 1);
    scene.end().await;
}

#[tokio::test]
async fn m6_a_refund_that_the_provider_does_not_list() {
    // Ours: its money is listed, the refund itself is not.
    let scene = told(json!({}), json!({ "missing_refund": true })).await;
    let found = scene.found().await;
    assert!(found.contains(&(Class::M6, Outcome::RepairFailed)), "{found:?}");
    assert!(found.iter().all(|(class, _)| matches!(class, Class::M6 | Class::M7)), "{found:?}");
    assert_eq!(scene.closed_for().await, ["refund_on_one_side"]);
    scene.end().await;
}

#[tokio::test]
async fn m2_the_provider_disagrees_in_both_directions() {
    // It has the money, and we are in doubt: asked, it says so, and the doubt is over.
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    scene
        .provider
        .rules(json!([{ "match": { "op": "capture" }, "effect": { "network": "timeout_after" } },
        { "match": { "op": "get" }, "effect": { "status": "503" } }]))
        .await;
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["capture_unknown"]).await;
    scene.provider.rules(json!([])).await;
    scene.run("update attempt set next_run_at = db_clock() + interval '1 day', leased_until = null").await;
    scene.clock.advance(TimeDelta::minutes(11)).await;
    finds(&scene, "it has it", &[(Class::M2, Outcome::Repaired)], &[]).await;
    until(&fan, &open, &["captured"]).await;
    scene.end().await;

    // We have it as captured, and it has not.
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    scene.provider.rules(json!([{ "match": { "op": "capture" }, "effect": { "network": "timeout_before" } }])).await;
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["capture_unknown"]).await;
    scene
        .run(
            "update attempt set state = 'captured', captured_minor = amount_minor, version = version + 1, next_run_at = null",
        )
        .await;
    scene.clock.advance(TimeDelta::minutes(11)).await;
    finds(&scene, "it has not", &[(Class::M2, Outcome::RepairFailed)], &["sold_not_captured"]).await;
    scene.end().await;
}
