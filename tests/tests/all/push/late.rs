//! Beside a transaction that stays open for ten minutes: what it writes arrives when it commits, and until then
//! the relay's reads cost what they always did.
//!
//! Such a transaction takes its number early and commits late, and as long as it lives no dead row can be
//! removed: the outbox keeps the remains of everything that passed through it. Ten minutes are not waited
//! for; ten minutes' worth of rows pass.

use sqlx::Connection;

use super::*;

/// Ten batches a second, for ten minutes.
const BATCHES: i64 = 6_000;

/// A transaction that nobody of ours drives: it has a snapshot, a transaction id, a row of the outbox with a low
/// number, and idles for as long as it likes.
async fn foreign(database: &Database, event: i64, seat_no: i32) -> PgConnection {
    let mut db = PgConnection::connect(&database.url().await).await.unwrap();
    sqlx::raw_sql("begin isolation level repeatable read").execute(&mut db).await.unwrap();
    set(&mut db, event, seat_no, Blocked).await;
    sqlx::query("insert into naive_outbox default values").execute(&mut db).await.unwrap();
    db
}

/// Changes of four seats each, committed one after the other; seat 0 is not among them.
async fn ten_minutes_of_a_sale(database: &Database, event: i64) {
    let mut db = PgConnection::connect(&database.url().await).await.unwrap();
    let sale = format!(
        "do $$ begin
           for batch in 1..{BATCHES} loop
             with changed as (
               update event_seat set status = (case status when 0 then 3 else 0 end)::smallint, version = version + 1
               where event_id = {event} and seat_no between 1 + batch * 4 % 1996 and 4 + batch * 4 % 1996
               returning seat_no, status, version)
             insert into outbox (event_id, seat_nos, statuses, versions, held_until, created_at)
             select {event}, array_agg(seat_no), array_agg(status), array_agg(version),
                    array_agg(null::timestamptz), db_clock() from changed;
             insert into naive_outbox default values;
             commit;
           end loop;
         end $$"
    );
    sqlx::raw_sql(&sale).execute(&mut db).await.unwrap();
    sqlx::query("select pg_stat_force_next_flush()").execute(&mut db).await.unwrap();
    db.close().await.unwrap();
}

/// What reading the outbox has cost since it was made.
#[derive(Debug, Clone, Copy)]
struct Cost {
    look_ups: i64,
    /// Of its table and indexes.
    pages: i64,
    /// Of its indexes, whether their rows are alive or dead.
    entries: i64,
}

async fn cost(pool: &PgPool) -> Cost {
    let (look_ups, pages, entries) = sqlx::query_as(
        "select seq_scan + idx_scan, heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read,
                (select sum(idx_tup_read)::bigint from pg_stat_user_indexes i where i.relid = t.relid)
         from pg_stat_user_tables t join pg_statio_user_tables using (relid) where t.relname = 'outbox'",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    Cost { look_ups, pages, entries }
}

/// Pages and entries that the relay passes in a look-up, over some quiet ticks. Nobody else may read meanwhile.
async fn cost_of_a_look_up(pool: &PgPool) -> (f64, f64) {
    let first = cost(pool).await;
    // A session tells the server once a second what it has read: what was before is told with the first tick.
    let before = eventually("the server has counted a tick", || async {
        let now = cost(pool).await;
        (now.look_ups > first.look_ups).then_some(now)
    })
    .await;
    eventually("the server has counted some more ticks", || async {
        let now = cost(pool).await;
        let look_ups = now.look_ups - before.look_ups;
        let each = |n: i64| n as f64 / look_ups as f64;
        (look_ups >= 40).then(|| (each(now.pages - before.pages), each(now.entries - before.entries)))
    })
    .await
}

/// Until the relay has deleted everything; whoever looks leaves no count of it for later.
async fn drained(database: &Database) {
    let mut db = PgConnection::connect(&database.url().await).await.unwrap();
    let until = Instant::now() + HUNG;
    while sqlx::query_scalar::<_, bool>("select exists (select from outbox)").fetch_one(&mut db).await.unwrap() {
        assert!(Instant::now() < until, "the outbox is not empty");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    sqlx::raw_sql("select pg_stat_force_next_flush()").execute(&mut db).await.unwrap();
    db.close().await.unwrap();
}

/// What passes in one read of the oldest rows by number, at the same moment: the control.
async fn cost_of_a_read_by_number(database: &Database) -> i64 {
    let before = cost(database.pool()).await;
    let mut db = PgConnection::connect(&database.url().await).await.unwrap();
    for statement in [
        "set enable_seqscan = off",
        "select id from outbox order by id limit 2000",
        "select pg_stat_force_next_flush()",
    ] {
        sqlx::raw_sql(statement).execute(&mut db).await.unwrap();
    }
    db.close().await.unwrap();
    cost(database.pool()).await.entries - before.entries
}

/// A reader that remembers the highest number it has seen: the control.
async fn read_after(pool: &PgPool, last: &mut i64) -> Vec<i64> {
    let rows: Vec<i64> = sqlx::query_scalar("select id from naive_outbox where id > $1 order by id")
        .bind(*last)
        .fetch_all(pool)
        .await
        .unwrap();
    *last = rows.last().copied().unwrap_or(*last);
    rows
}

async fn ten_minutes_of_an_open_transaction(nats: Option<&Nats>) {
    let database = Database::new().await;
    let pool = database.pool();
    let event = Stage { hall: Hall { rows: 40, seats_a_row: 50 }, ..Stage::default() }.open(&database).await;
    sqlx::query("create table naive_outbox (id bigint generated always as identity)").execute(pool).await.unwrap();
    // One is open from before the hub until after it; the other commits last of all. The bounds on the hub's own
    // transactions are far shorter than either, and none of their business.
    let endless = foreign(&database, event, 1_999).await;
    let mut late = foreign(&database, event, 0).await;
    let mut config = config(&database, nats).await;
    config.database.idle_in_transaction_timeout_ms = 200;
    config.relay.tick_ms = 20;
    config.relay.compare_interval_s = 3_600; // what arrives has come through the outbox
    let hub = Hub::start(config).await;
    let mut map = Map::open(&hub.url(), event).await;
    map.until("the relay leads", |map| map.track.at().is_of_relay()).await;
    let at_first = cost_of_a_look_up(pool).await;

    ten_minutes_of_a_sale(&database, event).await;
    equals_the_database(&mut map, pool, event).await;
    drained(&database).await;
    let (mut last, mut seen) = (0, 0);
    seen += read_after(pool, &mut last).await.len() as i64;
    let by_number = cost_of_a_read_by_number(&database).await;
    let in_the_end = cost_of_a_look_up(pool).await;
    eprintln!(
        "pages and entries a look-up: {at_first:.1?}, after {BATCHES} rows {in_the_end:.1?}; by number: {by_number} entries"
    );
    assert!(by_number >= BATCHES, "the fault exists: a read by number passes every dead row: {by_number}");
    assert!(in_the_end.0 < at_first.0 + 8.0 && in_the_end.1 < 2.0, "{at_first:?} a look-up have become {in_the_end:?}");

    sqlx::raw_sql("commit").execute(&mut late).await.unwrap();
    map.until_seat(0, Blocked).await;
    database.outbox_is_drained().await;
    equals_the_database(&mut map, pool, event).await;
    seen += read_after(pool, &mut last).await.len() as i64;
    let rows: i64 = sqlx::query_scalar("select count(*) from naive_outbox").fetch_one(pool).await.unwrap();
    assert_eq!(
        (seen, rows),
        (BATCHES, BATCHES + 1),
        "the fault exists: a reader with a cursor never sees the late row"
    );

    late.close().await.unwrap();
    hub.stop().await;
    endless.close().await.unwrap(); // which rolls it back
    database.finish().await;
}

#[tokio::test]
async fn ten_minutes_of_an_open_transaction_in_process() {
    ten_minutes_of_an_open_transaction(None).await;
}

#[tokio::test]
async fn ten_minutes_of_an_open_transaction_over_nats() {
    ten_minutes_of_an_open_transaction(Some(&Nats::start().await)).await;
}
