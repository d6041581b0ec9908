//! Vouchers: seats of an event for nothing, promised beforehand to whoever brings a code to a counter.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// `POST /api/box-office/vouchers`, with an `Idempotency-Key`; a supervisor's to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VoucherRequest {
    pub event_id: i64,
    /// For so many seats at most: 1 to 50.
    pub seats_max: i32,
    /// For whom: 1 to 200 characters.
    pub recipient: String,
    /// 1 to 500 characters.
    pub reason: String,
    /// Until the event begins, if left out; never longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<DateTime<Utc>>,
}

/// A voucher was made. Nobody can read its code again: asked again under the same key, there is another one, and the
/// first is good no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VoucherMade {
    /// `XXXXX-XXXXX`; case, hyphen and spaces do not matter.
    pub code: String,
    pub voucher: Voucher,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Voucher {
    pub voucher_id: Uuid,
    pub event_id: i64,
    pub event_name: String,
    pub seats_max: i32,
    pub recipient: String,
    pub reason: String,
    pub valid_until: DateTime<Utc>,
    pub made_by: String,
    pub made_at: DateTime<Utc>,
    /// `open`, `used`, `withdrawn`, or `over`: its time is.
    pub state: String,
    /// That it paid for, and its code.
    pub order_id: Option<Uuid>,
    pub order_code: Option<String>,
}

/// `GET /api/box-office/events/{id}/vouchers`: the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Vouchers {
    pub vouchers: Vec<Voucher>,
}

/// `POST /api/box-office/vouchers/look`: what a code is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VoucherLook {
    pub code: String,
}
