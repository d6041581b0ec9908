//! A hold becomes a priced order, and an order becomes sold seats.
//!
//! Invariants
//! - Only the server computes prices; what a client believes is never read.
//! - [`confirm`] is the one path that moves a seat to SOLD: web, till, kiosk and worker all go through it.
//! - A hold is confirmed only if it is alive by the database's clock, asked after the locks are taken.
//! - An order is confirmed once, and its live tenders sum to its total.
//! - While a payment of an order lives, nothing else pays for it.
//!
//! A hold that was taken before the sale closed or was paused may still be paid until it runs out.

pub mod view; // orders as their buyers see them
pub mod log; // what people did to an order
pub mod find; // an order, by whatever somebody has
mod basket; // a hold becomes a priced order
mod voucher; // given away beforehand
mod sale; // an order becomes sold seats
mod consigned; // what a partner sold becomes an order
mod leased; // what a terminal sold without a network becomes an order

use rand::Rng;

pub use self::{
    basket::{Basket, CheckoutError, OtherPrice, price},
    consigned::{ConsignedSale, ConsignedSaleError, sell_consigned},
    leased::{LeasedSale, sell_leased},
    sale::{ConfirmError, Confirmed, Tendered, claim, confirm, take_cash_beside},
    voucher::{VoucherRefusal, is_used as voucher_is_used, of_code as voucher_of_code},
};

/// Letters and digits that can't be taken for one another when they are read out.
pub const CODE_ALPHABET: &[u8; 31] = b"23456789ABCDEFGHJKLMNPQRSTUVWXY";

/// A code for a new order, by chance.
pub fn new_code() -> String {
    let mut rng = rand::rng();
    (0..8).map(|_| char::from(CODE_ALPHABET[rng.random_range(0..CODE_ALPHABET.len())])).collect()
}

/// Where an order is sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Web,
    Counter,
    Kiosk,
}

impl Channel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Counter => "counter",
            Self::Kiosk => "kiosk",
        }
    }
}
