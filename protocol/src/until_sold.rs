//! Seats that go on sale by themselves once the others are sold: standing room, most of all.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// `POST /api/box-office/events/{id}/until-sold`, with an `Idempotency-Key`; a supervisor's: up to 10,000 seats, or a
/// section. What is free of them is blocked; blocked ones stay so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UntilSoldRequest {
    /// All of them, or none if one is held, sold, given up for good, or waits already.
    #[serde(default)]
    pub seats: Vec<i32>,
    /// Instead: whatever can wait of this section, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Why, for whoever looks at the seat later. 1 to 500 characters.
    pub reason: String,
}

/// `POST /api/box-office/until-sold/{id}/open`: on sale now. `…/drop`: they stay blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UntilSoldEndRequest {
    /// 1 to 500 characters.
    pub reason: String,
}

/// Seats of an event that wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UntilSold {
    pub until_sold_id: Uuid,
    pub event_id: i64,
    /// Those that wait still, ascending: what somebody blocked, gave up or put on sale since does not.
    pub seats: Vec<i32>,
    pub reason: String,
    pub made_by: String,
    pub made_at: DateTime<Utc>,
    /// `sold_out`: on sale by itself; `on_sale`: on sale before, by hand; `dropped`: they stayed blocked. Left out: they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// How many were put on sale as it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<i32>,
}

/// `GET /api/box-office/events/{id}/until-sold`: what waits, and for how much. Those that wait come first, then the latest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UntilSoldList {
    pub rules: Vec<UntilSold>,
    pub left: SeatsLeft,
}

/// What fans could still buy, or get back: not what is blocked, put aside for customers, with partners or leased, nor places
/// for wheelchairs and the seats beside them. Once both are 0 what waits goes on sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeatsLeft {
    pub free: i64,
    /// By somebody who may still let them go.
    pub held: i64,
}
