//! The edges of a line's door: addresses and who names them, challenges whose time is over, and the mail that checks an
//! address.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use fullhouse::{config::Config, serve::Roles};
use fullhouse_protocol::frames::LINE_BYTES_MAX;
use fullhouse_tests::{
    eventually,
    fan::{self, Answer, Fan},
    hub::Hub,
    line::{BY_HAND, Line, challenge, enter, hold, inside, join, join_with, mine, quick, renew, second_device, solved},
    rows::Rows,
    smtp::Smtp,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Another hub instead of the line's own.
async fn anew(line: Line, config: Config, roles: Roles) -> Line {
    let Line { database, clock, hub, event } = line;
    hub.stop().await;
    Line { database, clock, hub: Hub::start_as(config, roles).await, event }
}

/// Asks for challenges from behind whatever `x-forwarded-for` says; how each was answered.
async fn from_behind(line: &Line, fan: &Fan, forwarded: &[&str]) -> Vec<u16> {
    let path = format!("/api/events/{}/queue/challenge", line.event);
    let mut answers = Vec::new();
    for addresses in forwarded {
        let request = fan.request(Method::GET, &path).header("x-forwarded-for", *addresses);
        answers.push(fan.send(request).await.status.as_u16());
    }
    answers
}

#[tokio::test]
async fn one_net_of_ipv6_is_one_address_and_a_named_proxy_says_which() {
    let line = Line::open_with(Rows::new(1, 5), None, |config| {
        config.waiting_room.address_challenges_max = 3;
        config.http.trusted_proxies = vec!["127.0.0.1".into(), "10.0.0.9".into()];
    })
    .await;
    let fan = &line.people(1).await[0];
    // Whoever has a /64 has 2^64 addresses; they count as one.
    let one_net = ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::3", "[2001:db8:1:2:5::4]:443"];
    assert_eq!(from_behind(&line, fan, &one_net).await, [200, 200, 200, 429]);
    assert_eq!(from_behind(&line, fan, &["2001:db8:1:3::1"]).await, [200], "the net beside it is another");
    // Of a chain, the last that is none of our proxies; what the client wrote before it counts for nothing.
    let chain = ["192.0.2.7", "198.51.100.1, 192.0.2.7", "198.51.100.2, 192.0.2.7, 10.0.0.9", "203.0.113.1, 192.0.2.7"];
    assert_eq!(from_behind(&line, fan, &chain).await, [200, 200, 200, 429]);
    assert_eq!(from_behind(&line, fan, &["192.0.2.8"]).await, [200]);
    // IPv4 in IPv6's clothes is the same IPv4.
    assert_eq!(from_behind(&line, fan, &["::ffff:192.0.2.7", "192.0.2.8", "192.0.2.8"]).await, [429, 200, 200]);
    assert_eq!(from_behind(&line, fan, &["192.0.2.8", "nonsense"]).await, [429, 200], "no address: the proxy's own");
    line.close().await;
}

/// Each way to write down another address that is not one's own, three times each and more: whoever is not a proxy of ours
/// stays who they are, and one of ours is believed in what it wrote itself, the last.
#[tokio::test]
async fn whatever_a_client_says_of_its_address_counts_for_nothing() {
    for trusted in [vec![], vec!["127.0.0.1".to_owned()]] {
        let line = Line::open_with(Rows::new(1, 5), None, |config| {
            config.waiting_room.address_challenges_max = 12;
            config.http.trusted_proxies = trusted.clone();
        })
        .await;
        let fan = &line.people(1).await[0];
        let path = format!("/api/events/{}/queue/challenge", line.event);
        let mut answers = Vec::new();
        for n in 0..4 {
            let forged = format!("198.51.100.{n}");
            // What a proxy adds stands last, in the same header or in one of its own.
            let ways: [&[(&str, String)]; 4] = [
                &[("x-forwarded-for", format!("{forged}, 192.0.2.7"))],
                &[("x-forwarded-for", forged.clone()), ("x-forwarded-for", "192.0.2.7".to_owned())],
                &[("x-forwarded-for", format!("  {forged} ,,  192.0.2.7:4711  ")), ("x-real-ip", forged.clone())],
                &[("x-forwarded-for", "192.0.2.7".to_owned()), ("forwarded", format!("for={forged};proto=https"))],
            ];
            for headers in ways {
                let mut request = fan.request(Method::GET, &path);
                for (name, value) in headers {
                    request = request.header(*name, value);
                }
                answers.push(fan.send(request).await.status.as_u16());
            }
        }
        assert_eq!(answers, [vec![200; 12], vec![429; 4]].concat(), "one address all along; proxies: {trusted:?}");
        // Of another client behind our proxy, IPv6 in each way that proxies write it; from anybody else it is the same one.
        let other = if trusted.is_empty() { 429 } else { 200 };
        let written =
            ["2001:db8:1:2::1", "[2001:db8:1:2::1]", "[2001:db8:1:2::1]:443", "198.51.100.1, [2001:DB8:1:2::9]"];
        assert_eq!(from_behind(&line, fan, &written).await, [other; 4]);
        line.close().await;
    }
}

/// A whole venue behind one address, by the settings that come with the hub: everybody joins, comes in and holds.
#[tokio::test]
async fn two_hundred_buyers_behind_one_address_get_in_and_hold() {
    let line = Line::open_with(Rows::new(10, 25), None, |_| {}).await;
    line.run("update line set inside_max = 200").await;
    let people = line.people(200).await;
    let joined = futures_util::future::join_all(people.iter().map(|fan| join(fan, line.event))).await;
    assert!(joined.iter().all(|answer| answer.status == StatusCode::CREATED));
    let mut called = line.opens().await;
    while called < 200 {
        line.clock.advance(TimeDelta::seconds(1)).await;
        called += line.look().await;
    }
    let event = line.event;
    let held = people.iter().enumerate().map(|(seat, fan)| async move {
        let pass = inside(fan, event).await;
        hold(fan, event, &[seat as i32], Some(&pass)).await.status
    });
    assert!(futures_util::future::join_all(held).await.iter().all(StatusCode::is_success));
    assert_eq!(line.count("select count(*) from event_seat where status = 1").await, 200);
    line.close().await;
}

#[tokio::test]
async fn a_challenge_whose_time_is_over_is_refused_as_such_and_a_new_one_is_taken() {
    // Its time is over as it is made: what a page sends that has slept for a quarter of an hour.
    let line = Line::open_with(Rows::new(1, 5), None, |config| config.waiting_room.challenge_age_max_s = -1).await;
    let fan = line.people(1).await.remove(0);
    let stale = solved(challenge(&fan, line.event).await);
    assert_eq!(join_with(&fan, line.event, &stale).await.code(), "challenge_expired");
    assert_eq!(mine(&fan, line.event).await.code(), "entry_none");
    let mut config = line.database.config().await;
    quick(&mut config);
    let line = anew(line, config, BY_HAND).await;
    let fan = fan.at(&line.hub.url());
    assert_eq!(join_with(&fan, line.event, &stale).await.code(), "challenge_expired", "at any hub");
    assert_eq!(join(&fan, line.event).await.status, StatusCode::CREATED);
    line.close().await;
}

#[tokio::test]
async fn whose_turn_was_ended_is_out_until_they_are_called_again() {
    let line = Line::open().await;
    let people = line.joined(3).await;
    line.opens().await;
    let pass = inside(&people[0], line.event).await;
    let operator = line.people(1).await.remove(0);
    line.run(&format!("update account set role = 'operator' where email = '{}'", operator.email)).await;
    let account = people[0].get("/api/session").await.ok()["account"]["id"].clone();
    let revoke = json!({ "reason": "a farm of accounts", "revoke": account });
    let path = format!("/api/staff/events/{}/queue", line.event);
    let revoked = || async { operator.send(operator.request(Method::PATCH, &path).json(&revoke)).await };
    revoked().await.ok();
    assert_eq!(revoked().await.code(), "pass_over", "nobody is inside any more");
    assert_eq!(hold(&people[0], line.event, &[1], Some(&pass)).await.code(), "pass_over");
    assert_eq!(enter(&people[0], line.event).await.code(), "entry_none");
    assert_eq!(mine(&people[0], line.event).await.code(), "entry_none");
    assert_eq!(join(&people[0], line.event).await.ok()["number"], 3);
    assert_eq!(enter(&people[0], line.event).await.code(), "line_not_called", "the new stand has its own turn");
    line.clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(line.look().await, 1);
    inside(&people[0], line.event).await;
    line.close().await;
}

/// From a real SMTP server, in the language of whoever asked: its link checks the address, and a second request within
/// minutes is no second mail.
#[tokio::test]
async fn the_mail_that_checks_an_address_comes_in_the_language_of_its_reader() {
    let smtp = Smtp::start().await;
    let line = Line::open_with(Rows::new(1, 5), None, |_| {}).await;
    let mut config = line.database.config().await;
    quick(&mut config);
    smtp.configure(&mut config);
    config.http.public_url = "https://tickets.example".to_owned();
    let line = anew(line, config, Roles::ALL).await; // somebody has to send mail
    for (n, (language, name, subject, hello, part)) in [
        ("en", "Ana Seat", "Check your address", "Ana Seat", "good for two days"),
        ("ja", "東京 太郎", "メールアドレスの確認", "東京 太郎 様", "有効期限は2日間"),
        ("ko", "김 서울", "이메일 주소 확인", "김 서울", "이틀 동안 유효"),
    ]
    .into_iter()
    .enumerate()
    {
        let fan = fan::many(&line.database, &line.hub.url(), 1).await.remove(0);
        sqlx::query("update account set name = $2, language = $3 where email = $1")
            .bind(&fan.email)
            .bind(name)
            .bind(language)
            .execute(line.database.pool())
            .await
            .unwrap();
        for _ in 0..3 {
            let asked = fan.post("/api/account/address-check", json!({})).await;
            assert_eq!(asked.status, StatusCode::ACCEPTED);
            assert_eq!(asked.ok().get("link"), None, "only who reads the mail has the link");
        }
        let mails = smtp.until(n + 1).await;
        assert_eq!(mails.len(), n + 1, "one mail, however often it was asked for");
        let mail = &mails[n];
        assert_eq!((mail.subject(), &mail.0["to"]), (subject, &json!([fan.email])));
        assert_eq!(mail.0["defects"], json!([]));
        assert_eq!(mail.header("content-language"), [language]);
        let address = "https://tickets.example/signin/check?code=";
        for text in [mail.text(), mail.html()] {
            for expected in [hello, part, address] {
                assert!(text.contains(expected), "{expected} is not in {text}");
            }
        }
        let code: String =
            mail.text().split_once(address).unwrap().1.chars().take_while(|c| !c.is_whitespace()).collect();
        assert!(mail.html().contains(&format!("{address}{code}")), "the same link in both");
        assert_eq!(join(&fan, line.event).await.code(), "address_unchecked");
        let reader = Fan::stranger(&line.hub.url());
        let confirmed = reader.post("/api/account/address-check/confirm", json!({ "code": code })).await;
        assert_eq!(confirmed.ok()["account"]["email_checked"], true);
        assert_eq!(join(&fan, line.event).await.ok()["number"], n);
    }
    smtp.stop().await;
    line.close().await;
}

async fn operator(line: &Line) -> Fan {
    let operator = line.people(1).await.remove(0);
    line.run(&format!("update account set role = 'operator' where email = '{}'", operator.email)).await;
    operator
}

async fn change(operator: &Fan, line: &Line, body: Value) -> Answer {
    let path = format!("/api/staff/events/{}/queue", line.event);
    operator.send(operator.request(Method::PATCH, &path).json(&body)).await
}

#[tokio::test]
async fn a_pause_costs_nobody_their_grace_and_gives_back_none_that_was_over() {
    let line = Line::open().await;
    let people = line.joined(12).await;
    line.opens().await;
    let order = line.in_order(&people).await;
    let operator = operator(&line).await;
    line.clock.advance(TimeDelta::seconds(590)).await;
    for (paused, seconds) in [(true, 900), (false, 500)] {
        change(&operator, &line, json!({ "reason": "a fault", "paused": paused })).await.ok();
        line.clock.advance(TimeDelta::seconds(seconds)).await;
    }
    inside(&order[0], line.event).await;
    line.clock.advance(TimeDelta::seconds(101)).await;
    assert_eq!(mine(&order[1], line.event).await.ok()["state"], "lapsed");
    for paused in [true, false] {
        change(&operator, &line, json!({ "reason": "another", "paused": paused })).await.ok();
        assert_eq!(mine(&order[1], line.event).await.ok()["state"], "lapsed", "paused: {paused}");
    }
    assert_eq!(enter(&order[1], line.event).await.code(), "entry_lapsed");
    line.close().await;
}

/// The reader of times takes years that the database does not store.
#[tokio::test]
async fn a_time_that_nobody_can_mean_is_refused_and_not_a_fault_of_ours() {
    let line = Line::open().await;
    let operator = operator(&line).await;
    let event = Rows::new(1, 5).open(line.database.pool()).await;
    for year in ["-262143", "0000", "1999", "+10000"] {
        let at = format!("{year}-01-01T00:00:00Z");
        let more = change(&operator, &line, json!({ "reason": "more seats", "next_batch_at": at })).await;
        assert_eq!(more.code(), "line_invalid", "{at}");
        let opening =
            json!({ "joins_at": at, "closes_at": at, "rate_minute_min": 1, "rate_minute_max": 2, "inside_max": 3 });
        let opened = operator.post(&format!("/api/staff/events/{event}/queue"), opening).await;
        assert_eq!(opened.code(), "line_invalid", "{at}");
    }
    line.close().await;
}

/// A line that is too long for its frame would be told to nobody.
#[tokio::test]
async fn the_longest_words_of_an_operator_fit_into_a_lines_frame() {
    let line = Line::open().await;
    let event = Rows { on_sale_in: TimeDelta::hours(1), ..Rows::new(1, 5) }.open(line.database.pool()).await;
    let operator = operator(&line).await;
    let now = line.clock.now().await;
    let opening = |name: &str| {
        json!({ "joins_at": now, "closes_at": now + TimeDelta::minutes(9), "source": name, "round": name,
                "value_due_at": now + TimeDelta::minutes(10), "rate_minute_min": 1, "rate_minute_max": 2, "inside_max": 3 })
    };
    let path = format!("/api/staff/events/{event}/queue");
    assert_eq!(operator.post(&path, opening(&"\u{1}".repeat(200))).await.code(), "line_invalid");
    operator.post(&path, opening(&"\"".repeat(200))).await.ok();
    let line = Line { event, ..line };
    let texts = |text: String| json!({ "reason": "a fault", "message": { "default": text, "en": text, "ja": text, "ko": text } });
    assert_eq!(change(&operator, &line, texts("\u{1}".repeat(500))).await.code(), "line_invalid");
    change(&operator, &line, texts("😀".repeat(500))).await.ok();
    line.clock.advance(TimeDelta::minutes(9)).await;
    line.look().await;
    line.clock.advance(TimeDelta::minutes(1)).await;
    change(&operator, &line, json!({ "reason": "it is out", "public_value": "ab".repeat(1024) })).await.ok();
    let told = line.shown().await.to_string().len();
    assert!((10_000..LINE_BYTES_MAX).contains(&told), "{told}");
    let frames = operator.get(&format!("/api/events/{event}/queue/frames")).await;
    assert_eq!(frames.status, StatusCode::OK);
    line.close().await;
}

#[tokio::test]
async fn a_change_that_is_refused_ends_nobodys_turn() {
    let line = Line::open().await;
    let people = line.joined(1).await;
    line.opens().await;
    let pass = inside(&people[0], line.event).await;
    let operator = operator(&line).await;
    let account = people[0].get("/api/session").await.ok()["account"]["id"].clone();
    let both = json!({ "reason": "a slip", "revoke": account, "rate_fixed": -5 });
    assert_eq!(change(&operator, &line, both).await.code(), "line_invalid");
    renew(&people[0], line.event, &pass).await.ok();
    let nobody = json!({ "reason": "a slip", "revoke": uuid::Uuid::new_v4(), "inside_max": 77 });
    assert_eq!(change(&operator, &line, nobody).await.code(), "pass_over");
    let inside_max: i32 =
        sqlx::query_scalar("select inside_max from line").fetch_one(line.database.pool()).await.unwrap();
    assert_ne!(inside_max, 77, "all of it or nothing");
    line.close().await;
}

/// Somebody who comes in from two devices again and again is out when their turn is ended, whichever request comes
/// between. First as it must not be: verbs that lock no more than the row that they end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_ended_while_its_owner_moves_is_over() {
    let line = Line::open().await;
    let people = line.joined(6).await;
    line.opens().await;
    let pool = line.database.pool();
    let live = |account: uuid::Uuid| async move {
        let count = "select count(*) from pass where account_id = $1 and ended_at is null";
        sqlx::query_scalar::<_, i64>(count).bind(account).fetch_one(pool).await.unwrap()
    };
    let id = |fan: &Fan| {
        let fan = fan.clone();
        async move { fan.get("/api/session").await.ok()["account"]["id"].as_str().unwrap().parse::<uuid::Uuid>().unwrap() }
    };
    // The control: a move holds the row; an end waits for it, and finds that it has ended already.
    inside(&people[0], line.event).await;
    let naive = id(&people[0]).await;
    let end = "update pass set ended_at = db_clock(), ended_why = $2 where account_id = $1 and ended_at is null";
    let again = "insert into pass (id, event_id, account_id, number, place, session_hash, issued_at, expires_at, renewable_until)
                 select gen_random_uuid(), event_id, account_id, number, place, session_hash, issued_at, expires_at, renewable_until
                 from pass where account_id = $1 limit 1";
    let mut moving = pool.begin().await.unwrap();
    sqlx::query(end).bind(naive).bind("moved").execute(&mut *moving).await.unwrap();
    let (ended, ()) = tokio::join!(sqlx::query(end).bind(naive).bind("revoked").execute(pool), async {
        eventually("the end waits for the move", || async {
            let waits =
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
            (sqlx::query_scalar::<_, i64>(waits).fetch_one(pool).await.unwrap() > 0).then_some(())
        })
        .await;
        sqlx::query(again).bind(naive).execute(&mut *moving).await.unwrap();
        moving.commit().await.unwrap();
    });
    assert_eq!((ended.unwrap().rows_affected(), live(naive).await), (0, 1), "the naive end misses the pass that moved");
    // And ours.
    let operator = operator(&line).await;
    for fan in &people[1..] {
        let account = id(fan).await;
        let other = second_device(&line, fan).await;
        inside(fan, line.event).await;
        let done = AtomicBool::new(false);
        let comes_again = |fan: Fan| {
            let (done, event) = (&done, line.event);
            async move {
                while !done.load(Ordering::Relaxed) {
                    enter(&fan, event).await;
                }
            }
        };
        let revoke = async {
            let answer = change(&operator, &line, json!({ "reason": "a farm", "revoke": account })).await;
            done.store(true, Ordering::Relaxed);
            answer
        };
        let (answer, ..) =
            tokio::join!(revoke, comes_again(fan.clone()), comes_again(other.clone()), comes_again(other.clone()));
        answer.ok();
        assert_eq!(live(account).await, 0);
        assert_eq!(mine(fan, line.event).await.code(), "entry_none");
    }
    line.close().await;
}
