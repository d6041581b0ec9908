//! The shift of a terminal: a drawer that is opened with a float, counted, and closed with a report.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// `POST /api/box-office/shifts`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShiftOpenRequest {
    /// What lies in the drawer for change, in minor units.
    pub float_minor: i64,
    /// Of the drawer. Cash of another currency is not taken in this shift.
    pub currency: String,
}

/// Cash that goes in or out of a drawer without a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShiftMoveKind {
    /// Into the safe.
    Drop,
    /// Change from the safe.
    PayIn,
    /// For something bought, or given to somebody.
    PayOut,
}

impl ShiftMoveKind {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::PayIn => "pay_in",
            Self::PayOut => "pay_out",
        }
    }

    /// The kind of this name.
    pub fn read(name: &str) -> Option<Self> {
        [Self::Drop, Self::PayIn, Self::PayOut].into_iter().find(|kind| kind.name() == name)
    }
}

/// `POST /api/box-office/shifts/current/moves`, with an `Idempotency-Key`. The answer is the shift's X report.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShiftMoveRequest {
    pub kind: ShiftMoveKind,
    /// Above 0.
    pub amount_minor: i64,
    /// 1 to 500 characters.
    pub reason: String,
}

/// What is tried as a shift begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShiftCheckWhat {
    /// A test page came out.
    Printer,
    /// Its code was scanned and read right: printer, scanner and the keyboard's layout fit together.
    Scanner,
}

impl ShiftCheckWhat {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            Self::Printer => "printer",
            Self::Scanner => "scanner",
        }
    }

    /// What this name means.
    pub fn read(name: &str) -> Option<Self> {
        [Self::Printer, Self::Scanner].into_iter().find(|what| what.name() == name)
    }
}

/// `POST /api/box-office/shifts/current/checks`: it works, or was skipped. The answer is the shift's X report.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShiftCheckRequest {
    pub what: ShiftCheckWhat,
    /// Why it was not tried, or does not work: 1 to 500 characters. None: it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// Coins or notes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Denomination {
    /// What one is worth, in minor units.
    pub value_minor: i64,
    pub count: u32,
}

/// `POST /api/box-office/shifts/current/close`. The answer is the Z report.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShiftCloseRequest {
    /// The shift that was counted. With it, a close whose answer got lost is answered with the same Z report, and a
    /// manager closes the shift of a terminal that is revoked or locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift_id: Option<Uuid>,
    /// Each value once.
    pub counted: Vec<Denomination>,
    /// Of a variance, which is kept: 1 to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

/// X while it is open, Z once it is closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShiftReport {
    pub shift_id: Uuid,
    pub terminal_id: Uuid,
    pub terminal_name: String,
    /// The day in the books.
    pub business_day: NaiveDate,
    pub currency: String,
    pub opened_at: DateTime<Utc>,
    pub opened_by: String,
    pub float_minor: i64,
    /// Cash taken for orders, change deducted.
    pub cash_sales: ShiftSum,
    /// Cash handed back.
    pub cash_back: ShiftSum,
    pub pay_ins: ShiftSum,
    pub pay_outs: ShiftSum,
    pub drops: ShiftSum,
    /// What should lie in the drawer: float + sales − back + pay-ins − pay-outs − drops.
    pub expected_minor: i64,
    /// Orders sold here in this shift, by what paid for them; an order with two tenders is in both rows.
    pub tenders: Vec<TenderSum>,
    /// In order.
    pub moves: Vec<ShiftMove>,
    /// What was tried as the shift began, the last word about each; what is not named was not tried.
    #[serde(default)]
    pub checks: Vec<ShiftCheck>,
    /// None: the shift is open (X).
    pub closed: Option<ShiftClosed>,
    /// When this was read.
    pub now: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShiftSum {
    pub count: i64,
    pub amount_minor: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenderSum {
    /// `cash`, `card`, `comp`, `voucher` or `account`: a partner owes it.
    pub kind: String,
    pub count: i64,
    /// Comps: what they would have cost is not told here; 0.
    pub amount_minor: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShiftMove {
    pub kind: ShiftMoveKind,
    pub amount_minor: i64,
    pub reason: String,
    pub by: String,
    pub at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShiftCheck {
    pub what: ShiftCheckWhat,
    /// Why it was not tried, or does not work; none: it works.
    pub skipped: Option<String>,
    pub by: String,
    pub at: DateTime<Utc>,
}

/// How a shift ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShiftClosed {
    /// 1, 2, 3, … of the terminal, without a gap.
    pub z_number: i64,
    pub closed_at: DateTime<Utc>,
    pub closed_by: String,
    pub counted: Vec<Denomination>,
    pub counted_minor: i64,
    /// Counted − expected: below 0, money is missing.
    pub variance_minor: i64,
    pub explanation: Option<String>,
}

/// `GET /api/box-office/shifts`: the terminal's, the latest first, 100 at most.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Shifts {
    pub shifts: Vec<ShiftListed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShiftListed {
    pub shift_id: Uuid,
    pub terminal_name: String,
    pub business_day: NaiveDate,
    pub opened_at: DateTime<Utc>,
    pub opened_by: String,
    /// None: open.
    pub z_number: Option<i64>,
    pub closed_at: Option<DateTime<Utc>>,
    pub variance_minor: Option<i64>,
    pub currency: String,
}

/// `POST /api/box-office/day-lock`: the books of a day are closed. Again: it is locked.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DayLockRequest {
    pub date: NaiveDate,
}

/// What the day was, over all terminals.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DayLocked {
    pub date: NaiveDate,
    pub locked_at: DateTime<Utc>,
    pub locked_by: String,
    pub shifts: Vec<ShiftListed>,
}
