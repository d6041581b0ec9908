//! What travels between a hub and everybody else.
//!
//! `PROTOCOL.md` beside this crate describes the bytes; `golden/` has examples of them that are
//! checked from Rust and from TypeScript. The wire only grows.

pub mod seat; // a seat's status, as it is stored and as it travels
pub mod holds; // holding seats: what a client asks for, and what it is told
pub mod orders; // orders, attempts to pay, tickets, in JSON
