//! Attempts to pay, the provider, its webhooks, and the simulator of it.
