//! The hub killed at any moment: what was promised is kept, and nothing is stuck beyond its time.

use std::{sync::Arc, time::Duration};

use fullhouse::watch;
use fullhouse_tests::{
    binary::Binary,
    database::Database,
    eventually, fan,
    hub::Hub,
    proxy::{Proxy, Side},
    rows::Rows,
    till::Till,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::Mutex;
use uuid::Uuid;

/// What an actor was told, before the hub died.
#[derive(Default)]
struct Promises {
    /// Order numbers of sales that were answered with a confirmation.
    orders: Vec<String>,
    /// Keys of holds that were granted: fan, key, body, answer.
    holds: Vec<(usize, String, Value, Value)>,
}

/// Whether a naive sale marks the seat first, or writes its order first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Seat,
    Order,
}

/// What many write for whom seats and orders are two matters: a transaction each.
async fn naive_sale(pool: PgPool, event: i64, seat: i32, hold: Uuid, first: First) -> sqlx::Result<()> {
    let order = Uuid::new_v4();
    for part in if first == First::Seat { [First::Seat, First::Order] } else { [First::Order, First::Seat] } {
        let mut tx = pool.begin().await?;
        if part == First::Seat {
            sqlx::query("update event_seat set status = 2, order_id = $3, hold_id = null, held_until = null where event_id = $1 and seat_no = $2")
                .bind(event)
                .bind(seat)
                .bind(order)
                .execute(&mut *tx)
                .await?;
        } else {
            sqlx::query(
                r#"insert into "order" (id, code, event_id, buyer_id, hold_id, state, currency, total_minor, channel, actor, created_at, confirmed_at)
                   select $1, $1::text, event_id, buyer_id, id, 'confirmed', 'EUR', 0, 'web', 'naive', db_clock(), db_clock()
                   from hold where id = $2"#,
            )
            .bind(order)
            .bind(hold)
            .execute(&mut *tx)
            .await?;
            sqlx::query(
                "insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, state) values ($1, $2, $3, 'adult', 0, 'sold')",
            )
            .bind(order)
            .bind(event)
            .bind(seat)
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

/// The control: a process that dies between the two leaves a seat that nobody has and nobody can buy, or an
/// order without its seat, which the next one buys as well.
async fn naive_sales_are_torn_in_two() {
    for first in [First::Seat, First::Order] {
        let database = Database::new().await;
        let event = Rows { hold_ttl_s: 1, ..Rows::new(1, 1) }.open(database.pool()).await;
        let hub = Hub::start(database.config().await).await;
        let fans = fan::many(&database, &hub.url(), 2).await;
        let hold: Uuid = fans[0].hold(event, &[0]).await.ok()["hold"]["id"].as_str().unwrap().parse().unwrap();

        let proxy = Proxy::start().await;
        let pool = PgPool::connect(database.config_through(&proxy).database.url.reveal()).await.unwrap();
        let mut held = proxy.hold_next(if first == First::Seat { "INSERT" } else { "UPDATE" }, Side::Request);
        let process = tokio::spawn(naive_sale(pool, event, 0, hold, first));
        held.caught().await;
        process.abort(); // with its wires
        drop(proxy);
        database.no_transaction_is_left_open().await;

        let broken = watch::check(database.pool()).await.unwrap();
        assert!(!broken.is_empty(), "{first:?}: the fault exists");
        eventually("the hold's time is over", || async {
            let over = "select held_until <= db_clock() from hold where id = $1";
            sqlx::query_scalar::<_, bool>(over).bind(hold).fetch_one(database.pool()).await.unwrap().then_some(())
        })
        .await;
        let next = fans[1].hold(event, &[0]).await;
        if first == First::Seat {
            assert_eq!(next.code(), "seats_unavailable", "the seat is nobody's, and stuck");
        } else {
            next.ok(); // though an order says that it is sold
        }
        hub.stop().await;
        for statement in [
            "delete from order_line",
            r#"delete from "order""#,
            "update event_seat set status = 0, hold_id = null, held_until = null, order_id = null",
            "update hold set state = 'released', ended_at = db_clock() where state = 'live'",
        ] {
            sqlx::query(statement).execute(database.pool()).await.unwrap();
        }
        database.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_killed_loses_no_sale_and_leaves_no_hold_stuck() {
    let seed: u64 = rand::random();
    eprintln!("kill -9: seed {seed}");
    naive_sales_are_torn_in_two().await;
    let mut rng = SmallRng::seed_from_u64(seed);
    let database = Database::new().await;
    let event = Rows { hold_ttl_s: 3, ..Rows::new(20, 10) }.open(database.pool()).await;
    let config = database.config().await;
    let promises = Arc::new(Mutex::new(Promises::default()));

    for round in 0..6u64 {
        let hub = Binary::serve(&config, &[]).await;
        let url = hub.url().to_owned();
        let till = Till::enrol(&database, &url, &format!("Counter {round}")).await;
        let fans = fan::many(&database, &url, 20).await;
        let mut actors = Vec::new();
        for (n, fan) in fans.iter().cloned().enumerate() {
            let (promises, mut rng) = (promises.clone(), SmallRng::seed_from_u64(seed + round * 100 + n as u64));
            actors.push(tokio::spawn(async move {
                loop {
                    let key = format!("{round}-{n}-{}", rng.random::<u64>());
                    let body = json!({ "seats": [rng.random_range(0..200)], "replace": true });
                    let path = format!("/api/events/{event}/hold");
                    let request = fan.request(reqwest::Method::POST, &path).header("idempotency-key", &key).json(&body);
                    let Ok(response) = request.send().await else { return };
                    let Ok(answer) = fan::Answer::read(response).await else { return };
                    if answer.status.is_success() {
                        promises.lock().await.holds.push((n, key, body, answer.body));
                    }
                }
            }));
        }
        actors.push({
            let (promises, mut rng) = (promises.clone(), SmallRng::seed_from_u64(seed ^ round));
            tokio::spawn(async move {
                for _ in 0..20 {
                    let Ok(held) = till.try_hold(event, &[rng.random_range(0..200)]).await else { return };
                    if !held.status.is_success() {
                        continue;
                    }
                    let Ok(sold) = till.try_sell_for_cash(&held.body, 4500).await else { return };
                    if sold.status.is_success() {
                        let id = sold.body["order"]["id"].as_str().expect("an order has an id").to_owned();
                        promises.lock().await.orders.push(id);
                    }
                }
            })
        });
        tokio::time::sleep(Duration::from_millis(rng.random_range(200..900))).await;
        hub.kill().await;
        for actor in actors {
            actor.await.expect("an actor came to grief");
        }

        // Another hub: every promise is kept, and a retry under the same key finds the same answer.
        let hub = Binary::serve(&config, &[]).await;
        database.no_transaction_is_left_open().await;
        let kept = std::mem::take(&mut *promises.lock().await);
        for (n, key, body, first) in kept.holds.iter().rev().take(40) {
            let fan = fans[*n].at(hub.url());
            let again = fan.post_once(&format!("/api/events/{event}/hold"), key, body.clone()).await.ok();
            assert_eq!(again, *first, "seed {seed}, round {round}");
        }
        for order in &kept.orders {
            let state: String = sqlx::query_scalar(r#"select state from "order" where id = $1::uuid"#)
                .bind(order)
                .fetch_one(database.pool())
                .await
                .unwrap();
            assert_eq!(state, "confirmed", "seed {seed}, round {round}");
        }
        eprintln!(
            "round {round}: {} holds granted, {} sales confirmed before the kill",
            kept.holds.len(),
            kept.orders.len()
        );
        assert!(!kept.holds.is_empty(), "seed {seed}, round {round}: nothing happened before the kill");
        // Whatever was held comes back at its time, without anybody's help.
        eventually("no seat is held any more", || async {
            let held: i64 =
                sqlx::query_scalar("select count(*) from event_seat where status = 1 and held_until > db_clock()")
                    .fetch_one(database.pool())
                    .await
                    .unwrap();
            (held == 0).then_some(())
        })
        .await;
        let next = &fan::many(&database, hub.url(), 1).await[0];
        let sold: Vec<i32> = sqlx::query_scalar("select seat_no from event_seat where status = 2")
            .fetch_all(database.pool())
            .await
            .unwrap();
        let free = (0..200).find(|s| !sold.contains(s)).expect("a seat is left");
        next.hold(event, &[free]).await.ok();
        hub.stop().await;
        database.no_invariant_is_broken().await;
    }
    database.finish().await;
}
