//! What staff do at a terminal: the same holds and the same path to SOLD as everybody's, with the
//! actor as a parameter; and what else a clerk does: seats out of a sale, put aside, tickets on paper, the drawer.
//!
//! Invariants
//! - A walk-in customer is a buyer of their own: the limit of seats is the buyer's, never the cashier's.

use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

mod free; // seats that can be given to somebody
mod blocking; // seats out of a sale, and back into it
pub mod until_sold; // seats that wait until the others are sold
pub mod customer; // seats put aside under a name
mod papers; // what staff do with tickets: reissue, print, send again
pub mod voucher; // seats promised to whoever brings a code
pub mod consign; // seats that a partner sells elsewhere
pub mod leases; // seats that a terminal sells without a network
pub mod seat; // a seat's story
pub mod shift; // a drawer: opened, counted, closed
pub mod will_call; // tickets that wait to be printed
pub mod readers; // how card readers are
pub mod traits; // what a seat is for one performance
pub mod terminals; // how terminals are; renamed, locked, revoked

pub use self::{
    blocking::{Block, BlockError, block, block_section},
    free::NotFree,
    papers::{MailToError, TicketError, begin_prints, mail_again, mail_to, reissue, report_print},
};

use crate::{
    auth::Actor,
    checkout::{self, Basket, CheckoutError, ConfirmError, Tendered},
    db,
    payment::{
        Payments,
        attempt::{self, CancelError, OpenError, Pay},
        due::{self, DueError},
        provider::CARD_PRESENT,
    },
};

/// Opens a buyer for the next customer at a terminal, known by the request that brought them: sent
/// again under the same key, it finds the same customer, and so the same hold.
pub async fn walk_in(pool: PgPool, terminal_id: Uuid, key: &str) -> sqlx::Result<Uuid> {
    let id = id_of("walk-in", terminal_id, key);
    db::write(async move {
        sqlx::query!(
            "insert into buyer (id, terminal_id) values ($1, $2) on conflict (id) do nothing",
            id,
            terminal_id
        )
        .execute(&pool)
        .await?;
        Ok(id)
    })
    .await
}

/// The id of what a terminal makes by this request: the same again for the same.
fn id_of(what: &str, terminal_id: Uuid, key: &str) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(what);
    hash.update(terminal_id);
    hash.update(key);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Whether this terminal opened the buyer, or, at a counter, whether seats are put aside for them: any counter sells
/// those.
pub async fn is_its_walk_in(pool: &PgPool, buyer_id: Uuid, terminal_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from buyer where id = $1 and terminal_id = $2)
               or (exists(select from customer_hold where buyer_id = $1)
                   and exists(select from terminal where id = $2 and role = 'counter')) as "its!""#,
        buyer_id,
        terminal_id
    )
    .fetch_one(pool)
    .await
}

#[derive(Debug, thiserror::Error)]
pub enum SaleError {
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Due(#[from] DueError),
    #[error("the cash does not pay {total_minor} {currency}")]
    TooLittleCash { total_minor: i64, currency: String },
    #[error("the hold was sold for another tender")]
    SoldOtherwise,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A sale at a terminal that has been completed.
#[derive(Debug)]
pub struct Sold {
    pub order_id: Uuid,
    pub total_minor: i64,
    /// What goes back over the counter.
    pub change_minor: i64,
}

/// Prices a hold and sells it for cash, as a comp, or for a voucher. A sale whose answer got lost is found again by
/// its hold: the same terminal gets the same order for the same tender, and nothing is sold twice. One that is sold
/// already, by a card that could not be charged, is paid with the cash.
pub async fn sell(pool: PgPool, basket: Basket, tendered: Tendered) -> Result<Sold, SaleError> {
    let (hold_id, buyer_id, actor) = (basket.hold_id, basket.buyer_id, basket.actor.clone());
    if let Some(sold) = already_sold(&pool, hold_id, buyer_id, &tendered, &actor).await? {
        return Ok(sold);
    }
    if let (Some(order_id), Tendered::Cash { received_minor }) =
        (due::of_hold(&pool, hold_id, buyer_id).await?, &tendered)
    {
        let change_minor = due::pay_in_cash(&pool, order_id, *received_minor, &basket.actor).await?;
        return Ok(Sold { order_id, total_minor: received_minor - change_minor, change_minor });
    }
    match sell_now(pool.clone(), basket, tendered.clone()).await {
        Ok(sold) => Ok(sold),
        // A second click came here while the first was selling: then it has sold by now.
        Err(refusal) => already_sold(&pool, hold_id, buyer_id, &tendered, &actor).await?.ok_or(refusal),
    }
}

async fn sell_now(pool: PgPool, basket: Basket, tendered: Tendered) -> Result<Sold, SaleError> {
    let actor = basket.actor.clone();
    let order_id = checkout::price(pool.clone(), basket).await?;
    db::write(async move {
        let order = sqlx::query!(r#"select event_id, total_minor, currency from "order" where id = $1"#, order_id)
            .fetch_one(&pool)
            .await?;
        let received = match &tendered {
            Tendered::Cash { received_minor } => Some(*received_minor),
            _ => None,
        };
        if received.is_some_and(|received| received < order.total_minor) {
            return Err(SaleError::TooLittleCash { total_minor: order.total_minor, currency: order.currency });
        }
        let mut tx = db::event_tx(&pool, order.event_id).await?;
        actor.acts(&mut tx).await?;
        checkout::confirm(&mut tx, order_id, tendered, actor.name()).await?;
        tx.commit().await?;
        let change_minor = received.map_or(0, |r| r - order.total_minor);
        Ok(Sold { order_id, total_minor: order.total_minor, change_minor })
    })
    .await
}

async fn already_sold(
    pool: &PgPool,
    hold_id: Uuid,
    buyer_id: Uuid,
    tendered: &Tendered,
    actor: &Actor,
) -> Result<Option<Sold>, SaleError> {
    let row = sqlx::query!(
        r#"select o.id, o.total_minor, t.kind, t.amount_minor, t.received_minor, t.reason, t.voucher_id, t.terminal_id
           from "order" o join tender t on t.order_id = o.id
           where o.hold_id = $1 and o.buyer_id = $2 and o.state = 'confirmed'
             and t.kind in ('cash', 'comp', 'voucher') and t.attempt_id is null limit 1"#,
        hold_id,
        buyer_id
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let same = match tendered {
        Tendered::Cash { received_minor } => row.kind == "cash" && row.received_minor == Some(*received_minor),
        Tendered::Comp { reason } => row.kind == "comp" && row.reason.as_ref() == Some(reason),
        Tendered::Voucher { voucher_id } => row.voucher_id == Some(*voucher_id),
        Tendered::Card { .. } | Tendered::Exchanged | Tendered::Account { .. } => false,
    };
    // Seats that are put aside are sold at any counter: what was paid for them lies in one drawer.
    if !same || row.terminal_id != actor.terminal_id() {
        return Err(SaleError::SoldOtherwise); // the money in the drawer would not be what the books say
    }
    let change_minor = row.received_minor.map_or(0, |received| received - row.amount_minor);
    Ok(Some(Sold { order_id: row.id, total_minor: row.total_minor, change_minor }))
}

#[derive(Debug, thiserror::Error)]
pub enum CardSaleError {
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error("the reader stands at another terminal, or at none")]
    NotYours,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A reader is used by the terminal that it was enrolled at, and by no other: a kiosk's customer must not be
/// able to have somebody else's card held to somebody else's reader.
pub async fn own_reader(pool: &PgPool, terminal_id: Uuid, reader_id: &str) -> Result<(), ReaderError> {
    let own = sqlx::query_scalar!(
        r#"select exists(select from reader where id = $1 and terminal_id = $2) as "own!""#,
        reader_id,
        terminal_id
    )
    .fetch_one(pool)
    .await?;
    if own { Ok(()) } else { Err(ReaderError::NotYours) }
}

/// A card that is held to a reader.
#[derive(Debug, Clone)]
pub struct Reading {
    pub reader_id: String,
    /// What lies on the counter beside it; the card pays the rest.
    pub cash_minor: i64,
    /// The client's own key: the same key is the same payment.
    pub key: String,
}

/// Prices a hold and has it paid by a card that the customer holds to a reader. The order is followed from
/// then on; the same key finds the same order.
pub async fn sell_by_card(
    pool: &PgPool,
    payments: &Payments,
    basket: Basket,
    reading: Reading,
) -> Result<Uuid, CardSaleError> {
    let (hold_id, buyer_id, actor) = (basket.hold_id, basket.buyer_id, basket.actor.clone());
    let begun = sqlx::query_scalar!(
        r#"select o.id from "order" o join client_request c on c.order_id = o.id
           where o.hold_id = $1 and o.buyer_id = $2 and c.key = $3"#,
        hold_id,
        buyer_id,
        reading.key
    )
    .fetch_optional(pool)
    .await?;
    // Or sold already, by a card that could not be charged: then another one pays for it.
    let begun = if begun.is_some() { begun } else { due::of_hold(pool, hold_id, buyer_id).await? };
    let order_id = match begun {
        Some(order_id) => order_id,
        None => checkout::price(pool.clone(), basket).await?,
    };
    collect_at(pool, payments, order_id, reading, actor).await?;
    Ok(order_id)
}

/// Has an order paid by a card that is held to a reader. The same key is the same payment.
pub async fn collect_at(
    pool: &PgPool,
    payments: &Payments,
    order_id: Uuid,
    reading: Reading,
    actor: Actor,
) -> Result<(), OpenError> {
    // Asked again, it is for what it was then, whatever is due by now.
    let order = sqlx::query!(
        r#"select buyer_id, order_due_minor(o) as "due_minor!", currency, (
               select a.amount_minor from client_request c join attempt a on a.id = c.attempt_id
               where c.order_id = o.id and c.key = $2 and a.cash_minor = $3) as before_minor
           from "order" o where id = $1"#,
        order_id,
        reading.key,
        reading.cash_minor
    )
    .fetch_one(pool)
    .await?;
    let amount_minor = order.before_minor.unwrap_or(order.due_minor - reading.cash_minor);
    if reading.cash_minor > 0 && amount_minor <= 0 {
        return Err(OpenError::CashPaysAll { due_minor: order.due_minor, currency: order.currency });
    }
    let pay = Pay {
        order_id,
        buyer_id: order.buyer_id,
        key: reading.key,
        payment_method: CARD_PRESENT.to_owned(),
        reader_id: Some(reading.reader_id),
        amount_minor,
        cash_minor: reading.cash_minor,
        currency: order.currency,
        actor,
    };
    attempt::open(pool, pay, payments.margin()).await?;
    payments.wake();
    Ok(())
}

/// Has an order that is due, or the new seats of an exchange, paid by a card that is held to a reader. The same key is the
/// same payment.
pub async fn collect_due(
    pool: &PgPool,
    payments: &Payments,
    order_id: Uuid,
    reading: Reading,
    actor: Actor,
) -> Result<(), CardSaleError> {
    let order = sqlx::query!(
        r#"select state, exists(select from client_request where order_id = $1 and key = $2) as "begun!",
                  exists(select from order_swap where to_order = $1) as "exchange!"
           from "order" where id = $1"#,
        order_id,
        reading.key
    )
    .fetch_optional(pool)
    .await?
    .ok_or(OpenError::OrderUnknown)?;
    let at_a_counter = order.state == "payment_due" || (order.state == "open" && order.exchange);
    if !at_a_counter && !order.begun {
        return Err(OpenError::OrderNotOpen(order.state).into()); // any other open one is its buyer's to pay
    }
    Ok(collect_at(pool, payments, order_id, reading, actor).await?)
}

/// The buyer of an order that was made at this terminal, or, at a counter, from seats that were put aside.
pub async fn buyer_of(pool: &PgPool, order_id: Uuid, terminal_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        r#"select b.id from "order" o join buyer b on b.id = o.buyer_id
           where o.id = $1 and (b.terminal_id = $2 or (exists(select from customer_hold c where c.buyer_id = b.id)
               and exists(select from terminal t where t.id = $2 and t.role = 'counter')))"#,
        order_id,
        terminal_id
    )
    .fetch_optional(pool)
    .await
}

/// The clerk stops the reader. The card may have been faster: then the sale is kept, or the money let go.
pub async fn stop_card(
    pool: &PgPool,
    payments: &Payments,
    order_id: Uuid,
    buyer_id: Uuid,
    keep_if_paid: bool,
) -> Result<(), CancelError> {
    if keep_if_paid {
        attempt::stop_reader(pool, order_id).await?;
    } else {
        attempt::cancel(pool, order_id, buyer_id).await?;
    }
    payments.wake();
    Ok(())
}
