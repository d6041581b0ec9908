//! An event moves to another revision of its plan.
//!
//! Retired seats are blocked and new ones are put on sale; each change has its outbox row. A note on a
//! seat tells what the plan blocked from what staff did.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgConnection;

use super::{Previous, expect_rows, vanishing};
use crate::{
    catalog::{geometry::Slot, layout::Layout},
    outbox::{self, SeatChange},
};

/// Moves an event, whose lock is held, to a revision. Returns how many seats have another price level.
pub(super) async fn move_event(
    tx: &mut PgConnection,
    event_id: i64,
    previous: &Previous,
    revision_id: i64,
    slots: &[Slot],
    layout: &Layout,
    now: DateTime<Utc>,
) -> sqlx::Result<u64> {
    let moved = sqlx::query!(
        "update event set plan_revision_id = $2 where id = $1 and plan_revision_id = $3",
        event_id,
        revision_id,
        previous.id,
    )
    .execute(&mut *tx)
    .await?;
    expect_rows(moved.rows_affected(), 1)?;

    let mut changes = Vec::new();
    let mut record = |seat_no: i32, status: i16, version: i32| {
        let status = Status::try_from(status).map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
        changes.push(SeatChange { seat_no, status, version, held_until: None });
        Ok::<(), sqlx::Error>(())
    };
    let added = sqlx::query!(
        "insert into event_seat (event_id, seat_no, status, level)
         select $1, s.seat_no, case when s.house then 3 else 0 end, l.level
           from plan_seat s join price_level l on l.event_id = $1 and l.category = s.category
          where s.plan_revision_id = $2 and s.seat_no >= $3
         returning seat_no, status, version",
        event_id,
        revision_id,
        previous.seats.len() as i32,
    )
    .fetch_all(&mut *tx)
    .await?;
    expect_rows(added.len() as u64, slots.len() - previous.seats.len())?;
    for row in added {
        record(row.seat_no, row.status, row.version)?;
    }

    let retired = sqlx::query!(
        "update event_seat set status = 3, version = version + 1, hold_id = null, held_until = null
          where event_id = $1 and seat_no = any($2) and status in (0, 1)
         returning seat_no, status, version",
        event_id,
        &vanishing(previous, slots),
    )
    .fetch_all(&mut *tx)
    .await?;
    let noted: Vec<i32> = retired.iter().map(|row| row.seat_no).collect();
    note(tx, event_id, &noted, "block", "retired: the plan has it no more", now).await?;
    for row in retired {
        record(row.seat_no, row.status, row.version)?;
    }

    // What the plan took away it gives back; what staff blocked stays blocked.
    let back: Vec<i32> = previous
        .seats
        .iter()
        .zip(slots)
        .filter(|(old, slot)| old.retired && matches!(slot, Slot::Seat(at) if !layout.seats[*at].house))
        .map(|(old, _)| old.seat_no)
        .collect();
    let returned = sqlx::query!(
        "update event_seat s set status = 0, version = version + 1
          where event_id = $1 and seat_no = any($2) and status = 3
            and coalesce((select n.actor = 'import' from seat_note n
                           where n.event_id = $1 and n.seat_no = s.seat_no order by n.id desc limit 1), true)
         returning seat_no, status, version",
        event_id,
        &back,
    )
    .fetch_all(&mut *tx)
    .await?;
    let noted: Vec<i32> = returned.iter().map(|row| row.seat_no).collect();
    note(tx, event_id, &noted, "unblock", "returned: the plan has it again", now).await?;
    for row in returned {
        record(row.seat_no, row.status, row.version)?;
    }

    // The level is no part of what maps are sent, so it has no outbox row; a sold seat's price stands.
    let repriced = sqlx::query!(
        "update event_seat e set level = l.level
           from plan_seat s join price_level l on l.event_id = $1 and l.category = s.category
          where e.event_id = $1 and s.plan_revision_id = $2 and s.seat_no = e.seat_no
            and not s.retired and e.level <> l.level and e.status <> 2",
        event_id,
        revision_id,
    )
    .execute(&mut *tx)
    .await?;
    outbox::append(tx, event_id, now, &changes).await?;
    Ok(repriced.rows_affected())
}

async fn note(
    tx: &mut PgConnection,
    event_id: i64,
    seat_nos: &[i32],
    verb: &str,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let done = sqlx::query!(
        "insert into seat_note (event_id, seat_no, verb, reason, actor, created_at)
         select $1, seat_no, $3, $4, 'import', $5 from unnest($2::int[]) as s (seat_no)",
        event_id,
        seat_nos,
        verb,
        reason,
        now,
    )
    .execute(tx)
    .await?;
    expect_rows(done.rows_affected(), seat_nos.len())
}
