//! Venues, performers, plans and their import, events, search.
//!
//! A plan is read ([`plan`]), laid out ([`layout`]: runs, standing places, what "near the stage"
//! means), drawn ([`geometry`]) and imported as a revision ([`import`]); an event ([`event`]) sells
//! the seats of one.

pub mod text; // natural order, search, look-alikes
mod color; // colours as people write them
pub mod json; // JSON that remembers its lines
pub mod plan; // a plan as its file says it, checked
pub mod runs; // who sits beside whom
pub mod standing; // places inside an outline
pub mod layout; // seats in order, with all that is known of them
pub mod geometry; // what a map is drawn from
pub mod import; // a plan becomes a revision, and events move to it
pub mod event; // what is on, when, for how much
pub mod stadium; // a made-up stadium of 62,000 seats
pub mod search; // what is on, narrowed
pub mod listing; // what is on, read
pub mod cache; // answers that many ask for at once
pub mod commands; // the catalogue on the command line
