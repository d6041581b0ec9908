//! What travels between a hub and everybody else.
//!
//! `PROTOCOL.md` beside this crate describes the bytes; `golden/` has examples of them that are
//! checked from Rust and from TypeScript. The wire only grows.

pub mod seat; // a seat's status, as it is stored and as it travels
pub mod frames; // the bytes of the live map
pub mod track; // a copy of the map that follows the frames
pub mod close; // why a socket is closed
pub mod keyframe; // the bytes that only the hub's own bus carries
pub mod events; // what is on, in JSON
pub mod holds; // holding seats: what a client asks for, and what it is told
pub mod line; // the waiting room: the line that all see, and one's own stand in it
pub mod orders; // orders, attempts to pay, tickets, in JSON
pub mod tickets; // tickets as doors, tills and printers see them
pub mod money; // what staff see and do about money
pub mod staff; // orders as staff see them
pub mod box_office; // what a terminal asks of a hub
pub mod voucher; // seats for nothing, for whoever brings a code
pub mod consign; // seats that a partner sells elsewhere
pub mod until_sold; // seats that wait until the others are sold
pub mod lease; // selling without a network
pub mod terminal; // how terminals are, and what is done about them
pub mod clerk; // who stands at a counter, and what they may do
pub mod shift; // a drawer: opened, counted, closed
pub mod account; // who signs up, in and out
