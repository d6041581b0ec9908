//! Attempts to pay, the provider, its webhooks, and the simulator of it.

pub mod provider; // our client of the provider's wire
pub mod signature; // of webhooks, both ways
pub mod simulator; // a provider of our own
