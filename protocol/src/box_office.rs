//! What a terminal asks of a hub.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    holds::{BestRequest, HoldAnswer},
    orders::{Order, TicketChoice},
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
}

/// `POST /api/box-office/sales`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TillSaleRequest {
    pub hold_id: Uuid,
    pub buyer_id: Uuid,
    #[serde(default)]
    pub tickets: Vec<TicketChoice>,
    pub tender: TillTender,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TillTender {
    Cash { received_minor: i64 },
    Comp { reason: String },
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
    /// The provider's id of the reader at this counter.
    pub reader: String,
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

/// `POST /api/box-office/events/{id}/block` and `…/unblock`: up to 10,000 seats.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    pub seats: Vec<i32>,
    /// Why, for whoever looks at the seat later. 1 to 500 characters.
    pub reason: String,
}
