//! Coming in: calls, passes, what holds ask of them, and what operators turn.

use chrono::TimeDelta;
use fullhouse::admission::calling;
use fullhouse_tests::{
    eventually,
    fan::Fan,
    hub::Hub,
    line::{Line, enter, hold, inside, join, look, mine, quick, renew, second_device},
    nats::Nats,
    provider::{CARD, Provider, key, until},
    rows::Rows,
    till::Till,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Ten may be inside. The second ten are called, and nobody of them comes: the last ten get in all the same.
#[tokio::test]
async fn who_is_called_and_does_not_come_holds_nobody_up() {
    let line = Line::open().await;
    let people = line.joined(30).await;
    assert_eq!(line.opens().await, 10);
    let order = line.in_order(&people).await;
    for fan in &order[..10] {
        inside(fan, line.event).await;
    }
    assert_eq!(line.look().await, 0, "as many are inside as may be");
    for fan in &order[..10] {
        let go = fan.request(Method::DELETE, &format!("/api/events/{}/queue/pass", line.event));
        fan.send(go).await.ok();
    }
    line.clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(line.look().await, 10);
    line.clock.advance(TimeDelta::seconds(29)).await;
    assert_eq!(line.look().await, 0, "they are waited for");
    line.clock.advance(TimeDelta::seconds(2)).await;
    assert_eq!(line.look().await, 10, "and then no longer");
    for fan in &order[20..] {
        inside(fan, line.event).await;
    }
    line.close().await;
}

/// The sale of an event that was moved ends later: whoever still stands in its line is called.
#[tokio::test]
async fn a_line_that_was_over_goes_on_when_its_sale_ends_later() {
    let line = Line::open().await;
    line.joined(3).await;
    let parts = line.hub.parts();
    let stop = tokio_util::sync::CancellationToken::new();
    let looks = calling::run(parts.config.admission.clone(), parts.pool.clone(), parts.room.clone(), stop.clone());
    let looks = tokio::spawn(looks);
    line.clock.advance(TimeDelta::days(31)).await;
    let reaches = async |what: &str, sql: &str| {
        eventually(what, || async { (line.count(sql).await == 1).then_some(()) }).await;
    };
    reaches("the line is over", "select count(*) from line where shown_state = 'over'").await;
    assert_eq!(line.count("select called_through from line").await, 0, "nobody looked at it while its sale was open");
    line.run("update event set off_sale_at = db_clock() + interval '1 day'").await;
    reaches("they are called", "select count(*) from line where called_through = 3").await;
    stop.cancel();
    looks.await.unwrap();
    line.close().await;
}

/// They were called at a time that is still to come: nobody waits for it to come once more.
#[tokio::test]
async fn a_clock_that_is_set_back_keeps_nobody_waiting_for_those_who_did_not_come() {
    let line = Line::open().await;
    line.joined(20).await;
    line.opens().await;
    line.clock.advance(TimeDelta::hours(2)).await;
    assert_eq!(line.look().await, 10, "nobody of the first ten came");
    line.clock.advance(TimeDelta::hours(-1)).await;
    line.look().await;
    line.joined(5).await;
    line.clock.advance(TimeDelta::seconds(5)).await;
    assert_eq!(line.look().await, 5);
    line.close().await;
}

#[tokio::test]
async fn who_comes_late_is_let_in_at_once_within_the_grace_and_lapses_after_it() {
    let line = Line::open().await;
    let people = line.joined(12).await;
    line.opens().await;
    let order = line.in_order(&people).await;
    let not_yet = enter(&order[11], line.event).await;
    assert_eq!((not_yet.code(), &not_yet.body["place"]), ("line_not_called", &json!(11)));
    line.clock.advance(TimeDelta::seconds(599)).await;
    inside(&order[0], line.event).await;
    assert_eq!(mine(&order[1], line.event).await.ok()["state"], "called");
    line.clock.advance(TimeDelta::seconds(2)).await;
    assert_eq!(mine(&order[1], line.event).await.ok()["state"], "lapsed");
    assert_eq!(enter(&order[1], line.event).await.code(), "entry_lapsed");
    assert_eq!(enter(&order[1], line.event).await.code(), "entry_none");
    assert_eq!(join(&order[1], line.event).await.ok()["number"], 12, "at the end");
    // Joining tells the same: an entry whose time has gone makes room for another.
    assert_eq!(join(&order[2], line.event).await.ok()["number"], 13);
    line.close().await;
}

#[tokio::test]
async fn each_bad_pass_has_its_own_code_and_takes_no_seat() {
    let line = Line::open().await;
    let people = line.joined(3).await;
    line.opens().await;
    let (me, other) = (&people[0], &people[1]);
    let (mine, theirs) = (inside(me, line.event).await, inside(other, line.event).await);
    assert_eq!(inside(me, line.event).await, mine, "asked again: the same");
    let refused = |pass: Option<&str>, fan: &Fan| {
        let (fan, pass, event) = (fan.clone(), pass.map(str::to_owned), line.event);
        async move { hold(&fan, event, &[1], pass.as_deref()).await.code().to_owned() }
    };
    assert_eq!(refused(None, me).await, "pass_missing");
    assert_eq!(refused(Some("nonsense"), me).await, "pass_invalid");
    let altered = format!("{}{}", &mine[..60], if &mine[60..61] == "A" { "B" } else { "A" }) + &mine[61..];
    assert_eq!(refused(Some(&altered), me).await, "pass_invalid");
    assert_eq!(refused(Some(&theirs), me).await, "pass_foreign");
    let ticket = fullhouse_tests::line::mine(me, line.event).await.ok()["ticket"].as_str().unwrap().to_owned();
    assert_eq!(refused(Some(&ticket), me).await, "pass_invalid", "a place-ticket is no pass");
    hold(me, line.event, &[1], Some(&mine)).await.ok();
    // On another device: the pass goes along, and the former is told.
    let phone = second_device(&line, me).await;
    assert_eq!(hold(&phone, line.event, &[2], Some(&mine)).await.code(), "pass_foreign", "shared between sessions");
    assert_eq!(fullhouse_tests::line::mine(&phone, line.event).await.ok()["inside_elsewhere"], true);
    let moved = inside(&phone, line.event).await;
    assert_eq!(hold(me, line.event, &[2], Some(&mine)).await.code(), "pass_moved");
    assert_eq!(renew(me, line.event, &mine).await.code(), "pass_moved");
    hold(&phone, line.event, &[2], Some(&moved)).await.ok();
    line.clock.advance(TimeDelta::seconds(601)).await;
    assert_eq!(hold(&phone, line.event, &[3], Some(&moved)).await.code(), "pass_expired");
    let go = other.request(Method::DELETE, &format!("/api/events/{}/queue/pass", line.event));
    assert_eq!(other.send(go).await.status, StatusCode::NO_CONTENT);
    assert_eq!(hold(other, line.event, &[4], Some(&theirs)).await.code(), "pass_over");
    assert_eq!(line.count("select count(*) from event_seat where status = 1").await, 2);
    line.close().await;
}

#[tokio::test]
async fn a_pass_is_renewed_within_its_most() {
    let line = Line::open().await;
    let people = line.joined(1).await;
    line.opens().await;
    let first = enter(&people[0], line.event).await.ok();
    let pass = first["pass"].as_str().unwrap();
    for _ in 0..4 {
        line.clock.advance(TimeDelta::seconds(420)).await;
        renew(&people[0], line.event, pass).await.ok();
    }
    assert_eq!(renew(&people[0], line.event, pass).await.ok()["expires_at"], first["renewable_until"]);
    line.clock.advance(TimeDelta::seconds(121)).await;
    assert_eq!(renew(&people[0], line.event, pass).await.code(), "pass_expired");
    line.close().await;
}

/// Somebody lets their pass run out and comes in again within the grace, again and again.
#[tokio::test]
async fn passes_of_one_call_end_together_however_often_one_comes_in() {
    let line = Line::open().await;
    line.run("update line set grace_s = 3000, pass_s = 100, pass_max_s = 1000").await;
    let people = line.joined(1).await;
    line.opens().await;
    let first = enter(&people[0], line.event).await.ok();
    let grace_until = mine(&people[0], line.event).await.ok()["grace_until"].clone();
    let time = |text: &Value| text.as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    assert!(time(&first["renewable_until"]) < time(&grace_until));
    let mut last = first;
    while mine(&people[0], line.event).await.ok()["state"] != "lapsed" {
        line.clock.advance(TimeDelta::seconds(101)).await;
        let again = enter(&people[0], line.event).await;
        if again.status.is_success() {
            last = again.ok();
            assert_eq!(time(&last["renewable_until"]), time(&grace_until), "within the grace, and no longer");
        } else {
            assert_eq!(again.code(), "entry_lapsed");
            break;
        }
    }
    assert!(time(&last["expires_at"]) <= time(&grace_until));
    line.close().await;
}

/// Ten may be inside, and nobody comes when called: the next are called each `show_s`. Then all of them come at once,
/// within their grace: at most those whom the grace still covers, which is so many times ten as `show_s` goes into it.
#[tokio::test]
async fn late_comers_are_let_in_beyond_what_may_be_inside_up_to_those_called_within_the_grace() {
    let line = Line::open().await;
    line.run("update line set show_s = 30, grace_s = 120").await;
    let people = line.joined(80).await;
    line.opens().await;
    for _ in 0..6 {
        line.clock.advance(TimeDelta::seconds(31)).await;
        line.look().await;
    }
    let called = line.count("select called_through from line").await;
    assert_eq!(called, 70);
    let mut came = 0;
    for fan in line.in_order(&people).await.iter().take(called as usize) {
        came += i64::from(enter(fan, line.event).await.status.is_success());
    }
    assert!(came > 10, "the grace is worth more than the limit");
    assert!(came <= 10 * (1 + 120 / 30), "{came} inside");
    line.look().await;
    let shown = line.shown().await;
    assert_eq!((shown["inside"].as_i64(), line.count("select called_through from line").await), (Some(came), called));
    line.clock.advance(TimeDelta::seconds(31)).await;
    assert_eq!(line.look().await, 0, "nobody else, until there are fewer than ten");
    line.close().await;
}

/// A live hold is the right to pay, and the pass ends with the order.
#[tokio::test]
async fn a_hold_pays_though_its_pass_is_over_and_the_pass_ends_with_the_order() {
    let provider = Provider::start().await;
    let mut settings = None;
    let line = Line::open_with(Rows::new(2, 10), None, |config| {
        provider.configure(config);
        settings = Some(config.clone());
    })
    .await;
    let Line { database, clock, hub, event } = line;
    hub.stop().await;
    // Payments are driven by workers, so this hub has them; its tick does the calling.
    let hub = Hub::start(settings.unwrap()).await;
    provider.webhooks_to(&hub.url()).await;
    let line = Line { database, clock, hub, event };
    let people = line.joined(2).await;
    // Not the clock but the event moves here: the provider's clock is the host's.
    line.run("update line set closes_at = db_clock()").await;
    line.run("update event set on_sale_at = db_clock()").await;
    called(&line).await;
    let pass = inside(&people[0], event).await;
    let held = hold(&people[0], event, &[1, 2], Some(&pass)).await.ok()["hold"].clone();
    line.run("update pass set ended_at = db_clock(), ended_why = 'revoked'").await;
    assert_eq!(hold(&people[0], event, &[3], Some(&pass)).await.code(), "pass_over");
    let order = people[0].checkout(held["id"].as_str().unwrap()).await.ok()["order"].clone();
    people[0].pay(&order, &key(), CARD).await.ok();
    until(&people[0], &order, &["captured"]).await;
    assert_eq!(mine(&people[0], event).await.code(), "entry_none", "the turn ends with the order, pass or no pass");

    let pass = inside(&people[1], event).await;
    let held = hold(&people[1], event, &[11], Some(&pass)).await.ok()["hold"].clone();
    let order = people[1].checkout(held["id"].as_str().unwrap()).await.ok()["order"].clone();
    people[1].pay(&order, &key(), CARD).await.ok();
    until(&people[1], &order, &["captured"]).await;
    assert_eq!(hold(&people[1], event, &[12], Some(&pass)).await.code(), "pass_over");
    assert_eq!(line.count("select count(*) from pass where ended_why = 'complete'").await, 1);
    assert_eq!(mine(&people[1], event).await.code(), "entry_none", "joining again is at the end");
    line.close().await;
}

async fn called(line: &Line) {
    eventually("the first are called", || async {
        (line.count("select called_through from line").await > 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_paused_line_a_closed_gate_and_an_empty_hall_call_nobody() {
    let line = Line::open_with(Rows::new(1, 4), None, |_| {}).await;
    line.run("update line set inside_max = 2").await;
    let people = line.joined(8).await;
    let operator = line.people(1).await.remove(0);
    line.run(&format!("update account set role = 'operator' where email = '{}'", operator.email)).await;
    let change = |body: Value| {
        let (operator, event) = (operator.clone(), line.event);
        async move {
            let request = operator.request(Method::PATCH, &format!("/api/staff/events/{event}/queue")).json(&body);
            operator.send(request).await
        }
    };
    let pause =
        json!({ "reason": "a fault", "paused": true, "message": { "default": "Back soon", "ja": "お待ちください" } });
    change(pause).await.ok();
    assert_eq!(line.opens().await, 0);
    let shown = line.shown().await;
    assert_eq!((&shown["state"], &shown["message"]["default"]), (&json!("paused"), &json!("Back soon")));
    change(json!({ "reason": "mended", "paused": false, "message": null })).await.ok();
    line.run("insert into checkout_gate (reason, by_person, closed_at, closed_by) values ('paused', true, db_clock(), 'a test')").await;
    line.clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(line.look().await, 0, "payments are stopped");
    line.run("update checkout_gate set reopened_at = db_clock(), reopened_by = 'a test'").await;
    line.clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(line.look().await, 2);
    // A pause costs nobody their grace.
    change(json!({ "reason": "again", "paused": true })).await.ok();
    line.clock.advance(TimeDelta::seconds(900)).await;
    let first = line.in_order(&people).await.remove(0);
    assert_eq!(enter(&first, line.event).await.code(), "line_paused");
    change(json!({ "reason": "mended", "paused": false })).await.ok();
    inside(&first, line.event).await;
    // Nothing is left.
    line.run("update event_seat set status = 3").await;
    line.clock.advance(TimeDelta::seconds(60)).await;
    assert_eq!(line.look().await, 0);
    let shown = line.shown().await;
    assert_eq!((&shown["state"], &shown["seats_left"]), (&json!("sold_out"), &json!(0)));
    assert!(shown["sold_out_at"].is_string());
    line.run("update event_seat set status = 0").await;
    line.clock.advance(TimeDelta::seconds(1)).await;
    assert!(line.look().await > 0, "more came");
    let log = operator.get(&format!("/api/staff/events/{}/queue/changes", line.event)).await.ok();
    let (theirs, ours): (Vec<&Value>, Vec<&Value>) =
        log["changes"].as_array().unwrap().iter().partition(|c| c["actor"] == "controller");
    assert!(theirs.iter().any(|c| c["what"] == "gate_closed"), "the controller says why too: {theirs:?}");
    let whats: Vec<&str> = ours.iter().map(|c| c["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["paused", "paused", "message", "paused", "message", "paused", "opened"]);
    assert!(ours[0]["actor"].as_str().unwrap().contains(&operator.email));
    assert_eq!(people[0].get(&format!("/api/staff/events/{}/queue", line.event)).await.code(), "forbidden");
    line.close().await;
}

#[tokio::test]
async fn the_rate_is_kept_to_and_bounds_are() {
    let line = Line::open().await;
    line.joined(40).await;
    line.run("update line set rate_fixed = 120, inside_max = 1000").await;
    line.clock.freeze_at(line.clock.now().await + TimeDelta::hours(1)).await;
    let mut called = line.look().await;
    for _ in 0..5 {
        line.clock.advance(TimeDelta::seconds(1)).await;
        called += line.look().await;
    }
    assert_eq!(called, 12, "two a second, the second before the first look included");
    line.clock.advance(TimeDelta::seconds(600)).await;
    assert_eq!(line.look().await, 10, "ten minutes without a look are not made up for");
    assert_eq!(line.shown().await["called_last_minute"], 10);
    line.close().await;
}

#[tokio::test]
async fn tills_pass_by_role_and_it_is_logged() {
    let line = Line::open().await;
    let till = Till::enrol(&line.database, &line.hub.url(), "Window 1").await;
    line.opens().await;
    let body = json!({ "event_id": line.event, "seats": [5] });
    till.post_once("/api/box-office/holds", &key(), body).await.ok();
    let actor: String = sqlx::query_scalar("select actor from line_change where what = 'passed_by_role'")
        .fetch_one(line.database.pool())
        .await
        .unwrap();
    assert_eq!(actor, "terminal Window 1");
    let again = key();
    for _ in 0..2 {
        let body = json!({ "event_id": line.event, "seats": [6] });
        till.post_once("/api/box-office/holds", &again, body).await.ok();
    }
    let logged = "select count(*) from line_change where what = 'passed_by_role'";
    assert_eq!(line.count(logged).await, 2, "an answer that is given again is no second hold");
    // The log and the seats are one transaction: where the one can't be written, the other is not.
    line.run("alter table line_change add constraint none_by_role check (what <> 'passed_by_role') not valid").await;
    let body = json!({ "event_id": line.event, "seats": [7] });
    let failed = till.post_once("/api/box-office/holds", &key(), body).await;
    assert!(failed.status.is_server_error(), "{}", failed.status);
    assert_eq!(line.count("select count(*) from event_seat where seat_no = 7 and status = 0").await, 1);
    assert_eq!(line.count(logged).await, 2);
    line.close().await;
}

/// Payments are stopped, so nobody of the line is called. Tills sell past it for cash, and the log says which, by what role.
#[tokio::test]
async fn tills_pass_the_line_by_role_while_payments_are_stopped() {
    let line = Line::open().await;
    let fan = line.joined(1).await.remove(0);
    line.run("insert into checkout_gate (reason, by_person, closed_at, closed_by) values ('paused', true, db_clock(), 'a test')").await;
    assert_eq!(line.opens().await, 0);
    assert_eq!(hold(&fan, line.event, &[5], None).await.code(), "pass_missing");
    let counter = Till::enrol(&line.database, &line.hub.url(), "Window 1").await;
    let held = counter.hold(line.event, &[5]).await.ok();
    counter.sell_for_cash(&held, 100_000).await.ok();
    let kiosk = Till::enrol_as("kiosk", &line.database, &line.hub.url(), "Foyer").await;
    let held = kiosk.hold(line.event, &[6]).await.ok();
    assert_eq!(kiosk.sell_by_card(&held, &key(), "tmr_1").await.code(), "payment_gate_closed");
    let passed: Vec<(String, Value)> =
        sqlx::query_as("select actor, is_now from line_change where what = 'passed_by_role' order by id")
            .fetch_all(line.database.pool())
            .await
            .unwrap();
    assert_eq!(passed, [("terminal Window 1".into(), json!("counter")), ("terminal Foyer".into(), json!("kiosk"))]);
    assert_eq!(line.count("select count(*) from event_seat where status = 2").await, 1);
    line.close().await;
}

#[tokio::test]
async fn no_more_hold_or_pay_at_once_than_may() {
    let line = Line::open().await;
    line.run("update line set holds_live_max = 2, checkouts_live_max = 1").await;
    let people = line.joined(3).await;
    line.opens().await;
    let mut holds = Vec::new();
    for (seat, fan) in people.iter().enumerate().take(2) {
        let pass = inside(fan, line.event).await;
        let held = hold(fan, line.event, &[seat as i32], Some(&pass)).await.ok();
        holds.push(held["hold"]["id"].as_str().unwrap().to_owned());
    }
    let pass = inside(&people[2], line.event).await;
    let full = hold(&people[2], line.event, &[9], Some(&pass)).await;
    assert_eq!(full.code(), "event_full_of_holds");
    assert!(full.headers.contains_key("retry-after"));
    people[0].checkout(&holds[0]).await.ok();
    people[0].checkout(&holds[0]).await.ok();
    assert_eq!(people[1].checkout(&holds[1]).await.code(), "event_full_of_checkouts");
    people[0].release(&holds[0]).await.ok();
    people[1].checkout(&holds[1]).await.ok();
    hold(&people[2], line.event, &[9], Some(&pass)).await.ok();
    line.close().await;
}

/// Two hubs look at one line: together they call no more than one would, and one that is killed changes no place.
#[tokio::test]
async fn two_hubs_share_a_line_and_one_that_is_killed_changes_no_place() {
    let mut nats = Nats::start().await;
    let line = Line::open_with(Rows::new(4, 25), None, |config| config.nats.url = nats.url()).await;
    let mut config = line.database.config().await;
    quick(&mut config);
    config.nats.url = nats.url();
    let other = Hub::start_as(config, fullhouse_tests::line::BY_HAND).await;
    let people = line.people(40).await;
    // Joined at both at once.
    let joins = people.iter().enumerate().map(|(n, fan)| {
        let fan = if n % 2 == 0 { fan.clone() } else { fan.at(&other.url()) };
        async move { join(&fan, line.event).await.ok()["number"].as_i64().unwrap() }
    });
    let mut numbers = futures_util::future::join_all(joins).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    line.clock.advance(TimeDelta::hours(1)).await;
    let looks =
        futures_util::future::join_all((0..10).map(|n| look(if n % 2 == 0 { &line.hub } else { &other }, line.event)));
    assert_eq!(looks.await.into_iter().sum::<i64>(), 10, "as many as may be inside, once");
    let places = line.places(&people).await;
    // One dies in the middle of a look: its transaction ends with its connection.
    let mut tx = other.parts().pool.begin().await.unwrap();
    sqlx::query("select from line where event_id = $1 for update").bind(line.event).execute(&mut *tx).await.unwrap();
    sqlx::query("update line set called_through = 40 where event_id = $1")
        .bind(line.event)
        .execute(&mut *tx)
        .await
        .unwrap();
    drop(tx);
    other.stop().await;
    line.clock.advance(TimeDelta::seconds(31)).await;
    assert_eq!(line.look().await, 10, "nobody came, so the next are called");
    assert_eq!(line.places(&people).await, places);
    assert_eq!(line.count("select called_through from line").await, 20);
    line.close().await;
    nats.stop().await;
}
