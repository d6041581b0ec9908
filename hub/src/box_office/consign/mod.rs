//! Consignment: seats that a partner sells elsewhere, until a cut-off; and what it owes for them.
//!
//! Invariants
//! - A consignment is a hold: one owner a seat, and at the cut-off what is out is free by the database's clock. Selling and
//!   giving back compare with that clock after they have the event's lock, so that a sale and the cut-off have one winner.
//! - A seat leaves it once, sold or returned (`consignment_seat_ends_once`).
//! - What a partner sold is an order like any other, which its account pays for; what goes back of it is owed no more.
//!
//! Locks in order: the event, then as everywhere.

mod partners; // who they are
mod give; // seats become a partner's
mod back; // what it reports: sold, or given back; and another cut-off
mod list; // how consignments stand
mod account; // what it owes, and pays; what the house pays back

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use self::{
    account::{Pay, Payer, pay, statement},
    back::{Sale, cut_off, give_back, sell},
    give::{Ask, SEATS_MAX, Wanted, consign},
    list::{list, of_hold},
    partners::{add as add_partner, list as partners},
};
use super::{free::NotFree, shift::ShiftError};
use crate::{
    auth::Actor,
    checkout::{CheckoutError, ConfirmError, ConsignedSaleError, log},
    db::Tx,
    seat_map::SeatNo,
};

/// Who does something about a consignment.
#[derive(Debug, Clone)]
pub struct By {
    pub terminal_id: Uuid,
    pub actor: Actor,
    /// The request's own: sent again, it finds what it did.
    pub key: String,
}

/// The ticket type of a seat.
pub type TicketTypes = HashMap<SeatNo, String>;

#[derive(Debug, thiserror::Error)]
pub enum ConsignError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    #[error("there is no such partner")]
    PartnerUnknown,
    #[error("another partner has this code")]
    CodeTaken,
    /// Over before it begins, or after the event's sale, or its beginning.
    #[error("it may end until {latest}")]
    UntilInvalid { latest: DateTime<Utc> },
    #[error(transparent)]
    NotFree(#[from] NotFree),
    #[error("a section has more than {SEATS_MAX} free seats")]
    TooMany,
    #[error("there is no such consignment")]
    Unknown,
    /// What was out has gone back on sale.
    #[error("the cut-off came at {until}")]
    Over { until: DateTime<Utc> },
    /// Sold or given back before, or never part of it: nothing is changed.
    #[error("the partner does not have seats {0:?}")]
    NotOut(Vec<SeatNo>),
    /// Below 0, the house owes.
    #[error("the partner owes {owed_minor}")]
    OwesLess { owed_minor: i64 },
    #[error("no shift is open")]
    ShiftRequired,
    #[error(transparent)]
    Shift(#[from] ShiftError),
    #[error("the key was used for another request")]
    KeyReused,
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<ConsignedSaleError> for ConsignError {
    fn from(error: ConsignedSaleError) -> Self {
        match error {
            ConsignedSaleError::Checkout(error) => Self::Checkout(error),
            ConsignedSaleError::Confirm(error) => Self::Confirm(error),
            ConsignedSaleError::Database(error) => Self::Database(error),
        }
    }
}

fn expect_rows(written: u64, expected: usize) -> sqlx::Result<()> {
    if written == expected as u64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{written} of {expected} rows of a consignment written")))
}

/// Seats, as the log names them. Its lines have an end.
async fn named(tx: &mut Tx, event_id: i64, seats: &[SeatNo]) -> sqlx::Result<String> {
    Ok(format!("{} seats: {}", seats.len(), log::named(tx, event_id, seats).await?))
}

/// As much as a line of the log holds.
fn line(text: String) -> String {
    text.chars().take(2_000).collect()
}
