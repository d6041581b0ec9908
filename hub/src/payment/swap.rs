//! Seats of an order become seats of another: of another event, or such as cost more and are paid up by card.
//!
//! The new seats are an order of their own (so that paying for them is paying for any order), with what the old
//! ones cost as a credit. When the rest is captured, or there is none, the old seats are given up and their money
//! belongs to the new order.
//!
//! Invariants
//! - The old seats are sold to their buyer until the new ones are paid: nothing is free in between, and whoever is
//!   declined, late or lost keeps what they had.
//! - While money for the new seats is under way, and until the old ones are given up, neither order gives anything
//!   back ([`under_way`]).
//! - A credit is used once (`order_swap_to_once`), and only while its seats are sold and nothing of them went back.
//! - Money does not move: it is a tender of the new order, and one below nothing of the old. What a partner owes is none.
//!
//! Locks in order: the events by number, the new order, the old one, its attempts and tenders, the seats.

mod done; // the old seats are given up
mod held; // the new seats, held and priced
mod waits; // what waits to be paid is paid in cash, or left

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

pub(super) use self::done::complete;
use self::held::{Buyer, New};
pub use self::waits::{Waiting, pay_in_cash, waiting};
use super::{
    attempt, order,
    pairs::{ExchangeError, new_seats, old_seats},
};
use crate::{
    auth::{Actor, Deed},
    checkout::{self, ConfirmError, Tendered, log},
    clock,
    db::{self, Tx},
};

/// How a higher price is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pays {
    /// Over the counter, now.
    Cash { received_minor: i64 },
    /// By card, within so long; none given: as long as a hold of the event lasts.
    Card { within: Option<TimeDelta> },
}

#[derive(Debug, Clone)]
pub struct Ask {
    pub order_id: Uuid,
    pub key: String,
    /// Of the new seats; none: the order's own.
    pub event_id: Option<i64>,
    /// Which seat for which.
    pub pairs: Vec<(i32, i32)>,
    pub pays: Pays,
    pub reason: String,
    pub actor: Actor,
}

/// What it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapped {
    /// The order of the new seats: paid, or to be paid.
    pub order_id: Uuid,
    /// What is paid more; below 0: what goes back.
    pub difference_minor: i64,
}

/// Swaps at once, or holds the new seats until they are paid; or finds what the same key did.
pub async fn swap(pool: &PgPool, ask: Ask) -> Result<Swapped, ExchangeError> {
    let pool = pool.clone();
    db::write(async move {
        let from_event = order::event_of(&pool, ask.order_id).await?.ok_or(ExchangeError::OrderUnknown)?;
        let to_event = ask.event_id.unwrap_or(from_event);
        let mut tx = db::event_tx(&pool, from_event.min(to_event)).await?;
        if from_event != to_event {
            db::lock_event(&mut tx, from_event.max(to_event)).await?;
        }
        ask.actor.acts(&mut tx).await?;
        let done = swap_in(&mut tx, to_event, &ask).await?;
        tx.commit().await?;
        Ok(done)
    })
    .await
}

async fn swap_in(tx: &mut Tx, to_event: i64, ask: &Ask) -> Result<Swapped, ExchangeError> {
    let order = order::lock(tx, ask.order_id).await?;
    let body_hash = Sha256::digest(format!("{to_event} {:?}", ask.pairs)).to_vec();
    let before = sqlx::query!(
        r#"select w.body_hash, w.to_order, w.value_minor, n.total_minor
           from order_swap w join "order" n on n.id = w.to_order where w.from_order = $1 and w.key = $2"#,
        ask.order_id,
        ask.key
    )
    .fetch_optional(&mut **tx)
    .await?
    .map(|b| (b.body_hash, Swapped { order_id: b.to_order, difference_minor: b.total_minor - b.value_minor }));
    if let Some(done) = order::same(before, &body_hash)? {
        return Ok(done);
    }
    order.is_paid(tx).await?;
    if order.is_on_account(tx).await? {
        return Err(ExchangeError::OnAccount);
    }
    let event = sqlx::query!(
        "select sale_state, currency, seat_limit, hold_ttl_s from event where id = $1 for share",
        to_event
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ExchangeError::EventUnknown)?;
    if event.sale_state == "cancelled" {
        return Err(ExchangeError::EventCancelled);
    }
    if event.currency != order.currency {
        return Err(ExchangeError::OtherCurrency(event.currency));
    }
    let now = clock::now(tx).await?;
    let (from, to): (Vec<i32>, Vec<i32>) = ask.pairs.iter().copied().unzip();
    let old = old_seats(tx, ask.order_id, &from).await?;
    let mut seats = new_seats(tx, to_event, &to, &old, now).await?;
    seats.sort_by_key(|s| s.seat_no); // as any order's lines
    let value: i64 = old.iter().map(|s| s.amount_minor).sum();
    let total: i64 = seats.iter().map(|s| s.amount_minor).sum();
    let credit = value.min(total);
    let (due, at_once) = match ask.pays {
        _ if total == credit => (0, Some(Tendered::Exchanged)),
        Pays::Cash { received_minor } if received_minor >= total - credit => {
            (total - credit, Some(Tendered::Cash { received_minor }))
        }
        Pays::Cash { .. } => return Err(ExchangeError::MoreToPay { difference_minor: total - credit }),
        Pays::Card { .. } => (total - credit, None),
    };
    let within = match ask.pays {
        Pays::Card { within: Some(within) } if due > 0 => within,
        _ => TimeDelta::seconds(i64::from(event.hold_ttl_s)),
    };
    let buyer = Buyer { event_id: to_event, buyer_id: order.buyer_id, from_order: ask.order_id };
    held::limit(tx, buyer, seats.len(), from.len(), event.seat_limit).await?;

    // From here on everything must succeed, or the transaction fails as a whole.
    let hold_id = held::hold(tx, to_event, order.buyer_id, &seats, now, now + within).await?;
    let new = New { event_id: to_event, buyer_id: order.buyer_id, hold_id, currency: &order.currency, total, credit };
    let to_order = held::insert_order(tx, &new, &order.channel, ask.actor.name(), &seats, now).await?;
    let swap_id = Uuid::now_v7();
    sqlx::query!(
        "insert into order_swap (id, from_order, to_order, key, body_hash, from_seats, value_minor, surplus_minor, reason, actor, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        swap_id,
        ask.order_id,
        to_order,
        ask.key,
        body_hash,
        &from,
        value,
        value - credit,
        ask.reason,
        ask.actor.name(),
        now
    )
    .execute(&mut **tx)
    .await?;
    if let Some(tendered) = at_once {
        checkout::confirm(tx, to_order, tendered, ask.actor.name()).await.map_err(unsold)?;
        done::give_up(tx, swap_id).await?; // which tells the log
    } else {
        asked(tx, ask, to_event, (&from, &to), now).await?;
    }
    Ok(Swapped { order_id: to_order, difference_minor: total - value })
}

/// Somebody of the staff has asked for it, and said why; whoever pays, or is paid, comes later.
async fn asked(
    tx: &mut Tx,
    ask: &Ask,
    to_event: i64,
    (from, to): (&[i32], &[i32]),
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let order =
        sqlx::query!(r#"select event_id, code from "order" where id = $1"#, ask.order_id).fetch_one(&mut **tx).await?;
    let (old, new) = (log::named(tx, order.event_id, from).await?, log::named(tx, to_event, to).await?);
    let detail = format!("order {}: {old} for {new}, once it is paid", order.code);
    let deed = Deed { verb: "order_exchange", event_id: Some(order.event_id), detail: &detail, reason: &ask.reason };
    ask.actor.writes(tx, deed, now).await
}

/// Seats that were just held, or looked at under the lock, can be sold.
fn unsold(error: ConfirmError) -> sqlx::Error {
    match error {
        ConfirmError::Database(error) => error,
        other => sqlx::Error::Protocol(format!("a swap could not be sold: {other}")),
    }
}

/// Whether what an order's credit stands for is still there: its seats are sold, and nothing of them went back.
/// The old order is locked from then on. True of an order without a credit.
pub(super) async fn credit_is_good(tx: &mut Tx, to_order: Uuid) -> sqlx::Result<bool> {
    let swap = sqlx::query!("select from_order, from_seats from order_swap where to_order = $1", to_order)
        .fetch_optional(&mut **tx)
        .await?;
    let Some(swap) = swap else { return Ok(true) };
    let from = order::lock(tx, swap.from_order).await?;
    let busy = match attempt::own_live(tx, from.id).await? {
        Some(id) => Some(id),
        None => under_way_beside(tx, from.id, Some(to_order)).await?, // a failed capture is paid again by this very order
    };
    if from.state != "confirmed" || busy.is_some() {
        return Ok(false);
    }
    match old_seats(tx, swap.from_order, &swap.from_seats).await {
        Ok(_) => Ok(true),
        Err(ExchangeError::Database(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// The attempt to pay for a swap that this order is part of, until the old seats are given up or the new order has
/// come to nothing. Nothing of either is given back or exchanged meanwhile.
pub(super) async fn under_way(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    under_way_beside(tx, order_id, None).await
}

/// The same, of another swap than the one to this order.
async fn under_way_beside(tx: &mut Tx, order_id: Uuid, to_order: Option<Uuid>) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        r#"select a.id from order_swap w join "order" n on n.id = w.to_order join attempt a on a.order_id = n.id
           where w.done_at is null and w.dropped_at is null and w.to_order is distinct from $2
             and ((w.from_order = $1 and (n.state in ('confirmed', 'payment_due')
                     or a.state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')))
                  or (w.to_order = $1 and n.state = 'confirmed'))
           order by a.created_at desc limit 1"#,
        order_id,
        to_order
    )
    .fetch_optional(&mut **tx)
    .await
}
