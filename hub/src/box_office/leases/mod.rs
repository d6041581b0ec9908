//! Selling without a network: seats that a terminal owns for a while, and what becomes of them.
//!
//! Invariants
//! - A leased seat has one owner, the terminal. Nothing but [`close`], [`write_off`] and a settled sale takes it out of the
//!   lease; the schema refuses everybody else (`seat_is_leased`, `seat_leased_is_blocked`).
//! - Time ends selling at the terminal, and nothing here: no statement of this module compares a lease with the clock.
//! - Each journalled sale is settled once, in order, and is answered the same each time it is sent.
//! - A code that may be printed is good until its seat goes back; then it is among the dead.
//!
//! Locks in order: the event, the terminal's journal, then as everywhere.

mod grant; // seats become a terminal's
mod settle; // what it sold becomes orders, each once
mod end; // what it did not sell goes back; what nobody hears of is written off
mod list; // how leases stand, and what needs a person

pub use self::{
    end::{EndError, close, write_off},
    grant::{Ask, GrantError, SEATS_MAX, Wanted, grant},
    list::{SeenError, listed, own, see_to},
    settle::{JournalError, Seller, settle},
};

use fullhouse_protocol::lease::LeaseState;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::db::Tx;

/// The terminal's journal, locked: the number of its next sale. The event's lock is held.
async fn lock_journal(tx: &mut Tx, terminal_id: Uuid) -> sqlx::Result<u64> {
    sqlx::query!("insert into journal (terminal_id) values ($1) on conflict (terminal_id) do nothing", terminal_id)
        .execute(&mut **tx)
        .await?;
    let next =
        sqlx::query_scalar!("select next_seq from journal where terminal_id = $1 for no key update", terminal_id)
            .fetch_one(&mut **tx)
            .await?;
    Ok(next.cast_unsigned())
}

/// The number of a terminal's next sale.
pub(super) async fn next_seq(db: &mut PgConnection, terminal_id: Uuid) -> sqlx::Result<u64> {
    let next = sqlx::query_scalar!("select next_seq from journal where terminal_id = $1", terminal_id)
        .fetch_optional(db)
        .await?;
    Ok(next.map_or(1, i64::cast_unsigned))
}

/// As it is stored.
fn state_of(name: &str) -> LeaseState {
    match name {
        "closed" => LeaseState::Closed,
        "written_off" => LeaseState::WrittenOff,
        _ => LeaseState::Open,
    }
}

fn expect_rows(written: u64, expected: usize) -> sqlx::Result<()> {
    if written == expected as u64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{written} of {expected} rows of a lease written")))
}
