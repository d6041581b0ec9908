//! What a batch reads and writes: one statement each, so that a batch is four trips to the database
//! (begin and lock, read, write, commit) however many requests it decides.
//!
//! Invariants
//! - Everything is read after the event's lock is taken, so nobody else changes it until the commit.
//! - A write names the version that it believes in, and expects exactly as many rows as it names.
//! - The rows of a hold whose seats somebody took over are not written by whoever takes them.

mod read; // the rows that a batch is about
mod record; // what its decisions made of them

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use uuid::Uuid;

pub use read::{Wanted, read};
pub use record::{RecordError, record};

use super::ByRole;
use crate::{
    admission::pass::PassRow,
    seat_map::{Edition, SeatNo},
};

/// The event as this batch sees it.
#[derive(Debug, Clone)]
pub struct EventRules {
    pub event_id: i64,
    pub edition: Edition,
    pub seat_limit: i32,
    pub hold_ttl_s: i32,
    pub churn_seats_max: i32,
    pub single_seat_rule: bool,
    pub consecutive_rule: bool,
    pub seats_min: i32,
    pub sale_state: String,
    pub on_sale_at: DateTime<Utc>,
    pub off_sale_at: DateTime<Utc>,
}

/// What a waiting room asks of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRules {
    /// Live holds of the event at once.
    pub holds_live_max: Option<i32>,
    /// Counted only where there is such a limit.
    pub holds_live: i32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeatRow {
    pub status: Status,
    pub version: i32,
    pub hold_id: Option<Uuid>,
    pub held_until: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HoldRow {
    pub id: Uuid,
    pub buyer_id: Uuid,
    pub seats: Vec<SeatNo>,
    pub held_until: DateTime<Utc>,
    pub frozen: bool,
    pub version: i32,
    pub seats_taken: i32,
    /// `live`, `released`, `expired` or `bought`.
    pub state: &'static str,
}

impl HoldRow {
    pub fn is_live(&self, now: DateTime<Utc>) -> bool {
        self.state == "live" && self.held_until > now
    }
}

#[derive(Debug, Clone)]
pub struct Answered {
    pub hold_id: Uuid,
    pub body_hash: Vec<u8>,
    /// JSON.
    pub answer: String,
}

/// The rows that a batch is about, as they are and as its decisions make them.
#[derive(Debug)]
pub struct Ledger {
    pub now: DateTime<Utc>,
    pub event: EventRules,
    pub seats: BTreeMap<SeatNo, SeatRow>,
    pub holds: HashMap<Uuid, HoldRow>,
    /// The hold of a buyer whose state is live, even if its time has passed.
    pub hold_of: HashMap<Uuid, Uuid>,
    pub bought: HashMap<Uuid, i32>,
    pub taken_lately: HashMap<Uuid, i32>,
    pub answered: HashMap<(Uuid, String), Answered>,
    /// The event's waiting room, if it has one.
    pub line: Option<LineRules>,
    /// The passes that were shown, by id.
    pub passes: HashMap<Uuid, PassRow>,
    pub dirty_seats: HashSet<SeatNo>,
    pub new_holds: HashSet<Uuid>,
    pub dirty_holds: HashSet<Uuid>,
    pub new_answers: Vec<(Uuid, String)>,
    /// Terminals that took seats past the line.
    pub passed_by_role: Vec<ByRole>,
}
