//! Seats of an order are exchanged for others of the same event, in one transaction. (For another event, or paid up by
//! card: [`super::swap`].)
//!
//! Invariants
//! - The old seats are sold until the new ones are: nobody can take either in between.
//! - The order keeps its number of seats, their ticket types and its fees. A price difference is cash
//!   over the counter, or goes back the way it came.
//! - The old tickets die, the new ones are as valid as the old were.
//! - The same request again finds what it did (`order_exchange_key_once`).
//!
//! Locks in order: the event, the order, its attempts and tenders, the seats.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

pub use super::pairs::ExchangeError;
use super::{
    order,
    pairs::{NewSeat, OldSeat, new_seats, old_seats},
    refund, seats_back,
};
use crate::{
    auth::Actor,
    checkout::log,
    clock,
    db::{self, Tx},
    mail,
    outbox::{self, SeatChange},
    ticket,
};

/// Which seat for which, in pairs.
#[derive(Debug, Clone)]
pub struct Ask {
    pub order_id: Uuid,
    pub key: String,
    pub pairs: Vec<(i32, i32)>,
    /// Cash handed over for a higher price.
    pub received_minor: Option<i64>,
    pub reason: String,
    pub actor: Actor,
}

/// What an exchange came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    pub exchange_id: Uuid,
    /// What was paid more; below 0: what goes back.
    pub difference_minor: i64,
}

/// What an exchange would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What is to be paid more; below 0: what goes back.
    pub difference_minor: i64,
    pub currency: String,
    /// Of what goes back: kinds of money, with how much of each.
    pub back: Vec<(String, i64)>,
}

/// What an exchange would come to now, for seats of the order's event or of another one. Nothing is changed.
pub async fn offer(
    pool: &PgPool,
    order_id: Uuid,
    to_event: Option<i64>,
    pairs: &[(i32, i32)],
) -> Result<Offer, ExchangeError> {
    let from_event = order::event_of(pool, order_id).await?.ok_or(ExchangeError::OrderUnknown)?;
    let mut tx = pool.begin().await?;
    let offer = offer_in(&mut tx, order_id, (from_event, to_event.unwrap_or(from_event)), pairs).await?;
    tx.rollback().await?;
    Ok(offer)
}

async fn offer_in(
    tx: &mut Tx,
    order_id: Uuid,
    (from_event, to_event): (i64, i64),
    pairs: &[(i32, i32)],
) -> Result<Offer, ExchangeError> {
    let order = order::lock(tx, order_id).await?;
    order.is_paid(tx).await?;
    if to_event != from_event && order.is_on_account(tx).await? {
        return Err(ExchangeError::OnAccount);
    }
    let now = clock::now(tx).await?;
    let (from, to): (Vec<i32>, Vec<i32>) = pairs.iter().copied().unzip();
    let old = old_seats(tx, order_id, &from).await?;
    let new = new_seats(tx, to_event, &to, &old, now).await?;
    let difference_minor = difference(&old, &new);
    let back = refund::ways_back(tx, order_id, (-difference_minor).max(0)).await?;
    Ok(Offer { difference_minor, currency: order.currency, back })
}

fn difference(old: &[OldSeat], new: &[NewSeat]) -> i64 {
    new.iter().map(|s| s.amount_minor).sum::<i64>() - old.iter().map(|s| s.amount_minor).sum::<i64>()
}

/// Exchanges, or finds what the same key exchanged. Workers are to be woken after it.
pub async fn exchange(pool: &PgPool, ask: Ask) -> Result<Exchanged, ExchangeError> {
    let pool = pool.clone();
    db::write(async move {
        let (mut tx, event_id) = order::open(&pool, ask.order_id).await?.ok_or(ExchangeError::OrderUnknown)?;
        ask.actor.acts(&mut tx).await?;
        let done = exchange_in(&mut tx, event_id, &ask).await?;
        tx.commit().await?;
        Ok(done)
    })
    .await
}

async fn exchange_in(tx: &mut Tx, event_id: i64, ask: &Ask) -> Result<Exchanged, ExchangeError> {
    let order = order::lock(tx, ask.order_id).await?;
    let body_hash = Sha256::digest(format!("{:?}", ask.pairs)).to_vec();
    let before = sqlx::query!(
        "select id, body_hash, difference_minor from order_exchange where order_id = $1 and key = $2",
        ask.order_id,
        ask.key
    )
    .fetch_optional(&mut **tx)
    .await?
    .map(|b| (b.body_hash, Exchanged { exchange_id: b.id, difference_minor: b.difference_minor }));
    if let Some(done) = order::same(before, &body_hash)? {
        return Ok(done);
    }
    order.is_paid(tx).await?;
    let now = clock::now(tx).await?;
    let (from, to): (Vec<i32>, Vec<i32>) = ask.pairs.iter().copied().unzip();
    let old = old_seats(tx, ask.order_id, &from).await?;
    let new = new_seats(tx, event_id, &to, &old, now).await?;
    let difference = difference(&old, &new);
    if difference > 0 && ask.received_minor.is_none_or(|received| received < difference) {
        return Err(ExchangeError::MoreToPay { difference_minor: difference });
    }

    // From here on everything must succeed, or the transaction fails as a whole.
    sell(tx, event_id, ask.order_id, &new, now).await?;
    seats_back::exchange_away(tx, event_id, ask.order_id, &from, now).await?;
    order::cost_more(tx, ask.order_id, difference).await?;
    if difference > 0 {
        take_cash(tx, ask, difference, now).await?;
    } else if difference < 0 {
        refund::give_back_difference(tx, ask.order_id, &order.currency, -difference, "exchange", now).await?;
    }
    let exchange_id = record(tx, ask, event_id, (&from, &to), &body_hash, difference, now).await?;
    mail::enqueue(tx, mail::Kind::Reissued, ask.order_id, &exchange_id.to_string()).await?; // what they have is dead
    Ok(Exchanged { exchange_id, difference_minor: difference })
}

/// The new seats are the order's, with lines and tickets of their own. Nobody has had them since they were found free:
/// the event is locked.
async fn sell(tx: &mut Tx, event_id: i64, order_id: Uuid, new: &[NewSeat], now: DateTime<Utc>) -> sqlx::Result<()> {
    let seat_nos: Vec<i32> = new.iter().map(|s| s.seat_no).collect();
    let taken = sqlx::query!(
        "update event_seat set status = 2, order_id = $3, hold_id = null, held_until = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and (status = 0 or (status = 1 and held_until <= $4))
         returning seat_no, version",
        event_id,
        &seat_nos,
        order_id,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    if taken.len() != seat_nos.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats exchanged", taken.len(), seat_nos.len())));
    }
    let types: Vec<String> = new.iter().map(|s| s.ticket_type.clone()).collect();
    let amounts: Vec<i64> = new.iter().map(|s| s.amount_minor).collect();
    sqlx::query!(
        "insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, state, tax_milli_percent)
         select $1, $2, u.seat_no, u.ticket_type, u.amount, 'sold',
                (select max(tax_milli_percent) from order_line where order_id = $1) -- as the order was bought
         from unnest($3::int[], $4::text[], $5::bigint[]) as u(seat_no, ticket_type, amount)",
        order_id,
        event_id,
        &seat_nos,
        &types,
        &amounts
    )
    .execute(&mut **tx)
    .await?;
    // No attempt is under way, so the money is here.
    ticket::issue(tx, order_id, event_id, &seat_nos, ticket::State::Valid, now).await?;
    let changes: Vec<SeatChange> = taken
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Sold, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

async fn take_cash(tx: &mut Tx, ask: &Ask, difference: i64, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into tender (id, order_id, kind, amount_minor, received_minor, created_at) values ($1, $2, 'cash', $3, $4, $5)",
        Uuid::now_v7(),
        ask.order_id,
        difference,
        ask.received_minor,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn record(
    tx: &mut Tx,
    ask: &Ask,
    event_id: i64,
    (from, to): (&[i32], &[i32]),
    body_hash: &[u8],
    difference: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let (old, new) = (log::named(tx, event_id, from).await?, log::named(tx, event_id, to).await?);
    let said = format!("{old} exchanged for {new} ({difference:+}): {}", ask.reason);
    log::note(tx, ask.order_id, "exchange", &said, ask.actor.name(), now).await?;
    sqlx::query_scalar!(
        "insert into order_exchange (id, order_id, key, body_hash, from_seats, to_seats, difference_minor, reason, actor, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning id",
        Uuid::now_v7(),
        ask.order_id,
        ask.key,
        body_hash,
        from,
        to,
        difference,
        ask.reason,
        ask.actor.name(),
        now
    )
    .fetch_one(&mut **tx)
    .await
}
