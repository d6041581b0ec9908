//! Selling without a network: seats that a terminal owns for a while, what it sold of them, and giving them back.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::seat::SeatTrait;

/// `POST /api/box-office/leases`: seats for this terminal alone. Either `seats`, or `count` (of a `section`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    pub event_id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<i32>>,
    /// So many that are free, the lowest numbers first; none that are kept for people with needs of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// For how long it may sell, in seconds, from when it is asked for: 1 to 43,200. Time never gives a seat back.
    pub sells_for_s: u32,
}

/// What a hub leased to a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    pub lease_id: Uuid,
    pub event_id: i64,
    pub currency: String,
    pub sells_for_s: u32,
    /// The number that the terminal's next sale had when the lease was granted.
    pub next_seq: u64,
    /// Seats that one buyer may have.
    pub seats_max: usize,
    pub seats: Vec<LeasedSeat>,
}

/// A seat as it was leased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasedSeat {
    pub seat_no: i32,
    pub ticket_id: Uuid,
    /// Signed by the hub; what the ticket's QR code says. Dies if the seat goes back unsold.
    pub code: String,
    /// What it costs by ticket type, fees included, in minor units.
    pub prices: BTreeMap<String, i64>,
    /// What stands on a ticket; none of a hub that does not tell it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LeasedPlace>,
}

/// A seat as people find it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasedPlace {
    pub section: String,
    /// Empty where people stand.
    pub row: String,
    pub number: String,
    /// A place to stand, and no seat.
    #[serde(default)]
    pub standing: bool,
    /// What is to be known of it.
    #[serde(default)]
    pub traits: Vec<SeatTrait>,
    /// What the house says of it for this performance.
    #[serde(default)]
    pub note: Option<String>,
}

/// `GET /api/box-office/leases`: those of this terminal that are open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnLeases {
    pub leases: Vec<OwnLease>,
    /// The number of the terminal's next sale.
    pub next_seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnLease {
    pub lease_id: Uuid,
    /// That it was asked for with.
    pub key: String,
}

/// A sale without a network: the body of a journal's entry, whose text travels unchanged each time it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OfflineSale {
    pub seq: u64,
    pub lease_id: Uuid,
    pub event_id: i64,
    pub currency: String,
    pub seats: Vec<SoldSeat>,
    pub total_minor: i64,
    /// Who sold it.
    pub staff_id: Uuid,
    /// The wall clock's, RFC 3339: for people; nothing is decided by it.
    pub sold_at: String,
}

/// A seat of an offline sale, as it is journalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SoldSeat {
    pub seat_no: i32,
    pub ticket_type: String,
    pub amount_minor: i64,
}

/// `POST /api/box-office/journal`: the next sales, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JournalRequest {
    pub entries: Vec<JournalEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    pub seq: u64,
    /// The text of the journal, byte for byte: an [`OfflineSale`] as JSON.
    pub body: String,
}

/// What became of the entries, as far as they were settled: the first that is refused ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JournalAnswer {
    pub settled: Vec<Settled>,
    /// The number that is expected next.
    pub next_seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    pub seq: u64,
    pub outcome: Outcome,
}

/// What a sale has become, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Sold {
        order_id: Uuid,
        /// The seats had been written off and were still there: their tickets have other codes than those that were
        /// printed, which are dead.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        new_codes: bool,
    },
    /// Money in a drawer without a seat. It is on the list of staff.
    NotSold { reason: NotSold },
}

/// Why a journalled sale is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotSold {
    /// No lease of this terminal is called so.
    LeaseUnknown,
    /// The terminal had said that it sold nothing else of it.
    LeaseClosed,
    /// A seat is not of the lease, or is named twice, or none is.
    SeatUnknown,
    /// An earlier sale of this lease has a seat.
    SeatSold,
    /// It says other amounts than the lease.
    PriceMismatch,
    /// The lease was written off, and somebody has done something with a seat since.
    SeatGone,
}

impl NotSold {
    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::LeaseUnknown => "lease_unknown",
            Self::LeaseClosed => "lease_closed",
            Self::SeatUnknown => "seat_unknown",
            Self::SeatSold => "seat_sold",
            Self::PriceMismatch => "price_mismatch",
            Self::SeatGone => "seat_gone",
        }
    }

    /// As it was stored.
    pub fn read(name: &str) -> Option<Self> {
        use NotSold::{LeaseClosed, LeaseUnknown, PriceMismatch, SeatGone, SeatSold, SeatUnknown};
        [LeaseUnknown, LeaseClosed, SeatUnknown, SeatSold, PriceMismatch, SeatGone]
            .into_iter()
            .find(|r| r.name() == name)
    }
}

/// `POST /api/box-office/leases/{id}/close`: the closing report. Nothing else is sold of the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseRequest {
    /// The number of the journal's last sale; 0: it has none. All up to it have to be settled, and none behind it.
    pub sold_seqs_to: u64,
    /// The lease's seats that the journal says are sold: they don't go back, whatever else is wrong.
    #[serde(default)]
    pub sold: BTreeSet<i32>,
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedLease {
    pub lease_id: Uuid,
    pub state: LeaseState,
    /// Seats with an order.
    pub sold: Vec<i32>,
    /// Seats whose codes have died.
    pub returned: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// Its seats are the terminal's, also after its time to sell.
    Open,
    /// By the terminal's closing report.
    Closed,
    /// By a person, who took the risk.
    WrittenOff,
}

/// `POST /api/staff/leases/{id}/write-off`, and of a journal's entry that is seen to: why. 1 to 500 characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseReason {
    pub reason: String,
}

/// `GET /api/staff/leases`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Leases {
    /// Those that are open, and the latest that ended.
    pub leases: Vec<LeaseListed>,
    /// Journalled sales that need a person, the oldest first.
    pub to_see_to: Vec<JournalListed>,
    pub now: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseListed {
    pub id: Uuid,
    pub terminal_id: Uuid,
    pub terminal: String,
    pub event_id: i64,
    pub event: String,
    pub state: LeaseState,
    pub seats: i64,
    pub sold: i64,
    pub granted_by: String,
    pub granted_at: DateTime<Utc>,
    /// About when the terminal stops selling; the seats stay its own.
    pub sells_until: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub ended_by: Option<String>,
    /// Of a write-off.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JournalListed {
    pub terminal_id: Uuid,
    pub terminal: String,
    pub seq: u64,
    pub event_id: i64,
    pub lease_id: Uuid,
    pub outcome: Outcome,
    pub seats: Vec<i32>,
    pub currency: String,
    /// What lies in the drawer for it.
    pub total_minor: i64,
    pub staff_id: Uuid,
    /// As the terminal's clock said.
    pub sold_at: String,
    pub received_at: DateTime<Utc>,
}

/// `POST /api/staff/journal/see-to`: a journalled sale needs nobody any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenRequest {
    pub terminal_id: Uuid,
    pub seq: u64,
    /// What was done about it. 1 to 500 characters.
    pub note: String,
}
