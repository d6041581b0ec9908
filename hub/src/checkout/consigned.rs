//! What a partner sold becomes an order that it owes for: the seats leave its consignment, and go the way of every hold.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    Channel,
    basket::{self, Basket, CheckoutError},
    sale::{self, ConfirmError, Tendered},
};
use crate::{auth::Actor, db::Tx, hold::aside, seat_map::SeatNo};

/// Reported by whoever sold them.
#[derive(Debug)]
pub struct ConsignedSale<'a> {
    pub event_id: i64,
    pub partner_id: Uuid,
    pub partner: &'a str,
    /// The consignment's.
    pub hold_id: Uuid,
    /// Ascending.
    pub seats: &'a [SeatNo],
    pub ticket_types: HashMap<SeatNo, String>,
    pub actor: Actor,
}

#[derive(Debug, thiserror::Error)]
pub enum ConsignedSaleError {
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Sells them at the list's prices, in the caller's transaction, which holds the event's lock and has seen that each seat
/// is the consignment's still.
pub async fn sell_consigned(
    tx: &mut Tx,
    sold: ConsignedSale<'_>,
    now: DateTime<Utc>,
) -> Result<Uuid, ConsignedSaleError> {
    let buyer_id = Uuid::now_v7();
    sqlx::query!("insert into buyer (id, partner_id) values ($1, $2)", buyer_id, sold.partner_id)
        .execute(&mut **tx)
        .await?;
    let hold_id = aside::hand_on(tx, sold.event_id, sold.hold_id, sold.seats, buyer_id, now).await?;
    let actor = sold.actor.name().to_owned();
    let basket = Basket {
        hold_id,
        buyer_id,
        ticket_types: sold.ticket_types,
        prices: HashMap::new(),
        says_prices: false,
        channel: Channel::Counter,
        actor: sold.actor,
    };
    let order_id = basket::price_in(tx, sold.event_id, &basket).await?;
    sale::confirm(tx, order_id, Tendered::Account { partner: sold.partner.to_owned() }, &actor).await?;
    Ok(order_id)
}
