//! Mail, over a real SMTP server: one an event of an order, true when it is sent, never lost and never doubled.

use chrono::TimeDelta;
use fullhouse::{
    config::Config,
    mail::{self, Kind, Post},
    serve::Roles,
};
use fullhouse_tests::{
    clock::Clock,
    database::Database,
    eventually,
    fan::{self, Fan},
    hub::Hub,
    paper::Paper,
    provider::{CARD, Provider, key, order, until},
    rows::Rows,
    smtp::Smtp,
    till::Till,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

struct Scene {
    database: Database,
    clock: Clock,
    config: Config,
    smtp: Smtp,
    event: i64,
}

impl Scene {
    /// An event that costs nothing: taking it is one request, and the tickets are valid at once.
    async fn free(smtp: Smtp) -> Self {
        let (database, clock) = Database::with_clock().await;
        let event = Rows { price_minor: 0, ..Rows::new(4, 10) }.open(database.pool()).await;
        let mut config = database.config().await;
        smtp.configure(&mut config);
        Self { database, clock, config, smtp, event }
    }

    async fn hub(&self) -> Hub {
        Hub::start(self.config.clone()).await
    }

    /// Without the worker that sends.
    async fn quiet_hub(&self) -> Hub {
        Hub::start_as(self.config.clone(), Roles { workers: false, ..Roles::ALL }).await
    }

    async fn fan(&self, hub: &Hub) -> Fan {
        fan::many(&self.database, &hub.url(), 1).await.remove(0)
    }

    /// The order's id.
    async fn take(&self, fan: &Fan, seats: &[i32]) -> Uuid {
        let open = order(fan, self.event, seats).await;
        let id = open["id"].as_str().expect("an id");
        fan.post(&format!("/api/orders/{id}/claim"), Value::Null).await.ok();
        id.parse().expect("an id")
    }

    async fn states(&self) -> Vec<String> {
        sqlx::query_scalar("select state from mail order by id").fetch_all(self.database.pool()).await.expect("mails")
    }

    async fn until_states(&self, expected: &[&str]) {
        eventually(&format!("the mails are {expected:?}"), || async {
            (self.states().await == expected).then_some(())
        })
        .await;
    }

    async fn enqueue(&self, kind: Kind, order: Uuid, occasion: &str) {
        let mut db = self.database.pool().acquire().await.expect("a connection");
        mail::enqueue(&mut db, kind, order, occasion).await.expect("it is queued");
    }

    async fn close(self, hub: Hub) {
        hub.stop().await;
        self.smtp.stop().await;
        self.database.finish().await;
    }
}

async fn rename(database: &Database, fan: &Fan, name: &str, language: &str) {
    let done = sqlx::query("update account set name = $2, language = $3 where email = $1");
    done.bind(&fan.email).bind(name).bind(language).execute(database.pool()).await.expect("an account");
}

#[tokio::test]
async fn whoever_pays_gets_one_mail_with_tickets_that_scan() {
    let (database, _clock) = Database::with_clock().await;
    let event = Rows { currency: "JPY", price_minor: 12_000, ..Rows::new(4, 10) }.open(database.pool()).await;
    let (provider, smtp) = (Provider::start().await, Smtp::start().await);
    let mut config = database.config().await;
    provider.configure(&mut config);
    smtp.configure(&mut config);
    let hub = Hub::start(config).await;
    provider.webhooks_to(&hub.url()).await;
    let fan = fan::many(&database, &hub.url(), 1).await.remove(0);
    rename(&database, &fan, "東京 太郎", "ja").await;
    let open = order(&fan, event, &[1, 2]).await;
    fan.pay(&open, &key(), CARD).await.ok();
    let paid = until(&fan, &open, &["captured"]).await;

    let mails = smtp.until(1).await;
    provider.replay().await; // the provider says everything once more
    let mail = &mails[0];
    assert_eq!(mail.0["to"], serde_json::json!([fan.email]));
    assert_eq!(mail.0["defects"], serde_json::json!([]));
    assert_eq!(mail.subject(), "チケットのお届け:A Concert");
    assert!(mail.header("to")[0].contains("東京 太郎"), "{:?}", mail.header("to"));
    assert_eq!(mail.header("auto-submitted"), ["auto-generated"]);
    assert_eq!(mail.header("content-language"), ["ja"]);
    let code = paid["code"].as_str().unwrap();
    for part in [mail.text(), mail.html()] {
        for words in [
            "東京 太郎 様",
            code,
            "Stalls",
            "12,000",
            "カードでのお支払い",
            "Visa •••• 4242",
            paid["id"].as_str().unwrap(),
        ] {
            assert!(part.contains(words), "{words} is not in {part}");
        }
    }
    let paper = Paper::new(&mail.pdf()).await;
    assert_eq!(paper.pages().await, 2);
    assert!(paper.text().await.contains("東京 太郎"));
    let codes: Vec<&str> = paid["tickets"].as_array().unwrap().iter().map(|t| t["code"].as_str().unwrap()).collect();
    assert_eq!(paper.codes().await, codes);
    assert_eq!(smtp.mails().len(), 1);

    // One seat goes back: a mail says so. Then the event is called off: one mail, and no second one for its refund.
    let till = Till::enrol(&database, &hub.url(), "Counter 1").await;
    let one_seat = serde_json::json!({
        "what": { "kind": "seats", "seats": [1] }, "seats_become": "on_sale", "reason": "ill"
    });
    till.refund(&paid, &key(), one_seat).await.ok();
    let mails = smtp.until(2).await;
    assert_eq!(mails[1].subject(), "払い戻しのお知らせ:A Concert");
    assert!(mails[1].text().contains("12,000"), "{}", mails[1].text());
    let operator = fan::many(&database, &hub.url(), 1).await.remove(0);
    let made = sqlx::query("update account set role = 'operator' where email = $1").bind(&operator.email);
    made.execute(database.pool()).await.expect("an operator");
    let call_off = format!("/api/staff/events/{event}/call-off");
    assert_eq!(operator.post(&call_off, serde_json::json!({ "reason": "the singer is ill" })).await.status, 202);
    smtp.until(3).await;
    eventually("nothing is left to send", || async {
        let left: i64 = sqlx::query_scalar("select count(*) from mail where state = 'queued'")
            .fetch_one(database.pool())
            .await
            .expect("mails");
        (left == 0).then_some(())
    })
    .await;
    hub.stop().await;
    let subjects: Vec<String> = smtp.mails().iter().map(|mail| mail.subject().to_owned()).collect();
    assert_eq!(subjects.len(), 3, "{subjects:?}");
    smtp.stop().await;
    database.finish().await;
}

/// B32: the same event, ten times in parallel.
#[tokio::test]
async fn the_same_event_ten_times_at_once_is_one_mail() {
    let scene = Scene::free(Smtp::start().await).await;
    let hub = scene.quiet_hub().await;
    let fan = scene.fan(&hub).await;
    let order = scene.take(&fan, &[1]).await;
    // The control: looked for first, then written, as one would without the constraint.
    let pool = scene.database.pool();
    sqlx::query("create table naive_mail (order_id uuid)").execute(pool).await.unwrap();
    let naive = (0..10).map(|_| async {
        let mut tx = pool.begin().await.unwrap();
        let there: bool = sqlx::query_scalar("select exists(select from naive_mail where order_id = $1)")
            .bind(order)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        sqlx::query("select pg_sleep(0.05)").execute(&mut *tx).await.unwrap();
        if !there {
            sqlx::query("insert into naive_mail values ($1)").bind(order).execute(&mut *tx).await.unwrap();
        }
        tx.commit().await.unwrap();
    });
    futures_util::future::join_all(naive).await;
    let doubled: i64 = sqlx::query_scalar("select count(*) from naive_mail").fetch_one(pool).await.unwrap();
    assert!(doubled > 1, "the control wrote one: this race shows nothing");

    let ours = (0..10).map(|_| scene.enqueue(Kind::Tickets, order, ""));
    futures_util::future::join_all(ours).await;
    assert_eq!(scene.states().await, ["queued"]);
    for seat in 2..=6 {
        scene.take(&fan, &[seat]).await;
    }
    // Three workers look for the same six at once.
    let stop = CancellationToken::new();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (config, stop, parts) = (scene.config.clone(), stop.clone(), hub.parts().clone());
            let post = Post::open(&config.mail).expect("the test's settings");
            tokio::spawn(async move {
                mail::run(&config, parts.pool, post, parts.press, parts.keys, parts.metrics, stop).await
            })
        })
        .collect();
    scene.until_states(&["sent"; 6]).await;
    stop.cancel();
    for worker in workers {
        worker.await.expect("it ends");
    }
    assert_eq!(scene.smtp.mails().len(), 6);
    scene.close(hub).await;
}

/// T7: what is not true any more is not said.
#[tokio::test]
async fn a_mail_is_decided_when_it_is_sent() {
    let scene = Scene::free(Smtp::start().await).await;
    let hub = scene.quiet_hub().await;
    let fan = scene.fan(&hub).await;
    let (refunded, paid) = (scene.take(&fan, &[1]).await, scene.take(&fan, &[2]).await);
    scene.enqueue(Kind::PaymentDue, paid, "").await; // paid meanwhile
    scene.enqueue(Kind::Refunded, paid, &Uuid::new_v4().to_string()).await; // a refund that never was
    scene.enqueue(Kind::EventCancelled, paid, "").await; // it takes place
    // Refunded before anything was sent, as far as a ticket can tell.
    let pool = scene.database.pool();
    sqlx::query("update ticket set state = 'void', voided_at = db_clock() where order_id = $1")
        .bind(refunded)
        .execute(pool)
        .await
        .unwrap();
    hub.stop().await;
    let hub = scene.hub().await;
    scene.until_states(&["dropped", "sent", "dropped", "dropped", "dropped"]).await;
    assert_eq!(scene.smtp.mails().len(), 1);
    // What was dropped gets another chance when it becomes true.
    sqlx::query("update ticket set state = 'valid', voided_at = null where order_id = $1")
        .bind(refunded)
        .execute(pool)
        .await
        .unwrap();
    scene.enqueue(Kind::Tickets, refunded, "").await;
    scene.enqueue(Kind::Tickets, paid, "").await;
    scene.smtp.until(2).await;
    scene.until_states(&["sent", "sent", "dropped", "dropped", "dropped"]).await;
    sqlx::query("update event set sale_state = 'cancelled'").execute(pool).await.unwrap();
    scene.enqueue(Kind::EventCancelled, paid, "").await;
    let mails = scene.smtp.until(3).await;
    assert_eq!(mails[2].subject(), "Cancelled: A Concert");
    assert_eq!(mails[2].0["attachments"], serde_json::json!([]));
    assert!(mails[2].text().contains("not valid any more"), "{}", mails[2].text());
    assert!(!mails[2].text().contains("money"), "it cost nothing: {}", mails[2].text());
    scene.close(hub).await;
}

#[tokio::test]
async fn a_server_that_is_away_or_says_later_costs_time_and_no_mail() {
    let mut scene = Scene::free(Smtp::away().await).await;
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    scene.take(&fan, &[1]).await;
    let tried = async |times: i32| {
        eventually(&format!("{times} tries"), || async {
            let (tries, leased): (i32, bool) = sqlx::query_as("select tries, leased_until is not null from mail")
                .fetch_one(scene.database.pool())
                .await
                .unwrap();
            (tries >= times && !leased).then_some(())
        })
        .await;
    };
    tried(1).await;
    assert_eq!(scene.states().await, ["queued"]);
    let wait: f64 = sqlx::query_scalar("select extract(epoch from next_try_at - db_clock())::float8 from mail")
        .fetch_one(scene.database.pool())
        .await
        .unwrap();
    assert!((20.0..37.0).contains(&wait), "the first wait is half a minute, not {wait}");
    scene.clock.advance(TimeDelta::minutes(2)).await;
    tried(2).await;

    scene.smtp.answer(Some("451 4.7.0 greylisted, come again"));
    scene.smtp.come().await;
    scene.clock.advance(TimeDelta::minutes(10)).await;
    eventually("it was greylisted", || async { (scene.smtp.refused() > 0).then_some(()) }).await;
    tried(3).await; // and not leased: a clock that jumped past a lease would let another send it
    assert_eq!(scene.states().await, ["queued"]);

    scene.smtp.answer(None);
    scene.clock.advance(TimeDelta::hours(1)).await;
    eventually("it is sent in time", || async { (scene.states().await == ["sent"]).then_some(()) }).await;
    assert_eq!(scene.smtp.mails().len(), 1);
    scene.close(hub).await;
}

#[tokio::test]
async fn what_is_refused_for_good_is_dead_until_somebody_sees_to_it() {
    let scene = Scene::free(Smtp::start().await).await;
    scene.smtp.answer(Some("550 5.1.1 no such user"));
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    scene.take(&fan, &[1]).await;
    scene.until_states(&["dead"]).await;
    assert_eq!(scene.smtp.refused(), 1);
    let dead = mail::list(scene.database.pool(), "dead").await.unwrap();
    assert!(dead[0].last_error.as_deref().unwrap().contains("550"), "{dead:?}");
    let metrics = hub.parts().metrics.text();
    assert!(metrics.contains("fullhouse_mails_total{outcome=\"dead\"} 1"), "{metrics}");
    scene.smtp.answer(None);
    assert_eq!(mail::revive(scene.database.pool(), None).await.unwrap(), 1);
    scene.until_states(&["sent"]).await;
    scene.close(hub).await;
}

#[tokio::test]
async fn an_outage_of_days_ends_with_a_dead_mail() {
    let scene = Scene::free(Smtp::away().await).await;
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    scene.take(&fan, &[1]).await;
    eventually("it is given up in time", || async {
        scene.clock.advance(TimeDelta::hours(13)).await;
        (scene.states().await == ["dead"]).then_some(())
    })
    .await;
    scene.close(hub).await;
}

/// B52: a provider that caps what we send drops what is above.
#[tokio::test]
async fn no_more_mails_a_minute_than_the_rate_over_all_hubs() {
    let mut scene = Scene::free(Smtp::start().await).await;
    scene.config.mail.rate_per_minute = 2;
    let quiet = scene.quiet_hub().await;
    let fan = scene.fan(&quiet).await;
    scene.clock.freeze_at(scene.clock.now().await).await;
    for seat in 1..=5 {
        scene.take(&fan, &[seat]).await;
    }
    quiet.stop().await;
    let hub = scene.hub().await;
    for sent in [2, 4, 5] {
        scene.smtp.until(sent).await;
        eventually("nothing is under way", || async {
            let leased: i64 =
                sqlx::query_scalar("select count(*) from mail where leased_until is not null and state = 'queued'")
                    .fetch_one(scene.database.pool())
                    .await
                    .unwrap();
            (leased == 0).then_some(())
        })
        .await;
        assert_eq!(scene.smtp.mails().len(), sent, "above the rate");
        scene.clock.advance(TimeDelta::seconds(61)).await;
    }
    scene.close(hub).await;
}

#[tokio::test]
async fn nothing_in_a_name_becomes_a_header() {
    let scene = Scene::free(Smtp::start().await).await;
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    let names = [
        "Łukasz Žižek",
        "홍길동",
        "محمد",
        "Zoë 👩‍🚀",
        "\"A\" <b@evil.example>, c",
        "a\r\nBcc: all@evil.example",
        "=?utf-8?q?x?=",
    ];
    for (seat, name) in names.iter().enumerate() {
        rename(&scene.database, &fan, name, "ko").await;
        let before = scene.smtp.mails().len();
        if seat > 5 {
            break; // six seats is the limit
        }
        scene.take(&fan, &[seat as i32]).await;
        let mails = scene.smtp.until(before + 1).await;
        let mail = &mails[before];
        assert_eq!(mail.0["to"], serde_json::json!([fan.email]), "{name}");
        assert!(mail.header("bcc").is_empty() && mail.header("to").len() == 1, "{name}: {:?}", mail.0["headers"]);
        assert_eq!(mail.0["defects"], serde_json::json!([]), "{name}");
        if !name.contains(['\r', '"']) {
            assert!(mail.header("to")[0].contains(name), "{name}: {:?}", mail.header("to"));
        }
        assert!(!mail.html().contains("<b@evil"), "names are escaped");
    }
    scene.close(hub).await;
}

#[tokio::test]
async fn mail_can_go_into_a_folder_instead() {
    let mut scene = Scene::free(Smtp::away().await).await;
    let folder = fullhouse_tests::run::run().await.directory("mail");
    scene.config.mail.smtp_url = fullhouse::config::Secret::default();
    scene.config.mail.folder = folder.display().to_string();
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    scene.take(&fan, &[1]).await;
    scene.until_states(&["sent"]).await;
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|f| f.path()).collect();
    let mail =
        files.iter().find(|f| f.extension().is_some_and(|e| e == "eml")).expect("a file that mail programs open");
    assert!(std::fs::read_to_string(mail).unwrap().contains("Subject: Your tickets: A Concert"));
    scene.close(hub).await;
}

/// T7: "please pay" while it is due, tickets once it is paid, and never the first after the second.
#[tokio::test]
async fn whoever_has_to_pay_again_is_asked_to_and_then_gets_tickets() {
    let (database, _clock) = Database::with_clock().await;
    let event = Rows::new(4, 10).open(database.pool()).await;
    let (provider, smtp) = (Provider::start().await, Smtp::start().await);
    let mut config = database.config().await;
    provider.configure(&mut config);
    smtp.configure(&mut config);
    let hub = Hub::start(config).await;
    let fan = fan::many(&database, &hub.url(), 1).await.remove(0);
    let open = order(&fan, event, &[1, 2]).await;
    provider.first("capture", serde_json::json!({ "outcome": { "kind": "capture_fails" } })).await;
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["capture_failed"]).await;
    let mails = smtp.until(1).await;
    assert_eq!(mails[0].subject(), "Please pay again: A Concert");
    assert!(mails[0].text().contains("(Europe/Berlin)"), "{}", mails[0].text());
    assert_eq!(mails[0].0["attachments"], serde_json::json!([]));
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["captured"]).await;
    let mails = smtp.until(2).await;
    assert_eq!(mails[1].subject(), "Your tickets: A Concert");
    assert_eq!(Paper::new(&mails[1].pdf()).await.pages().await, 2);
    hub.stop().await;
    assert_eq!(smtp.mails().len(), 2);
    smtp.stop().await;
    database.finish().await;
}

/// What the house tells everybody stands in the mail too, as text and never as more than text.
#[tokio::test]
async fn a_called_off_event_says_why_and_nothing_of_it_becomes_a_page() {
    let scene = Scene::free(Smtp::start().await).await;
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    let order = scene.take(&fan, &[1]).await;
    scene.smtp.until(1).await;
    let pool = scene.database.pool();
    sqlx::query("update event set sale_state = 'cancelled'").execute(pool).await.unwrap();
    sqlx::query(
        "insert into event_cancellation (event_id, reason, public_reason, actor, started_at)
         values ($1, 'she quarrelled with us', 'The singer is <b>ill</b> & {amount} \"sorry\"', 'op', db_clock())",
    )
    .bind(scene.event)
    .execute(pool)
    .await
    .unwrap();
    scene.enqueue(Kind::EventCancelled, order, "").await;
    let mails = scene.smtp.until(2).await;
    let (text, html) = (mails[1].text(), mails[1].html());
    assert!(text.contains("The reason: The singer is <b>ill</b> & {amount} \"sorry\""), "{text}");
    assert!(html.contains("The singer is &lt;b&gt;ill&lt;/b&gt; &amp; {amount} &quot;sorry&quot;"), "{html}");
    assert!(!html.contains("<b>ill") && !text.contains("quarrelled") && !html.contains("quarrelled"));
    scene.close(hub).await;
}

/// Whoever has tickets hears of another time, once, as it is when the mail leaves.
#[tokio::test]
async fn an_event_that_moves_tells_those_who_have_tickets() {
    let scene = Scene::free(Smtp::start().await).await;
    let hub = scene.quiet_hub().await;
    let (fan, back) = (scene.fan(&hub).await, scene.fan(&hub).await);
    rename(&scene.database, &fan, "김하늘", "ko").await;
    scene.take(&fan, &[1]).await;
    let given_back = scene.take(&back, &[2]).await;
    let pool = scene.database.pool();
    sqlx::query("update mail set state = 'sent', next_try_at = null").execute(pool).await.unwrap();
    sqlx::query("update ticket set state = 'void', voided_at = db_clock() where order_id = $1")
        .bind(given_back)
        .execute(pool)
        .await
        .unwrap();
    let moved = |by: &str| {
        let sql = format!("update event set starts_local = starts_local {by}, starts_at = starts_at {by}");
        async move { sqlx::query(&sql).execute(pool).await.unwrap() }
    };
    let moves = async || -> Vec<String> {
        sqlx::query_scalar("select state from mail where kind = 'event_moved' order by id")
            .fetch_all(pool)
            .await
            .unwrap()
    };
    sqlx::query("update event set description = 'with an interval'").execute(pool).await.unwrap();
    assert_eq!(moves().await, [""; 0], "nothing that a ticket says");
    moved("+ interval '1 day'").await;
    moved("+ interval '1 day'").await;
    assert_eq!(moves().await, ["queued"], "one mail, decided when it is sent; none to whoever has no ticket");
    hub.stop().await;
    let hub = scene.hub().await;
    let mails = scene.smtp.until(1).await;
    assert_eq!(mails[0].subject(), "일정 변경: A Concert");
    let starts: chrono::NaiveDateTime =
        sqlx::query_scalar("select starts_local from event").fetch_one(pool).await.unwrap();
    let day = starts.format("%Y년 %-m월 %-d일").to_string();
    assert!(mails[0].text().contains(&day) && mails[0].html().contains(&day), "{day}: {}", mails[0].text());
    assert!(Paper::new(&mails[0].pdf()).await.text().await.contains(&day), "the tickets that come with it say so too");
    eventually("it is written down", || async { (moves().await == ["sent"]).then_some(()) }).await;
    hub.stop().await;
    // Moved, and back again before anybody was told: there is nothing to tell.
    let hub = scene.quiet_hub().await;
    moved("+ interval '2 hours'").await;
    moved("- interval '2 hours'").await;
    assert_eq!(moves().await, ["sent", "queued"]);
    hub.stop().await;
    let hub = scene.hub().await;
    eventually("it is dropped", || async { (moves().await == ["sent", "dropped"]).then_some(()) }).await;
    assert_eq!(scene.smtp.mails().len(), 1);
    sqlx::query("update ticket set state = 'valid', voided_at = null").execute(pool).await.unwrap(); // as it was sold
    scene.close(hub).await;
}

/// T6: sent again when the counter is asked to; a second click is the same wish.
#[tokio::test]
async fn the_counter_sends_tickets_again_and_a_reissue_is_told() {
    let scene = Scene::free(Smtp::start().await).await;
    let hub = scene.hub().await;
    let fan = scene.fan(&hub).await;
    let till = Till::enrol(&scene.database, &hub.url(), "Till").await;
    let order = scene.take(&fan, &[1]).await;
    scene.smtp.until(1).await;
    let again = format!("/api/box-office/orders/{order}/mail");
    for _ in 0..2 {
        assert_eq!(till.post_once(&again, "click", serde_json::json!({})).await.status, 202);
    }
    scene.smtp.until(2).await;
    scene.until_states(&["sent", "sent"]).await;
    let stranger = format!("/api/box-office/orders/{}/mail", Uuid::new_v4());
    assert_eq!(till.post(&stranger, serde_json::json!({})).await.code(), "order_unknown");
    let ticket: Uuid = sqlx::query_scalar("select id from ticket").fetch_one(scene.database.pool()).await.unwrap();
    let reissued = till
        .post(&format!("/api/box-office/tickets/{ticket}/reissue"), serde_json::json!({ "reason": "stolen" }))
        .await
        .ok();
    let mails = scene.smtp.until(3).await;
    assert_eq!(mails[2].subject(), "New ticket: A Concert");
    assert_eq!(Paper::new(&mails[2].pdf()).await.codes().await, [reissued["code"].as_str().unwrap()]);
    assert_eq!(mails[1].pdf().len(), mails[0].pdf().len(), "the same again");
    scene.close(hub).await;
}
