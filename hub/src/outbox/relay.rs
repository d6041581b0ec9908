//! The relay: turns committed changes into numbered frames. One leads a database, others wait.
//!
//! Invariants
//! - Leading is an advisory lock of one connection, and all that the leader does to the database goes
//!   over that connection: when it is lost, so is the lead, and what was known is thrown away.
//! - A row is deleted after the feed has acknowledged its frame. Dying in between repeats it, and
//!   versions make that harmless.
//! - No number is a cursor. What is read at a tick is what the last read's snapshot did not show: rows
//!   of transactions that began after it, and of those that were still running in it. So a row that
//!   commits late is read at the next tick, whatever its number; and what was read and deleted is not
//!   passed again, though its remains can't be vacuumed beside a transaction that stays open for long.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use fullhouse_protocol::{
    frames::SEATS_MAX,
    seat::{Status, UnknownStatus},
    track::Track,
};
use sqlx::{Connection, PgConnection, PgPool, postgres::PgConnectOptions};
use tokio_util::sync::CancellationToken;

use super::{
    SeatChange,
    lines::Lines,
    published::{Limits, Published, Rows, Unknown},
};
use crate::{
    config::Config,
    feed::{Feed, Lost, Message, Publisher},
};

/// The two keys of the advisory lock: "full", and what of it. Events lock in the other key space.
const LOCK: (i32, i32) = (0x6675_6c6c, 1);
/// Between two tries to lead.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);
/// Between two rounds, at most: a round that waited for the feed to come back says nothing about load.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A snapshot that shows no row: what a new leader begins with.
const NOTHING_READ: &str = "1:1:";
/// How often new events and new plans are looked for.
const DISCOVER_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
enum StepDown {
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("the feed: {0}")]
    Feed(#[from] Lost),
    #[error("a row that nobody should have written: {0}")]
    Row(#[from] UnknownStatus),
}

/// Leads or waits until `stop`. What a stop cuts off is repeated by the next leader.
pub async fn run(config: Arc<Config>, pool: PgPool, feed: Feed, stop: CancellationToken) {
    stop.run_until_cancelled(async {
        loop {
            let Err(error) = lead(&config, &pool, &feed).await;
            tracing::warn!(%error, "the relay has stepped down");
            tokio::time::sleep(FOLLOW_INTERVAL).await;
        }
    })
    .await;
}

async fn lead(config: &Config, pool: &PgPool, feed: &Feed) -> Result<std::convert::Infallible, StepDown> {
    // The outbox is nearly empty when a plan is made, and may be full of dead rows when it is used.
    let options = PgConnectOptions::clone(&pool.connect_options()).options([("enable_seqscan", "off")]);
    let mut db = PgConnection::connect_with(&options).await?;
    while !try_lock(&mut db).await? {
        tokio::time::sleep(FOLLOW_INTERVAL).await;
    }
    let mut leader = Leader::take_over(config, db, feed.publisher()).await?;
    tracing::info!(relay.events = leader.published.event_ids().count(), "the relay leads");
    let tick = Duration::from_millis(config.relay.tick_ms);
    loop {
        let began = Instant::now();
        leader.tick().await?;
        let round = began.elapsed();
        let pause = tick.max(round * 2).saturating_sub(round);
        tokio::time::sleep(pause.min(PAUSE_MAX)).await;
    }
}

async fn try_lock(db: &mut PgConnection) -> sqlx::Result<bool> {
    sqlx::query_scalar!(r#"select pg_try_advisory_lock($1, $2) as "leads!""#, LOCK.0, LOCK.1).fetch_one(db).await
}

struct Leader<'a> {
    config: &'a Config,
    db: PgConnection,
    publisher: Publisher,
    published: Published,
    lines: Lines,
    /// The last snapshot of which everything has been read.
    read_to: String,
    discovered: Instant,
    keyframed: Instant,
    /// When each event was compared with the database.
    compared: HashMap<i64, Instant>,
}

/// An event as the relay needs to know it.
struct Plan {
    event_id: i64,
    plan_revision_id: i64,
    seat_count: u32,
}

impl<'a> Leader<'a> {
    /// Rebuilds what was published from the feed, and compares it with the database.
    async fn take_over(config: &'a Config, mut db: PgConnection, mut publisher: Publisher) -> Result<Self, StepDown> {
        let tracks: HashMap<i64, Track> =
            publisher.published().await?.into_iter().map(|track| (track.head.event_id, track)).collect();
        let limits = Limits {
            frame_changes_max: config.push.frame_changes_max,
            frames_max: config.relay.frames_max,
            message_bytes_max: publisher.message_bytes_max(),
        };
        let mut published = Published::new(limits);
        let mut compared = HashMap::new();
        for plan in current_plans(&mut db).await? {
            let (rows, now) = read_seats(&mut db, plan.event_id).await?;
            match tracks.get(&plan.event_id).filter(|track| track.head.seat_count == plan.seat_count) {
                Some(track) => published.resume(plan.plan_revision_id, track, &rows, now),
                None => published.begin(plan.event_id, plan.plan_revision_id, plan.seat_count, &rows, now),
            }
            compared.insert(plan.event_id, Instant::now());
        }
        publisher.publish(&published.frames()).await?;
        let mut lines = Lines::default();
        publisher.publish(&lines.read(&mut db).await?).await?;
        let keyframes: Vec<Message> = published.keyframes().into_iter().chain(lines.keyframes()).collect();
        publisher.publish_keyframes(&keyframes).await?;
        let now = Instant::now();
        Ok(Self {
            config,
            db,
            publisher,
            published,
            lines,
            read_to: NOTHING_READ.to_owned(),
            discovered: now,
            keyframed: now,
            compared,
        })
    }

    async fn tick(&mut self) -> Result<(), StepDown> {
        if self.discovered.elapsed() >= DISCOVER_INTERVAL {
            self.discover().await?;
            self.discovered = Instant::now();
        }
        let batch = read_batch(&mut self.db, &self.read_to, self.config.relay.rows_max).await?;
        for row in &batch.rows {
            self.take(row, batch.now).await?;
        }
        self.compare_one().await?;
        self.published.expire(batch.now);
        let messages = [self.published.frames(), self.lines.read(&mut self.db).await?].concat();
        self.publisher.publish(&messages).await?;
        delete_rows(&mut self.db, &batch.rows).await?;
        if batch.is_all {
            self.read_to = batch.snapshot;
        }
        if self.keyframed.elapsed() >= Duration::from_secs(self.config.relay.keyframe_interval_s) {
            self.publisher.publish_keyframes(&self.keyframes()).await?;
            self.keyframed = Instant::now();
        }
        Ok(())
    }

    fn keyframes(&self) -> Vec<Message> {
        self.published.keyframes().into_iter().chain(self.lines.keyframes()).collect()
    }

    async fn take(&mut self, row: &Row, now: DateTime<Utc>) -> Result<(), StepDown> {
        for change in &row.changes {
            let Err(unknown) = self.published.change(row.event_id, change, row.made_at, now) else { continue };
            // Read with this change in it, and with everything else that has been committed.
            match plan(&mut self.db, row.event_id).await? {
                Some(plan) if unknown == Unknown::Event || (change.seat_no as u32) < plan.seat_count => {
                    self.begin(&plan).await?;
                }
                _ => tracing::error!(event.id = row.event_id, seat.no = change.seat_no, "a change of no known seat"),
            }
        }
        Ok(())
    }

    /// Finds new events and events that have a new plan, and lets go of those that are over.
    async fn discover(&mut self) -> Result<(), StepDown> {
        let plans = current_plans(&mut self.db).await?;
        let wanted = plans.iter().map(|plan| plan.event_id).collect();
        self.published.keep(&wanted);
        self.lines.keep(&wanted);
        self.compared.retain(|event_id, _| self.published.plan_revision_id(*event_id).is_some());
        for plan in plans {
            if self.published.plan_revision_id(plan.event_id) != Some(plan.plan_revision_id) {
                self.begin(&plan).await?;
            }
        }
        Ok(())
    }

    async fn begin(&mut self, plan: &Plan) -> Result<(), StepDown> {
        let (rows, now) = read_seats(&mut self.db, plan.event_id).await?;
        self.published.begin(plan.event_id, plan.plan_revision_id, plan.seat_count, &rows, now);
        self.compared.insert(plan.event_id, Instant::now());
        tracing::info!(event.id = plan.event_id, event.seats = plan.seat_count, "an event's frames begin");
        Ok(())
    }

    /// Compares the event whose turn it is. One a tick, so that many of them do not hold up the frames.
    async fn compare_one(&mut self) -> Result<(), StepDown> {
        let interval = Duration::from_secs(self.config.relay.compare_interval_s);
        let due = self.compared.iter().min_by_key(|(_, at)| **at).filter(|(_, at)| at.elapsed() >= interval);
        let Some(event_id) = due.map(|(event_id, _)| *event_id) else { return Ok(()) };
        let (rows, now) = read_seats(&mut self.db, event_id).await?;
        let differed = self.published.compare(event_id, &rows, now);
        if differed > 0 {
            // What was committed since the outbox was read is among these, so this is no alarm.
            tracing::debug!(event.id = event_id, seats = differed, "the database was ahead of the map");
        }
        self.compared.insert(event_id, Instant::now());
        Ok(())
    }
}

struct Batch {
    now: DateTime<Utc>,
    /// What the read saw.
    snapshot: String,
    /// Whether it took everything that it saw.
    is_all: bool,
    rows: Vec<Row>,
}

/// A row of the outbox.
struct Row {
    id: i64,
    event_id: i64,
    made_at: DateTime<Utc>,
    changes: Vec<SeatChange>,
}

/// The clock, a snapshot, and the rows that it shows and `read_to` did not, in one round trip.
/// At most `rows_max` of those that began since, and as many of those that began before and end late.
async fn read_batch(db: &mut PgConnection, read_to: &str, rows_max: i64) -> Result<Batch, StepDown> {
    let records = sqlx::query!(
        r#"select clock.now as "now!", clock.snapshot as "snapshot!", o.id as "id?", o.event_id as "event_id?",
                  o.created_at as "made_at?", o.seat_nos as "seat_nos?", o.statuses as "statuses?",
                  o.versions as "versions?", o.held_until as "held_until?: Vec<Option<DateTime<Utc>>>"
           from (select (select db_clock()) as now, pg_current_snapshot()::text as snapshot) clock
           left join (
             (select * from outbox where xid >= pg_snapshot_xmax($1::text::pg_snapshot) order by xid limit $2)
             union all
             (select late.* from pg_snapshot_xip($1::text::pg_snapshot) as running(xid)
              cross join lateral (select * from outbox where outbox.xid = running.xid limit $2) as late limit $2)
           ) o on true
           order by o.id"#,
        read_to,
        rows_max
    )
    .fetch_all(db)
    .await?;
    let is_all = (records.len() as i64) < rows_max;
    let mut batch =
        Batch { now: DateTime::UNIX_EPOCH, snapshot: String::new(), is_all, rows: Vec::with_capacity(records.len()) };
    for record in records {
        (batch.now, batch.snapshot) = (record.now, record.snapshot);
        let (Some(id), Some(event_id), Some(made_at)) = (record.id, record.event_id, record.made_at) else { continue };
        let columns = (record.seat_nos, record.statuses, record.versions, record.held_until);
        let (Some(seat_nos), Some(statuses), Some(versions), Some(held_until)) = columns else { continue };
        let changes = changes(seat_nos, statuses, versions, held_until)?;
        batch.rows.push(Row { id, event_id, made_at, changes });
    }
    Ok(batch)
}

async fn delete_rows(db: &mut PgConnection, rows: &[Row]) -> Result<(), StepDown> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let deleted = sqlx::query!("delete from outbox where id = any($1)", &ids).execute(db).await?.rows_affected();
    if deleted != ids.len() as u64 {
        tracing::error!(outbox.rows = ids.len(), outbox.deleted = deleted, "somebody else deletes from the outbox");
    }
    Ok(())
}

/// Events whose map is of interest: until a day after their sale. Others are read when they change.
async fn current_plans(db: &mut PgConnection) -> sqlx::Result<Vec<Plan>> {
    let records = sqlx::query!(
        "select e.id, e.plan_revision_id, r.seat_count
         from event e join plan_revision r on r.id = e.plan_revision_id
         where e.off_sale_at > db_clock() - interval '1 day'
         order by e.id"
    )
    .fetch_all(db)
    .await?;
    Ok(records.into_iter().filter_map(|r| Plan::new(r.id, r.plan_revision_id, r.seat_count)).collect())
}

async fn plan(db: &mut PgConnection, event_id: i64) -> sqlx::Result<Option<Plan>> {
    let record = sqlx::query!(
        "select e.id, e.plan_revision_id, r.seat_count
         from event e join plan_revision r on r.id = e.plan_revision_id
         where e.id = $1",
        event_id
    )
    .fetch_optional(db)
    .await?;
    Ok(record.and_then(|r| Plan::new(r.id, r.plan_revision_id, r.seat_count)))
}

impl Plan {
    fn new(event_id: i64, plan_revision_id: i64, seat_count: i32) -> Option<Self> {
        let seat_count = u32::try_from(seat_count).ok().filter(|n| *n <= SEATS_MAX)?; // as the schema says
        Some(Self { event_id, plan_revision_id, seat_count })
    }
}

/// All seats of an event at one instant, and the clock after it.
async fn read_seats(db: &mut PgConnection, event_id: i64) -> Result<(Rows, DateTime<Utc>), StepDown> {
    let record = sqlx::query!(
        r#"select array_agg(seat_no) as "seat_nos?", array_agg(status) as "statuses?", array_agg(version) as "versions?",
                  array_agg(held_until) as "held_until?: Vec<Option<DateTime<Utc>>>", db_clock() as "now!"
           from event_seat where event_id = $1"#,
        event_id
    )
    .fetch_one(db)
    .await?;
    let columns = (record.seat_nos, record.statuses, record.versions, record.held_until);
    let (Some(seat_nos), Some(statuses), Some(versions), Some(held_until)) = columns else {
        return Ok((Rows::default(), record.now)); // no row at all
    };
    Ok((Rows(changes(seat_nos, statuses, versions, held_until)?), record.now))
}

/// Columns to rows. The schema holds them to one length.
fn changes(
    seat_nos: Vec<i32>,
    statuses: Vec<i16>,
    versions: Vec<i32>,
    held_until: Vec<Option<DateTime<Utc>>>,
) -> Result<Vec<SeatChange>, UnknownStatus> {
    let columns = seat_nos.into_iter().zip(statuses).zip(versions).zip(held_until);
    columns
        .map(|(((seat_no, status), version), held_until)| {
            Ok(SeatChange { seat_no, status: Status::try_from(status)?, version, held_until })
        })
        .collect()
}
