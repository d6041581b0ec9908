//! The only code that knows HTTP.
//!
//! Handlers take just the parts of the hub that they use (`State<PgPool>`, `State<Rooms>`, …).

pub mod problem; // one table of errors
