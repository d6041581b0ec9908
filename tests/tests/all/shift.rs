//! A drawer, from its float to its Z report; and the day's lock.

use std::sync::Arc;

use chrono::TimeDelta;
use fullhouse_tests::{
    desk::Desk,
    rows::Rows,
    scene::{Scene, seats},
    till::Till,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

const SHIFTS: &str = "/api/box-office/shifts";
const CURRENT: &str = "/api/box-office/shifts/current";
const MOVES: &str = "/api/box-office/shifts/current/moves";
const STOPPED: &str = "/api/box-office/shifts/stopped";
const CLOSE: &str = "/api/box-office/shifts/current/close";

async fn open(till: &Till, float_minor: i64) -> Value {
    till.post(SHIFTS, json!({ "float_minor": float_minor, "currency": "EUR" })).await.ok()
}

async fn sell(till: &Till, event: i64, seat: i32) -> fullhouse_tests::fan::Answer {
    let held = till.hold(event, &[seat]).await.ok();
    till.sell_for_cash(&held, 10_000).await
}

/// So many cents, counted as one coin each.
fn cents(count: i64) -> Value {
    json!([{ "value_minor": 1, "count": count }])
}

#[tokio::test]
async fn cash_needs_an_open_shift_and_everything_else_does_not() {
    let scene = Scene::without_webhooks(Rows::new(2, 20), |_| {}).await;
    let desk = Desk::open(&scene, "Window 2").await;
    let till = desk.sign_in(&scene, "Ada", "supervisor").await;
    let event = scene.event;
    let refused = sell(&till, event, 0).await;
    assert_eq!((refused.code(), refused.status), ("shift_required", StatusCode::CONFLICT));
    assert_eq!(scene.count("select count(*) from tender").await, 0, "nothing was sold");
    assert_eq!(till.get(CURRENT).await.code(), "shift_unknown");
    for (path, body) in
        [(MOVES, json!({ "kind": "drop", "amount_minor": 1, "reason": "x" })), (CLOSE, json!({ "counted": [] }))]
    {
        assert_eq!(till.post(path, body).await.code(), "shift_required", "{path}");
    }
    let held = till.hold(event, &[1]).await.ok();
    let comp = json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tender": { "kind": "comp", "reason": "press" } });
    till.post("/api/box-office/sales", comp).await.ok();
    let opened = open(&till, 20_000).await;
    let again = till.post(SHIFTS, json!({ "float_minor": 0, "currency": "EUR" })).await;
    assert_eq!((again.code(), &again.body["shift_id"]), ("shift_open", &opened["shift_id"]));
    let order = sell(&till, event, 2).await.ok()["order"].clone();
    assert_eq!(till.get(CURRENT).await.ok()["cash_sales"]["amount_minor"], order["total_minor"]);
    // An order that was sold elsewhere is given back out of this drawer, and only while there is one.
    let elsewhere =
        scene.till.sell_for_cash(&scene.till.hold(event, &[3]).await.ok(), 10_000).await.ok()["order"].clone();
    till.post(CLOSE, json!({ "counted": cents(20_000 + order["total_minor"].as_i64().unwrap()) })).await.ok();
    let refunds = format!("/api/staff/orders/{}/refunds", elsewhere["id"].as_str().unwrap());
    assert_eq!(till.post(&refunds, seats(&[3], "on_sale")).await.code(), "shift_required");
    assert_eq!(scene.status(3).await, 2, "nothing was given back");
    let other = till.post(SHIFTS, json!({ "float_minor": 0, "currency": "JPY" })).await.ok();
    assert_eq!(sell(&till, event, 4).await.code(), "shift_currency", "{other}");
    assert_eq!(till.post(&refunds, seats(&[3], "on_sale")).await.code(), "shift_currency");
    for wrong in [
        json!({ "float_minor": -1, "currency": "EUR" }),
        json!({ "float_minor": 1_000_000_000, "currency": "EUR" }),
        json!({ "float_minor": 0, "currency": "eur" }),
        json!({ "float_minor": 0, "currency": "XXX" }),
    ] {
        assert_eq!(till.post(SHIFTS, wrong.clone()).await.code(), "bad_request", "{wrong}");
    }
    let unattended = scene.till.post(SHIFTS, json!({ "float_minor": 0, "currency": "EUR" })).await;
    assert_eq!(unattended.code(), "forbidden", "where nobody signs in there are no shifts");
    scene.close().await;
}

#[tokio::test]
async fn x_and_z_add_up_and_a_variance_is_kept_with_its_explanation() {
    let scene = Scene::without_webhooks(Rows::new(2, 20), |_| {}).await;
    let desk = Desk::open(&scene, "Window 2").await;
    let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
    let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
    let event = scene.event;
    let shift = open(&clerk, 20_000).await;
    let order = sell(&clerk, event, 0).await.ok()["order"].clone();
    let price = order["total_minor"].as_i64().unwrap();
    let back = sell(&clerk, event, 1).await.ok()["order"].clone();
    let refunds = format!("/api/staff/orders/{}/refunds", back["id"].as_str().unwrap());
    boss.post(&refunds, seats(&[1], "on_sale")).await.ok();
    let moved = |kind: &str, amount: i64| json!({ "kind": kind, "amount_minor": amount, "reason": "a reason" });
    clerk.post_once(MOVES, "drop", moved("drop", 5_000)).await.ok();
    let again = clerk.post_once(MOVES, "drop", moved("drop", 5_000)).await.ok();
    assert_eq!(again["drops"], json!({ "count": 1, "amount_minor": 5_000 }), "the same key is the same move");
    assert_eq!(clerk.post_once(MOVES, "drop", moved("drop", 5_001)).await.code(), "idempotency_mismatch");
    clerk.post(MOVES, moved("pay_in", 700)).await.ok();
    assert_eq!(clerk.post(MOVES, moved("pay_out", 300)).await.code(), "role_too_low");
    boss.post(MOVES, moved("pay_out", 300)).await.ok();
    let expected = 20_000 + price - 5_000 + 700 - 300;
    let short = clerk.post(MOVES, moved("drop", expected + 1)).await;
    assert_eq!((short.code(), &short.body["expected_minor"]), ("drawer_short", &json!(expected)));
    for wrong in [moved("drop", 0), moved("drop", -5), json!({ "kind": "drop", "amount_minor": 5, "reason": " " })] {
        assert_eq!(clerk.post(MOVES, wrong).await.code(), "bad_request");
    }
    let x = clerk.get(CURRENT).await.ok();
    assert_eq!(
        (&x["expected_minor"], &x["cash_sales"], &x["cash_back"], &x["closed"]),
        (
            &json!(expected),
            &json!({ "count": 2, "amount_minor": price * 2 }),
            &json!({ "count": 1, "amount_minor": price }),
            &Value::Null
        )
    );
    assert_eq!(x["tenders"], json!([{ "kind": "cash", "count": 2, "amount_minor": price * 2 }]));

    let counted = json!([{ "value_minor": 100, "count": 3 }, { "value_minor": 1, "count": expected - 310 }]);
    let bare = json!({ "shift_id": shift["shift_id"], "counted": counted });
    let unexplained = clerk.post(CLOSE, bare.clone()).await;
    assert_eq!((unexplained.code(), &unexplained.body["variance_minor"]), ("variance_unexplained", &json!(-10)));
    assert_eq!(clerk.get(CURRENT).await.ok()["closed"], Value::Null, "nothing changed");
    for counted in [
        json!([{ "value_minor": 1, "count": 1 }, { "value_minor": 1, "count": 2 }]),
        json!([{ "value_minor": 0, "count": 1 }]),
    ] {
        assert_eq!(clerk.post(CLOSE, json!({ "counted": counted })).await.code(), "bad_request");
    }
    let mut explained = bare;
    explained["explanation"] = json!("a coin fell behind the counter");
    assert_eq!(boss.post(CLOSE, explained.clone()).await.code(), "role_too_low", "it is Ada's");
    let z = clerk.post(CLOSE, explained.clone()).await.ok();
    let closed = &z["closed"];
    assert_eq!(
        (&closed["z_number"], &closed["variance_minor"], &closed["closed_by"]),
        (&json!(1), &json!(-10), &json!("Ada"))
    );
    assert_eq!(closed["explanation"], "a coin fell behind the counter");
    let without_now = |mut report: Value| {
        report["now"] = Value::Null;
        report
    };
    let found = clerk.post(CLOSE, explained).await.ok();
    assert_eq!(without_now(found), without_now(z.clone()), "an answer that got lost is found");
    let path = format!("{SHIFTS}/{}", shift["shift_id"].as_str().unwrap());
    assert_eq!(without_now(clerk.get(&path).await.ok()), without_now(z.clone()), "printed again");
    // What happens to its orders later changes nothing of it.
    open(&clerk, 30_000).await;
    let refunds = format!("/api/staff/orders/{}/refunds", order["id"].as_str().unwrap());
    boss.post(&refunds, seats(&[0], "on_sale")).await.ok();
    assert_eq!(without_now(clerk.get(&path).await.ok()), without_now(z));
    let boss_closes = json!({ "counted": cents(30_000 - price) });
    assert_eq!(boss.post(CLOSE, boss_closes.clone()).await.code(), "role_too_low");
    let manager = desk.sign_in(&scene, "Cleo", "manager").await;
    let z = manager.post(CLOSE, boss_closes).await.ok();
    assert_eq!((&z["closed"]["z_number"], &z["closed"]["variance_minor"]), (&json!(2), &json!(0)));
    let listed = clerk.get(SHIFTS).await.ok();
    let numbers: Vec<&Value> = listed["shifts"].as_array().unwrap().iter().map(|s| &s["z_number"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    let other = Desk::open(&scene, "Window 3").await.sign_in(&scene, "Dan", "supervisor").await;
    assert_eq!(other.get(&path).await.code(), "shift_unknown", "another terminal's");
    for statement in ["update shift set counted_minor = 0", "delete from shift"] {
        let refused = sqlx::query(statement).execute(scene.database.pool()).await.unwrap_err();
        assert_eq!(fullhouse::db::constraint(&refused), Some("shift_stays_closed"), "{statement}");
    }
    scene.close().await;
}

#[tokio::test]
async fn a_day_is_locked_when_every_terminals_shifts_are_closed() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |_| {}).await;
    let first = Desk::open(&scene, "Window 2").await.sign_in(&scene, "Ada", "clerk").await;
    let second = Desk::open(&scene, "Window 3").await;
    let boss = second.sign_in(&scene, "Bob", "manager").await;
    let day = open(&first, 0).await["business_day"].clone();
    let lock = "/api/box-office/day-lock";
    let date = json!({ "date": day });
    assert_eq!(first.post(lock, date.clone()).await.code(), "role_too_low");
    let refused = boss.post(lock, date.clone()).await;
    assert_eq!((refused.code(), &refused.body["shifts"][0]["terminal_name"]), ("shifts_open", &json!("Window 2")));
    first.post(CLOSE, json!({ "counted": [] })).await.ok();
    let locked = boss.post(lock, date.clone()).await.ok();
    assert_eq!((&locked["shifts"][0]["z_number"], &locked["locked_by"]), (&json!(1), &json!("Bob at Window 3")));
    assert_eq!(boss.post(lock, date).await.ok()["locked_at"], locked["locked_at"], "again: it is locked");
    let shut = first.post(SHIFTS, json!({ "float_minor": 0, "currency": "EUR" })).await;
    assert_eq!((shut.code(), &shut.body["date"]), ("day_locked", &day));
    let future = json!({ "date": "2999-01-01" });
    assert_eq!(boss.post(lock, future).await.code(), "bad_request");
    scene.clock.advance(TimeDelta::days(1)).await;
    let next = second.sign_in_as("Ada").await; // a session ends after twelve hours
    assert_ne!(open(&next, 0).await["business_day"], day, "tomorrow's opens");
    scene.close().await;
}

#[tokio::test]
async fn the_drawer_of_a_terminal_that_is_gone_is_counted_by_a_manager_at_another_one() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |_| {}).await;
    let gone = Desk::open(&scene, "Window 2").await.sign_in(&scene, "Ada", "clerk").await;
    let other = Desk::open(&scene, "Window 3").await;
    let boss = other.sign_in(&scene, "Bob", "manager").await;
    let shift = open(&gone, 5_000).await;
    let price = sell(&gone, scene.event, 0).await.ok()["order"]["total_minor"].as_i64().unwrap();
    let counted = json!({ "shift_id": shift["shift_id"], "counted": cents(5_000 + price) });
    assert_eq!(boss.post(CLOSE, counted.clone()).await.code(), "shift_unknown", "it closes its own");
    let operator = scene.operator().await;
    let terminal = format!("/api/staff/terminals/{}", shift["terminal_id"].as_str().unwrap());
    operator.post(&terminal, json!({ "revoke": true, "reason": "it was stolen" })).await.ok();
    let clerk = other.sign_in(&scene, "Eve", "supervisor").await;
    assert_eq!(clerk.post(CLOSE, counted.clone()).await.code(), "shift_unknown", "a manager's to do");
    let own = open(&boss, 700).await;

    let stopped = || async { boss.get(STOPPED).await.ok()["shifts"].clone() };
    assert_eq!(clerk.get(STOPPED).await.code(), "role_too_low");
    let left = stopped().await;
    assert_eq!((&left[0]["shift_id"], &left[0]["z_number"]), (&shift["shift_id"], &json!(null)));
    assert_eq!(left[1], json!(null), "the drawers of terminals that work are their own");
    let one = format!("/api/box-office/shifts/{}", shift["shift_id"].as_str().unwrap());
    assert_eq!(clerk.get(&one).await.code(), "shift_unknown");

    let z = boss.post(CLOSE, counted.clone()).await.ok();
    assert_eq!(
        (&stopped().await[0]["z_number"], boss.get(&one).await.ok()["closed"].clone()),
        (&json!(1), z["closed"].clone())
    );
    assert_eq!((&z["terminal_name"], &z["expected_minor"]), (&json!("Window 2"), &json!(5_000 + price)));
    assert_eq!((&z["closed"]["z_number"], &z["closed"]["variance_minor"]), (&json!(1), &json!(0)));
    assert_eq!(boss.post(CLOSE, counted).await.ok()["closed"], z["closed"], "again: the same");
    assert_eq!(boss.get(CURRENT).await.ok()["shift_id"], own["shift_id"], "the other drawer is as it was");
    let log = "select count(*) from audit where verb = 'shift_close' and actor = 'Bob at Window 3'
               and detail like 'Z 1 of Window 2, %'";
    assert_eq!(scene.count(log).await, 1);
    boss.post(CLOSE, json!({ "counted": cents(700) })).await.ok();
    boss.post("/api/box-office/day-lock", json!({ "date": shift["business_day"] })).await.ok();
    scene.close().await;
}

/// Cash tenders that name a closed shift whose Z does not count them.
const NOT_IN_THEIR_Z: &str = "select count(*) from shift h where h.closed_at is not null
    and (h.report->'cash_sales'->>'count')::int <> (select count(*) from tender t where t.shift_id = h.id and t.kind = 'cash')";

/// A closing that adds up and writes without taking the shift's row: the control.
async fn naive_close(scene: &Scene, shift: Uuid, between: impl AsyncFnOnce()) {
    let mut tx = scene.database.pool().begin().await.unwrap();
    let (count, sum): (i64, i64) = sqlx::query_as(
        "select count(*), coalesce(sum(amount_minor), 0)::bigint from tender where shift_id = $1 and kind = 'cash'",
    )
    .bind(shift)
    .fetch_one(&mut *tx)
    .await
    .unwrap();
    between().await;
    sqlx::query(
        "update shift set closed_by = opened_by, closed_at = db_clock(), z_number = 1, expected_minor = $2, counted_minor = $2,
             report = jsonb_build_object('expected_minor', $2, 'cash_sales', jsonb_build_object('count', $3::bigint))
         where id = $1",
    )
    .bind(shift)
    .bind(sum)
    .bind(count)
    .execute(&mut *tx)
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_sale_beside_a_closing_is_in_the_z_or_it_is_refused() {
    let scene = Scene::without_webhooks(Rows::new(4, 20), |_| {}).await;
    let desk = Desk::open(&scene, "Window 2").await;
    let till = Arc::new(desk.sign_in(&scene, "Ada", "clerk").await);
    let event = scene.event;

    // The control: without the row's lock a sale gets in between, and is in no Z.
    let naive = Desk::open(&scene, "Window 9").await.sign_in(&scene, "Zoe", "clerk").await;
    let shift: Uuid = open(&naive, 0).await["shift_id"].as_str().unwrap().parse().unwrap();
    naive_close(&scene, shift, async || {
        sell(&naive, event, 79).await.ok();
    })
    .await;
    assert_eq!(scene.count(NOT_IN_THEIR_Z).await, 1, "the race is there to be won");
    let found = fullhouse::watch::check(scene.database.pool()).await.unwrap();
    assert!(found.iter().any(|violation| violation.invariant == "shift_mismatch"), "{found:?}");
    let mended = sqlx::query("update tender set shift_id = null where shift_id = $1").bind(shift);
    mended.execute(scene.database.pool()).await.unwrap();

    let (mut sold, mut refused) = (0, 0);
    for seat in 0..30 {
        open(&till, 0).await;
        let held = till.hold(event, &[seat]).await.ok();
        let sale = {
            let till = Arc::clone(&till);
            tokio::spawn(async move { till.sell_for_cash(&held, 10_000).await })
        };
        let closing = {
            let till = Arc::clone(&till);
            let body = json!({ "counted": [], "explanation": "not counted in a race" });
            tokio::spawn(async move {
                for _ in 0..seat % 5 {
                    tokio::task::yield_now().await;
                }
                till.post(CLOSE, body).await.ok()
            })
        };
        let (sale, z) = (sale.await.unwrap(), closing.await.unwrap());
        let in_z = z["cash_sales"]["count"].as_i64().unwrap();
        if sale.status.is_success() {
            assert_eq!(in_z, 1, "seat {seat}");
            sold += 1;
        } else {
            assert_eq!((sale.code(), in_z), ("shift_required", 0), "seat {seat}");
            refused += 1;
        }
    }
    assert_eq!(sold + refused, 30);
    assert_eq!(scene.count(NOT_IN_THEIR_Z).await, 0);
    let numbers: Vec<i64> = sqlx::query_scalar(
        "select z_number from shift h join terminal t on t.id = h.terminal_id where t.name = 'Window 2' order by 1",
    )
    .fetch_all(scene.database.pool())
    .await
    .unwrap();
    assert_eq!(numbers, (1..=30).collect::<Vec<i64>>(), "without a gap");
    scene.close().await;
}

#[tokio::test]
async fn what_is_sold_without_a_network_belongs_to_the_shift_in_which_its_seats_were_leased() {
    let scene = Scene::without_webhooks(Rows::new(2, 20), |_| {}).await;
    let desk = Desk::open(&scene, "Window 2").await;
    let till = desk.sign_in(&scene, "Ada", "clerk").await;
    let ask = json!({ "event_id": scene.event, "seats": [0, 1], "sells_for_s": 60 });
    let leases = "/api/box-office/leases";
    assert_eq!(till.post(leases, ask.clone()).await.code(), "shift_required", "where would its cash belong?");
    assert_eq!(scene.status(0).await, 0, "nothing was leased");
    open(&till, 5_000).await;
    let lease = till.post(leases, ask).await.ok();
    let early = till.post(CLOSE, json!({ "counted": cents(5_000) })).await;
    assert_eq!((early.code(), &early.body["leases"]), ("leases_open", &json!(1)));
    // The clerk has gone home, and the till settles by itself.
    let alone = desk.without_staff();
    let ada: Uuid = sqlx::query_scalar("select id from staff").fetch_one(scene.database.pool()).await.unwrap();
    let sale = super::leases::sale(&lease, 1, &[0]).replace(&Uuid::nil().to_string(), &ada.to_string());
    super::leases::settle(&alone, &[(1, &sale)]).await.ok();
    super::leases::close(&alone, &lease, 1, &[0]).await.ok();
    let logged: Vec<(String, String)> =
        sqlx::query_as("select verb, actor from audit where verb like 'sale%' or verb like 'lease%' order by id")
            .fetch_all(scene.database.pool())
            .await
            .unwrap();
    let by = |verb: &str, actor: &str| (verb.to_owned(), actor.to_owned());
    assert_eq!(
        logged,
        [
            by("lease_grant", "Ada at Window 2"),
            by("sale_cash", "Ada at Window 2"),
            by("lease_close", "terminal Window 2"),
        ],
        "who sold it is in the log, whoever is there when it is told"
    );
    assert_eq!(scene.count("select count(*) from tender where staff_id is not null").await, 1);
    let z = till.post(CLOSE, json!({ "counted": cents(5_000 + super::leases::PRICE) })).await.ok();
    assert_eq!(z["cash_sales"], json!({ "count": 1, "amount_minor": super::leases::PRICE }));
    assert_eq!(z["closed"]["variance_minor"], 0);
    scene.close().await;
}

#[tokio::test]
async fn printer_and_scanner_are_tried_or_skipped_with_a_reason_and_the_report_says_which() {
    const CHECKS: &str = "/api/box-office/shifts/current/checks";
    let scene = Scene::without_webhooks(Rows::new(1, 10), |_| {}).await;
    let desk = Desk::open(&scene, "Window 2").await;
    let till = desk.sign_in(&scene, "Ada", "clerk").await;
    let works = json!({ "what": "printer" });
    assert_eq!(till.post(CHECKS, works.clone()).await.code(), "shift_required");
    assert_eq!(open(&till, 0).await["checks"], json!([]), "nothing was tried yet");

    let printed = till.post(CHECKS, works.clone()).await.ok()["checks"].clone();
    assert_eq!((&printed[0]["what"], &printed[0]["by"]), (&json!("printer"), &json!("Ada")));
    assert!(printed[0]["skipped"].is_null() && printed[0]["at"].is_string(), "{printed}");
    scene.clock.advance(TimeDelta::seconds(60)).await;
    let again = till.post(CHECKS, works).await.ok()["checks"].clone();
    assert_eq!(again, printed, "the same word again is the same word");

    let skipped = |why: &str| json!({ "what": "scanner", "skipped": why });
    till.post(CHECKS, skipped("its cable is broken")).await.ok();
    let x = till.post(CHECKS, json!({ "what": "scanner" })).await.ok();
    assert!(x["checks"][1]["skipped"].is_null(), "another one was found: the last word counts");
    till.post(CHECKS, skipped("it broke as well")).await.ok();
    for (wrong, code) in [
        (skipped(""), "bad_request"),
        (skipped(&"x".repeat(501)), "bad_request"),
        (json!({ "what": "drawer" }), "json_invalid"),
    ] {
        assert_eq!(till.post(CHECKS, wrong.clone()).await.code(), code, "{wrong}");
    }
    let log: Vec<(String, String, String)> =
        sqlx::query_as("select detail, reason, actor from audit where verb = 'shift_check' order by id")
            .fetch_all(scene.database.pool())
            .await
            .unwrap();
    let said: Vec<(&str, &str)> = log.iter().map(|(detail, reason, _)| (&**detail, &**reason)).collect();
    assert_eq!(
        said,
        [
            ("a test page was printed", "it works"),
            ("the test page was not scanned", "its cable is broken"),
            ("the test page was scanned", "it works"),
            ("the test page was not scanned", "it broke as well"),
        ]
    );
    assert!(log.iter().all(|(_, _, actor)| actor.contains("Ada")), "{log:?}");

    let z = till.post(CLOSE, json!({ "counted": [] })).await.ok();
    let what: Vec<&Value> = z["checks"].as_array().unwrap().iter().map(|check| &check["skipped"]).collect();
    assert_eq!(what, [&Value::Null, &json!("it broke as well")]);
    let kept = till.get(&format!("{SHIFTS}/{}", z["shift_id"].as_str().unwrap())).await.ok();
    assert_eq!(kept["checks"], z["checks"], "a Z says what it said");
    assert_eq!(till.post(CHECKS, json!({ "what": "printer" })).await.code(), "shift_required");
    scene.close().await;
}

/// A Z that was kept before there were checks is read as one in which nothing was tried.
#[test]
fn a_report_of_an_earlier_version_has_no_checks() {
    let report = json!({
        "shift_id": Uuid::nil(), "terminal_id": Uuid::nil(), "terminal_name": "Window 2", "business_day": "2026-11-30",
        "currency": "EUR", "opened_at": "2026-11-30T08:00:00Z", "opened_by": "Ada", "float_minor": 0,
        "cash_sales": { "count": 0, "amount_minor": 0 }, "cash_back": { "count": 0, "amount_minor": 0 },
        "pay_ins": { "count": 0, "amount_minor": 0 }, "pay_outs": { "count": 0, "amount_minor": 0 },
        "drops": { "count": 0, "amount_minor": 0 }, "expected_minor": 0, "tenders": [], "moves": [], "closed": null,
        "now": "2026-11-30T08:00:00Z",
    });
    let read: fullhouse_protocol::shift::ShiftReport = serde_json::from_value(report).unwrap();
    assert!(read.checks.is_empty());
}
