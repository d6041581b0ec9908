//! Holding seats over the wire: what is granted, what is refused and why, and what nobody can break by asking.

use chrono::TimeDelta;
use fullhouse::serve::Roles;
use fullhouse_tests::{
    clock::Clock, database::Database, eventually, fan, hub::Hub, rows::Rows, scene::Scene, till::Till,
};
use serde_json::{Value, json};
use uuid::Uuid;

fn seats(hold: &Value) -> Vec<i64> {
    hold["hold"]["seats"].as_array().map(|s| s.iter().filter_map(Value::as_i64).collect()).unwrap_or_default()
}

fn id(hold: &Value) -> String {
    hold["hold"]["id"].as_str().expect("a hold").to_owned()
}

#[tokio::test]
async fn one_to_six_all_or_nothing_or_fewer() {
    let database = Database::new().await;
    let event = Rows::new(4, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 3).await;

    let first = fans[0].hold(event, &[3, 1, 2]).await.ok();
    assert_eq!(seats(&first), [1, 2, 3]);
    let lost = fans[1].hold(event, &[3, 4]).await;
    assert_eq!((lost.code(), lost.status.as_u16()), ("seats_unavailable", 409));
    assert_eq!(lost.body["lost"], json!([3]));
    let offers = lost.body["offers"].as_array().expect("offers");
    assert!(!offers.is_empty() && offers.iter().all(|o| o.as_array().is_some_and(|o| o.len() == 2)), "{offers:?}");
    assert_eq!(fans[1].my_hold(event).await.ok()["hold"], Value::Null, "nothing was taken");

    let fewer = fans[1].hold_with(event, json!({ "seats": [3, 4], "fewer_ok": true })).await.ok();
    assert_eq!((seats(&fewer), &fewer["not_held"]), (vec![4], &json!([3])));
    assert_eq!(fans[2].hold(event, &[10, 11, 12, 13, 14, 15, 16]).await.code(), "limit_reached");
    assert_eq!(seats(&fans[2].hold(event, &[10, 11, 12, 13, 14, 15]).await.ok()).len(), 6);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_own_hold_never_blocks_its_owner() {
    let database = Database::new().await;
    let event = Rows::new(4, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];

    let first = fan.hold(event, &[1, 2, 3, 4, 5, 6]).await.ok();
    // Back, reload, a second tab: the same six seats asked for again are still the same hold.
    let again = fan.hold(event, &[1, 2, 3, 4, 5, 6]).await.ok();
    assert_eq!(
        (id(&again), seats(&again), &again["hold"]["held_until"]),
        (id(&first), seats(&first), &first["hold"]["held_until"])
    );
    let mine = fan.my_hold(event).await.ok();
    assert_eq!(mine["limit"], json!({ "seat_limit": 6, "held": 6, "bought": 0, "left": 0 }));
    assert_eq!(fan.hold(event, &[7]).await.code(), "limit_reached");

    // Deselecting releases, and never shortens the rest.
    let rest = fan.release_seats(&id(&first), &[5, 6]).await.ok();
    assert_eq!((seats(&rest), &rest["hold"]["held_until"]), (vec![1, 2, 3, 4], &first["hold"]["held_until"]));
    let moved = fan.hold_with(event, json!({ "seats": [4, 9], "replace": true })).await.ok();
    assert_eq!((seats(&moved), &moved["hold"]["held_until"]), (vec![4, 9], &first["hold"]["held_until"]));
    assert_eq!(fan.release(&id(&first)).await.ok()["hold"], Value::Null);
    assert_eq!(fan.release(&id(&first)).await.ok()["hold"], Value::Null, "releasing twice is no error");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn two_tabs_and_many_orders_do_not_go_beyond_the_limit() {
    let database = Database::new().await;
    let event = Rows::new(10, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let (one, two) = (fan.hold(event, &[0, 1, 2, 3, 4, 5]), fan.hold(event, &[50, 51, 52, 53, 54, 55]));
    let (one, two) = tokio::join!(one, two);
    let granted = [&one, &two].into_iter().filter(|a| a.status.is_success()).count();
    assert_eq!(granted, 1, "{one:?} {two:?}");
    assert_eq!(fan.hold_with(event, json!({ "best": { "count": 200 } })).await.code(), "seats_too_many");

    // Bought seats count as well, at the counter too: the limit is the buyer's.
    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    let held = till.hold(event, &[80, 81, 82, 83, 84, 85]).await.ok();
    let sold = till.sell_for_cash(&held, 30_000).await.ok();
    assert_eq!((sold["order"]["state"].as_str(), sold["change_minor"].as_i64()), (Some("confirmed"), Some(3_000)));
    let more = till
        .post("/api/box-office/holds", json!({ "event_id": event, "buyer_id": held["buyer_id"], "seats": [86] }))
        .await;
    assert_eq!((more.code(), &more.body["bought"]), ("limit_reached", &json!(6)));
    assert!(till.hold(event, &[86]).await.status.is_success(), "the next customer is another buyer");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_retry_finds_the_first_answer_and_another_request_under_its_key_is_refused() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let path = format!("/api/events/{event}/hold");
    let key = Uuid::new_v4().to_string();
    // A double click: the same request four times at once.
    let ask = || fan.post_once(&path, &key, json!({ "seats": [1, 2] }));
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    let first = a.ok();
    for other in [b, c, d] {
        assert_eq!(other.ok(), first);
    }
    assert_eq!(fan.post_once(&path, &key, json!({ "seats": [3] })).await.code(), "idempotency_mismatch");
    fan.release(&id(&first)).await.ok();
    assert_eq!(ask().await.ok(), first, "found again, and nothing is taken again");
    assert_eq!(fan.my_hold(event).await.ok()["hold"], Value::Null);
    let none = fan.post(&path, json!({ "seats": [3] })).await;
    assert_eq!(none.code(), "idempotency_key_missing");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn best_together_is_what_is_held_and_what_is_bought() {
    let database = Database::new().await;
    let rows =
        Rows { flags: vec![(0, 1), (1, 2)], companions: vec![(1, 0)], single_seat_rule: true, ..Rows::new(3, 10) };
    let event = rows.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 8).await;
    let party = |n: usize, accessible: u32| {
        fans[n].hold_with(event, json!({ "best": { "count": 4, "accessible": accessible } }))
    };
    let first = party(0, 0).await.ok();
    let held = seats(&first);
    assert!(held.windows(2).all(|w| w[1] == w[0] + 1) && held[0] >= 2, "side by side, no accessible place: {held:?}");
    let wheelchair = party(1, 1).await.ok();
    assert!(seats(&wheelchair).starts_with(&[0, 1]), "place and companion: {wheelchair}");
    assert_eq!(fans[2].hold(event, &[2]).await.code(), "seats_unavailable");

    // One call each, all at once: whoever is granted has four that nobody else has.
    let all = futures_util::future::join_all((2..8).map(|n| party(n, 0))).await;
    let mut taken: Vec<i64> = all.iter().filter(|a| a.status.is_success()).flat_map(|a| seats(&a.body)).collect();
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!((taken.len(), count % 4), (count, 0));
    assert!(all.iter().filter(|a| !a.status.is_success()).all(|a| a.code() == "none_together"));

    // Exactly the shown block is bought.
    let order = fans[0].checkout(&id(&first)).await.ok();
    let bought: Vec<i64> =
        order["order"]["lines"].as_array().unwrap().iter().filter_map(|l| l["seat_no"].as_i64()).collect();
    assert_eq!(bought, held);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn single_seats_and_companions() {
    let database = Database::new().await;
    let rows =
        Rows { flags: vec![(5, 1), (6, 2)], companions: vec![(6, 5)], single_seat_rule: true, ..Rows::new(2, 7) };
    let event = rows.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 4).await;
    let refused = fans[0].hold(event, &[1, 3]).await;
    assert_eq!((refused.code(), &refused.body["singles"]), ("leaves_single_seat", &json!([0, 2, 4])));
    fans[0].hold(event, &[0, 1]).await.ok();
    fans[1].hold(event, &[2, 3]).await.ok(); // three are free, one is left: there is no other way
    assert_eq!(fans[2].hold(event, &[6]).await.code(), "companion_needs_accessible");
    fans[2].hold(event, &[5, 6]).await.ok();
    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    till.hold(event, &[8, 10]).await.ok(); // staff know what they do
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_window_the_pause_and_the_end_of_a_sale() {
    let (database, clock) = Database::with_clock().await;
    let rows = Rows { on_sale_in: TimeDelta::minutes(10), off_sale_in: TimeDelta::minutes(20), ..Rows::new(2, 10) };
    let event = rows.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 3).await;
    let early = fans[0].hold(event, &[1]).await;
    assert!(early.code() == "sale_not_open" && early.body["opens_at"].is_string());
    clock.advance(TimeDelta::minutes(17)).await;
    let held = fans[0].hold(event, &[1]).await.ok();
    set_state(&database, event, "paused").await;
    assert_eq!(fans[1].hold(event, &[2]).await.code(), "sale_paused");
    set_state(&database, event, "open").await;
    clock.advance(TimeDelta::minutes(4)).await;
    assert_eq!(fans[1].hold(event, &[2]).await.code(), "sale_closed");
    // A hold that was taken before the close may be paid until it runs out.
    fans[0].checkout(&id(&held)).await.ok();
    set_state(&database, event, "paused").await;
    fans[0].checkout(&id(&held)).await.ok();
    set_state(&database, event, "cancelled").await;
    assert_eq!(fans[0].checkout(&id(&held)).await.code(), "event_cancelled");
    hub.stop().await;
    database.finish().await;
}

async fn set_state(database: &Database, event: i64, state: &str) {
    sqlx::query("update event set sale_state = $2 where id = $1")
        .bind(event)
        .bind(state)
        .execute(database.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn taking_the_same_seats_again_and_again_spends_a_budget() {
    let (database, clock) = Database::with_clock().await;
    let event = Rows { churn_seats_max: 60, ..Rows::new(2, 10) }.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let mut granted = 0;
    for _ in 0..20 {
        let answer = fan.hold(event, &[0, 1, 2, 3, 4, 5]).await;
        if !answer.status.is_success() {
            assert_eq!((answer.code(), answer.status.as_u16()), ("churn_spent", 429));
            break;
        }
        granted += 1;
        // "Released" is true when it is said: the same buyer may take them at once.
        fan.release(&id(&answer.ok())).await.ok();
    }
    assert_eq!(granted, 10, "ten times six seats are sixty");
    clock.advance(TimeDelta::minutes(61)).await;
    fan.hold(event, &[0, 1, 2, 3, 4, 5]).await.ok();
    hub.stop().await;
    database.finish().await;
}

/// What many write who let a job give seats back: it takes a seat that is free by its status.
async fn naive_take(database: &Database, event: i64, seat: i32) -> bool {
    let taken = sqlx::query(
        "update event_seat set status = 1, hold_id = $3, held_until = db_clock() + interval '8 minutes'
         where event_id = $1 and seat_no = $2 and status = 0",
    )
    .bind(event)
    .bind(seat)
    .bind(Uuid::new_v4())
    .execute(database.pool())
    .await
    .unwrap();
    taken.rows_affected() == 1
}

/// The control: where only the job ends a hold, its absence leaves the seat with nobody, for ever.
async fn naive_expiry_sticks(database: &Database, clock: &Clock) {
    let event = Rows::new(1, 1).open(database.pool()).await;
    assert!(naive_take(database, event, 0).await);
    for _ in 0..3 {
        clock.advance(TimeDelta::hours(1)).await;
        assert!(!naive_take(database, event, 0).await, "the fault exists: its time is over, and nobody can have it");
    }
    let job = "update event_seat set status = 0, hold_id = null, held_until = null where held_until <= db_clock()";
    sqlx::query(job).execute(database.pool()).await.unwrap();
    assert!(naive_take(database, event, 0).await, "and only the job gives it back");
    sqlx::query("update event_seat set status = 0, hold_id = null, held_until = null")
        .execute(database.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn without_the_sweeper_an_expired_seat_is_sold_to_the_next_and_shown_free() {
    let (database, clock) = Database::with_clock().await;
    naive_expiry_sticks(&database, &clock).await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start_as(database.config().await, Roles { workers: false, ..Roles::ALL }).await;
    let fans = fan::many(&database, &hub.url(), 2).await;
    let mut map = fullhouse_tests::map::Map::open(&hub.url(), event).await;
    fans[0].hold(event, &[1, 2]).await.ok();
    map.until_seat(1, fullhouse_protocol::seat::Status::Held).await;
    assert_eq!(fans[1].hold(event, &[1]).await.code(), "seats_unavailable");
    clock.advance(TimeDelta::seconds(481)).await;
    map.until_seat(1, fullhouse_protocol::seat::Status::Available).await;
    assert_eq!(fans[0].my_hold(event).await.ok()["hold"], Value::Null);
    let next = fans[1].hold(event, &[1]).await.ok();
    map.until_seat(1, fullhouse_protocol::seat::Status::Held).await;
    fans[1].checkout(&id(&next)).await.ok();
    // And the former holder begins anew, with a deadline of their own.
    fans[0].hold(event, &[2]).await.ok();
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn what_became_of_a_hold_is_told_by_whoever_knows_it() {
    let scene = Scene::without_webhooks(Rows::new(2, 10), |_| {}).await;
    let event = scene.event;
    let ended = async |fan: &fan::Fan| fan.my_hold(event).await.ok()["ended"].clone();
    let why = |hold: &Value, why: &str, order: Option<&Value>| json!({ "hold_id": hold["hold"]["id"], "why": why, "order_id": order.map(|order| &order["id"]) });
    let fan = scene.fan().await;
    assert_eq!(ended(&fan).await, Value::Null, "there was none");
    let first = fan.hold(event, &[1]).await.ok();
    assert_eq!(ended(&fan).await, Value::Null, "there is one");
    fan.release(&id(&first)).await.ok();
    assert_eq!(ended(&fan).await, why(&first, "released", None));
    let second = fan.hold(event, &[1]).await.ok();
    scene.clock.advance(TimeDelta::seconds(481)).await;
    assert_eq!(ended(&fan).await, why(&second, "expired", None));
    let order = scene.bought(&fan, &[1]).await;
    let bought = ended(&fan).await;
    assert_eq!((&bought["why"], &bought["order_id"]), (&json!("bought"), &order["id"]));

    let other = scene.fan().await;
    let lost = other.hold(event, &[2]).await.ok();
    let call_off = format!("/api/staff/events/{event}/call-off");
    assert_eq!(scene.operator().await.post(&call_off, json!({ "reason": "the singer is ill" })).await.status, 202);
    assert_eq!(ended(&other).await, why(&lost, "called_off", None));
    assert_eq!(ended(&fan).await["why"], "bought", "what is paid is an order's to tell");
    scene.close().await;
}

#[tokio::test]
async fn seats_are_blocked_and_unblocked_with_a_reason_but_never_under_an_owner() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    let block = |verb: &str, seats: Value, reason: &str| {
        let body = json!({ "seats": seats, "reason": reason });
        let path = format!("/api/box-office/events/{event}/{verb}");
        let till = &till;
        async move { till.post(&path, body).await }
    };
    fan.hold(event, &[1]).await.ok();
    let refused = block("block", json!([0, 1, 2]), "camera").await;
    assert_eq!((refused.code(), &refused.body["seats"]), ("seats_in_use", &json!([1])));
    assert!(block("block", json!([2, 3]), "camera").await.status.is_success());
    assert_eq!(fan.hold(event, &[2]).await.code(), "seats_unavailable");
    assert!(block("unblock", json!([2]), "camera moved").await.status.is_success());
    fan.hold(event, &[2]).await.ok();
    assert_eq!(block("block", json!([3]), " ").await.code(), "bad_request");
    assert_eq!(block("block", json!([999]), "x").await.code(), "seat_unknown");
    let notes: Vec<(i32, String, String)> = sqlx::query_as("select seat_no, verb, actor from seat_note order by id")
        .fetch_all(database.pool())
        .await
        .unwrap();
    let note = |seat, verb: &str| (seat, verb.to_owned(), "terminal Counter 1".to_owned());
    assert_eq!(notes, [note(2, "block"), note(3, "block"), note(2, "unblock")]);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_kiosk_holds_by_a_fans_rules_and_does_nothing_of_the_houses() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let kiosk = Till::enrol_as("kiosk", &database, &hub.url(), "Kiosk 1").await;
    let held = kiosk.hold(event, &[1, 2]).await.ok();
    assert_eq!(kiosk.sell_for_cash(&held, 100_000).await.code(), "forbidden");
    let body = json!({ "seats": [5], "reason": "nobody is looking" });
    for verb in ["block", "unblock"] {
        let path = format!("/api/box-office/events/{event}/{verb}");
        assert_eq!(kiosk.post(&path, body.clone()).await.code(), "forbidden");
    }
    let counter = Till::enrol(&database, &hub.url(), "Counter 1").await;
    set_state(&database, event, "paused").await;
    assert_eq!(kiosk.hold(event, &[5]).await.code(), "sale_paused");
    counter.hold(event, &[5]).await.ok();
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_order_whose_time_ran_out_says_so() {
    let (database, clock) = Database::with_clock().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let held = fan.hold(event, &[1, 2]).await.ok();
    let order = fan.checkout(&id(&held)).await.ok()["order"]["id"].as_str().expect("an id").to_owned();
    clock.advance(TimeDelta::minutes(9)).await;
    let over = eventually("the sweeper has tidied it", || async {
        let order = fan.order(&order).await.ok()["order"].clone();
        (order["state"] == "cancelled").then_some(order)
    })
    .await;
    assert_eq!((&over["cancel_reason"], &over["attempt"]), (&json!("time_over"), &Value::Null));
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn bad_input_is_refused_with_a_code_and_changes_nothing() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let other = Rows::new(40, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 2).await;
    let theirs = fans[1].hold(event, &[7]).await.ok();
    let (fan, path) = (&fans[0], format!("/api/events/{event}/hold"));
    let body = |value: Value| fan.hold_with(event, value);
    for (value, code) in [
        (json!({ "seats": [9999] }), "seat_unknown"),
        (json!({ "seats": [-1] }), "seat_unknown"),
        (json!({ "seats": [399] }), "seat_unknown"), // a seat of the other event
        (json!({ "seats": [] }), "seats_empty"),
        (json!({ "seats": [1, 1] }), "seats_repeated"),
        (json!({ "seats": [0, 1, 2, 3, 4, 5, 6] }), "limit_reached"),
        (json!({ "seats": (0..51).collect::<Vec<i32>>() }), "seats_too_many"),
        (json!({ "seats": ["1"] }), "json_invalid"),
        (json!({ "seats": [1.5] }), "json_invalid"),
        (json!({ "seats": [99_999_999_999i64] }), "json_invalid"),
        (json!({ "seats": [1], "price": 1 }), "json_invalid"),
        (json!({ "best": { "count": 0 } }), "seats_empty"),
        (json!({ "best": { "count": 2, "accessible": 3 } }), "json_invalid"),
        (json!({ "best": { "count": 2, "section": "Nowhere" } }), "section_unknown"),
        (json!({}), "json_invalid"),
        (json!([]), "json_invalid"),
    ] {
        let answer = body(value.clone()).await;
        assert_eq!(answer.code(), code, "{value}");
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{value}");
    }
    assert_eq!(fan.hold(other + 1000, &[1]).await.code(), "event_unknown");
    let raw = |content: &str| {
        let request = fan.request(reqwest::Method::POST, &path).header("idempotency-key", "k");
        fan.send(request.header("content-type", "application/json").body(content.to_owned()))
    };
    assert_eq!(raw("{\"seats\": [1").await.code(), "json_invalid");
    assert_eq!(raw(&format!("{{\"seats\": [{}1]}}", "1,".repeat(500_000))).await.code(), "body_too_large");

    // Somebody else's hold and order are as unknown as ones that never were.
    assert_eq!(fan.release(&id(&theirs)).await.code(), "hold_unknown");
    assert_eq!(fan.release(&Uuid::new_v4().to_string()).await.code(), "hold_unknown");
    assert_eq!(fan.release("nonsense").await.code(), "hold_unknown");
    assert_eq!(fan.release_seats(&id(&theirs), &[7]).await.code(), "hold_unknown");
    assert_eq!(fan.checkout(&id(&theirs)).await.code(), "hold_unknown");
    let order = fans[1].checkout(&id(&theirs)).await.ok();
    assert_eq!(fan.order(order["order"]["id"].as_str().unwrap()).await.code(), "order_unknown");
    let stranger = fan::Fan::stranger(&hub.url());
    assert_eq!(stranger.hold(event, &[1]).await.code(), "not_signed_in");
    assert_eq!(
        fan::Fan::with_session(&hub.url(), "somebody-elses-token").hold(event, &[1]).await.code(),
        "not_signed_in"
    );

    let held: Vec<i32> = sqlx::query_scalar("select seat_no from event_seat where status <> 0")
        .fetch_all(database.pool())
        .await
        .unwrap();
    assert_eq!(held, [7], "nothing was changed");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn prices_are_the_servers_and_an_order_is_its_hold() {
    let database = Database::new().await;
    let event = Rows { fee_minor: 250, ..Rows::new(2, 10) }.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let held = fan.hold(event, &[1, 2]).await.ok();
    let first = fan.checkout(&id(&held)).await.ok();
    assert_eq!(
        (first["order"]["total_minor"].as_i64(), first["order"]["currency"].as_str()),
        (Some(9250), Some("EUR"))
    );
    assert_eq!(first["order"]["lines"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        fan.checkout(&id(&held)).await.ok()["order"]["id"],
        first["order"]["id"],
        "the same basket is the same order"
    );
    let path = format!("/api/holds/{}/checkout", id(&held));
    let choose = |body: Value| fan.post(&path, body);
    assert_eq!(
        choose(json!({ "tickets": [{ "seat_no": 1, "ticket_type": "free" }] })).await.code(),
        "ticket_type_unknown"
    );
    assert_eq!(choose(json!({ "tickets": [{ "seat_no": 5, "ticket_type": "adult" }] })).await.code(), "seat_unknown");
    assert_eq!(
        choose(json!({ "tickets": [{ "seat_no": 1, "ticket_type": "adult", "amount_minor": 1 }] })).await.code(),
        "json_invalid"
    );

    // Seats added or dropped make the priced order void; pricing again makes another.
    fan.release_seats(&id(&held), &[2]).await.ok();
    let stale = fan.order(first["order"]["id"].as_str().unwrap()).await.ok();
    assert_eq!((&stale["order"]["state"], &stale["order"]["cancel_reason"]), (&json!("cancelled"), &json!("replaced")));
    let second = fan.checkout(&id(&held)).await.ok();
    assert_eq!((&second["order"]["total_minor"], &second["order"]["cancel_reason"]), (&json!(4750), &Value::Null));
    fan.release(&id(&held)).await.ok();
    let given_back = fan.order(second["order"]["id"].as_str().unwrap()).await.ok();
    assert_eq!(given_back["order"]["cancel_reason"], "buyer");
    assert_eq!(fan.checkout(&id(&held)).await.code(), "hold_ended");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_order_that_costs_nothing_is_claimed_once() {
    let database = Database::new().await;
    let event = Rows { price_minor: 0, fee_minor: 250, ..Rows::new(2, 10) }.open(database.pool()).await;
    let paid = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 2).await;
    let held = fans[0].hold(event, &[1, 2]).await.ok();
    let order = fans[0].checkout(&id(&held)).await.ok()["order"].clone();
    assert_eq!(order["total_minor"], 0, "what is free has no fee");
    let path = format!("/api/orders/{}/claim", order["id"].as_str().unwrap());
    assert_eq!(fans[1].post(&path, json!({})).await.code(), "order_unknown");
    let claim = || fans[0].post(&path, json!({}));
    let (one, two) = tokio::join!(claim(), claim());
    for answer in [one.ok(), two.ok(), claim().await.ok()] {
        assert_eq!(
            (&answer["order"]["state"], answer["order"]["tickets"].as_array().map(Vec::len)),
            (&json!("confirmed"), Some(2))
        );
        assert_eq!(answer["order"]["tickets"][0]["state"], "valid");
    }
    let held = fans[0].hold(paid, &[1]).await.ok();
    let order = fans[0].checkout(&id(&held)).await.ok()["order"].clone();
    let refused = fans[0].post(&format!("/api/orders/{}/claim", order["id"].as_str().unwrap()), json!({})).await;
    assert_eq!(refused.code(), "tender_invalid", "what costs something is not free");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_till_that_asks_again_finds_its_customer_and_a_double_click_sells_once() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    let other = Till::enrol(&database, &hub.url(), "Counter 2").await;
    let body = json!({ "event_id": event, "best": { "count": 2 } });
    let ask = || till.post_once("/api/box-office/holds", "the-same-key", body.clone());
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    let held = one.ok();
    assert_eq!((two.ok(), three.ok()), (held.clone(), held.clone()));
    let next = other.post_once("/api/box-office/holds", "the-same-key", body.clone()).await.ok();
    assert_ne!(next["buyer_id"], held["buyer_id"], "another terminal's key is another one");
    assert_eq!(
        till.post_once("/api/box-office/holds", "the-same-key", json!({ "event_id": event, "seats": [9] }))
            .await
            .code(),
        "idempotency_mismatch"
    );

    let sell = || till.sell_for_cash(&held, 10_000);
    let (one, two, three) = tokio::join!(sell(), sell(), sell());
    let sold = one.ok();
    for again in [two.ok(), three.ok(), sell().await.ok()] {
        assert_eq!((&again["order"]["id"], &again["change_minor"]), (&sold["order"]["id"], &json!(1_000)));
    }
    assert_eq!(other.sell_for_cash(&next, i64::MAX).await.code(), "tender_invalid");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn no_text_reaches_the_database_that_it_cannot_store() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    assert_eq!(fan.get("/api/events/1%00").await.code(), "event_unknown");
    assert_eq!(fan.post("/api/session", json!({ "email": "a\u{0}", "password": "x" })).await.code(), "json_invalid");
    let block = json!({ "seats": [1], "reason": "a\u{0}" });
    assert_eq!(till.post(&format!("/api/box-office/events/{event}/block"), block).await.code(), "json_invalid");
    assert_eq!(fan.hold_with(event, json!([[1, 2]])).await.code(), "json_invalid");
    hub.stop().await;
    database.finish().await;
}
