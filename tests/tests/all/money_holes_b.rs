//! What somebody who looked for holes has found about money at the till, refunds that failed, the books, and events
//! that are called off.

use std::process::Stdio;

use chrono::TimeDelta;
use fullhouse::{
    payment::{
        call_off, gate, installation,
        reconcile::{self, Outcome, Report, finding::Class},
        signature,
    },
    watch,
};
use fullhouse_tests::{
    binary, eventually,
    fan::Fan,
    provider::{CARD, CHALLENGED, key, order, until},
    rows::Rows,
    run::run,
    scene::{Scene, seats},
    till::Till,
};
use serde_json::{Value, json};
use uuid::Uuid;

const READER: &str = "tmr_window_1";
const PRICE: i64 = 4_500;

/// A counter with a card reader.
async fn counter() -> Scene {
    let scene = Scene::open(Rows::new(2, 10)).await;
    Till::place_reader(&scene.database, "Window 1", READER).await;
    scene
}

async fn until_sale(scene: &Scene, order: &Value, states: &[&str]) -> Value {
    eventually(&format!("the attempt is {states:?}"), || async {
        let order = scene.till.card_sale(order).await.ok()["order"].clone();
        states.contains(&order["attempt"]["state"].as_str().unwrap_or_default()).then_some(order)
    })
    .await
}

async fn reconciled(scene: &Scene) -> Report {
    let parts = scene.hub.parts();
    reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books are read")
}

fn classes(report: &Report) -> Vec<(Class, Outcome)> {
    report.found.iter().map(|(found, outcome)| (found.class, *outcome)).collect()
}

async fn closed_for(scene: &Scene) -> Vec<String> {
    let reasons = gate::reasons(scene.database.pool()).await.expect("the test's database answers");
    reasons.into_iter().map(|r| r.reason).collect()
}

async fn pi_of(scene: &Scene, order: &Value) -> String {
    sqlx::query_scalar("select pi_id from attempt where order_id = $1 order by created_at limit 1")
        .bind(order["id"].as_str().expect("an id").parse::<Uuid>().expect("an id"))
        .fetch_one(scene.database.pool())
        .await
        .expect("an attempt")
}

fn all(become_: &str) -> Value {
    json!({ "what": { "kind": "all" }, "seats_become": become_, "reason": "asked for" })
}

// A till and its reader

#[tokio::test]
async fn a_till_takes_no_cash_while_a_card_may_pay() {
    let scene = counter().await;
    let held = scene.till.hold(scene.event, &[1, 2]).await.ok();
    let sale = scene.till.sell_by_card(&held, &key(), READER).await.ok()["order"].clone();
    let waits = until_sale(&scene, &sale, &["action_required"]).await;
    let cash = scene.till.sell_for_cash(&held, 10_000).await;
    assert_eq!((cash.code(), &cash.body["attempt_id"]), ("attempt_live", &waits["attempt"]["id"]));
    let comp = json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [],
        "tender": { "kind": "comp", "reason": "the band" } });
    assert_eq!(scene.till.post("/api/box-office/sales", comp).await.code(), "attempt_live");
    // The clerk stops the reader first: then cash is welcome, and nobody else's card pays for it.
    scene.till.stop_card(&sale, false).await.ok();
    until_sale(&scene, &sale, &["voided"]).await;
    let sold = scene.till.sell_for_cash(&held, 10_000).await.ok();
    assert_eq!((&sold["order"]["state"], &sold["change_minor"]), (&json!("confirmed"), &json!(1_000)));
    let ledger = scene.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.authorised()), (0, 0));
    scene.end().await;
}

/// A till that has not thought about it: it looks whether a payment is under way, and sells afterwards.
async fn naive_cash_sale(scene: &Scene, held: &Value, between: impl Future<Output = Value>) -> Uuid {
    let hold: Uuid = held["hold"]["id"].as_str().expect("a hold").parse().expect("an id");
    let frozen: bool = sqlx::query_scalar("select attempt_id is not null from hold where id = $1")
        .bind(hold)
        .fetch_one(scene.database.pool())
        .await
        .expect("a hold");
    assert!(!frozen, "nobody pays, it thinks");
    let order: Uuid = between.await["id"].as_str().expect("an order").parse().expect("an id");
    sqlx::query("update \"order\" set state = 'confirmed', confirmed_at = now() where id = $1")
        .bind(order)
        .execute(scene.database.pool())
        .await
        .expect("sold");
    order
}

#[tokio::test]
async fn card_against_cash_at_one_till() {
    let scene = counter().await;
    // The control.
    let held = scene.till.hold(scene.event, &[1]).await.ok();
    let card = async { scene.till.sell_by_card(&held, &key(), READER).await.ok()["order"].clone() };
    let naive = naive_cash_sale(&scene, &held, card).await;
    let broken = watch::check(scene.database.pool()).await.expect("the test's database answers");
    assert!(broken.iter().any(|v| v.invariant == "sold_beside_a_payment"), "{broken:?}");
    sqlx::query("update \"order\" set state = 'open', confirmed_at = null where id = $1")
        .bind(naive)
        .execute(scene.database.pool())
        .await
        .expect("as it was");
    let sale = json!({ "id": naive });
    scene.till.stop_card(&sale, false).await.ok();
    until_sale(&scene, &sale, &["voided"]).await;

    let mut by_card = 0;
    for seat in 2..12 {
        let held = scene.till.hold(scene.event, &[seat]).await.ok();
        let once = key();
        let (card, cash) =
            tokio::join!(scene.till.sell_by_card(&held, &once, READER), scene.till.sell_for_cash(&held, PRICE));
        if cash.status.is_success() {
            assert!(["hold_ended", "order_not_open"].contains(&card.code()), "{card:?}");
        } else {
            assert_eq!(cash.code(), "attempt_live");
            let sale = card.ok()["order"].clone();
            scene.till.stop_card(&sale, false).await.ok();
            until_sale(&scene, &sale, &["voided"]).await;
            by_card += 1;
        }
        scene.database.no_invariant_is_broken().await;
    }
    let cash: i64 = scene.count("select count(*) from tender where kind = 'cash'").await;
    assert_eq!(cash + by_card, 10, "each hold was paid in one way");
    scene.end().await;
}

/// A sale at the reader whose money can't be had.
async fn due(scene: &Scene, seats: &[i32]) -> (Value, Value) {
    scene.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
    let held = scene.till.hold(scene.event, seats).await.ok();
    let sale = scene.till.sell_by_card(&held, &key(), READER).await.ok()["order"].clone();
    until_sale(scene, &sale, &["action_required"]).await;
    scene.provider.present_card(READER).await;
    let due = until_sale(scene, &sale, &["capture_failed"]).await;
    assert_eq!(due["state"], "payment_due");
    (held, due)
}

#[tokio::test]
async fn what_is_due_is_paid_at_a_till_or_given_up() {
    let scene = counter().await;
    // By the clerk who sold it, with what the till knows: cash.
    let (held, sale) = due(&scene, &[1, 2]).await;
    assert_eq!(scene.till.refund(&sale, &key(), all("on_sale")).await.code(), "order_not_paid");
    assert_eq!(scene.till.sell_for_cash(&held, 8_999).await.code(), "tender_invalid");
    let sold = scene.till.sell_for_cash(&held, 10_000).await.ok();
    assert_eq!((&sold["order"]["id"], &sold["order"]["state"]), (&sale["id"], &json!("confirmed")));
    assert!(sold["order"]["tickets"].as_array().expect("tickets").iter().all(|t| t["state"] == "valid"), "{sold}");
    assert_eq!(sold["change_minor"], 1_000);
    let again = scene.till.sell_for_cash(&held, 10_000).await.ok();
    assert_eq!((&again["order"]["id"], &again["change_minor"]), (&sale["id"], &json!(1_000)), "a lost answer");

    // Another card, under another key.
    let (held, sale) = due(&scene, &[3]).await;
    let other = scene.till.sell_by_card(&held, &key(), READER).await.ok()["order"].clone();
    assert_eq!(other["id"], sale["id"]);
    until_sale(&scene, &sale, &["action_required"]).await;
    assert_eq!(scene.till.sell_for_cash(&held, PRICE).await.code(), "attempt_live");
    let give_up = json!({ "seats_become": "on_sale", "reason": "they left" });
    assert_eq!(scene.staff(&sale, "give-up", give_up.clone()).await.code(), "attempt_live");
    scene.provider.present_card(READER).await;
    let paid = until_sale(&scene, &sale, &["captured"]).await;
    assert_eq!((&paid["state"], &paid["tickets"][0]["state"]), (&json!("confirmed"), &json!("valid")));

    // At another counter, which knows the order alone.
    let other = Till::enrol(&scene.database, &scene.hub.url(), "Window 2").await;
    Till::place_reader(&scene.database, "Window 2", "tmr_window_2").await;
    let (_, sale) = due(&scene, &[4]).await;
    let path = format!("/api/staff/orders/{}/pay", sale["id"].as_str().expect("an id"));
    for (body, code) in [
        (json!({}), "bad_request"),
        (json!({ "received_minor": 5_000, "reader": READER }), "bad_request"),
        (json!({ "received_minor": -1 }), "tender_invalid"),
        (json!({ "received_minor": PRICE - 1 }), "tender_invalid"),
        (json!({ "reader": READER }), "reader_not_yours"),
    ] {
        assert_eq!(other.post(&path, body.clone()).await.code(), code, "{body}");
    }
    let paid = other.post(&path, json!({ "received_minor": 5_000 })).await.ok();
    assert_eq!((&paid["order"]["state"], &paid["change_minor"]), (&json!("confirmed"), &json!(500)));
    let by_card = other.post(&path, json!({ "reader": "tmr_window_2" })).await;
    assert_eq!(by_card.code(), "order_not_open", "nothing is due any more");
    let (_, sale) = due(&scene, &[5]).await;
    let path = format!("/api/staff/orders/{}/pay", sale["id"].as_str().expect("an id"));
    let once = key();
    for _ in 0..2 {
        other.post_once(&path, &once, json!({ "reader": "tmr_window_2" })).await.ok();
    }
    until_sale(&scene, &sale, &["action_required"]).await;
    scene.provider.present_card("tmr_window_2").await;
    until_sale(&scene, &sale, &["captured"]).await;

    // Nobody pays: the seat is on sale at once.
    let (_, sale) = due(&scene, &[6]).await;
    for _ in 0..2 {
        let over = scene.staff(&sale, "give-up", give_up.clone()).await.ok();
        assert_eq!(over["cash_back_minor"], json!(0), "and again");
    }
    assert_eq!((scene.status(6).await, scene.now(&sale).await["state"].clone()), (0, json!("cancelled")));
    assert_eq!(scene.staff(&paid["order"], "give-up", give_up).await.code(), "order_not_open", "that one is paid");
    assert_eq!(scene.provider.ledger().await.captured(), 2 * PRICE);
    scene.end().await;
}

// Refunds that failed

#[tokio::test]
async fn by_hand_and_by_card_no_more_goes_back_than_was_paid() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    // Somebody gives back a part on the provider's pages, somebody else all of it here.
    let pi = pi_of(&scene, &paid).await;
    scene.provider.beside("refunds", &format!("payment_intent={pi}&amount=5000")).await;
    scene.till.refund(&paid, &key(), all("on_sale")).await.ok();
    scene.until_settled().await;
    let list = scene.till.get("/api/staff/money").await.ok();
    assert_eq!((&list["refunds_failed"], &list["refunds"][0]["failure"]), (&json!(1), &json!("amount_too_large")));
    let retry = format!("/api/staff/refunds/{}/retry", list["refunds"][0]["refund_id"].as_str().expect("an id"));
    let by_hand = json!({ "by_hand": true, "reason": "over the counter" });
    // How much is owed is not known before the books were compared.
    assert_eq!(scene.till.post(&retry, by_hand.clone()).await.code(), "books_not_compared");
    assert_eq!(classes(&reconciled(&scene).await), [(Class::M6, Outcome::Repaired)]);
    let list = scene.till.get("/api/staff/money").await.ok();
    assert_eq!((&list["refunds_failed"], &list["refunds"][0]["amount_minor"]), (&json!(1), &json!(4_000)), "the rest");
    assert_eq!(list["orders_without_money"], json!([]), "its seats went back");
    let given = scene.till.post(&retry, by_hand.clone()).await.ok();
    assert_eq!((&given["kind"], &given["amount_minor"]), (&json!("cash"), &json!(4_000)));
    assert_eq!(scene.till.post(&retry, by_hand).await.ok()["id"], given["id"], "once");
    assert_eq!(scene.till.get("/api/staff/money").await.ok()["refunds"], json!([]));
    assert_eq!(scene.provider.ledger().await.refunded(), 5_000);
    assert_eq!(scene.count("select refunded_minor from attempt").await, 9_000, "both are counted in one place");
    // And the database refuses what code might forget.
    let forced = sqlx::query(
        "insert into refund (id, attempt_id, tender_id, kind, amount_minor, state, reason, created_at)
         select gen_random_uuid(), id, tender_id, 'cash', 1, 'succeeded', 'forced', now() from attempt",
    )
    .execute(scene.database.pool())
    .await
    .expect_err("one more cent");
    assert_eq!(fullhouse::db::constraint(&forced), Some("attempt_refund_within_capture"));
    scene.end().await;
}

#[tokio::test]
async fn what_was_given_back_elsewhere_takes_the_place_of_what_failed() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    scene.provider.first("refund", json!({ "status": "400" })).await;
    scene.till.refund(&paid, &key(), seats(&[1], "on_sale")).await.ok();
    scene.until_settled().await;
    let list = scene.till.get("/api/staff/money").await.ok();
    let retry = format!("/api/staff/refunds/{}/retry", list["refunds"][0]["refund_id"].as_str().expect("an id"));
    let pi = pi_of(&scene, &paid).await;
    scene.provider.beside("refunds", &format!("payment_intent={pi}&amount={PRICE}")).await;
    assert_eq!(classes(&reconciled(&scene).await), [(Class::M6, Outcome::Repaired)]);
    assert_eq!(scene.till.get("/api/staff/money").await.ok()["refunds_failed"], 0, "seen to");
    assert_eq!(scene.till.post(&retry, json!({ "reason": "again" })).await.ok()["state"], "succeeded");
    let by_hand = json!({ "by_hand": true, "reason": "in cash" });
    assert_eq!(scene.till.post(&retry, by_hand).await.code(), "refund_not_failed", "it has arrived");
    // The other seat is still paid, and can be given back.
    scene.till.refund(&paid, &key(), all("on_sale")).await.ok();
    scene.until_settled().await;
    assert_eq!(scene.provider.ledger().await.refunded(), 2 * PRICE);
    scene.end().await;
}

#[tokio::test]
async fn all_of_it_takes_nothing_beside_the_word() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    for beside in [json!({ "kind": "all", "seats": [1] }), json!({ "kind": "all", "amount_minor": 1 })] {
        let body = json!({ "what": beside, "seats_become": "on_sale", "reason": "a slip" });
        assert_eq!(scene.till.refund(&paid, &key(), body).await.code(), "json_invalid");
    }
    assert_eq!(scene.count("select count(*) from refund").await, 0);
    scene.till.refund(&paid, &key(), all("on_sale")).await.ok();
    scene.until_settled().await;
    scene.close().await;
}

// Events that are called off

#[tokio::test]
async fn one_order_that_can_not_be_given_back_stops_no_other() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let operator = scene.operator().await;
    let (first, second) = (scene.fan().await, scene.fan().await);
    let odd = scene.bought(&first, &[1, 2]).await;
    scene.bought(&second, &[3]).await;
    scene.provider.rules(json!([{ "match": { "op": "refund", "first": 3 }, "effect": { "status": "400" } }])).await;
    scene.till.refund(&odd, &key(), seats(&[1], "on_sale")).await.ok();
    scene.until_settled().await;
    let path = format!("/api/staff/events/{}/call-off", scene.event);
    operator.post(&path, json!({ "reason": "rain" })).await.ok();
    let refused = async |count: i64| {
        eventually(&format!("{count} are refused"), || async {
            let report = operator.get(&path).await.ok();
            let settled = report["orders"].as_array().expect("orders").iter().all(|o| o["result"] != "on_its_way");
            (settled && report["gone_through_at"].is_string() && report["refused_count"] == count).then_some(())
        })
        .await;
    };
    refused(2).await;
    // Elsewhere all of the first order went back at once: what failed of it can't be tried again.
    let pi = pi_of(&scene, &odd).await;
    scene.provider.beside("refunds", &format!("payment_intent={pi}&amount={}", 2 * PRICE)).await;
    reconciled(&scene).await;
    assert_eq!(scene.count("select max(refunded_minor) from attempt").await, 2 * PRICE);
    let told = operator.post(&path, json!({ "reason": "rain" })).await;
    assert_eq!(told.status, 202, "{told:?}");
    refused(1).await;
    assert_eq!(scene.provider.ledger().await.refunded(), 3 * PRICE);
    scene.end().await;
}

#[tokio::test]
async fn whoever_was_paying_when_it_was_called_off_has_a_result() {
    // No round goes by itself: the payment ends before the first.
    let scene = Scene::without_webhooks(Rows::new(2, 10), |config| config.gate.tick_ms = 3_600_000).await;
    let (payer, looker) = (scene.fan().await, scene.fan().await);
    let open = order(&payer, scene.event, &[1]).await;
    payer.pay(&open, &key(), CHALLENGED).await.ok();
    until(&payer, &open, &["action_required"]).await;
    let cart = order(&looker, scene.event, &[2]).await;
    let pool = scene.database.pool();
    let page = format!("/api/events/{}?seats=none", scene.event);
    assert_eq!(looker.get(&page).await.ok()["event"]["called_off_reason"], Value::Null);
    let why = |public: Option<&str>| call_off::Why {
        reason: "the singer has drunk".to_owned(),
        public_reason: public.map(str::to_owned),
        actor: "operator".to_owned(),
    };
    call_off::begin(pool, scene.event, why(Some("The singer is ill."))).await.expect("it is called off");
    call_off::begin(pool, scene.event, why(None)).await.expect("told again");
    eventually("everybody reads the public reason", || async {
        let event = looker.get(&page).await.ok()["event"].clone();
        (event["called_off_reason"] == "The singer is ill.").then(|| assert!(!event.to_string().contains("drunk")))
    })
    .await;
    until(&payer, &open, &["voided"]).await;
    while call_off::go_on(pool, scene.event).await.expect("a round") {}
    let report = call_off::report(pool, scene.event).await.expect("a report").expect("it is called off");
    let mut codes: Vec<&str> = report.orders.iter().map(|o| o.code.as_str()).collect();
    let mut wanted = [open["code"].as_str().expect("a code"), cart["code"].as_str().expect("a code")];
    codes.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(codes, wanted);
    assert!(
        report.orders.iter().all(|o| o.result == "nothing_paid" && o.detail == "nothing was charged"),
        "{report:?}"
    );
    assert!(report.gone_through_at.is_some());
    assert_eq!((scene.status(1).await, scene.status(2).await), (0, 0), "nobody holds seats of it");
    assert_eq!(scene.count("select count(*) from hold where state = 'live'").await, 0);
    let told: Vec<Uuid> = sqlx::query_scalar("select order_id from mail where kind = 'event_cancelled'")
        .fetch_all(pool)
        .await
        .expect("mails");
    assert_eq!(json!(told), json!([open["id"]]), "who was paying hears of it");
    scene.close().await;
}

// The books

#[tokio::test]
async fn a_payment_that_the_provider_has_no_more_stops_no_comparison() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let house = installation::id(scene.database.pool()).await.expect("the test's database answers");
    let charge = format!(
        "amount=700&currency=eur&payment_method={CARD}&confirm=true&metadata[attempt]={}&metadata[installation]={house}",
        Uuid::new_v4()
    );
    scene.provider.beside("payment_intents", &charge).await;
    assert_eq!(classes(&reconciled(&scene).await), [(Class::M1, Outcome::Listed)]);
    // All that it had is gone.
    let reset = format!("{}/_sim/reset", scene.provider.control_url());
    let done = reqwest::Client::builder().no_proxy().build().expect("a client").post(reset).json(&json!({ "seed": 7 }));
    assert!(done.send().await.expect("it answers").status().is_success());
    let report = reconciled(&scene).await;
    assert!(report.found.is_empty(), "that it has none is an answer like any other: {:?}", report.found);
    assert_eq!(scene.count("select count(*) from reconciliation_run where not ok").await, 0);
    assert_eq!(closed_for(&scene).await, ["captured_without_order"], "that is for a person, and a person can");
    gate::open(scene.database.pool(), "captured_without_order", "Ada", "gone").await.expect("it opens");
    scene.end().await;
}

#[tokio::test]
async fn a_person_has_seen_one_payment_too_many_and_not_the_next() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let (fan, operator) = (scene.fan().await, scene.operator().await);
    let paid = scene.bought(&fan, &[1]).await;
    let id = paid["id"].as_str().expect("an id");
    scene.provider.take_behind_our_backs(id, 700).await;
    let twice = |report: &Report| -> Vec<Outcome> {
        report.found.iter().filter(|(found, _)| found.class == Class::M4).map(|(_, outcome)| *outcome).collect()
    };
    assert_eq!(twice(&reconciled(&scene).await), [Outcome::Listed]);
    for reason in closed_for(&scene).await {
        let path = format!("/api/staff/gate/{reason}/open");
        assert_eq!(operator.post(&path, json!({ "note": "seen" })).await.status, 204, "{reason}");
    }
    assert_eq!(twice(&reconciled(&scene).await), [Outcome::Acknowledged]);
    assert_eq!(closed_for(&scene).await, [""; 0]);
    scene.provider.take_behind_our_backs(id, 800).await;
    let mut outcomes = twice(&reconciled(&scene).await);
    outcomes.sort_by_key(|o| o.name());
    assert_eq!(outcomes, [Outcome::Acknowledged, Outcome::Listed]);
    assert!(closed_for(&scene).await.contains(&"captured_twice".to_owned()));
    // One of them by itself, by its number.
    let list = operator.get("/api/staff/money").await.ok();
    let all = list["money_without_order"].as_array().expect("findings");
    let new = all.iter().find(|f| f["class"] == "M4" && f["acknowledged_by"].is_null()).expect("the new one");
    let path = format!("/api/staff/findings/{}/acknowledge", new["id"]);
    assert_eq!(fan.post(&path, json!({ "note": "let me" })).await.code(), "forbidden");
    assert_eq!(operator.post(&path, json!({ "note": " " })).await.code(), "bad_request");
    assert_eq!(operator.post(&path, json!({ "note": "a gift" })).await.status, 204);
    assert_eq!(operator.post(&path, json!({ "note": "again" })).await.code(), "not_found");
    assert_eq!(twice(&reconciled(&scene).await), [Outcome::Acknowledged, Outcome::Acknowledged]);
    scene.end().await;
}

#[tokio::test]
async fn what_others_do_with_a_shared_account_needs_nobody() {
    let scene = Scene::without_webhooks(Rows::new(2, 10), |_| {}).await;
    let charge = format!("amount=700&currency=eur&payment_method={CARD}&confirm=true");
    scene.provider.beside("payment_intents", &charge).await;
    let mut config = scene.database.config().await;
    scene.provider.configure(&mut config);
    let url = scene.database.url().await;
    let told = async |arguments: &[&str], shared: &str| -> (i32, String) {
        let output = tokio::process::Command::new(binary::path())
            .args(arguments)
            .env("FULLHOUSE__DATABASE__URL", &url)
            .env("FULLHOUSE__PAYMENT__PROVIDER_URL", &config.payment.provider_url)
            .env("FULLHOUSE__PAYMENT__SECRET_KEY", config.payment.secret_key.reveal())
            .env("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", &config.payment.publishable_key)
            .env("FULLHOUSE__RECONCILE__ACCOUNT_SHARED", shared)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text)
    };
    let (code, text) = told(&["reconcile"], "true").await;
    assert!(code == 0 && text.contains("M7"), "{text}");
    let (code, text) = told(&["money"], "true").await;
    assert!(code == 0 && text.contains("somebody else's payment"), "{text}");
    // Where the account is ours alone it needs somebody, and somebody can say that they have seen it.
    let (code, text) = told(&["money"], "false").await;
    assert!(code == 1 && text.contains("a person is needed"), "{text}");
    for id in sqlx::query_scalar::<_, i64>("select id from money_finding")
        .fetch_all(scene.database.pool())
        .await
        .expect("ids")
    {
        let id = id.to_string();
        let seen = ["money", "acknowledge", &id, "--by", "Ada", "--note", "the bar's"];
        assert_eq!(told(&seen, "false").await.0, 0);
        assert_eq!(told(&seen, "false").await.0, 1, "it is acknowledged");
    }
    assert_eq!(told(&["money"], "false").await.0, 0);
    assert_eq!(told(&["money", "acknowledge", "1", "--by", "", "--note", "x"], "false").await.0, 2);
    scene.end().await;
}

// Small things

#[tokio::test]
async fn a_webhook_with_a_null_character_is_no_event_of_ours() {
    let scene = Scene::without_webhooks(Rows::new(2, 10), |_| {}).await;
    let deliver = async |event: Value| {
        let body = event.to_string();
        let signed = signature::sign(scene.provider.secrets(), chrono::Utc::now().timestamp(), body.as_bytes());
        let request = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = request.post(format!("{}/api/webhooks/payments", scene.hub.url()));
        request.header("stripe-signature", signed).body(body).send().await.expect("the hub answers").status().as_u16()
    };
    let event = |id: &str, kind: &str, object: &str| {
        json!({ "id": id, "type": kind, "livemode": false,
            "data": { "object": { "object": "payment_intent", "id": object } } })
    };
    assert_eq!(deliver(event("evt_\0", "payment_intent.succeeded", "pi_1")).await, 400);
    assert_eq!(deliver(event("evt_1", "payment_intent\0", "pi_1")).await, 400);
    assert_eq!(
        deliver(event("evt_2", "payment_intent.succeeded", "pi_\0")).await,
        200,
        "kept, and about nothing of ours"
    );
    let refund = json!({ "id": "evt_3", "type": "refund.updated", "livemode": false,
        "data": { "object": { "object": "refund", "id": "re_\0", "payment_intent": null } } });
    assert_eq!(deliver(refund).await, 200);
    eventually("both are done with", || async {
        (scene.count("select count(*) from webhook_event where done_at is not null").await == 2).then_some(())
    })
    .await;
    scene.end().await;
}

#[tokio::test]
async fn nobody_signs_up_with_an_address_that_no_mail_can_be_sent_to() {
    let scene = Scene::without_webhooks(Rows::new(2, 10), |_| {}).await;
    let stranger = Fan::stranger(&scene.hub.url());
    for email in ["<a@x.org>", "Ana <a@x.org>", "a..b@x.org"] {
        let refused = stranger
            .post("/api/accounts", json!({ "email": email, "name": "Ana", "password": "a long password" }))
            .await;
        assert_eq!((refused.code(), &refused.body["field"]), ("account_invalid", &json!("email")), "{email}");
    }
    scene.end().await;
}

/// Whoever was answered finds it again, also after a `kill -9` in the same moment.
#[tokio::test]
async fn the_simulator_keeps_what_it_has_answered() {
    let state = run().await.directory("simulator").join("state.json");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let listen = format!("127.0.0.1:{port}");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let at = |path: &str| format!("http://{listen}/v1/{path}");
    let mut known: Vec<String> = Vec::new();
    for _ in 0..6 {
        let mut child = tokio::process::Command::new(binary::path())
            .args([
                "simulate-payments",
                "--listen",
                &listen,
                "--latency-p50-ms",
                "1",
                "--latency-p99-ms",
                "2",
                "--state",
            ])
            .arg(&state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        eventually("it listens", || async { http.get(at("payment_intents")).send().await.ok().map(|_| ()) }).await;
        for id in &known {
            let found = http.get(at(&format!("payment_intents/{id}"))).bearer_auth("sk_test_simulator").send().await;
            assert_eq!(found.expect("it answers").status(), 200, "{id} of {known:?}");
        }
        for _ in 0..3 {
            let create = http.post(at("payment_intents")).bearer_auth("sk_test_simulator");
            let answer = create.body("amount=700&currency=eur").send().await.expect("it answers");
            let intent: Value = answer.json().await.expect("JSON");
            known.push(intent["id"].as_str().unwrap_or_else(|| panic!("{intent}")).to_owned());
        }
        child.kill().await.expect("kill -9");
    }
    assert_eq!(known.len(), 18);
}

/// The end of a hold is the clock's business, and a till that waits for the last second still pays in one way.
#[tokio::test]
async fn what_is_due_is_not_paid_when_its_time_is_over() {
    let scene = counter().await;
    let (held, sale) = due(&scene, &[1]).await;
    scene.clock.advance(TimeDelta::minutes(31)).await;
    let late = scene.till.sell_for_cash(&held, PRICE).await;
    assert!(["order_not_open", "hold_ended"].contains(&late.code()), "{late:?}");
    eventually("its seat went back", || async { (scene.status(1).await == 0).then_some(()) }).await;
    assert_eq!(scene.now(&sale).await["cancel_reason"], "not_paid");
    scene.end().await;
}
