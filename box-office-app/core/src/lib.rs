//! What a till must never get wrong, without a window: a shell draws it, tests drive it.
//!
//! A module imports only what stands above it.

#![forbid(unsafe_code)]

pub mod clock; // time that goes on while the machine sleeps
pub mod journal; // what was sold without a network, on disk before it is on paper
pub mod lease; // seats that a till owns for a while, each sold at most once
pub mod pulse; // whether the hub is heard, and how long to wait before asking again
pub mod hub; // a hub, as a till asks it
pub mod till; // all of it: leases, sells, settles and gives back, with a network or without
pub mod cash; // the drawer: float, change, count, variance
pub mod scan; // a wedge scanner's keys, told from typing
pub mod print; // paper, and the certainty what is on it
pub mod kiosk; // one customer, from the first touch to the last trace
pub mod terminal; // who this machine is, and how its screens reach the hub
