//! Fullhouse sells a concert hall in minutes and never sells a seat twice.
//!
//! This page is the map. The modules stand in the order in which a fan meets them, and each
//! imports only what stands above it, `outbox::append`, and the ground:
//!
//! ```text
//! catalog -> seat_map -> hold -> checkout (hands out tickets) -> payment
//!                          \________\___________________________/
//!                            outbox -> push -> every open map
//! ```

// The ground
pub mod config; // every setting, its default and its unit
pub mod telemetry; // logs
pub mod metrics; // numbers
pub mod files; // how many of them may be open
pub mod clock; // the database's clock, and local time
pub use fullhouse_paper::{currency, words}; // amounts, and what buyers read: a till's are the same
pub mod db; // connections, the event's lock, writes that nobody can abort
pub mod feed; // how frames travel: in the process, or over NATS
pub mod keys; // what the house signs with, and its short tokens
pub mod auth; // accounts, passwords, sessions, terminals: who may act

// The journey
pub mod catalog; // venues, plans and their import, events
pub mod waiting_room; // who stands where in an event's line, and what all of them are shown
pub mod admission; // who comes in, and how fast
pub mod seat_map; // the plan as drawn, and a hint of each seat's state
pub mod hold; // the desk: place, release, expire
pub mod ticket; // one a seat, with a code that a door can check alone
pub mod mail; // what buyers are told, once, and as it is when it is sent
pub mod checkout; // a hold becomes a priced order, an order becomes sold seats
pub mod payment; // attempts, the provider, webhooks, the simulator
pub mod outbox; // what the bus carries
pub mod push; // rooms, rings, viewers
pub mod box_office; // what staff do, over the same path
pub mod retention; // what is forgotten, and when
pub mod watch; // what must never be true, looked for all the time
pub mod edge; // the only code that knows HTTP
pub mod serve; // a hub: its parts, its roles, its start and its end

// The demo
pub mod child; // processes that end with us
pub mod embedded_postgres; // a private PostgreSQL, for tests too
pub mod crowd; // synthetic fans
pub mod demo; // a sale to play with

pub mod cli; // the command line
