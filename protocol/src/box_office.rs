//! What a terminal asks of a hub.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    consign::SeatConsigned,
    events::SeatTraits,
    holds::{BestRequest, HoldAnswer},
    orders::{Order, TicketChoice},
    staff::OrderFound,
    tickets::PrintJob,
};

/// `POST /api/box-office/holds`: seats for the customer at the counter.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillHoldRequest {
    pub event_id: i64,
    /// The customer of an earlier hold of this transaction; left out, a new customer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<i32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestRequest>,
    #[serde(default)]
    pub fewer_ok: bool,
    #[serde(default)]
    pub replace: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TillHoldAnswer {
    pub buyer_id: Uuid,
    #[serde(flatten)]
    pub answer: HoldAnswer,
}

/// `POST /api/box-office/holds/{id}/release`: all seats of the customer go back.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillReleaseRequest {
    pub buyer_id: Uuid,
}

/// `POST /api/box-office/holds/{id}/quote`: what the hold costs, with these ticket types.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillQuoteRequest {
    pub buyer_id: Uuid,
    /// Seats left out get their first ticket type.
    #[serde(default)]
    pub tickets: Vec<TicketChoice>,
    /// Prices that are not the list's; a supervisor's to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceOverride>,
}

/// What a seat costs instead of its list price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceOverride {
    pub seat_no: i32,
    /// 0 or more; given away is a comp.
    pub amount_minor: i64,
    /// 1 to 500 characters.
    pub reason: String,
}

/// `POST /api/box-office/sales`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillSaleRequest {
    pub hold_id: Uuid,
    pub buyer_id: Uuid,
    #[serde(default)]
    pub tickets: Vec<TicketChoice>,
    /// As they were quoted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceOverride>,
    pub tender: TillTender,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TillTender {
    Cash {
        received_minor: i64,
    },
    Comp {
        reason: String,
    },
    /// Given away beforehand: a voucher's code, as it is typed or scanned. Any clerk's to take.
    Voucher {
        code: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TillSaleAnswer {
    pub order: Order,
    /// What goes back over the counter.
    pub change_minor: i64,
}

/// `POST /api/box-office/card-sales`: the customer holds a card to a reader.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillCardRequest {
    pub hold_id: Uuid,
    pub buyer_id: Uuid,
    #[serde(default)]
    pub tickets: Vec<TicketChoice>,
    /// As they were quoted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceOverride>,
    /// The provider's id of the reader at this counter.
    pub reader: String,
    /// What lies on the counter beside the card, which pays the rest: 0 or more, less than the total. It goes into the
    /// drawer when the seats are sold; until then it is the customer's. A counter's, with an open shift.
    #[serde(default)]
    pub cash_minor: i64,
}

/// `POST /api/box-office/card-sales/{id}/stop`: the reader is to collect no more.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillCardStopRequest {
    /// What happens if the card was faster. True: the sale is kept. False (if left out): the money is let
    /// go, and the order is given up.
    #[serde(default)]
    pub keep_if_paid: bool,
}

/// `POST /api/box-office/events/{id}/block`, `…/unblock`, `…/kill` and `…/revive`: up to 10,000 seats, or a section.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    /// All of them, or none if one can't be.
    #[serde(default)]
    pub seats: Vec<i32>,
    /// Instead: whatever can be of this section, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Why, for whoever looks at the seat later. 1 to 500 characters.
    pub reason: String,
}

/// What became of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SectionBlocked {
    /// Ascending; those that were so already are not among them.
    pub changed: Vec<i32>,
    /// Held, sold, given up for good, or otherwise not to be changed: they stay as they are.
    pub left: Vec<i32>,
}

/// `POST /api/box-office/events/{id}/traits`: what seats are for this performance, where that is not what the plan says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TraitsRequest {
    /// 1 to 1,000; held, sold and blocked ones as well.
    pub seats: Vec<i32>,
    /// Left out, as the others: that stays as it is. A companion's seat goes with its accessible place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accessible: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restricted_view: Option<bool>,
    /// For whoever buys it, 120 characters at most; empty: nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why, for staff. 1 to 500 characters.
    pub reason: String,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraitsSet {
    /// Ascending, with companions' seats; those that were so already are not among them.
    pub changed: Vec<i32>,
    /// Of these: somebody has bought it as it was, and may have to be told.
    pub sold: Vec<i32>,
}

/// `POST /api/box-office/customer-holds`, with an `Idempotency-Key`: seats put aside under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomerHoldRequest {
    pub event_id: i64,
    /// More than one buyer may have: a supervisor's.
    pub seats: Vec<i32>,
    /// Who comes for them: 1 to 200 characters.
    pub name: String,
    /// When they go back on sale by themselves: a minute from now at least, and the event's beginning at most.
    pub until: DateTime<Utc>,
    /// 500 characters at most.
    #[serde(default)]
    pub note: String,
}

/// Seats that wait for somebody. Any counter sells them, by `hold_id` and `buyer_id`, as any hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CustomerHold {
    pub hold_id: Uuid,
    pub buyer_id: Uuid,
    pub event_id: i64,
    pub seats: Vec<i32>,
    pub name: String,
    pub note: String,
    pub until: DateTime<Utc>,
    pub made_by: String,
    pub made_at: DateTime<Utc>,
}

/// `GET /api/box-office/customer-holds`: by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CustomerHolds {
    pub holds: Vec<CustomerHold>,
}

/// `GET /api/box-office/events/{id}/seats/{no}`: whose a seat is, and whatever happened to it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SeatStory {
    pub event_id: i64,
    pub seat_no: i32,
    pub section: String,
    pub row: String,
    pub number: String,
    pub category: String,
    /// `free`, `held`, `sold`, `blocked`, or `dead`: given up for good.
    pub status: String,
    pub held_until: Option<DateTime<Utc>>,
    /// `web`, the terminal's name, or the partner's.
    pub held_by: Option<String>,
    /// What it is for this performance.
    pub traits: SeatTraits,
    /// It is put aside for somebody.
    pub customer: Option<CustomerHold>,
    /// A partner has it, to sell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consigned: Option<SeatConsigned>,
    /// That it is sold to.
    pub order: Option<OrderFound>,
    /// The latest first, as the rest.
    pub sales: Vec<SeatSale>,
    pub tickets: Vec<SeatTicket>,
    pub notes: Vec<SeatNote>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatSale {
    pub order_id: Uuid,
    pub order_code: String,
    pub channel: String,
    /// `sold`, `void` (given back) or `exchanged`.
    pub state: String,
    pub amount_minor: i64,
    pub currency: String,
    /// What it would have cost, if the price was changed.
    pub list_minor: Option<i64>,
    pub price_reason: Option<String>,
    pub sold_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatTicket {
    pub ticket_id: Uuid,
    pub order_id: Uuid,
    /// `pending`, `valid` or `void`.
    pub state: String,
    pub void_reason: Option<String>,
    pub printed: bool,
    pub created_at: DateTime<Utc>,
}

/// What staff did to a seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatNote {
    /// `block`, `unblock`, `kill`, `revive`; or `traits`: what it is for this performance was said last.
    pub verb: String,
    pub reason: String,
    pub actor: String,
    pub at: DateTime<Utc>,
}

/// `GET /api/box-office/events/{id}/will-call`: orders whose tickets were never printed, by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WillCall {
    pub orders: Vec<WillCallOrder>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WillCallOrder {
    pub order_id: Uuid,
    pub code: String,
    /// None: somebody at a counter.
    pub buyer_name: Option<String>,
    pub buyer_email: Option<String>,
    pub channel: String,
    pub created_at: DateTime<Utc>,
    /// Whose tickets wait.
    pub seats: Vec<i32>,
}

/// `POST /api/box-office/events/{id}/will-call/prints`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WillCallPrintRequest {
    /// 1 to 50, each once; their tickets that were never printed.
    pub order_ids: Vec<Uuid>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WillCallPrinted {
    /// As they were named.
    pub orders: Vec<WillCallPrints>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WillCallPrints {
    pub order_id: Uuid,
    pub jobs: Vec<PrintJob>,
    /// The code of why not; none: it is being printed.
    pub refused: Option<String>,
}
