//! Who stands at a counter: members of the staff, their roles, and signing in at a terminal.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// What a member of the staff may do; each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StaffRole {
    /// Sells, looks up, prints again with a reason, holds for customers.
    Clerk,
    /// Also gives away, changes prices, gives back, exchanges, blocks and kills seats, pays out.
    Supervisor,
    /// Also writes off, closes somebody else's shift, locks the day, revives seats.
    Manager,
}

impl StaffRole {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clerk => "clerk",
            Self::Supervisor => "supervisor",
            Self::Manager => "manager",
        }
    }

    /// The role of this name.
    pub fn read(name: &str) -> Option<Self> {
        [Self::Clerk, Self::Supervisor, Self::Manager].into_iter().find(|role| role.name() == name)
    }
}

/// `POST /api/box-office/sign-in`: a name, and either a password or a PIN (6 to 12 digits).
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StaffSignIn {
    /// As the house wrote it, upper or lower case.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
}

impl std::fmt::Debug for StaffSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaffSignIn").field("name", &self.name).finish_non_exhaustive() // never a secret
    }
}

/// The answer to signing in. `token` goes into the header `Fullhouse-Staff`, beside the terminal's own.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct StaffSignedIn {
    pub staff_id: Uuid,
    pub name: String,
    pub role: StaffRole,
    /// Good at this terminal only, until sign-out or `expires_at`.
    pub token: String,
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for StaffSignedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaffSignedIn").field("staff_id", &self.staff_id).finish_non_exhaustive() // never a token
    }
}

/// `GET /api/box-office/staff`: who is signed in here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaffAtTerminal {
    pub staff_id: Uuid,
    pub name: String,
    pub role: StaffRole,
    pub expires_at: DateTime<Utc>,
}

/// `GET /api/staff/members`
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StaffMembers {
    /// By name.
    pub members: Vec<StaffMember>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaffMember {
    pub staff_id: Uuid,
    pub name: String,
    pub role: StaffRole,
    pub has_pin: bool,
    /// May not sign in.
    pub disabled: bool,
    /// Until when nobody may sign in under this name, after too many wrong attempts.
    pub locked_until: Option<DateTime<Utc>>,
}

/// `POST /api/staff/members`: somebody new.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStaffMember {
    /// 1 to 60 characters, and nobody else's.
    pub name: String,
    pub role: StaffRole,
    /// 10 to 128 characters.
    pub password: String,
    /// 6 to 12 digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// For the log. 1 to 500 characters.
    pub reason: String,
}

/// `POST /api/staff/members/{id}`: what is left out stays. Whatever is changed ends their sessions.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StaffMemberChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<StaffRole>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A new PIN; an empty one: no PIN any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// For the log. 1 to 500 characters.
    pub reason: String,
}
