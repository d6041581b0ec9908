//! Seats put aside until a time of their own, without the desk's rules for fans: staff's and exchanges' holds.
//!
//! Invariants
//! - The caller has the event's lock, and asked for the time after it.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use uuid::Uuid;

use crate::{
    db::Tx,
    outbox::{self, SeatChange},
    seat_map::SeatNo,
};

/// Holds free seats for a buyer. That they are free was asked for in the same transaction.
pub async fn set_aside(
    tx: &mut Tx,
    event_id: i64,
    buyer_id: Uuid,
    seat_nos: &[SeatNo],
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let hold_id = Uuid::now_v7();
    sqlx::query!(
        "insert into hold (id, event_id, buyer_id, seat_nos, held_until, seats_taken, created_at) values ($1, $2, $3, $4, $5, $6, $7)",
        hold_id,
        event_id,
        buyer_id,
        seat_nos,
        until,
        seat_nos.len() as i32,
        now
    )
    .execute(&mut **tx)
    .await?;
    let held = sqlx::query!(
        "update event_seat set status = 1, hold_id = $3, held_until = $4, order_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and (status = 0 or (status = 1 and held_until <= $5))
         returning seat_no, version",
        event_id,
        seat_nos,
        hold_id,
        until,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    if held.len() != seat_nos.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats held", held.len(), seat_nos.len())));
    }
    let changes: Vec<SeatChange> = held
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Held, version: s.version, held_until: Some(until) })
        .collect();
    outbox::append(tx, event_id, now, &changes).await?;
    Ok(hold_id)
}

#[derive(Debug, thiserror::Error)]
pub enum LetGoError {
    /// It ran out, was sold, or was let go before.
    #[error("the hold has ended")]
    Ended,
    #[error("a payment is under way")]
    Frozen,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Gives all seats of a hold back before its time.
pub async fn let_go(tx: &mut Tx, event_id: i64, hold_id: Uuid) -> Result<(), LetGoError> {
    let hold = sqlx::query!(
        "select state, held_until, attempt_id, seat_nos from hold where id = $1 and event_id = $2 for no key update",
        hold_id,
        event_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(LetGoError::Ended)?;
    let now = crate::clock::now(tx).await?;
    if hold.state != "live" || hold.held_until <= now {
        return Err(LetGoError::Ended);
    }
    if hold.attempt_id.is_some() {
        return Err(LetGoError::Frozen);
    }
    Ok(give_back(tx, event_id, hold_id, &hold.seat_nos, now).await?)
}

/// Gives seats of a live hold back before their time; it goes on with the rest, or ends. That they are its own was asked
/// for in the same transaction.
pub async fn give_back(
    tx: &mut Tx,
    event_id: i64,
    hold_id: Uuid,
    seat_nos: &[SeatNo],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    shrink(tx, hold_id, seat_nos, now).await?;
    let freed = sqlx::query!(
        "update event_seat set status = 0, hold_id = null, held_until = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and hold_id = $3 and status = 1 returning seat_no, version",
        event_id,
        seat_nos,
        hold_id
    )
    .fetch_all(&mut **tx)
    .await?;
    if freed.len() != seat_nos.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats let go", freed.len(), seat_nos.len())));
    }
    let changes: Vec<SeatChange> = freed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Available, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// A live hold ends at another time, and so do its seats. That it has not ended was asked for in the same transaction.
pub async fn end_at(
    tx: &mut Tx,
    event_id: i64,
    hold_id: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let seat_nos = sqlx::query_scalar!(
        "update hold set held_until = $2, version = version + 1 where id = $1 and state = 'live' and held_until > $3
         returning seat_nos",
        hold_id,
        until,
        now
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or_else(|| sqlx::Error::Protocol("a hold has ended".into()))?;
    let moved = sqlx::query!(
        "update event_seat set held_until = $4, version = version + 1
         where event_id = $1 and seat_no = any($2) and hold_id = $3 and status = 1 returning seat_no, version",
        event_id,
        &seat_nos,
        hold_id,
        until
    )
    .fetch_all(&mut **tx)
    .await?;
    if moved.len() != seat_nos.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats held longer", moved.len(), seat_nos.len())));
    }
    let changes: Vec<SeatChange> = moved
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Held, version: s.version, held_until: Some(until) })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// Seats of a live hold become another buyer's, until the same time. That they are its own was asked for in the same
/// transaction.
pub async fn hand_on(
    tx: &mut Tx,
    event_id: i64,
    hold_id: Uuid,
    seat_nos: &[SeatNo],
    buyer_id: Uuid,
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    shrink(tx, hold_id, seat_nos, now).await?;
    let new_id = Uuid::now_v7();
    let until = sqlx::query_scalar!(
        "insert into hold (id, event_id, buyer_id, seat_nos, held_until, seats_taken, created_at)
         select $2, event_id, $3, $4, held_until, $5, $6 from hold where id = $1 returning held_until",
        hold_id,
        new_id,
        buyer_id,
        seat_nos,
        seat_nos.len() as i32,
        now
    )
    .fetch_one(&mut **tx)
    .await?;
    let handed = sqlx::query!(
        "update event_seat set hold_id = $4, version = version + 1
         where event_id = $1 and seat_no = any($2) and hold_id = $3 and status = 1 returning seat_no, version",
        event_id,
        seat_nos,
        hold_id,
        new_id
    )
    .fetch_all(&mut **tx)
    .await?;
    if handed.len() != seat_nos.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats handed on", handed.len(), seat_nos.len())));
    }
    let changes: Vec<SeatChange> = handed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Held, version: s.version, held_until: Some(until) })
        .collect();
    outbox::append(tx, event_id, now, &changes).await?;
    Ok(new_id)
}

/// A hold without these seats; one that has no other ends.
async fn shrink(tx: &mut Tx, hold_id: Uuid, seat_nos: &[SeatNo], now: DateTime<Utc>) -> sqlx::Result<()> {
    let shrunk = sqlx::query!(
        "update hold h set version = version + 1,
             seat_nos = case when r.rest = '{}' then h.seat_nos else r.rest end, -- of one that ended: what it had last
             state = case when r.rest = '{}' then 'released' else 'live' end,
             ended_at = case when r.rest = '{}' then $3::timestamptz end
         from (select array(select s from hold, unnest(seat_nos) s where id = $1 and s <> all($2) order by s) as rest) r
         where h.id = $1 and h.state = 'live'",
        hold_id,
        seat_nos,
        now
    )
    .execute(&mut **tx)
    .await?;
    if shrunk.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::Protocol("a hold has ended".into())) }
}
