//! A room without a feed: bounded reads of the truth, at most once a second an event.
//!
//! A map that is read so is numbered by this node alone, in an odd epoch. A line is numbered by the database, so it does
//! not matter who reads it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use dashmap::DashMap;
use fullhouse_protocol::{
    frames::{Head, Position, SEATS_MAX, Statuses},
    seat::Status,
    track::Track,
};
use sqlx::PgPool;

use super::{
    OnFrame, Rooms, known,
    room::{Line, Map, Room, Source, Topic},
};
use crate::outbox;

const READ_INTERVAL: Duration = Duration::from_secs(1);
/// A room that nobody has asked for in so many intervals is closed again.
const UNWANTED_MAX: u32 = 60;

/// The room of an event that the feed has said nothing of; `None` if there is no such event.
pub(super) async fn open_map(rooms: &Rooms, event_id: i64) -> sqlx::Result<Option<Arc<Room<Map>>>> {
    let Ok(_turn) = rooms.0.reading.acquire().await else { return Ok(None) };
    if let Some(room) = known(&rooms.0.maps, event_id) {
        return Ok(Some(room)); // somebody else was faster, or the feed has come
    }
    let Some(read) = read(&rooms.0.pool, event_id).await? else { return Ok(None) };
    let epoch = outbox::new_epoch(read.now, 0) | 1;
    let head = Head {
        event_id,
        at: Position { epoch, frame: 0 },
        seat_count: read.statuses.seat_count(),
        committed_at_ms: read.now_ms(),
    };
    let map = Map::new(Track::new(head, read.statuses), Source::Database, &rooms.0.config);
    let room = Room::new(map, rooms.0.doors.clone());
    Ok(Some(rooms.0.maps.entry(event_id).or_insert_with(|| Arc::new(room)).clone()))
}

/// The room of a line that the feed has said nothing of; `None` if there is no such line.
pub(super) async fn open_line(rooms: &Rooms, event_id: i64) -> sqlx::Result<Option<Arc<Room<Line>>>> {
    let Ok(_turn) = rooms.0.reading.acquire().await else { return Ok(None) };
    if let Some(room) = known(&rooms.0.lines, event_id) {
        return Ok(Some(room));
    }
    let read = read_line(&rooms.0.pool, event_id).await?;
    Ok(read.map(|(head, bytes)| rooms.take_line(&head, &bytes, Source::Database)))
}

/// Keeps the rooms without a feed as fresh as they may be, for as long as somebody wants them.
pub(super) async fn run(rooms: Rooms, on_frame: OnFrame) {
    let mut tick = tokio::time::interval(READ_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut unwanted_maps, mut unwanted_lines) = (HashMap::new(), HashMap::new());
    loop {
        tick.tick().await;
        for (event_id, room) in wanted(&rooms.0.maps, Room::<Map>::source, &mut unwanted_maps) {
            refresh(&rooms, event_id, &room, &on_frame).await;
        }
        for (event_id, _) in wanted(&rooms.0.lines, Room::<Line>::source, &mut unwanted_lines) {
            match read_line(&rooms.0.pool, event_id).await {
                Ok(Some((head, bytes))) => _ = rooms.take_line(&head, &bytes, Source::Database),
                Ok(None) => tracing::warn!(event.id = event_id, "a line that somebody watches is gone"),
                Err(error) => tracing::debug!(event.id = event_id, %error, "a line without a feed could not be read"),
            }
        }
    }
}

/// The rooms that have no feed and that somebody wants. Those that nobody has wanted for long are closed.
fn wanted<T: Topic>(
    rooms: &DashMap<i64, Arc<Room<T>>>,
    source: impl Fn(&Room<T>) -> Source,
    unwanted: &mut HashMap<i64, u32>,
) -> Vec<(i64, Arc<Room<T>>)> {
    let unfed = rooms.iter().filter(|entry| source(entry) == Source::Database);
    let mut unfed: Vec<(i64, Arc<Room<T>>)> = unfed.map(|entry| (*entry.key(), entry.value().clone())).collect();
    unwanted.retain(|event_id, _| unfed.iter().any(|(id, _)| id == event_id));
    unfed.retain(|(event_id, room)| {
        if room.is_wanted() {
            unwanted.remove(event_id);
            return true;
        }
        let count = unwanted.entry(*event_id).or_default();
        *count += 1;
        if *count >= UNWANTED_MAX {
            rooms.remove_if(event_id, |_, room| source(room) == Source::Database && !room.is_wanted());
        }
        false
    });
    unfed
}

async fn read_line(pool: &PgPool, event_id: i64) -> sqlx::Result<Option<(Head, Bytes)>> {
    outbox::lines::of_event(&mut *pool.acquire().await?, event_id).await
}

async fn refresh(rooms: &Rooms, event_id: i64, room: &Room<Map>, on_frame: &OnFrame) {
    match read(&rooms.0.pool, event_id).await {
        Ok(Some(read)) => {
            let now_ms = read.now_ms();
            if let Some(frame) = room.take_rows(read.statuses, now_ms) {
                on_frame(&frame);
            }
        }
        Ok(None) => tracing::warn!(event.id = event_id, "an event that somebody watches is gone"),
        Err(error) => tracing::debug!(event.id = event_id, %error, "a map without a feed could not be read"),
    }
}

struct Read {
    statuses: Statuses,
    now: chrono::DateTime<chrono::Utc>,
}

impl Read {
    fn now_ms(&self) -> u64 {
        self.now.timestamp_millis().max(0) as u64
    }
}

/// The map as the database has it: a hold that has run out is available, a number without a row is blocked.
async fn read(pool: &PgPool, event_id: i64) -> sqlx::Result<Option<Read>> {
    let record = sqlx::query!(
        r#"select r.seat_count, clock.now as "now!", s.seat_nos as "seat_nos?", s.statuses as "statuses?"
           from event e
           join plan_revision r on r.id = e.plan_revision_id
           cross join (select (select db_clock()) as now) clock
           cross join lateral (
               select array_agg(seat_no) as seat_nos,
                      array_agg(case when status = 1 and held_until <= clock.now then 0::smallint else status end) as statuses
               from event_seat where event_id = e.id
           ) s
           where e.id = $1"#,
        event_id
    )
    .fetch_optional(pool)
    .await?;
    let Some(record) = record else { return Ok(None) };
    let Some(seat_count) = u32::try_from(record.seat_count).ok().filter(|n| *n <= SEATS_MAX) else { return Ok(None) };
    let mut statuses: Statuses = std::iter::repeat_n(Status::Blocked, seat_count as usize).collect();
    let rows = record.seat_nos.unwrap_or_default().into_iter().zip(record.statuses.unwrap_or_default());
    for (seat_no, status) in rows {
        if let (Ok(seat_no), Ok(status)) = (u32::try_from(seat_no), Status::try_from(status))
            && seat_no < seat_count
        {
            statuses.set(seat_no, status);
        }
    }
    Ok(Some(Read { statuses, now: record.now }))
}
