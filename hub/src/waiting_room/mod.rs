//! The line before a sale.

pub mod draw; // who stands where, so that anybody can check it
