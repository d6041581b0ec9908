//! An exchange at a counter that costs more: by a card at its reader, and what is done when that card is declined.

use fullhouse_tests::{eventually, fan::Fan, provider::until, rows::Rows, scene::Scene, till::Till};
use serde_json::{Value, json};

const READER: &str = "tmr_window_1";
const FREE: i16 = 0;
const HELD: i16 = 1;
const SOLD: i16 = 2;

/// The first row costs 45.00, the second 60.00, the third 30.00.
async fn scene() -> Scene {
    let scene = Scene::open(Rows::new(3, 10)).await;
    for statement in [
        "insert into price_level (event_id, level, name, category, color) values ($1, 1, 'Better', 'Better', '#ffffff'), ($1, 2, 'Worse', 'Worse', '#000000')",
        "insert into price (event_id, level, ticket_type, amount_minor) values ($1, 1, 'adult', 6000), ($1, 2, 'adult', 3000)",
        "update event_seat set level = seat_no / 10 where event_id = $1",
    ] {
        sqlx::query(statement).bind(scene.event).execute(scene.database.pool()).await.expect("levels");
    }
    Till::place_reader(&scene.database, "Window 1", READER).await;
    scene
}

fn wish(pairs: &[(i32, i32)]) -> Value {
    let seats: Vec<Value> = pairs.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
    json!({ "seats": seats, "reason": "nearer" })
}

/// The dearer seats are asked for at the reader; answers with their order.
async fn at_the_reader(scene: &Scene, old: &Value, pairs: &[(i32, i32)]) -> Value {
    let mut body = wish(pairs);
    body["reader"] = json!(READER);
    scene.staff(old, "exchange", body).await.ok()["order"].clone()
}

/// A card that its bank declines is held to the reader.
async fn declined(scene: &Scene, fan: &Fan, order: &Value) {
    until(fan, order, &["action_required"]).await;
    let path = format!("test_helpers/terminal/readers/{READER}/present_payment_method");
    scene.provider.call(&path, "card_present[number]=4000000000000002".to_owned()).await;
    until(fan, order, &["declined"]).await;
}

fn alive(order: &Value) -> Vec<i64> {
    let tickets = order["tickets"].as_array().expect("tickets").iter();
    tickets.filter(|t| t["state"] == "valid").map(|t| t["seat_no"].as_i64().expect("a seat")).collect()
}

async fn until_given_up(scene: &Scene) {
    eventually("the old seats are given up", || async {
        let open = scene.count("select count(*) from order_swap where done_at is null and dropped_at is null").await;
        (open == 0).then_some(())
    })
    .await;
}

/// Four for four of six that one customer may have: they have four all the while.
#[tokio::test]
async fn a_declined_card_changes_nothing_and_another_one_pays() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2, 3, 4]).await;
    let pairs = [(1, 11), (2, 12), (3, 13), (4, 14)];
    let new = at_the_reader(&scene, &old, &pairs).await;
    assert_eq!((&new["state"], &new["due_minor"]), (&json!("open"), &json!(6_000)));
    let log = "select actor || ': ' || detail || ': ' || reason from audit where verb = 'order_exchange'";
    let log: Vec<String> = sqlx::query_scalar(log).fetch_all(scene.database.pool()).await.expect("the log");
    let (code, of) = (old["code"].as_str().unwrap(), "once it is paid: nearer");
    let seats = |row: &str| (2..6).map(|seat| format!("Stalls {row} {seat}")).collect::<Vec<_>>().join(", ");
    assert_eq!(log, [format!("terminal Window 1: order {code}: {} for {}, {of}", seats("1"), seats("2"))]);
    declined(&scene, &fan, &new).await;
    for (from, to) in pairs {
        assert_eq!((scene.status(from).await, scene.status(to).await), (SOLD, HELD));
    }
    let same = scene.now(&old).await;
    assert_eq!((alive(&same), &same["total_minor"]), (vec![1, 2, 3, 4], &old["total_minor"]));
    let broken = fullhouse::watch::check(scene.database.pool()).await.expect("the test's database answers");
    assert!(broken.is_empty(), "{broken:?}");

    let answer = scene.staff(&new, "pay", json!({ "reader": READER })).await.ok();
    assert_eq!((&answer["order"]["state"], &answer["change_minor"]), (&json!("open"), &json!(0)));
    until(&fan, &new, &["action_required"]).await;
    scene.provider.present_card(READER).await;
    assert_eq!(alive(&until(&fan, &new, &["captured"]).await), [11, 12, 13, 14]);
    until_given_up(&scene).await;
    for (from, to) in pairs {
        assert_eq!((scene.status(from).await, scene.status(to).await), (FREE, SOLD));
    }
    let captured = old["total_minor"].as_i64().expect("a total") + 6_000;
    assert_eq!(scene.provider.ledger().await.captured(), captured, "the difference, once");
    scene.close().await;
}

/// More than the limit is refused as before: what is given up is counted once, not forgotten.
#[tokio::test]
async fn dearer_seats_beside_as_many_others_respect_the_limit() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2, 3, 4, 5, 6]).await;
    let new = at_the_reader(&scene, &old, &[(1, 11)]).await;
    declined(&scene, &fan, &new).await;
    let more = fan.hold(scene.event, &[21]).await;
    assert_eq!(more.code(), "limit_reached");
    scene.close().await;
}

#[tokio::test]
async fn after_a_declined_card_the_difference_is_paid_in_cash_once() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1, 2]).await;
    let new = at_the_reader(&scene, &old, &[(1, 11)]).await;
    let early = scene.staff(&new, "pay", json!({ "received_minor": 2_000 })).await;
    assert_eq!(early.code(), "attempt_live", "the card may still pay");
    declined(&scene, &fan, &new).await;
    let little = scene.staff(&new, "pay", json!({ "received_minor": 1_499 })).await;
    assert_eq!(little.code(), "tender_invalid");
    assert_eq!((scene.status(1).await, scene.status(11).await), (SOLD, HELD));
    for again in [false, true] {
        let paid = scene.staff(&new, "pay", json!({ "received_minor": 2_000 })).await.ok();
        assert_eq!(paid["change_minor"], 500, "again: {again}");
        assert_eq!((&paid["order"]["state"], alive(&paid["order"])), (&json!("confirmed"), vec![11]));
    }
    // In the transaction that took the cash, not in a worker's later one.
    assert_eq!((scene.status(1).await, scene.status(11).await), (FREE, SOLD));
    assert_eq!(alive(&scene.now(&old).await), [2]);
    let cash = scene.count("select sum(amount_minor)::bigint from tender where kind = 'cash'").await;
    let ledger = scene.provider.ledger().await;
    assert_eq!(
        (cash, ledger.captured(), ledger.authorised()),
        (1_500, 9_000, 0),
        "the card paid for the old seats alone"
    );
    scene.end().await;
}

#[tokio::test]
async fn whoever_leaves_an_exchange_has_what_they_had_and_may_begin_another() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let old = scene.bought(&fan, &[1]).await;
    let new = at_the_reader(&scene, &old, &[(1, 11)]).await;
    until(&fan, &new, &["action_required"]).await;
    assert_eq!(scene.staff(&new, "leave-exchange", json!({})).await.code(), "hold_frozen");
    declined(&scene, &fan, &new).await;
    for _ in 0..2 {
        assert_eq!(scene.staff(&new, "leave-exchange", json!({})).await.status, 204);
    }
    assert_eq!((scene.status(1).await, scene.status(11).await), (SOLD, FREE));
    assert_eq!(scene.staff(&new, "pay", json!({ "received_minor": 1_500 })).await.code(), "order_not_open");
    let other = at_the_reader(&scene, &old, &[(1, 12)]).await;
    until(&fan, &other, &["action_required"]).await;
    scene.provider.present_card(READER).await;
    until(&fan, &other, &["captured"]).await;
    until_given_up(&scene).await;
    for paid in [&old, &other] {
        assert_eq!(scene.staff(paid, "leave-exchange", json!({})).await.code(), "order_not_open");
    }
    scene.close().await;
}

#[tokio::test]
async fn what_goes_back_and_how_is_said_before_anything_is_done() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let by_card = scene.bought(&fan, &[1, 2]).await;
    let offered = async |order: &Value, pairs: &[(i32, i32)]| {
        let mut body = wish(pairs);
        body.as_object_mut().expect("fields").remove("reason");
        scene.staff(order, "exchange-offer", body).await
    };
    let less = offered(&by_card, &[(1, 21)]).await.ok();
    let back = json!([{ "kind": "card", "amount_minor": 1_500 }]);
    assert_eq!((&less["difference_minor"], &less["back"]), (&json!(-1_500), &back));
    let more = offered(&by_card, &[(1, 11), (2, 12)]).await.ok();
    assert_eq!((&more["difference_minor"], &more["back"]), (&json!(3_000), &json!([])));
    assert_eq!(offered(&by_card, &[(1, 5)]).await.ok()["difference_minor"], 0);
    for (pairs, code) in [
        (&[(7, 5)][..], "seat_unknown"),
        (&[(1, 2)][..], "seats_unavailable"),
        (&[(1, 5), (2, 5)][..], "seats_repeated"),
    ] {
        assert_eq!(offered(&by_card, pairs).await.code(), code, "{pairs:?}");
    }
    assert_eq!((scene.status(1).await, scene.status(21).await), (SOLD, FREE), "nothing was done");

    let held = scene.till.hold(scene.event, &[7]).await.ok();
    let in_cash = scene.till.sell_for_cash(&held, 5_000).await.ok()["order"].clone();
    let less = offered(&in_cash, &[(7, 22)]).await.ok();
    assert_eq!(less["back"], json!([{ "kind": "cash", "amount_minor": 1_500 }]));
    let done = scene.staff(&in_cash, "exchange", wish(&[(7, 22)])).await.ok();
    assert_eq!(done["difference_minor"], -1_500);
    let back = scene.count("select sum(amount_minor)::bigint from refund where kind = 'cash'").await;
    assert_eq!(back, 1_500, "as it was said");
    scene.close().await;
}
