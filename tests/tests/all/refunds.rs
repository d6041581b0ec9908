//! Money that goes back: by seat, by amount, all of it; what becomes of the seats; an event that is called off.

use chrono::TimeDelta;
use fullhouse_tests::{
    eventually,
    fan::Fan,
    provider::{key, order},
    rows::Rows,
    scene::{Scene, seats},
};
use serde_json::{Value, json};

fn all(become_: &str) -> Value {
    json!({ "what": { "kind": "all" }, "seats_become": become_, "reason": "asked for" })
}

fn amount(amount_minor: i64) -> Value {
    json!({ "what": { "kind": "amount", "amount_minor": amount_minor }, "reason": "a cold hall" })
}

#[tokio::test]
async fn the_tax_of_an_order_goes_back_with_its_lines_to_the_cent() {
    let scene = Scene::open(Rows { price_minor: 3_333, fee_minor: 700, ..Rows::new(2, 10) }).await;
    let fan = scene.fan().await;
    let says_nothing = scene.bought(&fan, &[9]).await;
    assert_eq!((&says_nothing["tax"], &says_nothing["lines"][0]["tax_minor"]), (&Value::Null, &Value::Null));
    sqlx::query("update event set tax_name = 'MwSt', tax_milli_percent = 19000 where id = $1")
        .bind(scene.event)
        .execute(scene.database.pool())
        .await
        .expect("an event");
    let paid = scene.bought(&fan, &[1, 2, 3]).await;
    // 3333 · 19 / 119 = 532.16, 700 · 19 / 119 = 111.76
    let of_lines: Vec<_> = paid["lines"].as_array().unwrap().iter().map(|l| l["tax_minor"].as_i64().unwrap()).collect();
    assert_eq!(of_lines, [532, 532, 532, 112]);
    let tax = json!({ "name": "MwSt", "percent": "19", "amount_minor": 1_708, "refunded_minor": 0 });
    assert_eq!(paid["tax"], tax);
    // An event's tax may change; an order keeps its own.
    sqlx::query("update event set tax_name = 'VAT', tax_milli_percent = 7000 where id = $1")
        .bind(scene.event)
        .execute(scene.database.pool())
        .await
        .expect("an event");
    let mut back = Vec::new();
    for what in [amount(1_000), seats(&[2], "on_sale"), seats(&[1], "on_sale"), all("on_sale")] {
        scene.till.refund(&paid, &key(), what).await.ok();
        scene.until_settled().await;
        let now = fan.order(paid["id"].as_str().unwrap()).await.ok()["order"].clone();
        assert_eq!((&now["tax"]["name"], &now["tax"]["amount_minor"]), (&json!("MwSt"), &json!(1_708)));
        back.push(now["tax"]["refunded_minor"].as_i64().unwrap());
    }
    assert!(back.is_sorted() && back[0] > 0 && back[2] < 1_708 && back[3] == 1_708, "{back:?}");
    scene.close().await;
}

#[tokio::test]
async fn seat_by_seat_gives_back_to_the_cent_what_was_paid() {
    let scene = Scene::open(Rows { price_minor: 3_333, fee_minor: 700, ..Rows::new(2, 10) }).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2, 3]).await;
    assert_eq!(paid["total_minor"], 10_699);
    let mut given = Vec::new();
    for seat in [2, 1, 3] {
        let back = scene.till.refund(&paid, &key(), seats(&[seat], "on_sale")).await.ok();
        given.push(back["amount_minor"].as_i64().expect("an amount"));
        scene.until_settled().await;
        let now = fan.order(paid["id"].as_str().unwrap()).await.ok()["order"].clone();
        let dead = now["tickets"].as_array().unwrap().iter().filter(|t| t["state"] == "void").count();
        assert_eq!((dead, scene.status(seat).await), (given.len(), 0), "its ticket is dead, its seat on sale");
        let over = given.len() == 3;
        assert_eq!(now["state"], if over { "cancelled" } else { "confirmed" });
        assert_eq!(now["cancel_reason"], if over { json!("refunded") } else { Value::Null });
    }
    assert_eq!(given, [3_566, 3_566, 3_567]);
    assert_eq!(scene.provider.ledger().await.refunded(), 10_699);
    assert_eq!(scene.till.refund(&paid, &key(), all("on_sale")).await.code(), "order_not_paid");
    scene.close().await;
}

#[tokio::test]
async fn an_amount_goes_back_and_the_rest_adds_up_with_it() {
    let scene = Scene::open(Rows { fee_minor: 250, ..Rows::new(2, 10) }).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    for (body, code) in [
        (amount(0), "bad_request"),
        (amount(-5), "bad_request"),
        (amount(9_251), "refund_too_much"),
        (amount(i64::MAX), "refund_too_much"),
        (json!({ "what": { "kind": "amount", "amount_minor": 1e308 }, "reason": "x" }), "json_invalid"),
        (json!({ "what": { "kind": "amount", "amount_minor": "5" }, "reason": "x" }), "json_invalid"),
        (json!({ "what": { "kind": "seats", "seats": [1] }, "reason": "x" }), "bad_request"),
        (seats(&[3], "on_sale"), "seat_unknown"),
        (seats(&[1, 1], "on_sale"), "seats_repeated"),
        (json!({ "what": { "kind": "all" }, "seats_become": "dead", "reason": " " }), "bad_request"),
    ] {
        assert_eq!(scene.till.refund(&paid, &key(), body.clone()).await.code(), code, "{body}");
    }
    let once = key();
    let first = scene.till.refund(&paid, &once, amount(1_001)).await.ok();
    assert_eq!(scene.till.refund(&paid, &once, amount(1_001)).await.ok()["request_id"], first["request_id"]);
    assert_eq!(scene.till.refund(&paid, &once, amount(1_002)).await.code(), "idempotency_mismatch");
    let too_much = scene.till.refund(&paid, &key(), amount(8_250)).await;
    assert_eq!((too_much.code(), &too_much.body["left_minor"]), ("refund_too_much", &json!(8_249)));
    scene.till.refund(&paid, &key(), all("on_sale")).await.ok();
    scene.until_settled().await;
    assert_eq!(scene.provider.ledger().await.refunded(), 9_250);
    scene.close().await;
}

#[tokio::test]
async fn a_seat_is_sold_and_given_back_again_and_becomes_what_was_said() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    for round in 0..2 {
        let fan = scene.fan().await;
        let paid = scene.bought(&fan, &[1]).await;
        scene.till.refund(&paid, &key(), all("on_sale")).await.ok();
        scene.until_settled().await;
        assert_eq!(scene.status(1).await, 0, "round {round}");
    }
    // From a house hold, and back to it, with the reason that it had.
    let path = |verb: &str| format!("/api/box-office/events/{}/{verb}", scene.event);
    scene.till.post(&path("block"), json!({ "seats": [5], "reason": "press" })).await;
    scene.till.post(&path("unblock"), json!({ "seats": [5], "reason": "sold after all" })).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[5, 6]).await;
    scene.till.refund(&paid, &key(), seats(&[5], "house")).await.ok();
    scene.till.refund(&paid, &key(), seats(&[6], "dead")).await.ok();
    scene.until_settled().await;
    assert_eq!((scene.status(5).await, scene.status(6).await), (3, 3));
    let notes: Vec<(i32, String, String)> =
        sqlx::query_as("select seat_no, verb, reason from seat_note order by id desc limit 2")
            .fetch_all(scene.database.pool())
            .await
            .expect("notes");
    assert_eq!(notes[1], (5, "block".into(), "press".into()));
    assert_eq!(notes[0], (6, "kill".into(), "asked for".into()));
    let other = scene.fan().await;
    assert_eq!(other.hold(scene.event, &[5]).await.code(), "seats_unavailable");
    other.hold(scene.event, &[1]).await.ok();

    // What is dead is not put on sale in passing, together with others: only by its own verb, with a reason.
    let both = json!({ "seats": [5, 6], "reason": "on sale again" });
    let refused = scene.till.post(&path("unblock"), both.clone()).await;
    assert_eq!((refused.code(), &refused.body["seats"]), ("seats_dead", &json!([6])));
    assert_eq!(scene.till.post(&path("revive"), both).await.body["seats"], json!([5]), "that one is only blocked");
    assert_eq!((scene.status(5).await, scene.status(6).await), (3, 3));
    let mended = json!({ "seats": [6], "reason": "the pillar is gone" });
    assert_eq!(scene.till.post(&path("revive"), json!({ "seats": [6], "reason": " " })).await.code(), "bad_request");
    assert_eq!(scene.till.post(&path("revive"), mended.clone()).await.status, 204);
    assert_eq!(scene.till.post(&path("revive"), mended).await.code(), "seats_in_use", "it lives");
    let last = "select verb || ': ' || reason from seat_note where seat_no = 6 order by id desc limit 1";
    let said: String = sqlx::query_scalar(last).fetch_one(scene.database.pool()).await.expect("a note");
    assert_eq!((scene.status(6).await, said.as_str()), (0, "revive: the pillar is gone"));
    // Blocked and unblocked from then on like any other.
    for verb in ["block", "unblock"] {
        let body = json!({ "seats": [6], "reason": "a camera" });
        assert_eq!(scene.till.post(&path(verb), body).await.status, 204, "{verb}");
    }
    scene.close().await;
}

#[tokio::test]
async fn cash_goes_back_over_the_counter_and_a_gift_as_a_record() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let held = scene.till.hold(scene.event, &[1, 2]).await.ok();
    let sold = scene.till.sell_for_cash(&held, 10_000).await.ok()["order"].clone();
    let back = scene.till.refund(&sold, &key(), seats(&[1], "on_sale")).await.ok();
    assert_eq!((&back["amount_minor"], &back["refunds"][0]["kind"]), (&json!(4_500), &json!("cash")));
    assert_eq!(back["refunds"][0]["state"], "succeeded");
    assert_eq!(scene.till.refund(&sold, &key(), amount(4_501)).await.code(), "refund_too_much");

    let held = scene.till.hold(scene.event, &[5]).await.ok();
    let comp = json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [],
        "tender": { "kind": "comp", "reason": "the band" } });
    let given = scene.till.post("/api/box-office/sales", comp).await.ok()["order"].clone();
    let back = scene.till.refund(&given, &key(), all("on_sale")).await.ok();
    assert_eq!((&back["refunds"][0]["kind"], &back["refunds"][0]["state"]), (&json!("comp"), &json!("succeeded")));
    assert_eq!(scene.status(5).await, 0);
    assert!(scene.provider.ledger().await.intents().is_empty());
    scene.close().await;
}

#[tokio::test]
async fn what_costs_nothing_goes_back_too() {
    let scene = Scene::open(Rows { price_minor: 0, ..Rows::new(2, 10) }).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    fan.post(&format!("/api/orders/{}/claim", open["id"].as_str().unwrap()), json!({})).await.ok();
    let back = scene.till.refund(&open, &key(), all("on_sale")).await.ok();
    assert_eq!((&back["amount_minor"], &back["refunds"]), (&json!(0), &json!([])));
    assert_eq!(scene.status(1).await, 0);
    scene.close().await;
}

#[tokio::test]
async fn only_staff_give_money_back() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    let path = format!("/api/staff/orders/{}/refunds", paid["id"].as_str().unwrap());
    assert_eq!(fan.post_once(&path, &key(), all("dead")).await.code(), "forbidden");
    assert_eq!(fan.get("/api/staff/money").await.code(), "forbidden");
    assert_eq!(Fan::stranger(&scene.hub.url()).post_once(&path, &key(), all("dead")).await.code(), "not_signed_in");
    let (_, token) = fullhouse::auth::enrol(scene.database.pool(), "Kiosk 1", "kiosk").await.expect("enrolled");
    let request =
        reqwest::Client::new().get(format!("{}/api/staff/money", scene.hub.url())).bearer_auth(token.reveal());
    assert_eq!(request.send().await.expect("the hub answers").status(), 403);
    assert_eq!(scene.till.get("/api/staff/money").await.status, 200);
    assert_eq!(
        scene.till.post("/api/staff/gate/pause", json!({ "note": "why not" })).await.code(),
        "not_signed_in",
        "the gate is an operator's"
    );
    scene.close().await;
}

#[tokio::test]
async fn a_refused_refund_stays_on_the_list_until_somebody_has_seen_to_it() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    scene.provider.rules(json!([{ "match": { "op": "refund", "first": 2 }, "effect": { "status": "400" } }])).await;
    for seat in [1, 2] {
        scene.till.refund(&paid, &key(), seats(&[seat], "on_sale")).await.ok();
    }
    scene.until_settled().await;
    let list = scene.till.get("/api/staff/money").await.ok();
    assert_eq!(list["refunds_failed"], 2);
    let failed: Vec<String> =
        list["refunds"].as_array().unwrap().iter().map(|r| r["refund_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(list["refunds"][0]["failure"], "parameter_invalid");
    let retry = |id: &str| format!("/api/staff/refunds/{id}/retry");
    let instead = scene.till.post(&retry(&failed[0]), json!({ "reason": "again" })).await.ok();
    assert_eq!((&instead["kind"], &instead["amount_minor"]), (&json!("card"), &json!(4_500)));
    let again = scene.till.post(&retry(&failed[0]), json!({ "reason": "twice" })).await.ok();
    assert_eq!(again["id"], instead["id"], "the same one");
    let by_hand = json!({ "by_hand": true, "reason": "sent by the bank" });
    let told = scene.till.post(&retry(&failed[0]), by_hand.clone()).await;
    assert_eq!(
        (told.code(), &told.body["kind"]),
        ("refund_not_failed", &json!("card")),
        "it is on its way to the card"
    );
    assert_eq!(told.body["replaced_by"], instead["id"]);
    let instead = scene.till.post(&retry(&failed[1]), by_hand.clone()).await.ok();
    assert_eq!((&instead["kind"], &instead["state"]), (&json!("cash"), &json!("succeeded")));
    assert_eq!(scene.till.post(&retry(&failed[1]), by_hand).await.ok()["id"], instead["id"]);
    let told = scene.till.post(&retry(&failed[1]), json!({ "reason": "by card" })).await;
    assert_eq!((told.code(), &told.body["kind"]), ("refund_not_failed", &json!("cash")), "it was handed over");
    scene.until_settled().await;
    let list = scene.till.get("/api/staff/money").await.ok();
    assert_eq!((&list["refunds_failed"], &list["refunds"]), (&json!(0), &json!([])));
    assert_eq!(scene.provider.ledger().await.refunded(), 4_500, "one by card, one by hand");
    assert_eq!(scene.count("select count(*) from refund where kind = 'cash' and state = 'succeeded'").await, 1);
    scene.end().await;
}

#[tokio::test]
async fn a_refund_that_is_there_after_all_keeps_no_word_of_its_refusal() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    scene.provider.first("refund", json!({ "status": "400" })).await;
    scene.till.refund(&paid, &key(), seats(&[1], "on_sale")).await.ok();
    scene.until_settled().await;
    assert_eq!(scene.count("select count(*) from refund where state = 'failed' and failure is not null").await, 1);
    let refund: String =
        sqlx::query_scalar("select id::text from refund").fetch_one(scene.database.pool()).await.expect("a refund");
    let intent: String =
        sqlx::query_scalar("select pi_id from attempt").fetch_one(scene.database.pool()).await.expect("an attempt");
    let body = format!("payment_intent={intent}&amount=4500&metadata[refund]={refund}");
    scene.provider.beside("refunds", &body).await;
    scene.clock.advance(TimeDelta::minutes(15)).await;
    scene.reconcile().await;
    let now: (String, Option<String>) =
        sqlx::query_as("select state, failure from refund").fetch_one(scene.database.pool()).await.expect("one refund");
    assert_eq!(now, ("succeeded".to_owned(), None));
    scene.close().await;
}

#[tokio::test]
async fn what_a_call_off_gave_back_counts_no_gifts() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let operator = scene.operator().await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    let held = scene.till.hold(scene.event, &[2]).await.ok();
    let gift = json!({ "kind": "comp", "reason": "the singer's mother" });
    let body = json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [], "tender": gift });
    let given = scene.till.post("/api/box-office/sales", body).await.ok()["order"].clone();
    let path = format!("/api/staff/events/{}/call-off", scene.event);
    assert_eq!(operator.post(&path, json!({ "reason": "the singer is ill" })).await.status, 202);
    let report = eventually("all orders have a result", || async {
        let report = operator.get(&path).await.ok();
        let orders = report["orders"].as_array().expect("orders").clone();
        let over = report["gone_through_at"].is_string() && orders.iter().all(|o| o["result"] != "on_its_way");
        over.then_some(report)
    })
    .await;
    let of = |order: &Value| {
        let mut orders = report["orders"].as_array().expect("orders").iter();
        let found = orders.find(|o| o["code"] == order["code"]).expect("it is listed");
        (found["result"].clone(), found["amount_minor"].clone())
    };
    assert_eq!(of(&given), (json!("nothing_paid"), json!(0)), "{report}");
    assert_eq!(of(&paid), (json!("refunded"), json!(4_500)), "{report}");
    scene.close().await;
}

#[tokio::test]
async fn an_event_is_called_off_and_every_order_has_its_result() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let operator = scene.fan().await;
    sqlx::query("update account set role = 'operator' where email = $1")
        .bind(&operator.email)
        .execute(scene.database.pool())
        .await
        .expect("an operator");
    let mut buyers = Vec::new();
    for seat in 0..5 {
        let fan = scene.fan().await;
        scene.bought(&fan, &[seat]).await;
        buyers.push(fan);
    }
    let waiting = scene.fan().await;
    waiting.hold(scene.event, &[10]).await.ok();
    scene.provider.rules(json!([{ "match": { "op": "refund", "nth": 3 }, "effect": { "status": "400" } }])).await;
    let path = format!("/api/staff/events/{}/call-off", scene.event);
    let told = operator.post(&path, json!({ "reason": "the singer is ill" })).await;
    assert_eq!(told.status, 202, "{told:?}");
    assert_eq!(scene.fan().await.hold(scene.event, &[11]).await.code(), "event_cancelled");
    assert_eq!(waiting.my_hold(scene.event).await.ok()["hold"], Value::Null, "holds are released");
    let done = |report: Value| {
        let orders = report["orders"].as_array().expect("orders").clone();
        let over = report["gone_through_at"].is_string() && orders.iter().all(|o| o["result"] != "on_its_way");
        over.then_some(report)
    };
    let report = eventually("all orders have a result", || async { done(operator.get(&path).await.ok()) }).await;
    let results: Vec<&str> =
        report["orders"].as_array().unwrap().iter().map(|o| o["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["refused", "refunded", "refunded", "refunded", "refunded"], "{report}");
    assert_eq!(report["orders"][0]["detail"], "parameter_invalid");
    assert_eq!(scene.provider.ledger().await.refunded(), 4 * 4_500);
    // Told again, only what was refused is tried again.
    operator.post(&path, json!({ "reason": "the singer is ill" })).await.ok();
    let report = eventually("the refused one too", || async {
        done(operator.get(&path).await.ok()).filter(|r| r["refused_count"] == 0)
    })
    .await;
    assert_eq!(report["orders"].as_array().map(Vec::len), Some(5));
    let mine = buyers[0].orders().await.ok()["orders"].clone();
    assert_eq!((mine.as_array().map(Vec::len), &mine[0]["cancel_reason"]), (Some(1), &json!("called_off")));
    assert_eq!(scene.provider.ledger().await.refunded(), 5 * 4_500);
    let again = operator.post(&path, json!({ "reason": "once more" })).await.ok();
    assert_eq!(again["reason"], "the singer is ill", "told twice is told once");
    assert_eq!(scene.provider.requests("refund").await.len(), 6);
    scene.close().await;
}
