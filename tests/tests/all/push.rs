//! Showing seats to everybody: every map ends equal to the database, whatever happens on the way.

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
async fn a_change_too_large_for_frames_is_a_resync() {
    let database = Database::new().await;
    let event = Stage { hall: Hall { rows: 40, seats_a_row: 50 }, ..Stage::default() }.open(&database).await;
    let mut config = config(&database, None).await;
    config.push.frame_changes_max = 100;
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let (at, snapshots) = (map.track.at(), map.snapshots);
    for (below, frames, resyncs) in [(300, 3, 0), (2000, 1, 1)] {
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
        assert_eq!((map.track.at().epoch, map.snapshots), (at.epoch, snapshots + resyncs));
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

// ---- several nodes ----

#[tokio::test]
async fn a_viewer_resumes_on_any_node() {
    let nats = Nats::start().await;
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let first = Hub::start(config(&database, Some(&nats)).await).await;
    let mut map = Map::open(&first.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    set_now(database.pool(), event, 0, Blocked).await;
    map.until_seat(0, Blocked).await;
    let second = Hub::start(config(&database, Some(&nats)).await).await;
    let mut other = Map::open(&second.url(), event).await;
    other.until("the second node reads the stream", |map| map.track.at() == map_at(&first, event)).await;

    let snapshots = map.snapshots;
    map.drop_socket();
    for seat in 1..10 {
        set_now(database.pool(), event, seat, Blocked).await;
        other.until_seat(seat, Blocked).await;
    }
    map.move_to(&second.url());
    map.until_seat(9, Blocked).await;
    // The node that led goes; the other goes on with its numbers.
    first.stop().await;
    set_now(database.pool(), event, 10, Blocked).await;
    map.until_seat(10, Blocked).await;
    assert_eq!(map.snapshots, snapshots);
    equals_the_database(&mut map, database.pool(), event).await;
    second.stop().await;
    database.finish().await;
}

fn map_at(hub: &Hub, event: i64) -> fullhouse_protocol::frames::Position {
    futures_util::FutureExt::now_or_never(hub.parts().rooms.get(event)).unwrap().unwrap().unwrap().at()
}

#[tokio::test]
async fn a_sale_goes_on_without_nats_and_every_map_catches_up() {
    let mut nats = Nats::start().await;
    let database = Database::new().await;
    let event = Stage { hall: Hall { rows: 20, seats_a_row: 20 }, ..Stage::default() }.open(&database).await;
    let hubs = [
        Hub::start(config(&database, Some(&nats)).await).await,
        Hub::start(config(&database, Some(&nats)).await).await,
    ];
    let mut maps = Vec::new();
    for hub in hubs.iter().chain(&hubs) {
        let mut map = Map::open(&hub.url(), event).await;
        map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
        maps.push(map);
    }
    let fans = many(&database, &hubs[0].url(), 20).await;
    nats.stop().await;
    let stopped = Instant::now();
    let mut holds = 0;
    while stopped.elapsed() < Duration::from_secs(10) {
        for (number, fan) in fans.iter().enumerate() {
            let fan = fan.at(&hubs[holds % 2].url());
            let answer = fan.hold(event, &[(number * 20 + holds / 20 % 20) as i32]).await;
            if !answer.status.is_success() && answer.code() == "limit_reached" {
                let hold = fan.my_hold(event).await.ok()["hold"]["id"].as_str().unwrap().to_owned();
                fan.release(&hold).await.ok();
            } else {
                answer.ok();
            }
            holds += 1;
        }
    }
    nats.restart().await;
    database.outbox_is_drained().await;
    for map in &mut maps {
        equals_the_database(map, database.pool(), event).await;
        assert!(map.closed_with.is_empty());
    }
    for hub in hubs {
        hub.stop().await;
    }
    database.finish().await;
}

#[tokio::test]
async fn nats_that_dies_or_loses_its_stream_is_made_up_for() {
    let mut nats = Nats::start().await;
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, Some(&nats)).await).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    nats.kill().await;
    set_now(database.pool(), event, 1, Blocked).await;
    nats.restart().await;
    map.until_seat(1, Blocked).await;

    let before = map.track.at();
    let client = async_nats::connect(nats.url()).await.unwrap();
    let stream = hub.parts().config.nats.stream.clone();
    async_nats::jetstream::new(client).delete_stream(stream).await.unwrap();
    for seat in 2..6 {
        set_now(database.pool(), event, seat, Blocked).await;
        map.until_seat(seat, Blocked).await;
    }
    assert!(map.track.at().epoch > before.epoch, "what was in the stream is gone, so a new epoch has begun");
    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_hub_that_starts_without_nats_shows_what_the_database_says() {
    let mut nats = Nats::start().await;
    let config = |database: Config| Config {
        nats: fullhouse::config::Nats { url: nats.url(), ..database.nats.clone() },
        ..database
    };
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let config = config(database.config().await);
    nats.stop().await;
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    assert!(!map.track.at().is_of_relay());
    let epoch = map.track.at().epoch;
    for seat in 0..2 {
        set_now(database.pool(), event, seat, Blocked).await;
        map.until_seat(seat, Blocked).await;
    }
    assert_eq!((map.track.at().epoch, map.snapshots), (epoch, 1), "its frames follow one another too");
    nats.restart().await;
    map.until("the feed has come", |map| map.track.at().is_of_relay()).await;
    set_now(database.pool(), event, 2, Blocked).await;
    map.until_seat(2, Blocked).await;
    equals_the_database(&mut map, database.pool(), event).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_stale_leader_is_refused() {
    let nats = Nats::start().await;
    let mut config = Config::defaults();
    config.nats.url = nats.url();
    let message =
        |text: &'static str| Message { event_id: 1, kind: Kind::Frame, bytes: Bytes::from_static(text.as_bytes()) };
    let (one, two) = (Feed::open(&config).await.unwrap(), Feed::open(&config).await.unwrap());
    let (mut stale, mut leader) = (one.publisher(), two.publisher());
    assert!(stale.published().await.unwrap().is_empty());
    stale.publish(&[message("a"), message("b")]).await.unwrap();
    leader.published().await.unwrap();
    // Until the new one has said something the old one may go on; then it is the new one that has to look again.
    stale.publish(&[message("c")]).await.unwrap();
    assert!(matches!(leader.publish(&[message("d")]).await, Err(Lost::Refused)));
    let mut leader = two.publisher();
    leader.published().await.unwrap();
    leader.publish(&[message("d"), message("e")]).await.unwrap();
    // Twins that say the same are told apart, too.
    assert!(matches!(stale.publish(&[message("d")]).await, Err(Lost::Refused)));
    leader.publish(&[message("f")]).await.unwrap();

    let client = async_nats::connect(nats.url()).await.unwrap();
    let stored = async_nats::jetstream::new(client).get_stream(&config.nats.stream).await.unwrap();
    assert_eq!(stored.cached_info().state.messages, 6);
    stored.purge().await.unwrap();
    leader.publish(&[message("g")]).await.unwrap();
    async_nats::jetstream::new(async_nats::connect(nats.url()).await.unwrap())
        .delete_stream(&config.nats.stream)
        .await
        .unwrap();
    assert!(matches!(leader.publish(&[message("h")]).await, Err(Lost::Discontinued)));
}

// ---- the addresses ----

#[tokio::test]
async fn a_snapshot_is_fetched_once_and_kept() {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let hub = Hub::start(config(&database, None).await).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    set_now(database.pool(), event, 1, Blocked).await;
    map.until_seat(1, Blocked).await;
    let http = reqwest::Client::new();
    for (address, is_snapshot) in [("snapshot", true), ("frames", false)] {
        let url = format!("{}/api/events/{event}/{address}", hub.url());
        let answer = http.get(&url).send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "public, max-age=1");
        let tag = answer.headers()["etag"].clone();
        assert_eq!(tag, format!("\"{}\"", map.track.at()));
        let bytes = answer.bytes().await.unwrap();
        if is_snapshot {
            let Frame::Snapshot { head, statuses } = Frame::decode(&bytes).unwrap() else { panic!() };
            assert_eq!((head, statuses), (map.track.head, map.track.statuses.clone()));
        } else {
            let (head, frames) = decode_body(&bytes).unwrap();
            assert_eq!((head, frames.last().unwrap().head().at), (map.track.head, map.track.at()));
        }
        let again = http.get(&url).header("if-none-match", tag).send().await.unwrap();
        assert_eq!(again.status(), 304);
        let packed = http.get(&url).header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(
            (&packed.headers()["content-encoding"], &packed.headers()["vary"]),
            (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
        );
        assert_eq!(packed.bytes().await.unwrap()[..2], [0x1f, 0x8b]);
        for event in ["999999", "no-number"] {
            let answer = http.get(format!("{}/api/events/{event}/{address}", hub.url())).send().await.unwrap();
            assert_eq!(answer.status(), 404);
            let problem: serde_json::Value = answer.json().await.unwrap();
            assert_eq!(problem["code"], "event_unknown");
        }
    }
    let plain = http.get(format!("{}/api/events/{event}/live", hub.url())).send().await.unwrap();
    assert_eq!(plain.status(), 400);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_socket_that_is_not_let_in_learns_why() {
    let database = Database::new().await;
    let event = small_hall(&database).await;
    let mut config = config(&database, None).await;
    config.push.sockets_max = 1;
    let hub = Hub::start(config).await;
    let host = hub.url().replacen("http", "ws", 1);
    let closed = |path: String| {
        let url = format!("{host}/api/events/{path}");
        async move {
            let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
            loop {
                match socket.next().await {
                    Some(Ok(tokio_tungstenite::tungstenite::Message::Close(Some(close)))) => {
                        return u16::from(close.code);
                    }
                    Some(Ok(_)) => {}
                    other => panic!("not closed with a code: {other:?}"),
                }
            }
        }
    };
    assert_eq!(closed("999999/live".to_owned()).await, close::EVENT_UNKNOWN);
    for query in ["epoch=1", "epoch=x&frame=1", "frame=-1&epoch=1"] {
        assert_eq!(closed(format!("{event}/live?{query}")).await, close::BAD_REQUEST, "{query}");
    }
    let one = Map::open(&hub.url(), event).await;
    eventually("the one place is taken", || async { (hub.parts().rooms.sockets() == 1).then_some(()) }).await;
    assert_eq!(closed(format!("{event}/live")).await, close::TOO_MANY_SOCKETS);
    drop(one);
    eventually("the place is free again", || async { (hub.parts().rooms.sockets() == 0).then_some(()) }).await;
    let mut next = Map::open(&hub.url(), event).await;
    set_now(database.pool(), event, 1, Blocked).await;
    next.until_seat(1, Blocked).await;
    hub.stop().await;
    database.finish().await;
}

/// A reader that stops costs its socket's buffers, which are capped, and then nothing (B22).
#[tokio::test]
async fn a_viewer_that_stops_reading_is_closed_and_nobody_else_notices() {
    let database = Database::new().await;
    let event = Stage { hall: Hall { rows: 40, seats_a_row: 50 }, ..Stage::default() }.open(&database).await;
    let mut config = config(&database, None).await;
    config.push.send_timeout_s = 1;
    config.push.ring_frames_max = 20;
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let stopped = Map::open(&hub.url(), event).await;
    eventually("both are in", || async { (hub.parts().rooms.sockets() == 2).then_some(()) }).await;
    let snapshots = map.snapshots;
    let until = Instant::now() + 3 * HUNG;
    for round in 0.. {
        let mut tx = database.pool().begin().await.unwrap();
        let now = sqlx::query_scalar("select db_clock()").fetch_one(&mut *tx).await.unwrap();
        let rows: Vec<(i32, i32)> = sqlx::query_as(
            "update event_seat set status = $2, version = version + 1 where event_id = $1 returning seat_no, version",
        )
        .bind(event)
        .bind(if round % 2 == 0 { 3_i16 } else { 0 })
        .fetch_all(&mut *tx)
        .await
        .unwrap();
        let status = if round % 2 == 0 { Blocked } else { Available };
        let change = |&(seat_no, version)| SeatChange { seat_no, status, version, held_until: None };
        outbox::append(&mut tx, event, now, &rows.iter().map(change).collect::<Vec<_>>()).await.unwrap();
        tx.commit().await.unwrap();
        map.until_seat(1999, status).await;
        if hub.parts().rooms.sockets() == 1 {
            break;
        }
        assert!(Instant::now() < until, "the one that does not read is still carried");
    }
    assert_eq!((map.snapshots, map.closed_with.len()), (snapshots, 0));
    equals_the_database(&mut map, database.pool(), event).await;
    drop(stopped);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_wire_is_described_as_it_is() {
    let text = std::fs::read_to_string(fullhouse_tests::run::workspace().join("protocol/PROTOCOL.md")).unwrap();
    for code in fullhouse::edge::problem::Code::ALL {
        let row = format!("| `{}` | {} |", code.name(), code.status().as_u16());
        assert!(text.contains(&row), "PROTOCOL.md does not say: {row}");
    }
}
