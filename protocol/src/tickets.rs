//! Tickets as doors, tills and printers see them. The bytes of a code: `protocol/TICKET.md`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Everything that a door needs to tell a genuine code without a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketKeys {
    /// The newest first. Retired ones sign no new tickets; what they signed is still good.
    pub keys: Vec<TicketKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TicketKey {
    /// As it stands in a code.
    pub id: u16,
    /// Ed25519, 32 bytes in lower hex.
    pub public: String,
    pub created_at: DateTime<Utc>,
    pub retired_at: Option<DateTime<Utc>>,
}

/// Codes that are genuine and must not be let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadTickets {
    pub event_id: i64,
    /// Died since the time that was asked for. A ticket never comes back to life: add them to those you know.
    pub dead: Vec<Uuid>,
    /// Sold, and not paid yet: all of them, at present. Replace those you know.
    pub pending: Vec<Uuid>,
    /// Ask with this the next time. It lies a little in the past, so that nothing is missed; what comes twice is the same.
    pub since: DateTime<Utc>,
}

/// Why staff do something to a ticket: 1 to 500 characters.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    pub reason: String,
}

/// `POST /api/box-office/orders/{id}/mail-to`: where to send tickets that did not come out.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MailTo {
    /// 3 to 254 characters. It is forgotten once the mail is sent.
    pub address: String,
    /// `en`, `ja` or `ko`.
    pub language: String,
}

impl std::fmt::Debug for MailTo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailTo").field("language", &self.language).finish_non_exhaustive() // never an address
    }
}

/// A ticket that took another's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reissued {
    pub ticket_id: Uuid,
    pub seat_no: i32,
    pub code: String,
    /// Not valid any more.
    pub replaces: Uuid,
}

/// Which tickets of an order are to be printed; none named: all that are valid and not on paper yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintRequest {
    #[serde(default)]
    pub ticket_ids: Vec<Uuid>,
}

/// One job a ticket, so that it is known which of them came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PrintJobs {
    pub jobs: Vec<PrintJob>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PrintJob {
    pub id: Uuid,
    pub ticket_id: Uuid,
    pub seat_no: i32,
    pub state: PrintState,
    pub reason: String,
    pub actor: String,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrintState {
    /// Handed to a printer. Until it is reported it may lie in a buffer, and counts as printed.
    Sent,
    Printed,
    /// Certainly not on paper.
    Failed,
    /// The ticket was issued anew: what was printed is not valid any more.
    Reissued,
}

/// What became of a print.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintReport {
    /// `printed` or `failed`.
    pub state: PrintState,
}

/// Body of `PUT /api/account/language`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageChoice {
    /// `en`, `ja` or `ko`.
    pub language: String,
}
