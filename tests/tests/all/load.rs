//! What a line's pace follows is what hubs have measured just now, and what payments' own rows say.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse::{
    admission::{
        controller::Measured,
        load::{self, Sample},
    },
    payment::gate,
};
use fullhouse_tests::{database::Database, eventually, fan, hub::Hub, rows::Rows};
use sqlx::PgPool;
use uuid::Uuid;

async fn measured(pool: &PgPool) -> Measured {
    let now: DateTime<Utc> = sqlx::query_scalar("select db_clock()").fetch_one(pool).await.unwrap();
    load::measured(&mut pool.acquire().await.unwrap(), now).await.unwrap()
}

#[tokio::test]
async fn the_worst_of_the_fresh_rows_counts_and_old_ones_do_not() {
    let database = Database::new().await;
    let pool = database.pool();
    let nothing = measured(pool).await;
    assert_eq!((nothing.hubs, nothing.hold_ms, nothing.pool_percent), (0, None, 0));

    let well = Sample {
        holds: 100,
        hold_p50_ms: Some(5),
        hold_p99_ms: Some(20),
        lock_wait_ms: 1,
        write_ms: 2,
        pool_percent: 30,
        answers: 900,
        faults: 0,
    };
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    load::report(pool, first, &Sample { pool_percent: 99, ..well }).await.unwrap();
    load::report(pool, first, &well).await.unwrap();
    let slow = Sample { hold_p99_ms: Some(700), lock_wait_ms: 80, write_ms: 90, answers: 100, faults: 50, ..well };
    load::report(pool, second, &slow).await.unwrap();
    let both = measured(pool).await;
    assert_eq!((both.hubs, both.hold_ms, both.lock_wait_ms, both.write_ms), (2, Some(700), 80, 90));
    assert_eq!(
        (both.pool_percent, both.errors_percent),
        (30, 5),
        "its own row is written anew, faults are of all answers"
    );

    sqlx::query("update hub_load set at = at - interval '11 seconds' where hub = $1")
        .bind(second)
        .execute(pool)
        .await
        .unwrap();
    let one = measured(pool).await;
    assert_eq!((one.hubs, one.hold_ms, one.errors_percent), (1, Some(20), 0), "the slow one is gone");

    sqlx::query("update hub_load set at = clock_timestamp() + interval '1 hour' where hub = $1")
        .bind(second)
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(measured(pool).await.hubs, 1, "nor does one that went before a clock was set back");

    // Of few holds the median, of hardly any nothing.
    for (holds, expected) in [(10, Some(5)), (2, None)] {
        load::report(pool, first, &Sample { holds, ..well }).await.unwrap();
        assert_eq!(measured(pool).await.hold_ms, expected, "{holds} holds");
    }
    database.finish().await;
}

#[tokio::test]
async fn a_closed_gate_is_seen() {
    let database = Database::new().await;
    let pool = database.pool();
    assert!(!measured(pool).await.gate_closed);
    gate::pause(pool, "a test", "somebody").await.unwrap();
    assert!(measured(pool).await.gate_closed);
    gate::open(pool, gate::PAUSED, "somebody", "over").await.unwrap();
    assert!(!measured(pool).await.gate_closed);
    database.finish().await;
}

#[tokio::test]
async fn a_hub_measures_itself_while_it_runs() {
    let database = Database::new().await;
    let event = Rows { churn_seats_max: i32::MAX, ..Rows::new(4, 10) }.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 4).await;
    for (seat, fan) in (0i32..).step_by(2).zip(&fans) {
        fan.hold(event, &[seat, seat + 1]).await.ok();
    }
    let row = "select holds, hold_p99_ms, hold_p50_ms, answers from hub_load where holds > 0";
    let (holds, p99_ms, p50_ms, answers): (i32, i32, i32, i32) = eventually("its row has holds", || async {
        sqlx::query_as(row).fetch_optional(database.pool()).await.unwrap()
    })
    .await;
    assert!(
        (1..=4).contains(&holds) && answers >= holds && p99_ms >= p50_ms && p50_ms > 0,
        "{holds} {p50_ms} {p99_ms}"
    );
    assert_eq!(measured(database.pool()).await.hubs, 1);
    // A later row begins anew: nobody holds.
    eventually("a row without holds", || async {
        let none: bool = sqlx::query_scalar("select holds = 0 from hub_load").fetch_one(database.pool()).await.unwrap();
        none.then_some(())
    })
    .await;
    let (at, now): (DateTime<Utc>, DateTime<Utc>) =
        sqlx::query_as("select max(at), clock_timestamp() from hub_load").fetch_one(database.pool()).await.unwrap();
    assert!(now - at < TimeDelta::seconds(10), "{at} at {now}");
    hub.stop().await;
    database.finish().await;
}
