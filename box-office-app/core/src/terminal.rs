//! What a till or kiosk is, and how its screens reach the hub.
//!
//! Invariants:
//! - The terminal's token and the token of whoever is signed in never leave this crate: a screen names what it asks
//!   for, and the tokens are added here.
//! - A screen can ask for what its role needs, and for nothing else ([`may::may_ask`]); the hub checks again.
//! - Every request, answer, socket and wait is bounded.
//! - That the hub can't be reached is known within two seconds ([`Relay::reach`]).

pub mod may; // what a screen may ask the hub for
pub mod exit; // the PIN that opens a kiosk
pub mod record; // who this machine is, on disk
pub mod relay; // asking
pub mod feed; // the live map
pub mod papers; // an order's tickets on paper
pub mod health; // how it is, for whoever looks after it
pub mod offline; // a counter: what it sells without a network
pub mod visits; // a kiosk: one customer after the other

pub use record::{Address, Home, Record, Role, TokenFile, TokenStore};
pub use relay::{Answer, Ask, AskError, Reach, Relay};

/// A token: never printed, never in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(token: String) -> Self {
        Self(token)
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// For whoever keeps it: a [`TokenStore`].
    pub fn to_store(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}
