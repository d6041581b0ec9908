//! Orders, attempts to pay and tickets, as a buyer's client sees them.
//!
//! Money is integer minor units of `currency` (JPY has none, KWD has a thousand); times are RFC 3339, UTC.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::seat::SeatTrait;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    Open,
    Confirmed,
    /// The seats are this buyer's, but the money could not be taken: pay again until `pay_until`.
    PaymentDue,
    Cancelled,
}

/// Why an order was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The hold ran out before a payment had begun, or while it was still in doubt.
    TimeOver,
    /// The buyer gave the order up, or gave its seats back.
    Buyer,
    /// The buyer chose other seats or ticket types: another order took its place.
    Replaced,
    /// The money could not be taken, and was not paid again in time.
    NotPaid,
    /// All of its seats were given back.
    Refunded,
    /// The event does not take place.
    CalledOff,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Order {
    pub id: Uuid,
    /// What people say at a counter.
    pub code: String,
    pub event_id: i64,
    /// The event's page is `/events/{event_slug}`.
    #[serde(default)]
    pub event_slug: String,
    pub event_name: String,
    /// The venue's name, and its city.
    pub venue: String,
    pub city: String,
    /// On the venue's clock.
    #[serde(with = "crate::events::local")]
    #[schema(value_type = String, example = "2027-03-01T19:00")]
    pub starts_local: NaiveDateTime,
    pub starts_at: DateTime<Utc>,
    /// The venue's, an IANA name: for what else happens there, such as the end of giving back.
    #[serde(default)]
    pub time_zone: String,
    pub state: OrderState,
    pub currency: String,
    pub total_minor: i64,
    /// Paid already, with the order that this one's seats were exchanged for: only the rest is paid.
    #[serde(default)]
    pub credit_minor: i64,
    /// What is still to be paid; 0 of an order that is paid, or over.
    #[serde(default)]
    pub due_minor: i64,
    /// The order that all of this one's seats were exchanged for.
    #[serde(default)]
    pub exchanged_for: Option<Uuid>,
    /// Of an order that is open, told to its buyer before they pay: what will stand on the tickets for their name. No font
    /// of this house has all of its letters; those stand there by their numbers. Null: the name is printed as it is.
    #[serde(default)]
    pub name_on_tickets: Option<String>,
    /// What may be given back by the buyer, as it was agreed on when it was bought.
    #[serde(default)]
    pub refund_terms: Option<RefundTerms>,
    /// What of the money went back since it was bought, whoever gave it back; none if nothing did.
    #[serde(default)]
    pub refunded: Option<AttemptRefund>,
    pub lines: Vec<OrderLine>,
    #[serde(default)]
    pub tax: Option<OrderTax>,
    /// When the seats go back, while the order is not paid.
    pub held_until: Option<DateTime<Utc>>,
    /// The countdown that a buyer sees: no payment starts after it.
    pub pay_until: Option<DateTime<Utc>>,
    pub attempt: Option<Attempt>,
    pub tickets: Vec<Ticket>,
    pub created_at: DateTime<Utc>,
    pub confirmed_at: Option<DateTime<Utc>>,
    /// Of a cancelled order; null also where it was cancelled before reasons were kept.
    #[serde(default)]
    pub cancel_reason: Option<CancelReason>,
}

/// `GET /api/orders/{id}/cancellation` says what they come to for seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefundTerms {
    pub until: DateTime<Utc>,
    /// Kept of a ticket's price.
    pub keep_percent: i64,
    /// The same, as an amount a ticket.
    pub keep_minor: i64,
    /// Booking fees do not go back.
    pub keep_fees: bool,
}

/// `GET /api/orders/{id}/cancellation?seats=4,5`: what comes back of these seats, if they are given back now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancellationOffer {
    pub seats: Vec<CancelledSeat>,
    pub fees_back_minor: i64,
    /// All of it: seats and fees.
    pub back_minor: i64,
    /// Of the seats' prices, what does not come back.
    pub kept_minor: i64,
    pub currency: String,
    pub until: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledSeat {
    pub seat_no: i32,
    pub amount_minor: i64,
    pub back_minor: i64,
}

/// `POST /api/orders/{id}/cancellation`, with an `Idempotency-Key`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancellationRequest {
    pub seats: Vec<i32>,
    /// What the buyer was told comes back: nothing else is given.
    pub back_minor: i64,
}

/// A seat (with `seat_no`) or a fee (with `fee_code`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderLine {
    pub seat_no: Option<i32>,
    pub section: Option<String>,
    pub row: Option<String>,
    pub number: Option<String>,
    /// A place to stand, and no seat.
    #[serde(default)]
    pub standing: bool,
    pub ticket_type: Option<String>,
    pub fee_code: Option<String>,
    pub amount_minor: i64,
    /// Contained in the amount; none if the event said nothing of tax.
    #[serde(default)]
    pub tax_minor: Option<i64>,
}

/// The tax that an order contains, as it was when the order was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderTax {
    pub name: String,
    /// Of the net price, as it is written: `19`, `8.875`.
    pub percent: String,
    /// The sum of the lines', each rounded half up.
    pub amount_minor: i64,
    /// Of what went back, or is on its way.
    pub refunded_minor: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TicketState {
    /// The seat is sold, the money is on its way: the door refuses it still.
    Pending,
    Valid,
    Void,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// What the code carries; a reissued ticket has another.
    pub id: Uuid,
    pub seat_no: i32,
    pub section: String,
    pub row: String,
    pub number: String,
    /// A place to stand, and no seat.
    #[serde(default)]
    pub standing: bool,
    /// What is to be known of the seat, as it is now.
    #[serde(default)]
    pub traits: Vec<SeatTrait>,
    /// What the house says of it for this performance.
    #[serde(default)]
    pub note: Option<String>,
    /// Signed; what the QR code holds. Of a valid ticket only: a door that has no network believes every genuine code.
    pub code: Option<String>,
    pub state: TicketState,
}

/// What a buyer is told about a try to pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPhase {
    Working,
    /// The buyer must meet a challenge at `action_url`, then call `resume`.
    ActionRequired,
    /// "We are asking your bank; your seats are yours until `seats_until`."
    AskingBank,
    /// Another card may be tried while the seats are still the buyer's.
    Declined,
    /// Nothing was taken; `outcome` says why.
    NotCharged,
    Paid,
    /// The money could not be taken, or was given back; `outcome` says which.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub id: Uuid,
    /// The machine's own state, for people who look closely. Clients act on `phase`.
    pub state: String,
    pub phase: AttemptPhase,
    pub action_url: Option<String>,
    pub decline_code: Option<String>,
    /// `declined`, `hold_ended`, `cancelled`, `wrong_amount`, `refused`, `not_served` (cards can't be taken now; nothing was charged), `capture_failed`, `refunding`, `refunded`.
    pub outcome: Option<String>,
    pub seats_until: DateTime<Utc>,
    /// Money that came although nothing was sold for it: it goes back, whatever else is said here.
    #[serde(default)]
    pub refund: Option<AttemptRefund>,
    /// The card that paid, once it has.
    #[serde(default)]
    pub card: Option<CardShown>,
}

/// All that is known of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CardShown {
    /// As the provider writes it: `visa`, `mastercard`, …
    pub brand: String,
    pub last4: String,
}

/// Money on its way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptRefund {
    pub amount_minor: i64,
    pub state: AttemptRefundState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptRefundState {
    OnItsWay,
    Arrived,
    /// The provider refused it: somebody of the house sees to it.
    Failed,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OrderAnswer {
    pub order: Order,
    pub now: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OrdersAnswer {
    pub orders: Vec<Order>,
    pub now: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AttemptAnswer {
    pub attempt: Attempt,
    pub now: DateTime<Utc>,
}

/// Pays an order. `amount_minor` and `currency` are what the buyer was shown: a changed price is never charged.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pay {
    /// The provider's token for the card, made by its own form.
    pub payment_method: String,
    pub amount_minor: i64,
    pub currency: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PaymentConfig {
    /// Whether cards can be taken here at all.
    pub cards: bool,
    /// The gate is closed: no payment begins now. It opens by itself or by a person, mostly soon.
    #[serde(default)]
    pub paused: bool,
    pub publishable_key: String,
    /// The provider's card form, for a frame. It posts `{type: "fullhouse:payment_method", id, brand, last4}`,
    /// and `{type: "fullhouse:resize", height}` in CSS pixels, whenever it becomes higher or lower.
    pub form_url: String,
}

/// `POST /api/holds/{id}/checkout`: seats that are not named get the first ticket type of their price level.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckoutRequest {
    #[serde(default)]
    pub tickets: Vec<TicketChoice>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketChoice {
    pub seat_no: i32,
    pub ticket_type: String,
}
