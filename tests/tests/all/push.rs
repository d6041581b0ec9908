//! Showing seats to everybody: every map ends equal to the database, whatever happens on the way.

mod addresses; // snapshot, frames, sockets
mod nodes; // several of them
mod late; // beside a transaction of ten minutes
mod stalled; // readers that stop
mod polling; // behind a cache
mod crowds; // thousands on two nodes
mod lines; // people instead of seats

use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use fullhouse::{
    config::Config,
    feed::{Feed, Kind, Lost, Message},
    outbox::{self, SeatChange},
    serve::Roles,
};
use fullhouse_protocol::{
    close,
    frames::{Frame, Statuses, decode_body},
    seat::Status::{self, Available, Blocked, Held},
};
use fullhouse_tests::{
    HUNG, database::Database, eventually, fan::Fan, fan::many, hall::Hall, hub::Hub, map::Map, nats::Nats, stage::Stage,
};
use futures_util::StreamExt;
use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;

/// No sweeper: what holds have run out is the relay's to know.
const NO_WORKERS: Roles = Roles { workers: false, ..Roles::ALL };

async fn config(database: &Database, nats: Option<&Nats>) -> Config {
    let mut config = database.config().await;
    config.nats.url = nats.map(Nats::url).unwrap_or_default();
    config
}

async fn small_hall(database: &Database) -> i64 {
    Stage { hall: Hall { rows: 4, seats_a_row: 10 }, ..Stage::default() }.open(database).await
}

/// Blocks or unblocks a seat as a verb would: the row, its version, and the outbox, in one transaction.
async fn set(tx: &mut PgConnection, event: i64, seat_no: i32, status: Status) {
    let version = sqlx::query_scalar(
        "update event_seat set status = $3, version = version + 1 where event_id = $1 and seat_no = $2 returning version",
    )
    .bind(event)
    .bind(seat_no)
    .bind(i16::from(status))
    .fetch_one(&mut *tx)
    .await
    .unwrap();
    let now = sqlx::query_scalar("select db_clock()").fetch_one(&mut *tx).await.unwrap();
    outbox::append(tx, event, now, &[SeatChange { seat_no, status, version, held_until: None }]).await.unwrap();
}

async fn set_now(pool: &PgPool, event: i64, seat_no: i32, status: Status) {
    let mut tx = pool.begin().await.unwrap();
    set(&mut tx, event, seat_no, status).await;
    tx.commit().await.unwrap();
}

/// The map as the database has it.
async fn truth(pool: &PgPool, event: i64) -> Statuses {
    let statuses: Vec<i16> = sqlx::query_scalar(
        "select case when status = 1 and held_until <= db_clock() then 0::smallint else status end
         from event_seat where event_id = $1 order by seat_no",
    )
    .bind(event)
    .fetch_all(pool)
    .await
    .unwrap();
    statuses.into_iter().map(|status| Status::try_from(status).unwrap()).collect()
}

#[track_caller]
fn equals_the_database(map: &mut Map, pool: &PgPool, event: i64) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let until = Instant::now() + HUNG;
        loop {
            let truth = truth(pool, event).await;
            if map.track.statuses == truth {
                return;
            }
            assert!(Instant::now() < until, "{caller}: {:?} is shown instead of {truth:?}", map.track);
            // As long as there is something to wait for; the database may have moved on meanwhile.
            let _ =
                tokio::time::timeout(Duration::from_millis(200), map.until("a change", |m| m.track.statuses == truth))
                    .await;
        }
    }
}

// ---- the same on both feeds ----

async fn a_map_follows_the_sale(nats: Option<&Nats>) {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, nats).await).await;
    let fan = Fan::sign_up(&hub.url()).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let began = map.snapshots;

    let hold = fan.hold(event, &[3, 4]).await.ok();
    map.until_seat(4, Held).await;
    assert_eq!((map.status(3), map.status(5)), (Held, Available));

    // What changes while nobody looks comes first when the socket is back, without a snapshot (B19).
    map.drop_socket();
    fan.release(hold["hold"]["id"].as_str().unwrap()).await.ok();
    set_now(database.pool(), event, 9, Blocked).await;
    database.outbox_is_drained().await;
    map.until_seat(9, Blocked).await;
    assert_eq!((map.status(3), map.status(4), map.snapshots), (Available, Available, began));

    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    map.until("the node said that it drains", |map| map.closed_with == [close::DRAINING]).await;
    database.finish().await;
}

#[tokio::test]
async fn a_map_follows_the_sale_in_process() {
    a_map_follows_the_sale(None).await;
}

#[tokio::test]
async fn a_map_follows_the_sale_over_nats() {
    a_map_follows_the_sale(Some(&Nats::start().await)).await;
}

/// A row that took its number first and commits last, beside a transaction that never ends (B16).
async fn a_late_commit_arrives(nats: Option<&Nats>) {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, nats).await).await;
    let mut map = Map::open(&hub.url(), event).await;
    let mut endless = database.pool().begin().await.unwrap();
    set(&mut endless, event, 0, Blocked).await;

    let mut first = database.pool().begin().await.unwrap();
    set(&mut first, event, 1, Blocked).await;
    set_now(database.pool(), event, 2, Blocked).await;
    map.until_seat(2, Blocked).await;
    eventually("the second row is delivered", || async {
        let rows: i64 = sqlx::query_scalar("select count(*) from outbox").fetch_one(database.pool()).await.unwrap();
        (rows == 0).then_some(())
    })
    .await;
    assert_eq!(map.status(1), Available);
    first.commit().await.unwrap();
    map.until_seat(1, Blocked).await;
    set_now(database.pool(), event, 3, Blocked).await;
    map.until_seat(3, Blocked).await;
    endless.rollback().await.unwrap();
    database.outbox_is_drained().await;
    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_late_commit_arrives_in_process() {
    a_late_commit_arrives(None).await;
}

#[tokio::test]
async fn a_late_commit_arrives_over_nats() {
    a_late_commit_arrives(Some(&Nats::start().await)).await;
}

async fn what_was_lost_is_found_again(nats: Option<&Nats>) {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let mut config = config(&database, nats).await;
    config.relay.compare_interval_s = 1;
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    sqlx::query("update event_seat set status = 3, version = version + 1 where event_id = $1 and seat_no < 7")
        .bind(event)
        .execute(database.pool())
        .await
        .unwrap();
    map.until_seat(6, Blocked).await;
    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn what_was_lost_is_found_again_in_process() {
    what_was_lost_is_found_again(None).await;
}

#[tokio::test]
async fn what_was_lost_is_found_again_over_nats() {
    what_was_lost_is_found_again(Some(&Nats::start().await)).await;
}

// ---- the relay ----

#[tokio::test]
async fn a_hold_that_has_run_out_is_shown_free_without_a_sweeper() {
    let (database, clock) = Database::with_clock().await;
    let event = small_hall(&database).await;
    let hub = Hub::start_as(config(&database, None).await, NO_WORKERS).await;
    let fan = Fan::sign_up(&hub.url()).await;
    let mut map = Map::open(&hub.url(), event).await;
    fan.hold(event, &[3]).await.ok();
    map.until_seat(3, Held).await;
    clock.advance(TimeDelta::seconds(481)).await;
    map.until_seat(3, Available).await;
    let status: i16 = sqlx::query_scalar("select status from event_seat where event_id = $1 and seat_no = 3")
        .bind(event)
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(status, 1, "nobody has tidied it up");
    // The next buyer takes it over.
    Fan::sign_up(&hub.url()).await.hold(event, &[3]).await.ok();
    map.until_seat(3, Held).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn new_events_and_larger_plans_are_found() {
    let database = Database::new().await;
    let hub = Hub::start(config(&database, None).await).await;
    let event = small_hall(&database).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay has found the event", |map| map.track.at().is_of_relay()).await;
    let before = map.track.at();

    for statement in [
        "insert into plan_revision (plan_id, revision, hash, seat_count, focus_x, focus_y, geometry)
         select r.plan_id, 2, 'larger', r.seat_count + 1, 0, 0, '' from plan_revision r, event e
         where e.id = $1 and r.id = e.plan_revision_id",
        "insert into event_seat (event_id, seat_no, level) select $1, count(*), 0 from event_seat where event_id = $1",
        "update event set plan_revision_id = (select id from plan_revision where hash = 'larger') where id = $1",
    ] {
        sqlx::query(statement).bind(event).execute(database.pool()).await.unwrap();
    }
    map.until("the plan has grown", |map| map.track.head.seat_count == 41).await;
    assert!(map.track.at().epoch > before.epoch);
    set_now(database.pool(), event, 40, Blocked).await;
    map.until_seat(40, Blocked).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_change_too_large_for_frames_is_one_message() {
    let database = Database::new().await;
    let event = Stage { hall: Hall { rows: 40, seats_a_row: 50 }, ..Stage::default() }.open(&database).await;
    let mut config = config(&database, None).await;
    config.push.frame_changes_max = 100;
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let (at, snapshots) = (map.track.at(), map.snapshots);
    for (below, frames) in [(300, 3), (2000, 1)] {
        let mut tx = database.pool().begin().await.unwrap();
        let now = sqlx::query_scalar("select db_clock()").fetch_one(&mut *tx).await.unwrap();
        let rows: Vec<(i32, i32)> = sqlx::query_as(
            "update event_seat set status = 3, version = version + 1
             where event_id = $1 and seat_no < $2 and status = 0 returning seat_no, version",
        )
        .bind(event)
        .bind(below)
        .fetch_all(&mut *tx)
        .await
        .unwrap();
        let change = |&(seat_no, version)| SeatChange { seat_no, status: Blocked, version, held_until: None };
        outbox::append(&mut tx, event, now, &rows.iter().map(change).collect::<Vec<_>>()).await.unwrap();
        tx.commit().await.unwrap();
        let expected = map.track.at().frame + frames;
        map.until("the change has come", |map| map.track.at().frame == expected).await;
        assert_eq!((map.track.at().epoch, map.snapshots), (at.epoch, snapshots), "and nobody begins again");
        equals_the_database(&mut map, database.pool(), event).await;
    }
    hub.stop().await;
    database.finish().await;
}

/// Which session of the database leads.
async fn leader(pool: &PgPool) -> Option<i32> {
    sqlx::query_scalar(
        "select pid from pg_locks where locktype = 'advisory' and objsubid = 2 and granted
         and database = (select oid from pg_database where datname = current_database())",
    )
    .fetch_optional(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_leader_that_dies_between_publish_and_delete_is_replaced_without_a_trace() {
    let nats = Nats::start().await;
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hubs = [
        Hub::start(config(&database, Some(&nats)).await).await,
        Hub::start(config(&database, Some(&nats)).await).await,
    ];
    let mut maps = Vec::new();
    for hub in &hubs {
        let mut map = Map::open(&hub.url(), event).await;
        map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
        maps.push(map);
    }
    let (at, snapshots) = (maps[0].track.at(), [maps[0].snapshots, maps[1].snapshots]);

    // Whoever waits for this lock gets it when the change commits, before the leader can delete its row.
    let mut change = database.pool().begin().await.unwrap();
    set(&mut change, event, 5, Blocked).await;
    let mut no_deletes = database.pool().begin().await.unwrap();
    let waiting = tokio::spawn(async move {
        sqlx::query("lock table outbox in share mode").execute(&mut *no_deletes).await.unwrap();
        no_deletes
    });
    eventually("the lock is waited for", || async {
        let waits: bool = sqlx::query_scalar("select exists (select from pg_locks where mode = 'ShareLock' and not granted and relation = 'outbox'::regclass)")
            .fetch_one(database.pool())
            .await
            .unwrap();
        waits.then_some(())
    })
    .await;
    change.commit().await.unwrap();
    let no_deletes = waiting.await.unwrap();
    for map in &mut maps {
        map.until_seat(5, Blocked).await;
    }
    let dead = leader(database.pool()).await.expect("somebody leads");
    sqlx::query("select pg_terminate_backend($1)").bind(dead).execute(database.pool()).await.unwrap();
    no_deletes.rollback().await.unwrap();

    database.outbox_is_drained().await;
    assert_ne!(leader(database.pool()).await, Some(dead));
    set_now(database.pool(), event, 6, Blocked).await;
    for (map, snapshots) in maps.iter_mut().zip(snapshots) {
        map.until_seat(6, Blocked).await;
        assert_eq!((map.track.at().epoch, map.track.at().frame), (at.epoch, at.frame + 2), "published once each");
        assert_eq!(map.snapshots, snapshots, "and nobody had to begin again");
        equals_the_database(map, database.pool(), event).await;
    }
    for hub in hubs {
        hub.stop().await;
    }
    database.finish().await;
}
