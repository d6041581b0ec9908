//! Currencies: what is paid in those without hundredths, or with thousandths, is what goes back.
//! Money that was taken in another currency than was asked for: the gate closes, people are told, and what was taken for
//! nothing goes back as a whole.

use fullhouse::{
    payment::reconcile::{Outcome, finding::Class},
    watch,
};
use fullhouse_tests::{
    eventually,
    provider::{CARD, key, order, until, until_in_time},
    rows::Rows,
    scene::{Scene, seats},
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
    let ended = until_in_time(&scene.clock, &fan, &open, &[end]).await;
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

/// A currency, its price, its fee of an order, its tax in thousandths of a per cent; what the order of three seats comes to
/// and the tax in it; and the smallest amount that the provider can be asked for.
const CURRENCIES: [(&str, i64, i64, i32, i64, i64, i64); 3] = [
    ("JPY", 3_333, 700, 10_000, 10_699, 973, 1), // no digits behind the point
    ("KRW", 55_555, 1_000, 10_000, 167_665, 15_241, 1), // none either
    ("KWD", 12_340, 700, 5_000, 37_720, 1_797, 10), // three, the last of them a 0 for the provider
];

#[tokio::test]
async fn what_was_paid_in_yen_won_and_dinars_goes_back_in_parts_to_the_last_unit() {
    for (currency, price_minor, fee_minor, tax, total, tax_minor, step) in CURRENCIES {
        let scene = Scene::open(Rows { currency, price_minor, fee_minor, ..Rows::new(2, 10) }).await;
        scene.run(&format!("update event set tax_name = 'VAT', tax_milli_percent = {tax}")).await;
        let fan = scene.fan().await;
        let open = order(&fan, scene.event, &[1, 2, 3]).await;
        let amounts: Vec<i64> =
            open["lines"].as_array().expect("lines").iter().map(|l| l["amount_minor"].as_i64().expect("one")).collect();
        assert_eq!(amounts, [price_minor, price_minor, price_minor, fee_minor]);
        assert_eq!((&open["currency"], &open["total_minor"]), (&json!(currency), &json!(total)));
        assert_eq!(open["tax"]["amount_minor"], tax_minor);
        fan.pay(&open, &key(), CARD).await.ok();
        let paid = until(&fan, &open, &["captured"]).await;
        assert!(paid["tickets"].as_array().expect("tickets").iter().all(|t| t["state"] == "valid"));
        // As it went over the wire, and as the provider has it: not a hundredfold, not a hundredth.
        let raw = json!({ "amount": total.to_string(), "currency": currency.to_lowercase() });
        let asked = &scene.provider.requests("create").await[0]["params"];
        assert_eq!(json!({ "amount": asked["amount"], "currency": asked["currency"] }), raw);
        let ledger = scene.provider.ledger().await;
        let intent = &ledger.intents()[0];
        assert_eq!((&intent["captured"], &intent["currency"]), (&json!(total), &raw["currency"]));

        let amount =
            |amount: i64| json!({ "what": { "kind": "amount", "amount_minor": amount }, "reason": "a cold hall" });
        if step > 1 {
            assert_eq!(
                scene.till.refund(&paid, &key(), amount(1_000 + step / 2)).await.code(),
                "tender_invalid",
                "{currency}"
            );
        }
        let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
        let mut given = Vec::new();
        for what in [seats(&[2], "on_sale"), amount(1_000), seats(&[1], "on_sale"), all.clone()] {
            given.push(scene.till.refund(&paid, &key(), what).await.ok()["amount_minor"].as_i64().expect("an amount"));
            scene.until_settled().await;
        }
        assert_eq!((given[1], given.iter().sum::<i64>()), (1_000, total), "{currency}: {given:?}");
        assert!(given.iter().all(|amount| *amount > 0 && amount % step == 0), "{currency}: {given:?}");
        let ledger = scene.provider.ledger().await;
        let sent: Vec<i64> = ledger.0["refunds"]
            .as_array()
            .expect("refunds")
            .iter()
            .map(|r| r["amount"].as_i64().expect("one"))
            .collect();
        assert_eq!((sent, ledger.refunded()), (given, total), "{currency}: in raw units");
        let now = scene.now(&paid).await;
        assert_eq!((&now["state"], &now["tax"]["refunded_minor"]), (&json!("cancelled"), &json!(tax_minor)));
        assert_eq!(scene.till.refund(&paid, &key(), all).await.code(), "order_not_paid", "and no more");
        holds(&scene).await;
        scene.close().await;
    }
}
