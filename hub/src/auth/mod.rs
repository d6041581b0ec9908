//! Who may act: accounts and their sessions, terminals and their tokens, staff and their roles.
//!
//! Invariants
//! - A password is hashed off the runtime, a bounded number at a time, and never logged.
//! - Of a token only its SHA-256 is stored or kept in memory.
//! - Whether an address has an account can't be told from signing in: the same answer after the same work.

mod account; // sign up, sign in, operators
pub mod log; // what people did, for good
mod actor; // who does something, as the books name them
pub mod address; // whether somebody reads its mail
mod attempts; // how often somebody may try
mod enrolment; // a machine becomes a terminal, with a code
mod duty; // staff sign in at a terminal
mod password; // argon2id, bounded
mod staff; // members of the staff, their roles and secrets
pub mod short_code; // codes that people read aloud and type
mod session; // tokens of browsers, and the short memory of them
mod terminal; // tokens of tills and kiosks

use std::{sync::Arc, time::Duration};

use sqlx::PgPool;
use uuid::Uuid;

pub use self::{
    account::{AccountError, NewAccount, add_operator, is_readable},
    actor::Actor,
    duty::{OnDuty, SignInError},
    enrolment::{CodeError, EnrolRefusal, make_code},
    log::Deed,
    session::{SessionError, SignedIn},
    staff::{Members, StaffError},
    terminal::{EnrolError, ReaderError, Till, enrol, enrol_attended, place_reader},
};
use self::{attempts::Attempts, password::Passwords, session::Sessions};
use crate::config;

/// A role of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Fan,
    Operator,
}

impl Role {
    /// As it is stored and spoken.
    pub fn name(self) -> &'static str {
        match self {
            Role::Fan => "fan",
            Role::Operator => "operator",
        }
    }

    fn read(name: &str) -> Self {
        // The column is checked; what is not an operator has the fewest rights.
        if name == "operator" { Role::Operator } else { Role::Fan }
    }
}

/// An account as its owner sees it.
#[derive(Debug, Clone)]
pub struct Account {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    pub role: Role,
    /// Somebody has read the mail that we sent there.
    pub email_checked: bool,
}

/// A session's token, in the clear: handed to the browser once, and kept nowhere.
pub struct Token(String);

impl Token {
    /// 256 random bits.
    fn random() -> Self {
        use base64::Engine;
        Self(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of a token.
    pub fn hash(token: &str) -> TokenHash {
        use sha2::Digest;
        sha2::Sha256::digest(token).into()
    }
}

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// Everything that deciding who somebody is needs. Cheap to clone.
#[derive(Clone)]
pub struct Auth {
    pool: PgPool,
    settings: Arc<config::Auth>,
    passwords: Passwords,
    sessions: Arc<Sessions>,
    attempts: Arc<Attempts>,
}

impl Auth {
    pub fn new(pool: PgPool, settings: &config::Auth) -> Self {
        Self {
            pool,
            passwords: Passwords::new(settings.password_hashes_at_once, settings.password_queue_max),
            sessions: Arc::new(Sessions::new(
                Duration::from_secs(settings.session_cache_s),
                settings.session_cache_max,
            )),
            attempts: Arc::new(Attempts::new(Duration::from_secs(settings.sign_in_window_s))),
            settings: Arc::new(settings.clone()),
        }
    }

    /// Forgets what this process need not remember. Its bounds hold without it, but what reaches them is refused.
    pub fn forget(&self) {
        self.sessions.tidy();
        self.attempts.tidy();
    }

    /// Deletes sessions that have ended and codes that nobody used, and says how many. Nothing depends on it.
    pub async fn delete_ended(&self) -> sqlx::Result<u64> {
        let (sessions, codes) = (session::delete_ended(&self.pool).await?, enrolment::delete_unused(&self.pool).await?);
        Ok(sessions + codes + duty::delete_ended(&self.pool).await?)
    }
}
