//! A part in cash, the rest by card: nothing is in the books before the card has decided, and everything after it.

use chrono::TimeDelta;
use fullhouse_tests::{
    desk::Desk,
    eventually,
    provider::key,
    rows::Rows,
    scene::{Scene, seats},
    till::Till,
};
use serde_json::{Value, json};

const READER: &str = "tmr_counter_2";
const SHIFTS: &str = "/api/box-office/shifts";
const CURRENT: &str = "/api/box-office/shifts/current";
const CLOSE: &str = "/api/box-office/shifts/current/close";
/// Of two seats.
const TOTAL: i64 = 9_000;
const CASH: i64 = 2_500;
const FLOAT: i64 = 20_000;

struct Counter {
    scene: Scene,
    /// A supervisor, with an open shift and a reader.
    till: Till,
}

impl Counter {
    async fn open() -> Self {
        let scene = Scene::open(Rows::new(2, 10)).await;
        let till = Desk::open(&scene, "Window 2").await.sign_in(&scene, "Ada", "supervisor").await;
        Till::place_reader(&scene.database, "Window 2", READER).await;
        till.post(SHIFTS, json!({ "float_minor": FLOAT, "currency": "EUR" })).await.ok();
        Self { scene, till }
    }

    async fn hold(&self) -> Value {
        self.till.hold(self.scene.event, &[1, 2]).await.ok()
    }

    /// The card comes a moment after the reader shows the amount.
    async fn card(&self, effect: Value) {
        self.scene.provider.rules(json!([{ "match": { "op": "process" }, "effect": { "reader": effect } }])).await;
    }

    async fn until(&self, order: &Value, states: &[&str]) -> Value {
        self.till.until_in_time(&self.scene.clock, order, states).await
    }

    async fn sell(&self, held: &Value) -> Value {
        split(&self.till, held, &key(), CASH).await.ok()["order"].clone()
    }

    /// Sold, and the card's part can't be taken.
    async fn due(&self) -> Value {
        self.scene.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
        let order = self.sell(&self.hold().await).await;
        self.until(&order, &["action_required"]).await;
        self.scene.provider.present_card(READER).await;
        let due = self.until(&order, &["capture_failed"]).await;
        assert_eq!((&due["state"], &due["due_minor"]), (&json!("payment_due"), &json!(TOTAL - CASH)), "of the card");
        due
    }

    /// What the log says was sold, by the kind of money.
    async fn log(&self) -> Vec<String> {
        sqlx::query_scalar(
            "select a.verb || ' by ' || a.actor || ', ' || s.name || ': ' || a.detail from audit a
             join staff s on s.id = a.staff_id join terminal t on t.id = a.terminal_id
             where a.verb like 'sale%' order by a.verb",
        )
        .fetch_all(self.scene.database.pool())
        .await
        .expect("the log")
    }

    async fn drawer(&self) -> i64 {
        self.till.get(CURRENT).await.ok()["expected_minor"].as_i64().unwrap()
    }
}

async fn split(till: &Till, held: &Value, key: &str, cash_minor: i64) -> fullhouse_tests::fan::Answer {
    let body = json!({
        "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "reader": READER, "cash_minor": cash_minor,
    });
    till.post_once("/api/box-office/card-sales", key, body).await
}

/// So many cents, counted as one coin each.
fn cents(count: i64) -> Value {
    json!({ "counted": [{ "value_minor": 1, "count": count }] })
}

#[tokio::test]
async fn cash_is_in_the_drawer_once_the_card_has_paid_the_rest_and_goes_back_the_way_it_came() {
    let counter = Counter::open().await;
    let held = counter.hold().await;
    let key = key();
    let order = split(&counter.till, &held, &key, CASH).await.ok()["order"].clone();
    counter.until(&order, &["action_required"]).await;
    assert_eq!(counter.drawer().await, FLOAT, "it lies on the counter");
    assert_eq!(counter.log().await, [""; 0], "and nothing is sold");
    let early = counter.till.post(CLOSE, cents(FLOAT)).await;
    assert_eq!(early.code(), "cash_beside_card", "the sale would find no drawer");
    counter.scene.provider.present_card(READER).await;
    let sold = counter.until(&order, &["captured"]).await;
    assert_eq!((&sold["state"], &sold["due_minor"]), (&json!("confirmed"), &json!(0)));
    assert_eq!(counter.scene.provider.ledger().await.captured(), TOTAL - CASH);
    let code = order["code"].as_str().unwrap();
    let by = |what: &str, part: i64| format!("sale_{what} by Ada at Window 2, Ada: order {code}, {part} EUR");
    assert_eq!(counter.log().await, [by("card", TOTAL - CASH), by("cash", CASH)]);
    let x = counter.till.get(CURRENT).await.ok();
    assert_eq!(x["expected_minor"], json!(FLOAT + CASH));
    assert_eq!(
        x["tenders"],
        json!([{ "kind": "card", "count": 1, "amount_minor": TOTAL - CASH }, { "kind": "cash", "count": 1, "amount_minor": CASH }])
    );
    assert_eq!(split(&counter.till, &held, &key, CASH).await.ok()["order"]["id"], order["id"], "asked for again");
    assert_eq!(split(&counter.till, &held, &key, CASH + 1).await.code(), "idempotency_mismatch");
    let cash_alone = counter.till.sell_for_cash(&held, CASH).await;
    assert_eq!(cash_alone.code(), "hold_ended", "it was not sold for that");
    counter.till.refund(&order, "back", seats(&[1, 2], "on_sale")).await.ok();
    counter.scene.until_settled().await;
    assert_eq!(counter.scene.provider.ledger().await.refunded(), TOTAL - CASH, "to the card");
    assert_eq!(counter.drawer().await, FLOAT, "out of the drawer");
    counter.till.post(CLOSE, cents(FLOAT)).await.ok();
    counter.scene.close().await;
}

#[tokio::test]
async fn a_card_that_declines_leaves_the_cash_with_the_customer() {
    let counter = Counter::open().await;
    counter.card(json!({ "tap_after_ms": 0, "decline": "insufficient_funds" })).await;
    let held = counter.hold().await;
    let order = counter.sell(&held).await;
    counter.until(&order, &["declined"]).await;
    assert_eq!(counter.drawer().await, FLOAT);
    assert_eq!(counter.log().await, [""; 0], "a card that was declined has sold nothing");
    // More cash, and less on another card.
    counter.card(json!({ "tap_after_ms": 0 })).await;
    let again = split(&counter.till, &held, &key(), TOTAL - 1_000).await.ok()["order"].clone();
    assert_eq!(again["id"], order["id"]);
    counter.until(&again, &["captured"]).await;
    assert_eq!(counter.scene.provider.ledger().await.captured(), 1_000);
    assert_eq!(counter.drawer().await, FLOAT + TOTAL - 1_000);
    assert_eq!(counter.log().await.len(), 2, "the other one, and its cash");
    counter.scene.close().await;
}

#[tokio::test]
async fn a_capture_that_fails_leaves_the_cards_part_to_be_paid() {
    let counter = Counter::open().await;
    let due = counter.due().await;
    assert_eq!(counter.drawer().await, FLOAT + CASH, "the seats were sold for it");
    let pay = format!("/api/staff/orders/{}/pay", due["id"].as_str().unwrap());
    let short = counter.till.post(&pay, json!({ "received_minor": TOTAL - CASH - 1 })).await;
    assert_eq!((short.code(), &short.body["total_minor"]), ("tender_invalid", &json!(TOTAL - CASH)));
    let paid = counter.till.post(&pay, json!({ "received_minor": TOTAL })).await.ok();
    assert_eq!((&paid["order"]["state"], &paid["change_minor"]), (&json!("confirmed"), &json!(CASH)));
    let again = counter.till.post(&pay, json!({ "received_minor": TOTAL })).await.ok();
    assert_eq!(again["change_minor"], json!(CASH), "told again");
    let elsewhere = Till::enrol(&counter.scene.database, &counter.scene.hub.url(), "Counter 9").await;
    let twice = elsewhere.post(&pay, json!({ "received_minor": TOTAL })).await;
    assert_eq!(twice.code(), "order_not_open", "the same sum at another counter is paid a second time");
    assert_eq!(counter.drawer().await, FLOAT + TOTAL);
    counter.till.refund(&due, "back", seats(&[1, 2], "on_sale")).await.ok();
    assert_eq!(counter.drawer().await, FLOAT);
    counter.scene.close().await;
}

#[tokio::test]
async fn whoever_gives_such_an_order_up_gets_the_cash_back_at_once_or_is_owed_it() {
    let counter = Counter::open().await;
    let due = counter.due().await;
    let give_up = format!("/api/staff/orders/{}/give-up", due["id"].as_str().unwrap());
    let said = json!({ "seats_become": "on_sale", "reason": "the card is broken" });
    for _ in 0..2 {
        let back = counter.till.post(&give_up, said.clone()).await.ok();
        assert_eq!(back["cash_back_minor"], json!(CASH), "told again, it is the same cash");
        assert_eq!(counter.drawer().await, FLOAT);
    }
    let elsewhere = Till::enrol(&counter.scene.database, &counter.scene.hub.url(), "Counter 9").await;
    let back = elsewhere.post(&give_up, said.clone()).await.ok();
    assert_eq!(back["cash_back_minor"], json!(0), "nobody hands it out a second time");

    // The customer has gone, and nobody pays: the seats go back by themselves, the cash can't.
    let late = counter.due().await;
    counter.scene.clock.advance(TimeDelta::minutes(31)).await;
    eventually("the seats went back", || async {
        (counter.scene.now(&late).await["state"] == "cancelled").then_some(())
    })
    .await;
    assert_eq!(counter.drawer().await, FLOAT + CASH);
    let list = counter.till.get("/api/staff/money").await.ok();
    let owed = &list["refunds"][0];
    assert_eq!(
        (&owed["kind"], &owed["amount_minor"], &owed["failure"], &owed["order_code"]),
        (&json!("cash"), &json!(CASH), &json!("not_handed_over"), &late["code"]),
        "{list}"
    );
    let retry = format!("/api/staff/refunds/{}/retry", owed["refund_id"].as_str().unwrap());
    let to_card = counter.till.post(&retry, json!({ "by_hand": false, "reason": "x" })).await;
    assert_eq!(to_card.code(), "bad_request");
    let by_hand = json!({ "by_hand": true, "reason": "came back for it" });
    let handed = counter.till.post(&retry, by_hand.clone()).await.ok();
    assert_eq!(counter.till.post(&retry, by_hand).await.ok()["id"], handed["id"], "once");
    assert_eq!(counter.drawer().await, FLOAT);
    assert_eq!(counter.till.get("/api/staff/money").await.ok()["refunds"], json!([]));
    counter.scene.close().await;
}

#[tokio::test]
async fn what_can_not_be_split_is_refused() {
    let counter = Counter::open().await;
    let held = counter.hold().await;
    for all in [TOTAL, TOTAL + 1] {
        let refused = split(&counter.till, &held, &key(), all).await;
        assert_eq!((refused.code(), &refused.body["total_minor"]), ("tender_invalid", &json!(TOTAL)), "{all}");
    }
    for wrong in [-1, i64::MAX] {
        assert_eq!(split(&counter.till, &held, &key(), wrong).await.code(), "tender_invalid", "{wrong}");
    }
    counter.till.post(CLOSE, cents(FLOAT)).await.ok();
    assert_eq!(split(&counter.till, &held, &key(), CASH).await.code(), "shift_required");
    let kiosk = Till::enrol_as("kiosk", &counter.scene.database, &counter.scene.hub.url(), "Kiosk 1").await;
    Till::place_reader(&counter.scene.database, "Kiosk 1", "tmr_kiosk_1").await;
    let held = kiosk.hold(counter.scene.event, &[3]).await.ok();
    let body = json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "reader": "tmr_kiosk_1", "cash_minor": 1 });
    assert_eq!(kiosk.post_once("/api/box-office/card-sales", &key(), body).await.code(), "forbidden");
    assert_eq!(counter.scene.count("select count(*) from attempt").await, 0, "no card was asked");
    counter.scene.close().await;
}
