//! Attempts to pay, the provider, its webhooks, and the simulator of it.

pub mod provider; // our client of the provider's wire
