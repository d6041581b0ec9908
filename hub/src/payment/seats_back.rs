//! Sold seats come back: the lines they were sold on end, their tickets die, and the seats become what
//! somebody said. In the caller's transaction, which holds the event's lock and the order's row.
//!
//! Invariants
//! - Only seats that this order owns change, and all of them or none.
//! - A seat, its line, its ticket and the outbox row change together.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use uuid::Uuid;

use crate::{
    db::Tx,
    outbox::{self, SeatChange},
    ticket,
};

/// What becomes of seats that are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeatsBecome {
    /// For whoever is next.
    OnSale,
    /// Kept back by the house, as before: blocked, with the reason that it was blocked for last.
    House,
    /// Never to be sold again; only a person can unblock it, with a reason.
    Dead,
}

impl SeatsBecome {
    pub fn name(self) -> &'static str {
        match self {
            Self::OnSale => "on_sale",
            Self::House => "house",
            Self::Dead => "dead",
        }
    }

    fn status(self) -> Status {
        match self {
            Self::OnSale => Status::Available,
            Self::House | Self::Dead => Status::Blocked,
        }
    }
}

/// Which seats come back, from whom, and why: the order's and the tickets' reason.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    pub event_id: i64,
    pub order_id: Uuid,
    pub seats: &'a [i32],
    pub why: &'a str,
}

pub async fn take_back(
    tx: &mut Tx,
    taken: Taken<'_>,
    become_: SeatsBecome,
    reason: &str,
    actor: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    end(tx, taken, "void", become_.status(), now).await?;
    if become_ != SeatsBecome::OnSale {
        let verb = if become_ == SeatsBecome::House { "block" } else { "kill" };
        // A house seat goes back to the hold that it came from.
        sqlx::query!(
            "insert into seat_note (event_id, seat_no, verb, reason, actor, created_at)
             select $1, s, $3::text, coalesce(case when $3 = 'block' then (
                        select n.reason from seat_note n where n.event_id = $1 and n.seat_no = s and n.verb = 'block'
                        order by n.id desc limit 1) end, $4), $5, $6
             from unnest($2::int[]) as s",
            taken.event_id,
            taken.seats,
            verb,
            reason,
            actor,
            now
        )
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Seats that others were taken for are on sale again: their lines are no longer part of the order, and nothing of
/// their price went back.
pub async fn exchange_away(
    tx: &mut Tx,
    event_id: i64,
    order_id: Uuid,
    seats: &[i32],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let taken = Taken { event_id, order_id, seats, why: "exchanged" };
    end(tx, taken, "exchanged", Status::Available, now).await
}

async fn end(tx: &mut Tx, taken: Taken<'_>, line: &str, status: Status, now: DateTime<Utc>) -> sqlx::Result<()> {
    let Taken { event_id, order_id, seats, why } = taken;
    let ended = sqlx::query!(
        "update order_line set state = $3 where order_id = $1 and seat_no = any($2) and state = 'sold'
           and ($3 <> 'exchanged' or refunded_minor = 0)",
        order_id,
        seats,
        line
    )
    .execute(&mut **tx)
    .await?
    .rows_affected();
    ticket::void(tx, order_id, Some(seats), why, now).await?;
    let changed = sqlx::query!(
        "update event_seat set status = $4, order_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and status = 2 and order_id = $3 returning seat_no, version",
        event_id,
        seats,
        order_id,
        i16::from(status)
    )
    .fetch_all(&mut **tx)
    .await?;
    if changed.len() != seats.len() || ended != seats.len() as u64 {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats came back", changed.len(), seats.len())));
    }
    let changes: Vec<SeatChange> = changed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// An order without seats is over, for this reason. Says whether it was.
pub async fn close_if_empty(tx: &mut Tx, order_id: Uuid, why: &str) -> sqlx::Result<bool> {
    let closed = sqlx::query!(
        r#"update "order" set state = 'cancelled', cancel_reason = $2, payment_due_until = null
           where id = $1 and state in ('confirmed', 'payment_due')
             and not exists (select from order_line where order_id = $1 and state = 'sold' and seat_no is not null)"#,
        order_id,
        why
    )
    .execute(&mut **tx)
    .await?;
    Ok(closed.rows_affected() == 1)
}
