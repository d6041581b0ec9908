//! Holding seats: what a client asks for and what it is told.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// `POST /api/events/{id}/hold`: either `seats` or `best`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// These seats, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seats: Option<Vec<i32>>,
    /// The best seats together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestRequest>,
    /// Take what is left of `seats` instead of refusing all of them; for `best`: a smaller group.
    #[serde(default)]
    pub fewer_ok: bool,
    /// The hold becomes exactly this; otherwise the seats are added to it.
    #[serde(default)]
    pub replace: bool,
}

/// The best `count` seats together, near the stage.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BestRequest {
    /// Seats, the accessible ones included.
    pub count: u32,
    /// Only this price level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<i16>,
    /// Only this section, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// How many of them are accessible places; each brings its companion seat as long as `count` allows.
    #[serde(default)]
    pub accessible: u32,
}

/// `POST /api/holds/{id}/release`: these seats go back; the rest stays until the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    pub seats: Vec<i32>,
}

/// The one live hold of a buyer and event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Hold {
    pub id: Uuid,
    pub event_id: i64,
    /// Ascending.
    pub seats: Vec<i32>,
    /// When the seats go back, by the hub's clock. Never extended.
    pub held_until: DateTime<Utc>,
    /// When the last payment may start: what the countdown shows.
    pub pay_until: DateTime<Utc>,
    /// A payment is under way: nothing can be added or dropped.
    pub frozen: bool,
    pub version: i32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HoldAnswer {
    pub hold: Option<Hold>,
    /// Seats that were asked for and are not held, when the client said that fewer will do.
    #[serde(default)]
    pub not_held: Vec<i32>,
    /// The hub's clock, for the countdown.
    pub now: DateTime<Utc>,
}

/// `GET /api/events/{id}/hold`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MyHold {
    pub hold: Option<Hold>,
    /// What became of the last one, where there is none now.
    #[serde(default)]
    pub ended: Option<EndedHold>,
    pub limit: SeatLimit,
    pub now: DateTime<Utc>,
}

/// A hold that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedHold {
    pub hold_id: Uuid,
    /// `bought`; `released`: its buyer gave it back; `expired`: its time was over; `called_off`: the event is.
    pub why: String,
    /// That its seats were bought in.
    pub order_id: Option<Uuid>,
}

/// What a buyer has of an event and may still take: over all tabs, orders and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatLimit {
    pub seat_limit: i32,
    pub held: i32,
    pub bought: i32,
    pub left: i32,
}
