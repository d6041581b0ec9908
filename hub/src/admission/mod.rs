//! Who comes in, and how fast.
//!
//! Invariants
//! - A place that was called stays called (`line_called_through_rises`), whichever hub called it.
//! - An account has one live pass an event (`pass_one_live`); its row decides, the token only names it.
//! - A pass is the right to try, never a seat; a live hold is the right to pay, whatever becomes of the pass.
//! - Whatever an operator or the controller changes about a line is in its log, in the same transaction.

pub mod controller; // the pace, from what was measured
pub mod load; // what was measured, by all hubs
pub mod pace; // the controller's step, and what it is told
pub mod calling; // once a second a line: who is next
pub mod pass; // entering, renewing, leaving
pub mod staff; // what operators turn, and the log
