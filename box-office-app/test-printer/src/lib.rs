//! A printer without paper, for tests and demos: it reads ESC/POS as a thermal printer does, keeps what would be on the
//! paper as pictures, answers questions, and fails when it is told to.
//!
//! It shares nothing with what a till writes (no constants, no tables): whoever writes both ends of a wire from one page
//! misreads it twice. What it doesn't know it says ([`Sheet::unknown`]), rather than guessing.

#![forbid(unsafe_code)]

pub mod engine; // bytes in, dots and answers out
pub mod letters; // what a printer's own letters look like
pub mod printer; // a printer on the network

pub use engine::{Drawer, Engine, Sheet};
pub use printer::{Behaviour, TestPrinter};
