//! Standing in line: joining, places, the draw, and what everybody is shown.

use std::{collections::BTreeSet, sync::Arc};

use chrono::TimeDelta;
use fullhouse::waiting_room::{drawing, open::PublicValue};
use fullhouse_tests::{
    eventually,
    fan::Fan,
    hub::Hub,
    line::{self, BY_HAND, Line, challenge, join, join_with, leave, look, mine, quick, solved},
    proxy::Proxy,
    rows::Rows,
};
use reqwest::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn numbers_are_dense_and_the_same_account_keeps_the_one_it_has() {
    let line = Line::open().await;
    let people = line.joined(5).await;
    for (number, fan) in people.iter().enumerate() {
        let entry = mine(fan, line.event).await.ok();
        assert_eq!(
            (entry["number"].as_u64(), &entry["place"], &entry["state"]),
            (Some(number as u64), &json!(null), &json!("waiting"))
        );
        let again = join(fan, line.event).await;
        assert_eq!(again.status, StatusCode::OK);
        let again = again.ok();
        assert_eq!((&again["number"], &again["ticket"]), (&entry["number"], &entry["ticket"]));
    }
    // Another device of the same account stands where the first does.
    let token = Uuid::new_v4().simple().to_string();
    sqlx::query(
        "insert into session (token_hash, account_id, expires_at)
         select sha256($1::bytea), id, db_clock() + interval '1 day' from account where email = $2",
    )
    .bind(token.as_bytes())
    .bind(&people[3].email)
    .execute(line.database.pool())
    .await
    .unwrap();
    let elsewhere = Fan::with_session(&line.hub.url(), &token);
    assert_eq!(join(&elsewhere, line.event).await.ok()["number"], 3);
    assert_eq!(line.shown().await["joined"], 5);
    line.close().await;
}

/// Fifty requests of one account at once. The control is an insert that looks before it leaps, and lives here.
#[tokio::test]
async fn an_account_has_one_entry_however_many_ask_at_once() {
    let line = Line::open().await;
    let fan = &line.people(1).await[0];
    let solutions = futures_util::future::join_all((0..50).map(|_| async { solved(challenge(fan, line.event).await) }));
    let solutions = solutions.await;
    let answers =
        futures_util::future::join_all(solutions.iter().map(|solution| join_with(fan, line.event, solution))).await;
    let numbers: BTreeSet<i64> = answers.into_iter().map(|a| a.ok()["number"].as_i64().unwrap()).collect();
    assert_eq!(numbers.len(), 1);
    assert_eq!(line.count("select count(*) from line_entry").await, 1);

    line.run("create table naive_entry (number bigserial, account text)").await;
    let both_have_looked = tokio::sync::Barrier::new(2);
    let naive = || async {
        let mut tx = line.database.pool().begin().await.unwrap();
        let found: i64 = sqlx::query_scalar("select count(*) from naive_entry").fetch_one(&mut *tx).await.unwrap();
        both_have_looked.wait().await;
        if found == 0 {
            sqlx::query("insert into naive_entry (account) values ('me')").execute(&mut *tx).await.unwrap();
        }
        tx.commit().await.unwrap();
    };
    futures_util::future::join_all((0..2).map(|_| naive())).await;
    assert!(line.count("select count(*) from naive_entry").await > 1, "the control shows the race");
    line.close().await;
}

#[tokio::test]
async fn only_a_checked_address_joins_and_the_link_in_the_mail_checks_it() {
    let line = Line::open_with(Rows::new(1, 10), None, |config| config.waiting_room.address_link_shown = true).await;
    let fan = Fan::sign_up(&line.hub.url()).await;
    assert_eq!(fan.get("/api/session").await.ok()["account"]["email_checked"], false);
    assert_eq!(join(&fan, line.event).await.code(), "address_unchecked");
    let asked = fan.post("/api/account/address-check", json!({})).await;
    assert_eq!(asked.status, StatusCode::ACCEPTED);
    let link = asked.ok()["link"].as_str().unwrap().to_owned();
    let code = link.split_once("code=").unwrap().1;
    assert_eq!(line.count("select count(*) from mail where kind = 'check_address' and state = 'queued'").await, 1);
    // Mail is opened on another device, where nobody is signed in.
    let reader = Fan::stranger(&line.hub.url());
    let confirm = |code: String| {
        let reader = reader.clone();
        async move { reader.post("/api/account/address-check/confirm", json!({ "code": code })).await }
    };
    assert_eq!(confirm("AAAA".to_owned()).await.code(), "address_code_invalid");
    let altered = format!("{}{}", if code.starts_with('A') { "B" } else { "A" }, &code[1..]);
    assert_eq!(confirm(altered).await.code(), "address_code_invalid");
    assert_eq!(confirm(code.to_owned()).await.ok()["account"]["email_checked"], true);
    assert_eq!(fan.get("/api/session").await.ok()["account"]["email_checked"], true);
    assert_eq!(join(&fan, line.event).await.status, StatusCode::CREATED);
    line.clock.advance(TimeDelta::hours(49)).await;
    assert_eq!(confirm(code.to_owned()).await.code(), "address_code_expired");
    line.close().await;
}

#[tokio::test]
async fn each_bad_challenge_has_its_own_code_and_changes_nothing() {
    let line = Line::open().await;
    let other_event = Rows { on_sale_in: TimeDelta::hours(1), ..Rows::new(1, 5) }.open(line.database.pool()).await;
    line::put_up(&line.database, &line.clock, other_event, None).await;
    let people = line.people(2).await;
    let (me, other) = (&people[0], &people[1]);
    let solution = solved(challenge(me, line.event).await);
    assert_eq!(join_with(other, line.event, &solution).await.code(), "challenge_foreign", "shared");
    assert_eq!(join_with(me, other_event, &solution).await.code(), "challenge_foreign", "another line's");
    assert_eq!(join_with(me, line.event, "bm9uc2Vuc2U=").await.code(), "challenge_invalid");
    let mut altered = solution.clone().into_bytes();
    let middle = altered.len() / 2;
    altered[middle] = if altered[middle] == b'A' { b'B' } else { b'A' };
    assert_eq!(join_with(me, line.event, &String::from_utf8(altered).unwrap()).await.code(), "challenge_invalid");
    assert_eq!(line.count("select count(*) from line_entry").await, 0);
    join_with(me, line.event, &solution).await.ok();
    leave(me, line.event).await;
    assert_eq!(join_with(me, line.event, &solution).await.code(), "challenge_used", "replayed to join again");
    assert_eq!(join(me, line.event).await.ok()["number"], 0, "with another one: where they stood");
    assert_eq!(
        Fan::stranger(&line.hub.url()).get(&format!("/api/events/{}/queue/challenge", line.event)).await.code(),
        "not_signed_in"
    );
    line.close().await;
}

#[tokio::test]
async fn wishes_are_kept_from_the_door_to_the_hall_on_any_device() {
    let line = Line::open().await;
    let fan = line.people(1).await.remove(0);
    let path = format!("/api/events/{}/queue/entry", line.event);
    let wish = |party: i64, accessible: i64| json!({ "party_size": party, "price_level": 1, "accessible": accessible, "companions": 1 });
    let join_wishing = async |wish: serde_json::Value| {
        let mut body = wish;
        body["challenge"] = json!(solved(challenge(&fan, line.event).await));
        fan.post(&path, body).await
    };
    assert_eq!(join_wishing(wish(1, 1)).await.code(), "preferences_invalid", "one person and a companion are two");
    let joined = join_wishing(wish(4, 1)).await;
    assert_eq!((joined.status, &joined.body["preferences"]), (StatusCode::CREATED, &wish(4, 1)));
    let change = async |wish: serde_json::Value| fan.send(fan.request(Method::PATCH, &path).json(&wish)).await;
    assert_eq!(change(wish(3, 0)).await.code(), "preferences_invalid", "a companion of nobody");
    change(wish(5, 2)).await.ok();
    line.opens().await;
    line::inside(&fan, line.event).await;
    let phone = line::second_device(&line, &fan).await;
    for device in [&fan, &phone] {
        let entry = mine(device, line.event).await.ok();
        assert_eq!((&entry["state"], &entry["preferences"]), (&json!("inside"), &wish(5, 2)));
    }
    assert_eq!(line.places(std::slice::from_ref(&fan)).await, [0], "wishes move nobody");
    line.close().await;
}

/// Somebody leaves and joins again, again and again, beside two who stay. The control is a verb that makes a new entry
/// each time: what it leaves behind is most of the draw.
#[tokio::test]
async fn who_leaves_and_joins_again_takes_their_entry_up_again_and_fills_no_draw() {
    let line = Line::open().await;
    let people = line.people(3).await;
    let turns = 8;
    let first = join(&people[0], line.event).await.ok();
    for fan in &people[1..] {
        join(fan, line.event).await.ok();
    }
    for _ in 0..turns {
        leave(&people[0], line.event).await;
        assert_eq!(mine(&people[0], line.event).await.code(), "entry_none");
        let again = join(&people[0], line.event).await;
        assert_eq!(again.status, StatusCode::OK);
        for same in ["number", "ticket", "entry_key", "joined_at"] {
            assert_eq!(again.body[same], first[same], "{same}");
        }
    }
    assert_eq!(line.opens().await, 3);
    assert_eq!(line.shown().await["drawn_count"], 3, "one entry a person, however often they came");
    assert_eq!(line.places(&people).await.into_iter().collect::<BTreeSet<_>>(), (0..3).collect());

    line.run("create table naive_entry (number bigserial, account int, left_at timestamptz)").await;
    for account in [1, 2, 0] {
        line.run(&format!("insert into naive_entry (account) values ({account})")).await;
    }
    for _ in 0..turns {
        line.run("update naive_entry set left_at = db_clock() where account = 0").await;
        line.run("insert into naive_entry (account) values (0)").await;
    }
    let dead = line.count("select count(*) from naive_entry where left_at is not null").await;
    assert_eq!((dead, line.count("select count(*) from naive_entry").await), (turns, 3 + turns), "the control");
    line.close().await;
}

/// After the draw too, until they are called: their place is theirs. From then on the end is where they stand.
#[tokio::test]
async fn a_place_that_was_left_is_had_back_until_it_is_called() {
    let line = Line::open().await;
    let people = line.joined(12).await;
    line.opens().await;
    let order = line.in_order(&people).await;
    let place = |fan: Fan| async move { mine(&fan, line.event).await.ok()["place"].as_i64() };
    leave(&order[11], line.event).await;
    join(&order[11], line.event).await.ok();
    assert_eq!(place(order[11].clone()).await, Some(11), "not called yet: it stood there all the time");
    leave(&order[0], line.event).await;
    join(&order[0], line.event).await.ok();
    assert_eq!(place(order[0].clone()).await, Some(12), "called, and left: behind everybody");
    leave(&order[0], line.event).await;
    join(&order[0], line.event).await.ok();
    assert_eq!(place(order[0].clone()).await, Some(12), "nobody has more than one there either");
    line.close().await;
}

/// One solution is good for one join, however many came after it; and there is an end to joining.
#[tokio::test]
async fn a_challenge_is_good_once_however_many_came_after_it_and_joining_has_an_end() {
    let line = Line::open_with(Rows::new(4, 25), None, |config| config.waiting_room.joins_account_max = 25).await;
    let fan = &line.people(1).await[0];
    let mut used = Vec::new();
    for turn in 0..25 {
        let solution = solved(challenge(fan, line.event).await);
        join_with(fan, line.event, &solution).await.ok();
        used.push(solution);
        // Half of them taken up again, half ended for good as after a call: the next join is another entry.
        line.run(&format!(
            "update line_entry set {} = db_clock() where left_at is null and lapsed_at is null",
            if turn % 2 == 0 { "left_at" } else { "lapsed_at" }
        ))
        .await;
    }
    assert_eq!(line.count("select count(*) from line_entry").await, 13);
    for solution in &used {
        assert_eq!(join_with(fan, line.event, solution).await.code(), "challenge_used");
    }
    assert_eq!(join(fan, line.event).await.code(), "joins_too_many");
    let other = &line.people(1).await[0];
    join(other, line.event).await.ok();
    line.close().await;
}

/// The commitment was there first; root, secret and places are what anybody computes from what is published.
#[tokio::test]
async fn a_draw_is_what_it_says_and_twice_the_same() {
    let line = Line::open().await;
    let committed = line.shown().await["draw"]["commitment"].clone();
    let people = line.joined(40).await;
    let keys: Vec<String> = futures_util::future::join_all(
        people.iter().map(|fan| async { mine(fan, line.event).await.ok()["entry_key"].as_str().unwrap().to_owned() }),
    )
    .await;
    line.opens().await;
    let late = line.joined(2).await;
    let places = line.places(&people).await;
    assert_eq!(places.iter().copied().collect::<BTreeSet<_>>(), (0..40).collect(), "each place once");
    assert_ne!(places, (0..40).collect::<Vec<_>>(), "shuffled (one in 40! that it is not)");
    assert_eq!(line.places(&late).await, [40, 41], "behind, in order of arrival");

    let shown = line.shown().await;
    assert_eq!((&shown["draw"]["commitment"], &shown["draw"]["kind"]), (&committed, &json!("committed")));
    let public = Fan::stranger(&line.hub.url());
    let leaves =
        reqwest::get(format!("{}/api/events/{}/queue/draws/1/leaves", line.hub.url(), line.event)).await.unwrap();
    let leaves = leaves.bytes().await.unwrap();
    let leaves: Vec<[u8; 32]> = leaves.chunks_exact(32).map(|l| l.try_into().unwrap()).collect();
    let hex = |text: &serde_json::Value| data_encoding::HEXLOWER.decode(text.as_str().unwrap().as_bytes()).unwrap();
    let draw = &shown["draw"];
    let published = fullhouse::waiting_room::draw::Published {
        terms: fullhouse::waiting_room::draw::Terms { event_id: line.event, draw_no: 1, public: None },
        commitment: hex(&draw["commitment"]).try_into().unwrap(),
        count: 40,
        root: hex(&draw["root"]).try_into().unwrap(),
        public_value: None,
        secret: hex(&draw["secret"]).try_into().unwrap(),
    };
    let computed = fullhouse::waiting_room::draw::check(&published, leaves.clone()).unwrap();
    assert_eq!(computed.iter().map(|p| i64::from(*p)).collect::<Vec<_>>(), places);
    for number in [0usize, 7, 39] {
        let proof = public.get(&format!("/api/events/{}/queue/proof/{number}", line.event)).await.ok();
        let path: Vec<[u8; 32]> =
            proof["path"].as_array().unwrap().iter().map(|h| hex(h).try_into().unwrap()).collect();
        let key: [u8; 16] = data_encoding::HEXLOWER.decode(keys[number].as_bytes()).unwrap().try_into().unwrap();
        let leaf = fullhouse::waiting_room::draw::leaf(line.event, number as u64, &key);
        assert!(fullhouse::waiting_room::draw::proves(&published.root, 40, number as u32, &leaf, &path));
    }
    assert_eq!(public.get(&format!("/api/events/{}/queue/proof/40", line.event)).await.code(), "proof_none");

    // Asked by many at once, one that starts anew computes them once.
    let anew = fullhouse::waiting_room::places::Places::new(line.database.pool().clone());
    let trees = futures_util::future::try_join_all((0..16).map(|_| anew.tree(line.event, 1))).await.unwrap();
    let trees: Vec<_> = trees.into_iter().flatten().collect();
    assert!(trees.len() == 16 && trees.iter().all(|tree| Arc::ptr_eq(tree, &trees[0])));

    // Another hub, and one that starts anew, know the same places.
    for _ in 0..2 {
        let mut db = line.database.pool().acquire().await.unwrap();
        let other = fullhouse::waiting_room::places::Places::new(line.database.pool().clone());
        assert_eq!(*other.of(&mut db, line.event, 1).await.unwrap().unwrap(), computed);
    }
    line.close().await;
}

/// A hub that is gone and another that takes over give nobody another place.
#[tokio::test]
async fn places_survive_a_restart() {
    let line = Line::open().await;
    let people = line.joined(30).await;
    line.opens().await;
    let places = line.places(&people).await;
    let Line { database, clock, hub, event } = line;
    hub.stop().await;
    let mut config = database.config().await;
    quick(&mut config);
    let hub = Hub::start_as(config, BY_HAND).await;
    look(&hub, event).await;
    let people: Vec<Fan> = people.iter().map(|fan| fan.at(&hub.url())).collect();
    let line = Line { database, clock, hub, event };
    assert_eq!(line.places(&people).await, places);
    line.close().await;
}

#[tokio::test]
async fn who_joins_as_the_entries_are_fixed_stands_behind() {
    let line = Line::open().await;
    line.joined(3).await;
    line.clock.advance(TimeDelta::minutes(50)).await; // closes_at, and nobody has looked yet
    let late = line.joined(2).await;
    line.clock.advance(TimeDelta::minutes(10)).await;
    line.look().await;
    assert_eq!(line.shown().await["drawn_count"], 3);
    assert_eq!(line.places(&late).await, [3, 4]);
    line.close().await;
}

#[tokio::test]
async fn a_verifiable_draw_waits_for_its_value_and_takes_it_once() {
    let (source, round) = ("a beacon".to_owned(), "7".to_owned());
    let line = Line::open().await;
    let now = line.clock.now().await;
    let event = Rows { on_sale_in: TimeDelta::hours(1), ..Rows::new(1, 10) }.open(line.database.pool()).await;
    let public = PublicValue { source, round, due_at: now + TimeDelta::minutes(55) };
    line::put_up(&line.database, &line.clock, event, Some(public)).await;
    let line = Line { event, ..line };
    let people = line.joined(12).await;
    let operator = line.people(1).await.remove(0);
    line.run(&format!("update account set role = 'operator' where email = '{}'", operator.email)).await;
    let change = |body: serde_json::Value| {
        let (operator, event) = (operator.clone(), line.event);
        async move {
            let request = operator.request(Method::PATCH, &format!("/api/staff/events/{event}/queue")).json(&body);
            operator.send(request).await
        }
    };
    let value = json!({ "reason": "it is out", "public_value": "00ff" });
    assert_eq!(change(value.clone()).await.code(), "line_invalid", "the entries are not fixed");
    line.clock.advance(TimeDelta::minutes(51)).await;
    line.look().await;
    assert!(line.shown().await["draw"]["root"].is_string(), "the root is out before the value");
    assert_eq!(change(value.clone()).await.code(), "line_invalid", "not due");
    line.clock.advance(TimeDelta::minutes(9)).await;
    assert_eq!(line.look().await, 0, "nobody is called before the draw");
    assert_eq!(line.shown().await["state"], "closed");
    change(value.clone()).await.ok();
    change(value).await.ok();
    let told = line.count("select count(*) from line_change where what = 'public_value'").await;
    assert_eq!(told, 1, "sent twice, it was taken once");
    assert_eq!(change(json!({ "reason": "another", "public_value": "00fe" })).await.code(), "line_invalid");
    line.look().await;
    let shown = line.shown().await;
    assert_eq!((&shown["draw"]["kind"], &shown["draw"]["public_value"]), (&json!("verifiable"), &json!("00ff")));
    assert_eq!(line.places(&people).await.into_iter().collect::<BTreeSet<_>>(), (0..12).collect());
    line.close().await;
}

/// No hub ran between the closing and the value: whoever has the database could have tried entries against both.
#[tokio::test]
async fn entries_that_are_fixed_after_the_value_was_out_take_a_later_one() {
    let line = Line::open().await;
    let now = line.clock.now().await;
    let event = Rows { on_sale_in: TimeDelta::hours(1), ..Rows::new(1, 10) }.open(line.database.pool()).await;
    let public = |round: &str, minutes| PublicValue {
        source: "a beacon".to_owned(),
        round: round.to_owned(),
        due_at: now + TimeDelta::minutes(minutes),
    };
    line::put_up(&line.database, &line.clock, event, Some(public("7", 55))).await;
    let line = Line { event, ..line };
    line.joined(3).await;
    line.clock.advance(TimeDelta::minutes(56)).await;
    line.look().await;
    let take = async |value: &[u8]| {
        let mut tx = line.database.pool().begin().await.unwrap();
        let now = line.clock.now().await;
        let taken = drawing::take_value(&mut tx, event, value, now).await.map_err(|e| e.to_string());
        tx.commit().await.unwrap();
        taken
    };
    assert!(take(b"seven").await.unwrap_err().contains("was out already"));
    let by_hand = "update draw set public_value = 'seven'::bytea where public_source is not null";
    let refused = sqlx::query(by_hand).execute(line.database.pool()).await.unwrap_err();
    assert!(refused.to_string().contains("draw_root_before_value"), "the database says so too: {refused}");
    let dated_back = "update draw set rooted_at = rooted_at - interval '1 hour' where root is not null";
    let refused = sqlx::query(dated_back).execute(line.database.pool()).await.unwrap_err();
    assert!(refused.to_string().contains("final"), "when it was published is published: {refused}");

    // Of the same entries, with a value to come: a draw like any other.
    let mut tx = line.database.pool().begin().await.unwrap();
    let now = line.clock.now().await;
    drawing::redraw(&mut tx, event, Some(&public("8", 60)), "no hub was running", now).await.unwrap();
    tx.commit().await.unwrap();
    line.look().await;
    line.clock.advance(TimeDelta::minutes(5)).await;
    take(b"eight").await.unwrap();
    line.look().await;
    let draw = line.shown().await["draw"].clone();
    assert_eq!((&draw["kind"], &draw["round"]), (&json!("verifiable"), &json!("8")));
    assert!(draw["rooted_at"].as_str().unwrap() < draw["value_due_at"].as_str().unwrap());
    line.close().await;
}

#[tokio::test]
async fn a_redraw_stays_public_and_is_refused_once_somebody_was_called() {
    let line = Line::open().await;
    let people = line.joined(20).await;
    line.clock.advance(TimeDelta::minutes(51)).await;
    line.look().await;
    let first = line.places(&people).await;
    let pool = line.database.pool();
    let redraw = || fullhouse_protocol::line::LinePatch {
        reason: "the wrong list was announced".to_owned(),
        redraw: Some(fullhouse_protocol::line::Redraw::default()),
        ..Default::default()
    };
    let change = |patch| fullhouse::admission::staff::change(pool, line.event, patch, "operator".to_owned());
    change(redraw()).await.unwrap();
    line.look().await;
    let second = line.places(&people).await;
    assert_ne!(first, second, "another secret (one in 20! that it is not)");
    let draws = Fan::stranger(&line.hub.url()).get(&format!("/api/events/{}/queue/draws", line.event)).await.ok();
    let draws = draws["draws"].as_array().unwrap();
    assert_eq!(draws.len(), 2);
    assert_eq!(draws[0]["abandoned_why"], "the wrong list was announced");
    assert!(draws[0]["secret"].is_string(), "what it would have given can be seen");
    assert_eq!(draws[0]["root"], draws[1]["root"], "of the same entries");
    line.clock.advance(TimeDelta::minutes(10)).await;
    assert!(line.look().await > 0);
    assert!(change(redraw()).await.is_err(), "people were called");
    assert_eq!(line.places(&people).await, second);
    line.close().await;
}

/// The database itself refuses what must never be.
#[tokio::test]
async fn what_was_published_and_called_can_not_be_taken_back() {
    let line = Line::open().await;
    line.joined(15).await;
    line.opens().await;
    for (sql, constraint) in [
        ("update line set called_through = 0", "line_called_through_rises"),
        ("update line set next_number = 3, called_through = 3", "line_called_through_rises"),
        ("update line set next_number = next_number - 1", "line_only_rises"),
        ("update draw set secret = sha256('x')", "draw_is_final"),
        ("update draw set root = sha256('x')", "draw_is_final"),
        ("update draw set entry_count = 3", "draw_is_final"),
        ("delete from draw", "draw_stays"),
        ("update line_entry set number = 100 where number = 3", "line_entry_is_final"),
        ("update line_entry set account_id = gen_random_uuid() where number = 3", "line_entry_is_final"),
        ("update line_entry set entry_key = decode(repeat('00', 16), 'hex') where number = 3", "line_entry_is_final"),
        ("delete from line_entry where number = 14", "line_entry_stays"),
    ] {
        let error = sqlx::query(sql).execute(line.database.pool()).await.unwrap_err();
        let constraint_of = error.as_database_error().and_then(|e| e.constraint()).map(str::to_owned);
        assert_eq!(constraint_of.as_deref(), Some(constraint), "{sql}: {error}");
    }
    line.close().await;
}

/// The database goes away: who waits keeps their place, and is told that it is late.
#[tokio::test]
async fn a_database_that_is_away_costs_nobody_their_place_and_is_told() {
    let line = Line::open().await;
    let people = line.joined(5).await;
    line.opens().await;
    let places = line.places(&people).await;
    let Line { database, clock, hub, event } = line;
    hub.stop().await;
    let proxy = Proxy::start().await;
    let mut config = database.config_through(&proxy);
    quick(&mut config);
    config.database.acquire_timeout_ms = 300;
    let hub = Hub::start_as(config, BY_HAND).await;
    let public = Fan::stranger(&hub.url());
    let path = format!("/api/events/{event}/queue");
    assert_eq!(public.get(&path).await.ok().get("database_late"), None);
    proxy.cut();
    let late = eventually("the page is told that the database is late", || async {
        let line = public.get(&path).await.ok();
        (line["database_late"] == true).then_some(line)
    })
    .await;
    assert_eq!(late["joined"], 5, "as it stood");
    proxy.mend();
    eventually("the database is back", || async {
        let line = public.get(&path).await.ok();
        line.get("database_late").is_none().then_some(())
    })
    .await;
    let people: Vec<Fan> = people.iter().map(|fan| fan.at(&hub.url())).collect();
    let line = Line { database, clock, hub, event };
    assert_eq!(line.places(&people).await, places);
    line.close().await;
}

#[tokio::test]
async fn two_hundred_behind_one_address_join_and_a_forged_header_gains_nothing() {
    let line = Line::open_with(Rows::new(1, 10), None, |config| config.waiting_room.address_challenges_max = 250).await;
    let people = line.people(200).await;
    let joined = futures_util::future::join_all(people.iter().map(|fan| join(fan, line.event))).await;
    assert!(joined.into_iter().all(|answer| answer.status == StatusCode::CREATED));
    // Beyond the last net it is refused, whatever address somebody makes up: no proxy is named in the settings.
    let path = format!("/api/events/{}/queue/challenge", line.event);
    let mut refused = 0;
    for n in 0..60 {
        let forged = people[0].request(Method::GET, &path).header("x-forwarded-for", format!("198.51.100.{n}"));
        refused += i32::from(people[0].send(forged).await.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(refused, 10);
    line.close().await;
}
