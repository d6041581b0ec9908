//! Seats exchanged for those of another event, and paid up by card: the old ones stay until the new ones are paid.

use chrono::TimeDelta;
use fullhouse_tests::{
    eventually,
    fan::{Answer, Fan},
    provider::{CARD, DECLINED, key, until, until_in_time},
    rows::Rows,
    scene::Scene,
    till::Till,
};
use serde_json::{Value, json};

/// The evening that is bought costs 45.00, the other one 60.00 (and 30.00 in its second row).
struct Evenings {
    scene: Scene,
    other: i64,
}

impl Evenings {
    async fn open() -> Self {
        let scene = Scene::open(Rows { fee_minor: 250, ..Rows::new(2, 10) }).await;
        let other = Rows { price_minor: 6_000, ..Rows::new(2, 10) }.open(scene.database.pool()).await;
        for statement in [
            "insert into price_level (event_id, level, name, category, color) values ($1, 1, 'Worse', 'Worse', '#000000')",
            "insert into price (event_id, level, ticket_type, amount_minor) values ($1, 1, 'adult', 3000)",
            "update event_seat set level = seat_no / 10 where event_id = $1",
        ] {
            sqlx::query(statement).bind(other).execute(scene.database.pool()).await.expect("levels");
        }
        Self { scene, other }
    }

    /// For seats of the other evening.
    async fn exchange(&self, order: &Value, pairs: &[(i32, i32)], more: Value) -> Answer {
        self.exchange_once(order, &key(), pairs, more).await
    }

    async fn exchange_once(&self, order: &Value, key: &str, pairs: &[(i32, i32)], more: Value) -> Answer {
        let seats: Vec<Value> = pairs.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
        let mut body = json!({ "seats": seats, "event_id": self.other, "reason": "the other evening" });
        for (name, value) in more.as_object().expect("fields") {
            body[name] = value.clone();
        }
        let id = order["id"].as_str().expect("an id");
        self.scene.till.post_once(&format!("/api/staff/orders/{id}/exchange"), key, body).await
    }

    /// What the buyer still has to pay of an exchange.
    async fn pay(&self, fan: &Fan, order: &Value, card: &str) -> Answer {
        let due = order["total_minor"].as_i64().expect("a total") - order["credit_minor"].as_i64().expect("a credit");
        let body = json!({ "payment_method": card, "amount_minor": due, "currency": "EUR" });
        fan.post_once(&format!("/api/orders/{}/pay", order["id"].as_str().expect("an id")), &key(), body).await
    }

    /// Which seats are whose: the old one and the new one.
    async fn statuses(&self, old: i32, new: i32) -> (i16, i16) {
        (self.scene.status(old).await, self.scene.status_at(self.other, new).await)
    }

    async fn until_given_up(&self) {
        eventually("the old seats are given up", || async {
            let open =
                self.scene.count("select count(*) from order_swap where done_at is null and dropped_at is null").await;
            (open == 0).then_some(())
        })
        .await;
    }
}

fn alive(order: &Value) -> Vec<i64> {
    let tickets = order["tickets"].as_array().expect("tickets").iter();
    tickets.filter(|t| t["state"] == "valid").map(|t| t["seat_no"].as_i64().expect("a seat")).collect()
}

const FREE: i16 = 0;
const HELD: i16 = 1;
const SOLD: i16 = 2;

/// The money of an order that was exchanged is the other's: where nothing of it is left to give back, it is no money
/// without an order. (What must always be true is looked at where the test ends.)
#[tokio::test]
async fn an_exchanged_order_that_is_closed_leaves_no_money_without_an_order() {
    let scene = Scene::open(Rows::new(2, 10)).await;
    let other = Rows { price_minor: 6_000, ..Rows::new(2, 10) }.open(scene.database.pool()).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    let body = json!({ "seats": [{ "from": 1, "to": 5 }], "event_id": other, "reason": "the other evening", "received_minor": 1_500 });
    let new = scene.staff(&paid, "exchange", body).await.ok()["order"].clone();
    assert_eq!(new["state"], "confirmed");
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "nothing is left of it" });
    scene.staff(&paid, "refunds", all).await.ok();
    let old = scene.now(&paid).await;
    assert_eq!((&old["state"], &old["attempt"]["state"]), (&json!("cancelled"), &json!("captured")));
    assert_eq!(scene.count("select count(*) from refund").await, 0);
    assert_eq!((scene.status(1).await, scene.status_at(other, 5).await), (0, 2));
    scene.end().await;
}

#[tokio::test]
async fn the_difference_is_paid_by_card_and_only_then_the_old_seats_go() {
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2]).await;
    let once = key();
    let answer = evenings.exchange_once(&old, &once, &[(1, 5)], json!({ "by_card": true })).await.ok();
    let new = answer["order"].clone();
    assert_eq!((&answer["difference_minor"], &new["state"]), (&json!(1_500), &json!("open")));
    assert_eq!((&new["total_minor"], &new["credit_minor"]), (&json!(6_000), &json!(4_500)));
    let again = evenings.exchange_once(&old, &once, &[(1, 5)], json!({ "by_card": true })).await.ok();
    assert_eq!(again["order"]["id"], new["id"], "the same click");
    let other = evenings.exchange_once(&old, &once, &[(1, 6)], json!({ "by_card": true })).await;
    assert_eq!(other.code(), "idempotency_mismatch");

    // Both are the buyer's: nobody gets in between.
    assert_eq!(evenings.statuses(1, 5).await, (SOLD, HELD));
    let bot = scene.fan().await;
    assert_eq!(bot.hold(scene.event, &[1]).await.code(), "seats_unavailable");
    assert_eq!(bot.hold(evenings.other, &[5]).await.code(), "seats_unavailable");
    // Whoever goes to the seats' own page is led to the same order, at the same price.
    let held = fan.my_hold(evenings.other).await.ok();
    let priced = fan.checkout(held["hold"]["id"].as_str().unwrap()).await.ok();
    assert_eq!((&priced["order"]["id"], &priced["order"]["credit_minor"]), (&new["id"], &json!(4_500)));

    // Only the difference is charged; the whole price is not.
    assert_eq!(fan.pay(&new, &key(), CARD).await.code(), "amount_mismatch");
    evenings.pay(&fan, &new, CARD).await.ok();
    let paid = until(&fan, &new, &["captured"]).await;
    assert_eq!(alive(&paid), [5]);
    evenings.until_given_up().await;
    assert_eq!(evenings.statuses(1, 5).await, (FREE, SOLD));
    let left = scene.now(&old).await;
    assert_eq!((alive(&left), &left["total_minor"]), (vec![2], &json!(9_250 - 4_500)));
    assert_eq!(scene.provider.ledger().await.captured(), 9_250 + 1_500);
    bot.hold(scene.event, &[1]).await.ok();

    // What goes back of the new order goes the way it came: the difference and the credit, each to its payment.
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    let back = scene.staff(&new, "refunds", all.clone()).await.ok();
    let amounts: Vec<&Value> = back["refunds"].as_array().unwrap().iter().map(|r| &r["amount_minor"]).collect();
    assert_eq!((amounts, &back["amount_minor"]), (vec![&json!(1_500), &json!(4_500)], &json!(6_000)));
    scene.until_settled().await;
    scene.staff(&old, "refunds", all).await.ok();
    scene.until_settled().await;
    assert_eq!(scene.provider.ledger().await.refunded(), 9_250 + 1_500);
    evenings.scene.close().await;
}

/// A naive exchange lives here: it gives the old seat back, then takes the money for the new one.
#[tokio::test]
async fn b54_control_who_gives_the_old_seat_back_first_loses_it() {
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1]).await;
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "exchange" });
    scene.staff(&old, "refunds", all).await.ok();
    let new = fullhouse_tests::provider::order(&fan, evenings.other, &[5]).await;
    let bot = scene.fan().await;
    let took = bot.hold(scene.event, &[1]).await;
    fan.pay(&new, &key(), DECLINED).await.ok();
    until(&fan, &new, &["declined"]).await;
    assert!(
        took.status.is_success() && alive(&scene.now(&old).await).is_empty(),
        "the fault exists: they have nothing"
    );
    scene.until_settled().await;
    evenings.scene.close().await;
}

#[tokio::test]
async fn b54_declined_late_or_lost_leaves_everything_as_it_was() {
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1]).await;

    // Declined: the new seat is still held, the old one sold; another card pays, or nothing does.
    let new = evenings.exchange(&old, &[(1, 5)], json!({ "by_card": true })).await.ok()["order"].clone();
    evenings.pay(&fan, &new, DECLINED).await.ok();
    until(&fan, &new, &["declined"]).await;
    assert_eq!(evenings.statuses(1, 5).await, (SOLD, HELD));
    assert_eq!(alive(&scene.now(&old).await), [1]);

    // Lost: the provider took it and nobody heard; the time runs out meanwhile. The money is let go.
    scene
        .provider
        .rules(json!([
            { "match": { "op": "confirm", "first": 1 }, "effect": { "network": "timeout_after" } },
            { "match": { "op": "get" }, "effect": { "network": "timeout_before" } },
        ]))
        .await;
    evenings.pay(&fan, &new, CARD).await.ok();
    until_in_time(&scene.clock, &fan, &new, &["auth_unknown"]).await;
    // While it is in doubt, nothing goes back of the old order, and it is not exchanged once more.
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    assert_eq!(scene.staff(&old, "refunds", all.clone()).await.code(), "attempt_live");
    assert_eq!(evenings.exchange(&old, &[(1, 6)], json!({ "by_card": true })).await.code(), "attempt_live");
    scene.clock.advance(TimeDelta::seconds(481)).await;
    scene.provider.rules(json!([])).await;
    let over = until_in_time(&scene.clock, &fan, &new, &["voided"]).await;
    assert_eq!((&over["state"], &over["cancel_reason"]), (&json!("cancelled"), &json!("time_over")));
    evenings.until_given_up().await;
    eventually("the new seat is free again", || async {
        (evenings.statuses(1, 5).await == (SOLD, FREE)).then_some(())
    })
    .await;
    let same = scene.now(&old).await;
    assert_eq!((alive(&same), &same["total_minor"], &same["state"]), (vec![1], &json!(4_750), &json!("confirmed")));

    // An offer whose old seat went back meanwhile can't be paid: its credit is gone.
    let new = evenings.exchange(&old, &[(1, 5)], json!({ "by_card": true })).await.ok()["order"].clone();
    scene.staff(&old, "refunds", all).await.ok();
    assert_eq!(evenings.pay(&fan, &new, CARD).await.code(), "order_not_open");
    scene.until_settled().await;
    evenings.scene.close().await;
}

#[tokio::test]
async fn a_capture_that_fails_takes_the_new_seats_back_and_leaves_the_old_ones() {
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1]).await;
    let new = evenings.exchange(&old, &[(1, 5)], json!({ "by_card": true })).await.ok()["order"].clone();
    scene.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
    evenings.pay(&fan, &new, CARD).await.ok();
    let due = until(&fan, &new, &["capture_failed"]).await;
    assert_eq!((&due["state"], evenings.statuses(1, 5).await), (&json!("payment_due"), (SOLD, SOLD)));
    assert_eq!(alive(&scene.now(&old).await), [1], "theirs until the difference is captured");
    // Nobody has the credit twice.
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    assert_eq!(scene.staff(&old, "refunds", all).await.code(), "attempt_live");
    scene.clock.advance(TimeDelta::minutes(31)).await;
    eventually("the new seat went back", || async { (evenings.statuses(1, 5).await == (SOLD, FREE)).then_some(()) })
        .await;
    assert_eq!(alive(&scene.now(&old).await), [1]);
    evenings.until_given_up().await;
    evenings.scene.close().await;
}

/// Whoever pays again in time has the new seats, and no longer the old ones: by another card, or in cash at a counter.
#[tokio::test]
async fn what_a_failed_capture_left_due_of_an_exchange_is_paid_again() {
    for by_card in [true, false] {
        let evenings = Evenings::open().await;
        let Evenings { scene, .. } = &evenings;
        let fan = scene.fan().await;
        let old = scene.bought(&fan, &[1]).await;
        let new = evenings.exchange(&old, &[(1, 5)], json!({ "by_card": true })).await.ok()["order"].clone();
        scene.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
        evenings.pay(&fan, &new, CARD).await.ok();
        until(&fan, &new, &["capture_failed"]).await;
        if by_card {
            evenings.pay(&fan, &new, CARD).await.ok();
            until(&fan, &new, &["captured"]).await;
        } else {
            scene.staff(&new, "pay", json!({ "received_minor": 1_500 })).await.ok();
        }
        evenings.until_given_up().await;
        assert_eq!(evenings.statuses(1, 5).await, (FREE, SOLD), "by card: {by_card}");
        assert_eq!((alive(&scene.now(&old).await), alive(&scene.now(&new).await)), (vec![], vec![5]));
        // Nothing is under way any more: both can be given back.
        let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
        scene.staff(&new, "refunds", all.clone()).await.ok();
        scene.staff(&old, "refunds", all.clone()).await.ok();
        assert_eq!(scene.now(&old).await["state"], "cancelled", "its fee was all that it had");
        assert_eq!(scene.staff(&old, "refunds", all).await.code(), "order_not_paid");
        scene.until_settled().await;
        let ledger = scene.provider.ledger().await;
        assert_eq!(ledger.captured(), ledger.refunded());
        evenings.scene.close().await;
    }
}

#[tokio::test]
async fn cheaper_seats_give_the_rest_back_and_dearer_ones_take_cash_or_a_card_at_the_counter() {
    const READER: &str = "tmr_window_1";
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2, 3]).await;
    let less = evenings.exchange(&old, &[(1, 11)], json!({})).await.ok();
    assert_eq!((&less["difference_minor"], &less["order"]["state"]), (&json!(-1_500), &json!("confirmed")));
    assert_eq!((alive(&less["order"]), evenings.statuses(1, 11).await), (vec![11], (FREE, SOLD)));
    scene.until_settled().await;
    assert_eq!(scene.provider.ledger().await.refunded(), 1_500);

    let refused = evenings.exchange(&old, &[(2, 5)], json!({})).await;
    assert_eq!((refused.code(), &refused.body["difference_minor"]), ("tender_invalid", &json!(1_500)));
    let cash = evenings.exchange(&old, &[(2, 5)], json!({ "received_minor": 2_000 })).await.ok();
    assert_eq!((&cash["change_minor"], alive(&cash["order"])), (&json!(500), vec![5]));

    let stranger = evenings.exchange(&old, &[(3, 6)], json!({ "reader": READER })).await;
    assert_eq!(stranger.code(), "reader_not_yours");
    Till::place_reader(&scene.database, "Window 1", READER).await;
    let open = evenings.exchange(&old, &[(3, 6)], json!({ "reader": READER })).await.ok()["order"].clone();
    until(&fan, &open, &["action_required"]).await;
    scene.provider.present_card(READER).await;
    assert_eq!(alive(&until(&fan, &open, &["captured"]).await), [6]);
    evenings.until_given_up().await;

    // The old order has no seats left: it says where they went.
    let gone = scene.now(&old).await;
    assert_eq!((&gone["exchanged_for"], alive(&gone)), (&open["id"], vec![]));
    assert_eq!(gone["total_minor"], 250, "the fee was for the first booking");
    for (more, code) in [
        (json!({ "by_card": true, "received_minor": 5 }), "bad_request"),
        (json!({ "pay_within_s": 600 }), "bad_request"),
        (json!({ "by_card": true, "pay_within_s": 5 }), "bad_request"),
        (json!({ "event_id": 999_999 }), "event_unknown"),
    ] {
        assert_eq!(evenings.exchange(&cash["order"], &[(5, 7)], more.clone()).await.code(), code, "{more}");
    }
    evenings.scene.close().await;
}

#[tokio::test]
async fn an_exchange_respects_the_limit_and_what_the_buyer_holds() {
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2]).await;
    fan.hold(evenings.other, &[9]).await.ok();
    assert_eq!(evenings.exchange(&old, &[(1, 5)], json!({ "by_card": true })).await.code(), "seats_in_use");
    scene.clock.advance(TimeDelta::seconds(481)).await;
    eventually("their hold is over", || async {
        (scene.count("select count(*) from hold where state = 'live'").await == 0).then_some(())
    })
    .await;
    scene.bought_at(&fan, evenings.other, &[0, 1, 2, 3, 4]).await;
    let refused = evenings.exchange(&old, &[(1, 5), (2, 6)], json!({ "by_card": true })).await;
    assert_eq!((refused.code(), &refused.body["limit"]), ("limit_reached", &json!(6)));
    evenings.exchange(&old, &[(1, 5)], json!({ "by_card": true })).await.ok();
    evenings.scene.close().await;
}

/// Evening after evening: each time what was paid goes along, and in the end it goes back to where it came from.
#[tokio::test]
async fn what_was_exchanged_is_exchanged_again_and_given_back() {
    let evenings = Evenings::open().await;
    let Evenings { scene, .. } = &evenings;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2]).await;
    let dear = evenings.exchange(&old, &[(1, 5)], json!({ "received_minor": 1_500 })).await.ok()["order"].clone();
    // In place, for less than it was paid with the first order.
    let body = json!({ "seats": [{ "from": 5, "to": 12 }], "reason": "further back" });
    let worse = scene.staff(&dear, "exchange", body).await.ok();
    assert_eq!((&worse["difference_minor"], &worse["order"]["total_minor"]), (&json!(-3_000), &json!(3_000)));
    assert_eq!(worse["order"]["credit_minor"], 3_000);
    // Back to the first evening, and away again.
    let first = json!({ "event_id": scene.event, "received_minor": 1_500 });
    let back = evenings.exchange(&worse["order"], &[(12, 7)], first).await.ok()["order"].clone();
    assert_eq!((alive(&back), scene.status(7).await), (vec![7], SOLD));
    let last = evenings.exchange(&back, &[(7, 13)], json!({})).await.ok();
    assert_eq!((&last["difference_minor"], alive(&last["order"])), (&json!(-1_500), vec![13]));
    let gone = scene.now(&dear).await;
    assert_eq!((&gone["total_minor"], &gone["credit_minor"]), (&json!(0), &json!(0)));
    scene.until_settled().await;
    // What was paid in cash came back in cash; the rest is the card's.
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    let given = scene.staff(&last["order"], "refunds", all.clone()).await.ok();
    assert_eq!((&given["amount_minor"], &given["refunds"][0]["kind"]), (&json!(3_000), &json!("card")), "{given}");
    scene.staff(&old, "refunds", all).await.ok();
    scene.until_settled().await;
    let ledger = scene.provider.ledger().await;
    let cash = scene.count(
        "select coalesce(sum(case when kind = 'cash' then amount_minor - refunded_minor end), 0)::bigint from tender",
    );
    assert_eq!((ledger.captured() - ledger.refunded(), cash.await), (0, 0), "all of it went back");
    let broken = fullhouse::watch::check(scene.database.pool()).await.expect("the test's database answers");
    assert!(broken.is_empty(), "{broken:?}");
    evenings.scene.close().await;
}
