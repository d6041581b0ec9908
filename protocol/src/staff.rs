//! Orders as staff see them: looked up, with their log; exchanged, noted.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    money::{GivenBack, SeatsBecome},
    orders::Order,
};

/// An order that was looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderFound {
    pub order_id: Uuid,
    pub code: String,
    pub event_id: i64,
    pub event_name: String,
    pub state: String,
    pub total_minor: i64,
    pub currency: String,
    /// `web`, `counter` or `kiosk`.
    pub channel: String,
    /// None: somebody at a counter.
    pub buyer_name: Option<String>,
    pub buyer_email: Option<String>,
    pub created_at: DateTime<Utc>,
    pub seats: Vec<i32>,
}

/// `GET /api/staff/orders?q=`: the latest first, 50 at most.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OrdersFound {
    pub orders: Vec<OrderFound>,
}

/// `GET /api/staff/audit`: what people did, the latest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditLog {
    /// 100 at most.
    pub entries: Vec<Logged>,
    /// Ask for what is older with `before`; none: this was all.
    pub before: Option<i64>,
}

/// Something that somebody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Logged {
    pub id: i64,
    pub at: DateTime<Utc>,
    /// `sale_cash`, `order_refund`, `seat_block`, `shift_close`, `terminal_lock`, …
    pub verb: String,
    /// As the books name whoever did it.
    pub actor: String,
    /// Who was signed in; none: an operator, the command line, a terminal without sign-in.
    pub staff_name: Option<String>,
    /// Where it was done, or which terminal it was done to.
    pub terminal_id: Option<Uuid>,
    pub terminal_name: Option<String>,
    /// None: it is of no event, or of all.
    pub event_id: Option<i64>,
    pub event_name: Option<String>,
    pub detail: String,
    pub reason: String,
}

/// A line of an order's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderNote {
    /// `note`, `refund`, `exchange`, `reissue` or `cancel`.
    pub verb: String,
    pub text: String,
    pub actor: String,
    pub created_at: DateTime<Utc>,
}

/// `GET /api/staff/orders/{id}`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StaffOrder {
    pub order: Order,
    pub log: Vec<OrderNote>,
    pub given_back: Vec<GivenBack>,
}

/// `POST /api/staff/orders/{id}/notes`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// 1 to 500 characters.
    pub text: String,
}

/// `POST /api/staff/orders/{id}/exchange`, with an `Idempotency-Key`: seats of the order for free ones, of its event or
/// another. For another event, or paid up by card, the new seats are an order of their own, which the answer shows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeRequest {
    pub seats: Vec<SeatPair>,
    /// Cash handed over, if the new seats cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_minor: Option<i64>,
    /// The event of the new seats, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<i64>,
    /// What the new seats cost more is paid by card: by the buyer on the order's page, or at `reader`. Until it is, the
    /// old seats stay theirs; if it never is, nothing has changed.
    #[serde(default)]
    pub by_card: bool,
    /// The card reader of this terminal; the customer holds the card to it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
    /// How long the new seats wait to be paid by card; as long as a hold of their event, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pay_within_s: Option<u32>,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeatPair {
    pub from: i32,
    pub to: i32,
}

/// `POST /api/staff/orders/{id}/exchange-offer`: what an exchange would come to. Nothing is changed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeOfferRequest {
    pub seats: Vec<SeatPair>,
    /// The event of the new seats, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<i64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExchangeOffer {
    /// What is to be paid more; below 0: what goes back.
    pub difference_minor: i64,
    pub currency: String,
    /// How that goes back, the way it came; empty if nothing does.
    pub back: Vec<BackPart>,
}

/// A part of what goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackPart {
    /// `card`, `cash`, `comp`, `voucher` or `account`: a partner owes it no more.
    pub kind: String,
    pub amount_minor: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExchangeAnswer {
    pub order: Order,
    /// What was paid more; below 0: what goes back.
    pub difference_minor: i64,
    pub change_minor: i64,
}

/// `POST /api/staff/orders/{id}/pay`, with an `Idempotency-Key`: takes the money for an order that is `payment_due`, or
/// for the new seats of an exchange that wait for it, in cash or by a card at a reader.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DuePaymentRequest {
    /// Cash handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_minor: Option<i64>,
    /// The card reader of this terminal; the customer holds the card to it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DuePaymentAnswer {
    /// Paid by card, it is `payment_due` (of an exchange: `open`) until the card is charged: follow it.
    pub order: Order,
    /// What goes back over the counter.
    pub change_minor: i64,
}

/// `POST /api/staff/orders/{id}/give-up`: nobody will pay for an order that is `payment_due`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GiveUpRequest {
    /// What becomes of its seats.
    pub seats_become: SeatsBecome,
    /// For the order's log. 1 to 500 characters.
    pub reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct GivenUp {
    /// Cash that was taken beside the card, and goes back over the counter now. What is given up elsewhere than at a
    /// counter hands nothing over: it stands on staff's list.
    pub cash_back_minor: i64,
}
