//! Races. Each first shows the double sale with a naive verb that lives here, then that ours does not have it.
//! Several hubs, not only several tasks: they share a database and a nats-server, as in a big house.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::TimeDelta;
use fullhouse::{
    checkout::{self, Basket, Channel, ConfirmError, Tendered},
    config::Config,
    db,
    hold::sweeper,
    serve::Roles,
};
use fullhouse_tests::{
    database::Database,
    eventually, fan,
    hub::Hub,
    nats::Nats,
    provider::{CARD, Provider},
    rows::{Rows, buyers},
    till::Till,
};
use futures_util::future::join_all;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IteratorRandom};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::Barrier;
use uuid::Uuid;

/// The settings of hubs that share a database.
async fn shared(database: &Database, nats: &Nats) -> Config {
    Config { nats: fullhouse::config::Nats { url: nats.url(), ..Config::defaults().nats }, ..database.config().await }
}

async fn stop(hubs: impl IntoIterator<Item = Hub>) {
    for hub in hubs {
        hub.stop().await;
    }
}

/// What many write who have not thought about it: look, then take. Everybody looks before anybody takes.
async fn naive_purchase(pool: PgPool, event: i64, seat: i32, looked: Arc<Barrier>) -> bool {
    let status: i16 = sqlx::query_scalar("select status from event_seat where event_id = $1 and seat_no = $2")
        .bind(event)
        .bind(seat)
        .fetch_one(&pool)
        .await
        .unwrap();
    looked.wait().await;
    if status != 0 {
        return false;
    }
    let order = Uuid::new_v4();
    let taken = sqlx::query("update event_seat set status = 2, order_id = $3 where event_id = $1 and seat_no = $2")
        .bind(event)
        .bind(seat)
        .bind(order)
        .execute(&pool)
        .await
        .unwrap();
    taken.rows_affected() == 1
}

#[tokio::test]
async fn fifty_buyers_by_web_and_till_want_one_seat() {
    const BUYERS: usize = 50;
    let database = Database::new().await;
    let control = Rows::new(1, 1).open(database.pool()).await;
    let looked = Arc::new(Barrier::new(8));
    let naive = join_all((0..8).map(|_| naive_purchase(database.pool().clone(), control, 0, looked.clone()))).await;
    assert!(
        naive.iter().filter(|sold| **sold).count() > 1,
        "the race exists: the naive verb sells the seat more than once"
    );
    sqlx::query("update event_seat set status = 0, order_id = null").execute(database.pool()).await.unwrap();

    let event = Rows::new(1, 1).open(database.pool()).await;
    let (nats, provider) = (Nats::start().await, Provider::start().await);
    let mut config = shared(&database, &nats).await;
    provider.configure(&mut config);
    let hubs = [Hub::start(config.clone()).await, Hub::start(config).await];
    let fans = fan::many(&database, &hubs[0].url(), BUYERS / 2).await;
    let till = Till::enrol(&database, &hubs[0].url(), "Counter 1").await;
    let at = |n: usize| hubs[n % 2].url();
    let web = join_all(fans.iter().enumerate().map(|(n, fan)| {
        let fan = fan.at(&at(n));
        async move {
            let held = fan.hold(event, &[0]).await;
            if !held.status.is_success() {
                return held;
            }
            let order = fan.checkout(held.body["hold"]["id"].as_str().unwrap()).await.ok()["order"].clone();
            fan.pay(&order, "once", CARD).await.ok();
            eventually("the order is paid", || async {
                let answer = fan.order(order["id"].as_str().unwrap()).await;
                (answer.body["order"]["attempt"]["phase"] == "paid").then_some(answer)
            })
            .await
        }
    }));
    let counter = join_all((0..BUYERS / 2).map(|n| {
        let till = till.at(&at(n));
        async move {
            let held = till.hold(event, &[0]).await;
            if !held.status.is_success() {
                return held;
            }
            till.sell_for_cash(&held.body, 4500).await
        }
    }));
    let (web, counter) = tokio::join!(web, counter);
    let answers: Vec<_> = web.iter().chain(&counter).collect();
    assert_eq!(answers.iter().filter(|a| a.status.is_success()).count(), 1);
    assert!(answers.iter().filter(|a| !a.status.is_success()).all(|a| a.code() == "seats_unavailable"));
    let sold: i64 = sqlx::query_scalar("select count(*) from order_line where state = 'sold'")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(sold, 1);
    stop(hubs).await;
    database.finish().await;
}

/// What must hold after each step of a crowd, looked at from behind.
async fn nobody_has_what_somebody_else_has(pool: &PgPool, event: i64, limit: i64) {
    let mut tx = pool.begin().await.unwrap();
    // One picture of everything: the parts are compared with one another.
    sqlx::query("set transaction isolation level repeatable read read only").execute(&mut *tx).await.unwrap();
    let doubles: Vec<(i32, i64)> = sqlx::query_as(
        r#"select seat_no, count(*) from (
             select s.seat_no from event_seat s where s.event_id = $1 and s.status = 1 and s.held_until > db_clock()
             union all
             select l.seat_no from order_line l where l.event_id = $1 and l.state = 'sold' and l.seat_no is not null
           ) as owners group by seat_no having count(*) > 1"#,
    )
    .bind(event)
    .fetch_all(&mut *tx)
    .await
    .unwrap();
    assert!(doubles.is_empty(), "two owners: {doubles:?}");
    let over: Vec<(Uuid, i64)> = sqlx::query_as(
        r#"select buyer_id, sum(n)::bigint from (
             select buyer_id, cardinality(seat_nos) as n from hold where event_id = $1 and state = 'live' and held_until > db_clock()
             union all
             select o.buyer_id, 1 from "order" o join order_line l on l.order_id = o.id
             where o.event_id = $1 and l.state = 'sold' and l.seat_no is not null
           ) as theirs group by buyer_id having sum(n) > $2"#,
    )
    .bind(event)
    .bind(limit)
    .fetch_all(&mut *tx)
    .await
    .unwrap();
    assert!(over.is_empty(), "over the limit: {over:?}");
    let silent: Vec<(i32, i32, i64)> = sqlx::query_as(
        "select s.seat_no, s.version, count(c.version) from event_seat s
         left join (select distinct u.seat_no, u.version from outbox o, unnest(o.seat_nos, o.versions) as u(seat_no, version)
                    where o.event_id = $1) as c on c.seat_no = s.seat_no
         where s.event_id = $1 group by s.seat_no, s.version having count(c.version) <> s.version - 1",
    )
    .bind(event)
    .fetch_all(&mut *tx)
    .await
    .unwrap();
    assert!(silent.is_empty(), "changes without an outbox row (seat, version, rows): {silent:?}");
    tx.commit().await.unwrap();
}

/// A crowd over several hubs for a minute: what it did, and that nothing was answered with a 5xx.
#[derive(Default)]
struct Deeds {
    granted: AtomicU64,
    refused: AtomicU64,
    released: AtomicU64,
    sold: AtomicU64,
}

impl Deeds {
    fn count(&self, answer: &fan::Answer) -> bool {
        assert!(!answer.status.is_server_error(), "a 5xx: {} {}", answer.status, answer.body);
        let counter = if answer.status.is_success() { &self.granted } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        answer.status.is_success()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_buyers_draw_overlapping_sixes_for_a_minute() {
    let seed: u64 = rand::random();
    eprintln!("overlapping sixes: seed {seed}");
    let database = Database::new().await;
    naive_limit_and_deadlock_controls(&database).await;

    // Short holds, so that expiry is at work all the time; no relay, so that the outbox can be counted.
    let event = Rows { hold_ttl_s: 2, ..Rows::new(6, 10) }.open(database.pool()).await;
    let nats = Nats::start().await;
    let (config, roles) = (shared(&database, &nats).await, Roles { relay: false, ..Roles::ALL });
    let hubs = [Hub::start_as(config.clone(), roles).await, Hub::start_as(config, roles).await];
    let fans = fan::many(&database, &hubs[0].url(), 200).await;
    let till = Till::enrol(&database, &hubs[0].url(), "Counter 1").await;
    let (deeds, over) = (Arc::new(Deeds::default()), Arc::new(AtomicBool::new(false)));
    let urls: Vec<String> = hubs.iter().map(Hub::url).collect();

    let crowd = fans.into_iter().enumerate().map(|(n, fan)| {
        let (deeds, over, urls) = (deeds.clone(), over.clone(), urls.clone());
        tokio::spawn(async move {
            let mut rng = SmallRng::seed_from_u64(seed + n as u64);
            while !over.load(Ordering::Relaxed) {
                let fan = fan.at(&urls[rng.random_range(0..urls.len())]);
                let count = rng.random_range(1..=6);
                let mut seats = (0..60).choose_multiple(&mut rng, count);
                // Opposite orders at the two hubs: what would deadlock, if anything could.
                if rng.random_bool(0.5) {
                    seats.reverse();
                }
                let body = json!({ "seats": seats, "fewer_ok": rng.random_bool(0.5), "replace": rng.random_bool(0.3) });
                let answer = fan.hold_with(event, body).await;
                if deeds.count(&answer) && rng.random_bool(0.5) {
                    let hold = answer.body["hold"]["id"].as_str().unwrap().to_owned();
                    let held: Vec<i32> = serde_json::from_value(answer.body["hold"]["seats"].clone()).unwrap();
                    let released = if rng.random_bool(0.5) {
                        fan.release(&hold).await
                    } else {
                        fan.release_seats(&hold, &held[..1]).await
                    };
                    assert!(released.status.is_success(), "{} {}", released.status, released.body);
                    deeds.released.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(rng.random_range(0..400))).await;
            }
        })
    });
    let crowd: Vec<_> = crowd.collect();
    let counter = {
        let (deeds, over, urls) = (deeds.clone(), over.clone(), urls.clone());
        tokio::spawn(async move {
            let mut rng = SmallRng::seed_from_u64(seed ^ 0xcafe);
            // A dozen sales at most: the rest must stay contended.
            while !over.load(Ordering::Relaxed) && deeds.sold.load(Ordering::Relaxed) < 12 {
                let till = till.at(&urls[rng.random_range(0..urls.len())]);
                let seats = (0..60).choose_multiple(&mut rng, 6);
                let body = json!({ "event_id": event, "seats": seats, "fewer_ok": true });
                let held = till.post("/api/box-office/holds", body).await;
                if deeds.count(&held) {
                    let sold = till.sell_for_cash(&held.body, 30_000).await;
                    assert!(sold.status.is_success() || sold.code() == "hold_ended", "{} {}", sold.status, sold.body);
                    if sold.status.is_success() {
                        deeds.sold.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_secs(3)).await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    };
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    let mut looks = 0;
    while tokio::time::Instant::now() < until {
        nobody_has_what_somebody_else_has(database.pool(), event, 6).await;
        looks += 1;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    over.store(true, Ordering::Relaxed);
    for fan in crowd {
        fan.await.expect("a fan came to grief");
    }
    counter.await.expect("the till came to grief");
    nobody_has_what_somebody_else_has(database.pool(), event, 6).await;
    let deadlocks: i64 =
        sqlx::query_scalar("select deadlocks from pg_stat_database where datname = current_database()")
            .fetch_one(database.pool())
            .await
            .unwrap();
    assert_eq!(deadlocks, 1, "the control's own, and no other");
    let [granted, refused, released, sold] =
        [&deeds.granted, &deeds.refused, &deeds.released, &deeds.sold].map(|d| d.load(Ordering::Relaxed));
    eprintln!("{granted} granted, {refused} refused, {released} released, {sold} sold, {looks} looks");
    assert!(
        granted > 500 && refused > 500 && released > 100 && sold >= 3 && looks > 20,
        "too little happened to prove anything"
    );
    stop(hubs).await;
    database.finish().await;
}

/// The control: a limit that is checked before it is taken is passed, and locks in opposite orders deadlock.
async fn naive_limit_and_deadlock_controls(database: &Database) {
    let event = Rows::new(1, 20).open(database.pool()).await;
    let buyer = buyers(database.pool(), 1).await[0];
    let looked = Arc::new(Barrier::new(2));
    let tabs = [0, 6].map(|first: i32| {
        let (pool, looked) = (database.pool().clone(), looked.clone());
        async move {
            let has: i64 = sqlx::query_scalar("select count(*) from naive_hold where buyer_id = $1")
                .bind(buyer)
                .fetch_one(&pool)
                .await
                .unwrap();
            looked.wait().await;
            if has + 6 <= 6 {
                for seat in first..first + 6 {
                    sqlx::query("insert into naive_hold values ($1, $2)")
                        .bind(buyer)
                        .bind(seat)
                        .execute(&pool)
                        .await
                        .unwrap();
                }
            }
        }
    });
    sqlx::query("create table naive_hold (buyer_id uuid, seat_no int)").execute(database.pool()).await.unwrap();
    join_all(tabs).await;
    let has: i64 = sqlx::query_scalar("select count(*) from naive_hold").fetch_one(database.pool()).await.unwrap();
    assert_eq!(has, 12, "the race exists: two tabs hold six each");
    sqlx::query("drop table naive_hold").execute(database.pool()).await.unwrap();

    let locked = Arc::new(Barrier::new(2));
    let crossing = [[0, 1], [1, 0]].map(|order| {
        let (pool, locked) = (database.pool().clone(), locked.clone());
        async move {
            let mut tx = pool.begin().await.unwrap();
            let lock = "select from event_seat where event_id = $1 and seat_no = $2 for update";
            sqlx::query(lock).bind(event).bind(order[0]).execute(&mut *tx).await.unwrap();
            locked.wait().await;
            sqlx::query(lock).bind(event).bind(order[1]).execute(&mut *tx).await.err().map(|e| e.to_string())
        }
    });
    let errors = join_all(crossing).await;
    assert!(errors.iter().flatten().any(|e| e.contains("deadlock")), "the race exists: {errors:?}");
    // The server's own count comes a moment later.
    eventually("the deadlock is counted", || async {
        let count: i64 =
            sqlx::query_scalar("select deadlocks from pg_stat_database where datname = current_database()")
                .fetch_one(database.pool())
                .await
                .unwrap();
        (count == 1).then_some(())
    })
    .await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    Confirm,
    Release,
    Sweep,
}

#[tokio::test]
async fn what_comes_late_from_the_former_holder_leaves_the_next_one_alone() {
    let (database, clock) = Database::with_clock().await;
    // The control: a release that does not name the hold it believes in frees the next one's seat.
    let control = Rows::new(1, 2).open(database.pool()).await;
    let next = Uuid::new_v4();
    sqlx::query("update event_seat set status = 1, hold_id = $2, held_until = db_clock() + interval '1 hour' where event_id = $1")
        .bind(control)
        .bind(next)
        .execute(database.pool())
        .await
        .unwrap();
    let naive =
        "update event_seat set status = 0, hold_id = null, held_until = null where event_id = $1 and seat_no = 0";
    sqlx::query(naive).bind(control).execute(database.pool()).await.unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from event_seat where hold_id = $1")
        .bind(next)
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(left, 1, "the race exists: of the next one's two seats one is gone");
    sqlx::query("update event_seat set status = 0, hold_id = null, held_until = null")
        .execute(database.pool())
        .await
        .unwrap();

    let hub = Hub::start_as(database.config().await, Roles { workers: false, ..Roles::ALL }).await;
    use Late::*;
    for order in [
        [Confirm, Release, Sweep],
        [Confirm, Sweep, Release],
        [Release, Confirm, Sweep],
        [Release, Sweep, Confirm],
        [Sweep, Confirm, Release],
        [Sweep, Release, Confirm],
    ] {
        let event = Rows::new(1, 4).open(database.pool()).await;
        let fans = fan::many(&database, &hub.url(), 2).await;
        let a = fans[0].hold(event, &[0, 1]).await.ok();
        let a_hold = a["hold"]["id"].as_str().unwrap().to_owned();
        let a_order: Uuid = fans[0].checkout(&a_hold).await.ok()["order"]["id"].as_str().unwrap().parse().unwrap();
        clock.advance(TimeDelta::seconds(481)).await;
        let b = fans[1].hold(event, &[1]).await.ok();
        let b_hold = b["hold"]["id"].as_str().unwrap().to_owned();
        for late in order {
            match late {
                Confirm => {
                    let mut tx = db::event_tx(database.pool(), event).await.unwrap();
                    let cash = Tendered::Cash { received_minor: 9000 };
                    let refused = checkout::confirm(&mut tx, a_order, cash, "a late confirm").await;
                    assert!(
                        matches!(refused, Err(ConfirmError::HoldEnded | ConfirmError::OrderNotOpen(_))),
                        "{order:?}: {refused:?}"
                    );
                    tx.commit().await.unwrap();
                }
                Release => assert_eq!(fans[0].release(&a_hold).await.ok()["hold"], Value::Null),
                Sweep => {
                    sweeper::sweep(database.pool(), &hub.parts().desks, 100).await.unwrap();
                }
            }
            let mine = fans[1].my_hold(event).await.ok();
            assert_eq!(
                (mine["hold"]["id"].as_str(), &mine["hold"]["seats"]),
                (Some(b_hold.as_str()), &json!([1])),
                "{order:?} {late:?}"
            );
        }
        let free: Vec<i32> =
            sqlx::query_scalar("select seat_no from event_seat where event_id = $1 and status = 0 order by 1")
                .bind(event)
                .fetch_all(database.pool())
                .await
                .unwrap();
        assert_eq!(free, [0, 2, 3], "{order:?}: A's other seat is free again");
        fans[1].checkout(&b_hold).await.ok();
    }
    hub.stop().await;
    database.finish().await;
}

/// What many write who have not thought about it: look whether the hold lives, then sell. Both look first.
async fn naive_confirmation(pool: PgPool, event: i64, hold: Uuid, looked: Arc<Barrier>) -> bool {
    let theirs = "select count(*) from event_seat where event_id = $1 and hold_id = $2 and held_until > db_clock()";
    let seats: i64 = sqlx::query_scalar(theirs).bind(event).bind(hold).fetch_one(&pool).await.unwrap();
    looked.wait().await;
    if seats == 0 {
        return false;
    }
    // By the seats that were seen, and under an order of its own.
    let sold = sqlx::query(
        "update event_seat set status = 2, order_id = $2, hold_id = null, held_until = null
         where event_id = $1 and seat_no < $3",
    )
    .bind(event)
    .bind(Uuid::new_v4())
    .bind(seats as i32)
    .execute(&pool)
    .await
    .unwrap();
    sold.rows_affected() == seats as u64
}

/// The control: till and confirmation look, then sell; each of them has sold the same two seats.
async fn naive_confirmations_sell_twice(database: &Database) {
    let event = Rows::new(1, 2).open(database.pool()).await;
    let hold = Uuid::new_v4();
    sqlx::query("update event_seat set status = 1, hold_id = $2, held_until = db_clock() + interval '1 hour' where event_id = $1")
        .bind(event)
        .bind(hold)
        .execute(database.pool())
        .await
        .unwrap();
    let looked = Arc::new(Barrier::new(2));
    let both = (0..2).map(|_| naive_confirmation(database.pool().clone(), event, hold, looked.clone()));
    assert_eq!(join_all(both).await, [true, true], "the race exists: the till and the page have both sold them");
    sqlx::query("update event_seat set status = 0, order_id = null").execute(database.pool()).await.unwrap();
}

#[tokio::test]
async fn a_till_and_a_confirmation_of_one_hold_sell_it_once() {
    let database = Database::new().await;
    naive_confirmations_sell_twice(&database).await;
    let event = Rows::new(1, 4).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    let hold: Uuid = fan.hold(event, &[0, 1]).await.ok()["hold"]["id"].as_str().unwrap().parse().unwrap();
    let buyer: Uuid = sqlx::query_scalar("select buyer_id from hold where id = $1")
        .bind(hold)
        .fetch_one(database.pool())
        .await
        .unwrap();
    let basket = Basket {
        hold_id: hold,
        buyer_id: buyer,
        ticket_types: HashMap::new(),
        prices: HashMap::new(),
        says_prices: false,
        channel: Channel::Web,
        actor: "test".into(),
    };
    let order = checkout::price(database.pool().clone(), basket).await.unwrap();
    let tries = (0..8).map(|_| {
        let pool = database.pool().clone();
        async move {
            let mut tx = db::event_tx(&pool, event).await.unwrap();
            let confirmed = checkout::confirm(&mut tx, order, Tendered::Cash { received_minor: 9000 }, "till").await;
            tx.commit().await.unwrap();
            confirmed.is_ok()
        }
    });
    assert_eq!(join_all(tries).await.into_iter().filter(|ok| *ok).count(), 1);
    let tickets: i64 = sqlx::query_scalar("select count(*) from ticket where state = 'valid'")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(tickets, 2);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_wire_that_breaks_in_the_middle_of_a_batch_is_answered_by_the_key() {
    let database = Database::new().await;
    let event = Rows::new(4, 10).open(database.pool()).await;
    let proxy = fullhouse_tests::proxy::Proxy::start().await;
    let hub = Hub::start(database.config_through(&proxy)).await;
    let fans = fan::many(&database, &hub.url(), 20).await;
    for fan in &fans {
        fan.my_hold(event).await.ok();
    }
    let asks: Vec<_> = fans
        .iter()
        .enumerate()
        .map(|(n, fan)| {
            let (fan, path) = (fan.clone(), format!("/api/events/{event}/hold"));
            tokio::spawn(async move { fan.post_once(&path, "k", json!({ "seats": [n] })).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(3)).await;
    proxy.cut();
    tokio::time::sleep(Duration::from_millis(30)).await;
    proxy.mend();
    for ask in asks {
        let answer = ask.await.unwrap();
        assert!(answer.status.is_success() || answer.code() == "busy", "{} {}", answer.status, answer.body);
    }
    for (n, fan) in fans.iter().enumerate() {
        let path = format!("/api/events/{event}/hold");
        let answer = eventually("the key finds the answer", || async {
            let answer = fan.post_once(&path, "k", json!({ "seats": [n] })).await;
            answer.status.is_success().then_some(answer)
        })
        .await;
        assert_eq!(answer.body["hold"]["seats"], json!([n]));
    }
    hub.stop().await;
    database.finish().await;
}
