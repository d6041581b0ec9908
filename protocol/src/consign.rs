//! Consignment: seats of an event that a partner sells elsewhere, or gives back, until a cut-off; and what it owes for them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{orders::Order, orders::TicketChoice};

/// `POST /api/box-office/partners`, with an `Idempotency-Key`; a supervisor's to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartnerRequest {
    /// The house's own, for its books: 1 to 20 letters, digits and hyphens. Case does not matter.
    pub code: String,
    /// 1 to 200 characters.
    pub name: String,
    /// Whom to call: 200 characters at most.
    #[serde(default)]
    pub contact: String,
}

/// An agency, a fan club, a school: whoever is given seats to sell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Partner {
    pub partner_id: Uuid,
    pub code: String,
    pub name: String,
    pub contact: String,
}

/// `GET /api/box-office/partners`: by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Partners {
    pub partners: Vec<Partner>,
}

/// `POST /api/box-office/consignments`, with an `Idempotency-Key`; a supervisor's: either seats or a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsignRequest {
    pub event_id: i64,
    pub partner_id: Uuid,
    /// All of them, or none if one is not free; 2,000 at most.
    #[serde(default)]
    pub seats: Vec<i32>,
    /// Instead: what is free of this section, by its name; wheelchair places and the seats beside them stay with the house.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Of the section so many, the lowest numbers first; all that is free, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The cut-off, when what is not reported sold goes back on sale by itself: a minute from now at least, and the end of
    /// the event's sale, or its beginning, at most.
    pub until: DateTime<Utc>,
    /// What for: 1 to 500 characters.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Consignment {
    pub consignment_id: Uuid,
    pub event_id: i64,
    pub partner_id: Uuid,
    pub partner_code: String,
    pub partner_name: String,
    pub until: DateTime<Utc>,
    pub note: String,
    pub made_by: String,
    pub made_at: DateTime<Utc>,
    /// The partner may still sell these; none once the cut-off has come.
    pub open: Vec<i32>,
    /// Reported sold, whatever was given back of them later.
    pub sold: Vec<i32>,
    /// Given back, by the partner or by the cut-off.
    pub returned: Vec<i32>,
}

/// `GET /api/box-office/events/{id}/consignments`: the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Consignments {
    pub consignments: Vec<Consignment>,
}

/// `POST /api/box-office/consignments/{id}/sales`, with an `Idempotency-Key`: what the partner reports sold becomes an order
/// that it owes for, at the list's prices, without fees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsignedSaleRequest {
    pub seats: Vec<i32>,
    /// Seats that are not named get the first ticket type of their price level.
    #[serde(default)]
    pub tickets: Vec<TicketChoice>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ConsignedSale {
    /// Its tickets are good at the door, to be printed or sent like any order's.
    pub order: Order,
    pub consignment: Consignment,
}

/// `POST /api/box-office/consignments/{id}/returns`: seats go back on sale before the cut-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsignedReturnRequest {
    /// All that is open, if left out. Seats that went back already are no error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<i32>>,
    /// 1 to 500 characters.
    pub reason: String,
}

/// `POST /api/box-office/consignments/{id}/cut-off`: a supervisor moves it while it has not come. What is open stays the
/// partner's until then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CutOffRequest {
    /// As of a new one.
    pub until: DateTime<Utc>,
    /// 1 to 500 characters.
    pub reason: String,
}

/// `POST /api/box-office/partners/{id}/payments`, with an `Idempotency-Key`: the partner pays of what it owes. And
/// `…/repayments`: the house pays back, of what the partner paid and owes no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartnerPaymentRequest {
    /// What for.
    pub event_id: i64,
    /// From 1 on, and not more than is owed.
    pub amount_minor: i64,
    /// `transfer`, or `cash`: into the drawer of the open shift, or out of it.
    pub way: PartnerPays,
    /// What is found in the books by it: of a transfer its text, of cash the receipt's number. 1 to 200 characters.
    pub reference: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartnerPays {
    Transfer,
    Cash,
}

impl PartnerPays {
    pub fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Cash => "cash",
        }
    }
}

/// `GET /api/box-office/partners/{id}/statement?event_id=…`: how a partner and an event stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Statement {
    pub event_id: i64,
    pub event_name: String,
    pub partner: Partner,
    pub currency: String,
    /// Seats: those consigned are the open, the sold and the returned. A seat that was consigned twice counts twice.
    pub consigned_seats: i64,
    pub open_seats: i64,
    pub sold_seats: i64,
    pub returned_seats: i64,
    /// What was sold on its account, what of that was given back, and what it paid, less what it was paid back.
    pub sold_minor: i64,
    pub back_minor: i64,
    pub paid_minor: i64,
    /// Sold, less given back, less paid. Below 0: the house owes it.
    pub owed_minor: i64,
    /// The latest first, as the payments.
    pub orders: Vec<StatementOrder>,
    pub payments: Vec<PartnerPayment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatementOrder {
    pub order_id: Uuid,
    pub code: String,
    pub sold_at: DateTime<Utc>,
    /// As they were sold.
    pub seats: Vec<i32>,
    pub amount_minor: i64,
    pub back_minor: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartnerPayment {
    pub payment_id: Uuid,
    /// Below 0: the house paid it back.
    pub amount_minor: i64,
    /// `transfer` or `cash`.
    pub way: String,
    pub reference: String,
    pub made_by: String,
    pub made_at: DateTime<Utc>,
}

/// Of a seat that a partner has: whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatConsigned {
    pub consignment_id: Uuid,
    pub partner_name: String,
    pub until: DateTime<Utc>,
    pub note: String,
}
