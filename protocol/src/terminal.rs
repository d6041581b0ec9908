//! Terminals: how they are enrolled, how they are, what they are for, and what is done about them.

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

/// How a card reader is, as its provider said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReaderIs {
    /// It waits for a payment.
    Online,
    /// It collects one.
    Busy,
    /// Its provider does not reach it: switched off, or without a network.
    Offline,
    /// Its provider has not said, or not lately, or in a word that nobody here knows.
    Unknown,
}

impl ReaderIs {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Busy => "busy",
            Self::Offline => "offline",
            Self::Unknown => "unknown",
        }
    }

    /// What this name means; of a name that is none: nobody knows.
    pub fn read(name: &str) -> Self {
        [Self::Online, Self::Busy, Self::Offline].into_iter().find(|is| is.name() == name).unwrap_or(Self::Unknown)
    }
}

/// A card reader that stands at a terminal. A hint for people: no payment is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReaderSeen {
    /// The provider's.
    pub id: String,
    pub state: ReaderIs,
    /// When the provider said so; none: it has not.
    pub at: Option<DateTime<Utc>>,
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
    /// Somebody has to sign in before it sells.
    pub attended: bool,
    pub profile: TerminalProfile,
    /// Its token is refused for good.
    pub revoked: bool,
    /// Why it may do nothing but report; none: it may.
    pub locked_reason: Option<String>,
    /// The provider's ids of the card readers that stand at it.
    pub readers: Vec<String>,
    /// The same, and how they are. Asked for while the terminal is heard of, twice a minute or so.
    #[serde(default)]
    pub reader_states: Vec<ReaderSeen>,
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
    /// What it is for, from now on: the whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<TerminalProfile>,
    /// For the log. 1 to 500 characters.
    pub reason: String,
}

/// `POST /api/staff/enrolments`: a code that makes a terminal, once.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnrolmentRequest {
    /// What the books will call it: 1 to 60 characters, and no other terminal's.
    pub name: String,
    pub role: TerminalRole,
    /// For the log. 1 to 500 characters.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalRole {
    /// Staff stand behind it, and sign in.
    Counter,
    /// It stands among the public.
    Kiosk,
}

impl TerminalRole {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Kiosk => "kiosk",
        }
    }
}

#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct EnrolmentAnswer {
    /// `XXXXX-XXXXX`, to be typed at the machine: digits and letters without I, L, O and U.
    pub code: String,
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for EnrolmentAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnrolmentAnswer").field("expires_at", &self.expires_at).finish_non_exhaustive() // never the code
    }
}

/// `POST /api/box-office/enrol`, by a machine that has no token yet.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// As it was typed: case and dashes don't matter, and O is 0, I and L are 1.
    pub code: String,
    /// Made up by the machine, 16 to 255 visible ASCII characters, and kept secret. If the answer got lost, the same
    /// code with the same key is answered with the same terminal and a new token; without a key a code works once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl std::fmt::Debug for EnrolRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnrolRequest").finish_non_exhaustive() // never a secret
    }
}

#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Enrolled {
    pub terminal_id: Uuid,
    pub name: String,
    /// `counter` or `kiosk`.
    pub role: String,
    /// Somebody has to sign in before it sells.
    pub attended: bool,
    /// For `Authorization: Bearer`. Told once.
    pub token: String,
}

impl std::fmt::Debug for Enrolled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enrolled").field("terminal_id", &self.terminal_id).finish_non_exhaustive() // never a token
    }
}

/// `GET /api/box-office/terminal`: who this terminal is. Also told to one that is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalSelf {
    pub terminal_id: Uuid,
    pub name: String,
    /// `counter` or `kiosk`.
    pub role: String,
    /// Somebody has to sign in (`Fullhouse-Staff`) before it sells, gives back, prints or changes anything.
    pub attended: bool,
    /// Why it may do nothing but report; none: it may.
    pub locked_reason: Option<String>,
    pub profile: TerminalProfile,
    /// The provider's ids of the card readers that stand at it.
    pub readers: Vec<String>,
    /// The same, and how they are. Asked for while the terminal is heard of, twice a minute or so.
    #[serde(default)]
    pub reader_states: Vec<ReaderSeen>,
    /// The number of the next entry of its journal of sales without a network.
    pub next_seq: i64,
    pub now: DateTime<Utc>,
}

/// What a terminal is for. What is left out is up to the app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalProfile {
    /// The events that it shows, by number, 100 at most; empty: all.
    #[serde(default)]
    pub events: Vec<i64>,
    /// `en`, `ja`, `ko`, in the order in which it offers them; empty: all.
    #[serde(default)]
    pub languages: Vec<String>,
    /// A kiosk begins anew after so long without a touch: 20 to 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u32>,
    /// A counter asks for the PIN again after so long without a touch: 30 to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_after_s: Option<u32>,
}
