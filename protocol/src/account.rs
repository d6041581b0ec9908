//! Accounts and sessions, as JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Body of `POST /api/accounts`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignUp {
    /// Trimmed and lowercased before it is stored.
    pub email: String,
    pub name: String,
    /// `auth.password_length_min` characters or more, 512 bytes at most.
    #[schema(format = Password)]
    pub password: String,
    /// Of tickets and mail: `en`, `ja` or `ko`. Without it the browser's own wish decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// Body of `POST /api/session`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub email: String,
    #[schema(format = Password)]
    pub password: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    /// `fan` or `operator`.
    pub role: String,
    /// Somebody has read the mail that we sent there: waiting rooms ask for it.
    #[serde(default)]
    pub email_checked: bool,
}

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub account: Account,
}

/// Who is signed in, if anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CurrentSession {
    #[schema(required)]
    pub account: Option<Account>,
}

/// `POST /api/account/address-check`: a mail with a link is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddressCheck {
    pub sent_to: String,
    /// The link itself: in a demo only, where nobody gets mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// `POST /api/account/address-check/confirm`: what the link carries.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddressCode {
    pub code: String,
}
