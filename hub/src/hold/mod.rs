//! Holding seats: the desk decides, in batches, over the rows that own the seats.
//!
//! Read [`desk`] for how requests gather and one transaction decides them, [`decide`] for the
//! rules, [`ledger`] for what is read and written, [`best`] for "best n together".

pub mod best; // the best n together, and what lies near
mod decide; // the rules, without a database
pub mod desk; // requests gather; one transaction decides them
mod ledger; // what a batch reads and writes
pub mod sweeper; // tidies what ran out

use chrono::{DateTime, Utc};
use fullhouse_protocol::holds::{BestRequest, Hold};
use uuid::Uuid;

use crate::seat_map::{SeatNo, SeatSet};

/// What is asked of a desk.
#[derive(Debug, Clone)]
pub enum Request {
    Take(Take),
    Release(Release),
    /// From the sweeper: holds whose time has passed.
    Expire(Vec<Uuid>),
}

#[derive(Debug, Clone)]
pub struct Take {
    pub buyer_id: Uuid,
    pub wish: Wish,
    /// Fewer seats will do.
    pub fewer_ok: bool,
    /// The hold becomes exactly this; otherwise the seats are added to it.
    pub replace: bool,
    pub rules: Rules,
    pub key: Key,
}

#[derive(Debug, Clone)]
pub enum Wish {
    Seats(SeatSet),
    Best(BestRequest),
}

/// Which rules of good order apply. The limit of seats is the buyer's and applies always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Sale window, single seats, companions, churn.
    Fan,
    /// Staff know what they do; only a cancelled event stops them.
    Staff,
}

/// The client's name for this request: sent again, it finds the first answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    /// Of the request's body: the same name for another request is refused.
    pub body_hash: [u8; 32],
}

#[derive(Debug, Clone)]
pub struct Release {
    pub buyer_id: Uuid,
    pub hold_id: Uuid,
    /// `None`: all of them.
    pub seats: Option<SeatSet>,
}

/// What the buyer has after a request that was granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    pub hold: Option<Hold>,
    pub not_held: Vec<SeatNo>,
    pub now: DateTime<Utc>,
}

/// Why a request was not granted. Nothing was changed.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
pub enum Refusal {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event has no seats {0:?}")]
    SeatUnknown(Vec<SeatNo>),
    #[error("seats {lost:?} are taken")]
    SeatsUnavailable { lost: Vec<SeatNo> },
    #[error("there are not that many seats together")]
    NoneTogether,
    #[error("{held} held and {bought} bought of {limit}")]
    LimitReached { limit: i32, held: i32, bought: i32 },
    #[error("seats {0:?} would be left single")]
    LeavesSingleSeat(Vec<SeatNo>),
    #[error("companion seats {0:?} without their accessible places")]
    CompanionNeedsAccessible(Vec<SeatNo>),
    #[error("too many seats taken and returned")]
    ChurnSpent,
    #[error("a payment is under way")]
    HoldFrozen,
    #[error("the buyer has no such hold")]
    HoldUnknown,
    #[error("the key was used for another request")]
    IdempotencyMismatch,
    #[error("the sale opens at {0}")]
    SaleNotOpen(DateTime<Utc>),
    #[error("the sale has closed")]
    SaleClosed,
    #[error("the sale is paused")]
    SalePaused,
    #[error("the event is cancelled")]
    EventCancelled,
    #[error("too busy")]
    Busy,
    #[error("the database failed")]
    Failed,
}
