//! Terminals as the house sees them: how they are, and what is done about them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PaperState {
    Ok,
    /// Near its end.
    Low,
    Out,
    /// The printer does not answer.
    Offline,
    /// There is no printer, or it can't say.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReaderState {
    Ok,
    Offline,
    /// No card reader stands here.
    None,
    Unknown,
}

/// `POST /api/box-office/health`: how a terminal is. Once a minute, and when something changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalHealth {
    /// Of its program, 1 to 64 characters.
    pub version: String,
    pub paper: PaperState,
    pub reader: ReaderState,
    /// For whoever looks at it, 300 characters at most.
    #[serde(default)]
    pub detail: String,
}

/// `GET /api/staff/terminals`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Terminals {
    /// By name.
    pub terminals: Vec<TerminalListed>,
    pub now: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalListed {
    pub id: Uuid,
    pub name: String,
    /// `counter` or `kiosk`.
    pub role: String,
    /// Its token is refused for good.
    pub revoked: bool,
    /// Why it may do nothing but report; none: it may.
    pub locked_reason: Option<String>,
    /// The provider's ids of the card readers that stand at it.
    pub readers: Vec<String>,
    /// As it said last, at `health_at`.
    pub health: Option<TerminalHealth>,
    pub health_at: Option<DateTime<Utc>>,
}

/// `POST /api/staff/terminals/{id}`: what is left out stays. Each change goes into the audit log.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalChange {
    /// 1 to 60 characters, and no other terminal's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A locked terminal may do nothing but report, until it is unlocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<bool>,
    /// Its token is refused from now on, for good.
    #[serde(default)]
    pub revoke: bool,
    /// For the log. 1 to 500 characters.
    pub reason: String,
}
