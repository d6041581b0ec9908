//! What each kind of terminal may do, and what a till is told.

use fullhouse_tests::{
    database::Database,
    eventually,
    fan::{Answer, Fan},
    hub::Hub,
    provider::key,
    rows::Rows,
    scene::Scene,
    stage::Stage,
    till::Till,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn sale(held: &Value, tender: Value) -> Value {
    json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [], "tender": tender })
}

/// Every verb of the box office, on seats of this row only. Returns what each was answered.
async fn every_verb(till: &Till, event: i64, first: i32) -> Vec<(&'static str, Answer)> {
    let held = till.hold(event, &[first, first + 1]).await;
    let customer = held.body.clone();
    let other = till.hold(event, &[first + 2]).await.body;
    let given_back = till.hold(event, &[first + 3]).await.body;
    let release = format!("/api/box-office/holds/{}/release", given_back["hold"]["id"].as_str().unwrap_or_default());
    let quote = format!("/api/box-office/holds/{}/quote", customer["hold"]["id"].as_str().unwrap_or_default());
    let blocking = json!({ "seats": [first + 4], "reason": "a camera" });
    let cash = json!({ "kind": "cash", "received_minor": 10_000 });
    let comp = json!({ "kind": "comp", "reason": "press" });
    vec![
        ("hold", held),
        ("release", till.post(&release, json!({ "buyer_id": given_back["buyer_id"] })).await),
        ("quote", till.post(&quote, json!({ "buyer_id": customer["buyer_id"] })).await),
        ("cash", till.post("/api/box-office/sales", sale(&customer, cash)).await),
        ("comp", till.post("/api/box-office/sales", sale(&other, comp)).await),
        ("block", till.post(&format!("/api/box-office/events/{event}/block"), blocking.clone()).await),
        ("unblock", till.post(&format!("/api/box-office/events/{event}/unblock"), blocking).await),
    ]
}

#[tokio::test]
async fn a_kiosk_holds_and_gives_back_and_only_a_counter_does_the_rest() {
    let database = Database::new().await;
    let event = Stage::default().open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let counter = Till::enrol_as("counter", &database, &hub.url(), "Counter").await;
    for (verb, answer) in every_verb(&counter, event, 0).await {
        assert!(answer.status.is_success(), "a counter's {verb}: {:?}", answer.body);
    }
    let kiosk = Till::enrol_as("kiosk", &database, &hub.url(), "Kiosk").await;
    for (verb, answer) in every_verb(&kiosk, event, 20).await {
        if ["hold", "release", "quote"].contains(&verb) {
            assert!(answer.status.is_success(), "a kiosk's {verb}: {:?}", answer.body);
        } else {
            assert_eq!((answer.code(), answer.status), ("forbidden", StatusCode::FORBIDDEN), "a kiosk's {verb}");
        }
    }
    let touched: i64 = sqlx::query_scalar("select count(*) from event_seat where seat_no >= 20 and status > 1")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(touched, 0, "the kiosk sold and blocked nothing");

    // Both may sell by card, where there is a provider and a reader.
    for (till, seat) in [(&counter, 60), (&kiosk, 62)] {
        let held = till.hold(event, &[seat]).await.ok();
        let body =
            json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [], "reader": "tmr_1" });
        assert_eq!(till.post("/api/box-office/card-sales", body).await.code(), "payment_gate_closed");
    }
    // Among the public, the public's rules: only staff sell before the sale opens and while it is paused.
    sqlx::query("update event set sale_state = 'paused'").execute(database.pool()).await.unwrap();
    assert_eq!(kiosk.hold(event, &[50]).await.code(), "sale_paused");
    counter.hold(event, &[50]).await.ok();
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn who_signed_in_without_a_terminals_token_is_told_what_is_needed() {
    let database = Database::new().await;
    let hub = Hub::start(database.config().await).await;
    let fan = Fan::sign_up(&hub.url()).await;
    let answer = fan.post("/api/box-office/sales", json!({})).await;
    assert_eq!(answer.code(), "not_signed_in");
    assert!(answer.body["detail"].as_str().unwrap().contains("terminal's token"), "{:?}", answer.body);
    let wrong = fan.request(Method::POST, "/api/box-office/sales").bearer_auth("nobody's").json(&json!({}));
    assert!(fan.send(wrong).await.body["detail"].as_str().unwrap().contains("unknown"));
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_price_is_told_before_the_sale_and_a_sale_is_one_tenders() {
    let database = Database::new().await;
    let event = Stage::default().open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let till = Till::enrol(&database, &hub.url(), "Counter").await;
    let held = till.hold(event, &[0, 1]).await.ok();
    let path = format!("/api/box-office/holds/{}/quote", held["hold"]["id"].as_str().unwrap());
    let tickets = json!([{ "seat_no": 1, "ticket_type": "concession" }]);
    let asked = json!({ "buyer_id": held["buyer_id"], "tickets": tickets });
    let quote = till.post(&path, asked.clone()).await.ok()["order"].clone();
    assert_eq!((&quote["total_minor"], &quote["state"]), (&json!(9_000), &json!("open")));
    assert_eq!(till.post(&path, asked).await.ok()["order"]["id"], quote["id"], "asked again, the same");
    let other = Till::enrol(&database, &hub.url(), "Counter 2").await;
    assert_eq!(other.post(&path, json!({ "buyer_id": held["buyer_id"] })).await.code(), "hold_unknown");

    let body = |tender: Value| {
        let mut body = sale(&held, tender);
        body["tickets"] = tickets.clone();
        body
    };
    let sales = "/api/box-office/sales";
    let too_little = till.post(sales, body(json!({ "kind": "cash", "received_minor": 8_999 }))).await;
    assert_eq!(too_little.code(), "tender_invalid");
    assert_eq!((&too_little.body["total_minor"], &too_little.body["currency"]), (&json!(9_000), &json!("EUR")));
    let cash = body(json!({ "kind": "cash", "received_minor": 10_000 }));
    let sold = till.post(sales, cash.clone()).await.ok();
    assert_eq!((&sold["order"]["id"], &sold["change_minor"]), (&quote["id"], &json!(1_000)));
    assert_eq!(till.post(sales, cash).await.ok()["order"]["id"], quote["id"], "an answer that was lost is found");
    for tender in [json!({ "kind": "comp", "reason": "press" }), json!({ "kind": "cash", "received_minor": 9_000 })] {
        assert_eq!(till.post(sales, body(tender)).await.code(), "idempotency_mismatch");
    }
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_event_is_named_by_its_slug_as_well() {
    let database = Database::new().await;
    let stage = Stage::default();
    let event = stage.open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let till = Till::enrol(&database, &hub.url(), "Counter").await;
    let fan = Fan::sign_up(&hub.url()).await;
    let path = format!("/api/events/{}/hold", stage.slug);
    let held = fan.post_once(&path, "one", json!({ "seats": [3] })).await.ok();
    assert_eq!(fan.my_hold(event).await.ok()["hold"]["id"], held["hold"]["id"]);
    assert_eq!(fan.get(&path).await.ok()["hold"]["id"], held["hold"]["id"]);
    let blocking = json!({ "seats": [4], "reason": "a camera" });
    till.post(&format!("/api/box-office/events/{}/block", stage.slug), blocking).await;
    assert_eq!(fan.hold(event, &[4]).await.code(), "seats_unavailable");
    let elsewhere = fan.hold_with(event, json!({ "best": { "count": 2, "section": "Balcony" } })).await;
    assert_eq!((elsewhere.code(), &elsewhere.body["section"]), ("section_unknown", &json!("Balcony")));
    fan.hold_with(event, json!({ "best": { "count": 2, "section": "Stalls" } })).await.ok();
    hub.stop().await;
    database.finish().await;
}

/// What each of the two may do with orders: its own (bought at that terminal), and anybody's.
#[tokio::test]
async fn printing_reprinting_refunding_and_searching_by_role() {
    const READERS: [(&str, &str); 2] = [("counter", "tmr_counter"), ("kiosk", "tmr_kiosk")];
    let scene = Scene::open(Rows { seat_limit: 20, ..Rows::new(4, 10) }).await;
    let fan = scene.fan().await;
    let anybodys = scene.bought(&fan, &[30, 31]).await;
    for (row, (role, reader)) in READERS.into_iter().enumerate() {
        let till = Till::enrol_as(role, &scene.database, &scene.hub.url(), role).await;
        Till::place_reader(&scene.database, role, reader).await;
        let first = row as i32 * 10;
        let held = till.hold(scene.event, &[first, first + 1]).await.ok();
        let strange = READERS[1 - row].1;
        for wrong in [strange, "tmr_nowhere"] {
            let refused = till.sell_by_card(&held, &key(), wrong).await;
            assert_eq!((refused.code(), refused.status), ("reader_not_yours", StatusCode::FORBIDDEN), "{role} {wrong}");
        }
        let sold = till.sell_by_card(&held, &key(), reader).await.ok()["order"].clone();
        scene.provider.until_asked("process").await;
        eventually("the reader waits for a card", || async {
            let now = till.card_sale(&sold).await.ok();
            (now["order"]["attempt"]["state"] == "action_required").then_some(())
        })
        .await;
        scene.provider.present_card(reader).await;
        let own = eventually("it is paid", || async {
            let now = till.card_sale(&sold).await.ok()["order"].clone();
            (now["attempt"]["state"] == "captured").then_some(now)
        })
        .await;

        let counter = role == "counter";
        for (whose, order, mine) in [("its own", &own, true), ("anybody's", &anybodys, false)] {
            let id = order["id"].as_str().unwrap();
            let ticket = order["tickets"][0]["id"].as_str().unwrap();
            let may_print = counter || mine;
            // A verb, whether it is this terminal's to do, and what it is told otherwise.
            let pdf = till.get(&format!("/api/box-office/orders/{id}/tickets.pdf")).await;
            let begun =
                till.post(&format!("/api/box-office/orders/{id}/prints"), json!({ "ticket_ids": [ticket] })).await;
            let job = match begun.body["jobs"][0]["id"].as_str() {
                Some(job) => job.to_owned(),
                None => job_of(&scene, id, ticket).await,
            };
            let report = till.post(&format!("/api/box-office/prints/{job}"), json!({ "state": "failed" })).await;
            let ledger = till.get(&format!("/api/box-office/orders/{id}/prints")).await;
            let reissue =
                till.post(&format!("/api/box-office/tickets/{ticket}/reissue"), json!({ "reason": "torn" })).await;
            let mail = till.post(&format!("/api/box-office/orders/{id}/mail"), json!({})).await;
            let amount = json!({ "what": { "kind": "amount", "amount_minor": 100 }, "reason": "cold" });
            let refund = till.refund(order, &key(), amount).await;
            let search = till.get(&format!("/api/staff/orders?q={id}")).await;
            let look = till.get(&format!("/api/staff/orders/{id}")).await;
            let note = till.post(&format!("/api/staff/orders/{id}/notes"), json!({ "text": "seen" })).await;
            for (verb, answer, may, otherwise) in [
                ("pdf", &pdf, may_print, "order_unknown"),
                ("print", &begun, may_print, "order_unknown"),
                ("report a print", &report, may_print, "ticket_printed"),
                ("see prints", &ledger, may_print, "order_unknown"),
                ("reissue", &reissue, counter, "forbidden"),
                // A walk-in customer has no address.
                ("mail", &mail, counter && !mine, if counter { "order_unknown" } else { "forbidden" }),
                ("refund", &refund, counter, "forbidden"),
                ("search", &search, counter, "forbidden"),
                ("look", &look, counter, "forbidden"),
                ("note", &note, counter, "forbidden"),
            ] {
                let told = if may { answer.status.is_success() } else { answer.code() == otherwise };
                assert!(told, "a {role}'s {verb} of {whose} order: {} {:?}", answer.status, answer.body);
            }
        }
    }
    let printed =
        scene.count("select count(*) from ticket_print where actor = 'terminal kiosk' and state <> 'failed'").await;
    assert_eq!(printed, 0, "the kiosk reported its own job only");
    scene.until_settled().await;
    scene.close().await;
}

/// A job that somebody at the counter has opened.
async fn job_of(scene: &Scene, order: &str, ticket: &str) -> String {
    let path = format!("/api/box-office/orders/{order}/prints");
    let begun = scene.till.post(&path, json!({ "ticket_ids": [ticket] })).await;
    match begun.body["jobs"][0]["id"].as_str() {
        Some(job) => job.to_owned(),
        // The first ticket was reissued meanwhile: another one's job does as well.
        None => scene.till.post(&path, json!({ "ticket_ids": [] })).await.ok()["jobs"][0]["id"]
            .as_str()
            .expect("a job")
            .to_owned(),
    }
}
