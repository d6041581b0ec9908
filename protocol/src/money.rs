//! Money as staff see it: refunds, and the list of what is not settled.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// What of an order goes back.
//
// Each variant has fields, if none: of one without, serde takes whatever else stands beside the tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RefundWhat {
    /// Whatever is left of it, and all of its seats.
    All {},
    /// These seats, each with its share of fees. They add up to what was paid.
    Seats { seats: Vec<i32> },
    /// An amount; the seats stay.
    Amount { amount_minor: i64 },
}

/// What becomes of seats that go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeatsBecome {
    OnSale,
    /// Blocked, as before it was sold.
    House,
    /// Never sold again.
    Dead,
}

/// `POST /api/staff/orders/{id}/refunds`, with an `Idempotency-Key`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefundRequest {
    pub what: RefundWhat,
    /// Needed if seats go back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats_become: Option<SeatsBecome>,
    /// For whoever looks at the order later. 1 to 500 characters.
    pub reason: String,
}

/// One movement of money, the way it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refund {
    pub id: Uuid,
    /// `card`, `cash`, `comp`, `voucher` or `account`: a partner owes it no more.
    pub kind: String,
    pub amount_minor: i64,
    /// `pending` (to be asked for), `accepted` (on its way), `succeeded`, or `failed`: then somebody has to see to it.
    pub state: String,
    /// The provider's word for why not.
    pub failure: Option<String>,
    /// Of one that failed: what was done instead.
    pub replaced_by: Option<Uuid>,
}

/// What was given back by one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GivenBack {
    pub request_id: Uuid,
    pub amount_minor: i64,
    pub currency: String,
    pub seats: Vec<i32>,
    pub seats_become: Option<SeatsBecome>,
    pub reason: String,
    pub actor: String,
    pub created_at: DateTime<Utc>,
    pub refunds: Vec<Refund>,
}

/// `POST /api/staff/refunds/{id}/retry`: sees to a refund that failed. The answer is the [`Refund`] in its place.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// It was handed over, or sent by the bank. Otherwise the card is tried once more.
    #[serde(default)]
    pub by_hand: bool,
    pub reason: String,
}

/// `POST /api/staff/gate/{reason}/open`, `POST /api/staff/gate/pause` and `POST /api/staff/findings/{id}/acknowledge`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GateRequest {
    /// What you have seen to, for the log. 1 to 500 characters.
    pub note: String,
}

/// Why no new payments begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GateReason {
    pub reason: String,
    pub detail: String,
    /// Only a person opens it; otherwise it opens by itself when it is over.
    pub by_person: bool,
    pub closed_at: DateTime<Utc>,
    pub closed_by: String,
}

/// The last comparison of the provider's books with ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reconciled {
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub ok: bool,
    pub error: Option<String>,
    pub intents: i32,
    pub refunds: i32,
    pub transactions: i32,
    pub findings: i32,
}

/// Where the books differ. The classes are described in `protocol/PROTOCOL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    pub id: i64,
    /// `M1` to `M7`.
    pub class: String,
    pub subject: String,
    pub order_code: Option<String>,
    /// The provider's id of the payment.
    pub pi_id: Option<String>,
    /// In the provider's units.
    pub provider_amount: Option<i64>,
    pub currency: Option<String>,
    pub detail: String,
    pub found_at: DateTime<Utc>,
    pub last_seen_at: DateTime<Utc>,
    pub repaired: bool,
    pub acknowledged_by: Option<String>,
    pub acknowledged_note: Option<String>,
}

/// An order whose money is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwedOrder {
    pub order_id: Uuid,
    pub code: String,
    pub event_id: i64,
    pub state: String,
    pub total_minor: i64,
    pub currency: String,
    pub payment_due_until: Option<DateTime<Utc>>,
    /// `capture_under_way`, `capture_failed` or `given_back_elsewhere`.
    pub why: String,
    pub since: DateTime<Utc>,
}

/// A payment of which nobody knows whether it happened; or one that is decided, and that the provider has refused to
/// let go so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Doubt {
    pub attempt_id: Uuid,
    pub order_code: String,
    pub state: String,
    pub amount_minor: i64,
    pub currency: String,
    pub age_s: i64,
    pub since: DateTime<Utc>,
    pub next_look_at: Option<DateTime<Utc>>,
    pub looks: i32,
}

/// Money that belongs to a buyer and has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwedRefund {
    pub refund_id: Uuid,
    pub order_code: String,
    pub kind: String,
    pub amount_minor: i64,
    pub currency: String,
    pub state: String,
    pub failure: Option<String>,
    pub reason: String,
    pub created_at: DateTime<Utc>,
}

/// Whatever about money is not settled, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoneyList {
    /// Empty: payments begin.
    pub gate: Vec<GateReason>,
    pub reconciled: Option<Reconciled>,
    pub money_without_order: Vec<Finding>,
    pub orders_without_money: Vec<OwedOrder>,
    pub payment_due: Vec<OwedOrder>,
    pub doubts: Vec<Doubt>,
    pub refunds: Vec<OwedRefund>,
    /// The other differences between the books.
    pub findings: Vec<Finding>,
    pub refunds_failed: i64,
    pub now: DateTime<Utc>,
}

/// `POST /api/staff/events/{id}/call-off`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallOffRequest {
    /// For staff: 1 to 500 characters.
    pub reason: String,
    /// For everybody, beside the event: 1 to 500 characters. Said later, it takes the place of what was said before.
    #[serde(default)]
    pub public_reason: Option<String>,
}

/// An event that is called off, and a result an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalledOff {
    pub event_id: i64,
    pub reason: String,
    pub actor: String,
    pub started_at: DateTime<Utc>,
    /// Every order has its result since then; money may still be on its way.
    pub gone_through_at: Option<DateTime<Utc>>,
    pub refused_count: i64,
    /// The refused ones first.
    pub orders: Vec<CalledOffOrder>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalledOffOrder {
    pub order_id: Uuid,
    pub code: String,
    pub amount_minor: i64,
    pub currency: String,
    /// `refunded`, `on_its_way`, `nothing_paid`, `waiting` (not gone through yet, or a payment is under way), `refused` (see `detail`).
    pub result: String,
    pub detail: String,
}
