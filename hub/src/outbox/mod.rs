//! What the bus carries: appended in the transaction of a change, relayed in frames.
//!
//! Invariants
//! - A change of a seat and its outbox row are one transaction. Expiry included.
//! - A row is deleted once the bus has acknowledged what it became, and not before. No
//!   number of a row is a cursor: one that commits late is found like any other.

pub mod lines; // people who wait, revision by revision
mod published; // what was published, and the frames that follow from what is learnt
pub mod relay; // one leads: reads, publishes, deletes

pub use published::new_epoch;

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgConnection;

/// What a seat has become. `version` is the row's, after the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatChange {
    pub seat_no: i32,
    pub status: Status,
    pub version: i32,
    /// Of a held seat: the map shows it free from this instant on, whoever tidies it up, and when.
    pub held_until: Option<DateTime<Utc>>,
}

/// Writes one row for all changes that a transaction made to an event's seats; no row for none.
///
/// `now` is the database's clock as the transaction read it, and travels in the frame as the time
/// of the change.
pub async fn append(
    conn: &mut PgConnection,
    event_id: i64,
    now: DateTime<Utc>,
    changes: &[SeatChange],
) -> sqlx::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let seat_nos: Vec<i32> = changes.iter().map(|c| c.seat_no).collect();
    let statuses: Vec<i16> = changes.iter().map(|c| c.status.into()).collect();
    let versions: Vec<i32> = changes.iter().map(|c| c.version).collect();
    let held_until: Vec<Option<DateTime<Utc>>> = changes.iter().map(|c| c.held_until).collect();
    sqlx::query!(
        "insert into outbox (event_id, seat_nos, statuses, versions, held_until, created_at)
         values ($1, $2, $3, $4, $5, $6)",
        event_id,
        &seat_nos,
        &statuses,
        &versions,
        &held_until as &[Option<DateTime<Utc>>],
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}
