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

use super::{attempt, refund};
use crate::{
    checkout::log,
    clock,
    db::{self, Tx},
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
    pub actor: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error("there is no such order")]
    OrderUnknown,
    #[error("the key was used for another request")]
    KeyReused,
    #[error("the order is {0}")]
    OrderNotPaid(String),
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    /// Not this order's, or part of its price was given back already.
    #[error("seats {0:?} can't be exchanged")]
    SeatsNotSold(Vec<i32>),
    #[error("seats {0:?} are not free")]
    SeatsUnavailable(Vec<i32>),
    #[error("seat {seat_no} is not sold as {ticket_type}")]
    TicketTypeUnknown { seat_no: i32, ticket_type: String },
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    #[error("the event sells in {0}")]
    OtherCurrency(String),
    /// Seats of that event that are theirs to pay for: they have to be paid or given back first.
    #[error("the buyer holds seats of that event")]
    BuyerHolds,
    #[error("that is more than {limit} seats for one buyer")]
    LimitReached { limit: i32 },
    #[error("{difference_minor} more is to be paid")]
    MoreToPay { difference_minor: i64 },
    #[error(transparent)]
    Refund(#[from] refund::RefundError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// What an exchange came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    pub exchange_id: Uuid,
    /// What was paid more; below 0: what goes back.
    pub difference_minor: i64,
}

/// Exchanges, or finds what the same key exchanged. Workers are to be woken after it.
pub async fn exchange(pool: &PgPool, ask: Ask) -> Result<Exchanged, ExchangeError> {
    let pool = pool.clone();
    db::write(async move {
        let event_id = sqlx::query_scalar!(r#"select event_id from "order" where id = $1"#, ask.order_id)
            .fetch_optional(&pool)
            .await?
            .ok_or(ExchangeError::OrderUnknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        let done = exchange_in(&mut tx, event_id, &ask).await?;
        tx.commit().await?;
        Ok(done)
    })
    .await
}

/// A seat that goes, its line, and the one that comes instead.
#[derive(Debug)]
struct Swap {
    line_id: i64,
    from: i32,
    to: i32,
    ticket_type: String,
    old_minor: i64,
    new_minor: i64,
}

async fn exchange_in(tx: &mut Tx, event_id: i64, ask: &Ask) -> Result<Exchanged, ExchangeError> {
    let order = sqlx::query!(r#"select state, currency from "order" where id = $1 for no key update"#, ask.order_id)
        .fetch_one(&mut **tx)
        .await?;
    let body_hash = Sha256::digest(format!("{:?}", ask.pairs)).to_vec();
    let before = sqlx::query!(
        "select id, body_hash, difference_minor from order_exchange where order_id = $1 and key = $2",
        ask.order_id,
        ask.key
    )
    .fetch_optional(&mut **tx)
    .await?;
    match before {
        Some(b) if b.body_hash == body_hash => {
            return Ok(Exchanged { exchange_id: b.id, difference_minor: b.difference_minor });
        }
        Some(_) => return Err(ExchangeError::KeyReused),
        None => {}
    }
    if let Some(id) = attempt::live(tx, ask.order_id).await? {
        return Err(ExchangeError::AttemptLive(id));
    }
    if order.state != "confirmed" {
        return Err(ExchangeError::OrderNotPaid(order.state));
    }
    let now = clock::now(tx).await?;
    let swaps = swaps(tx, event_id, ask, now).await?;
    let difference: i64 = swaps.iter().map(|s| s.new_minor - s.old_minor).sum();
    if difference > 0 && ask.received_minor.is_none_or(|received| received < difference) {
        return Err(ExchangeError::MoreToPay { difference_minor: difference });
    }

    // From here on everything must succeed, or the transaction fails as a whole.
    move_seats(tx, event_id, ask.order_id, &swaps, now).await?;
    move_lines(tx, event_id, ask.order_id, &swaps, difference, now).await?;
    if difference > 0 {
        take_cash(tx, ask, difference, now).await?;
    } else if difference < 0 {
        refund::give_back_difference(tx, ask.order_id, &order.currency, -difference, "exchange", now).await?;
    }
    let exchange_id = record(tx, ask, &swaps, &body_hash, difference, now).await?;
    Ok(Exchanged { exchange_id, difference_minor: difference })
}

async fn swaps(tx: &mut Tx, event_id: i64, ask: &Ask, now: DateTime<Utc>) -> Result<Vec<Swap>, ExchangeError> {
    let (from, to): (Vec<i32>, Vec<i32>) = ask.pairs.iter().copied().unzip();
    let lines = sqlx::query!(
        r#"select id, seat_no as "seat_no!", ticket_type as "ticket_type!", amount_minor from order_line
           where order_id = $1 and state = 'sold' and refunded_minor = 0 and seat_no = any($2)"#,
        ask.order_id,
        &from
    )
    .fetch_all(&mut **tx)
    .await?;
    let missing: Vec<i32> = from.iter().copied().filter(|f| !lines.iter().any(|l| l.seat_no == *f)).collect();
    if !missing.is_empty() {
        return Err(ExchangeError::SeatsNotSold(missing));
    }
    let free = sqlx::query!(
        "select s.seat_no, s.level from event_seat s join event e on e.id = s.event_id
         join plan_seat p on p.plan_revision_id = e.plan_revision_id and p.seat_no = s.seat_no
         where s.event_id = $1 and s.seat_no = any($2) and not p.retired
           and (s.status = 0 or (s.status = 1 and s.held_until <= $3))",
        event_id,
        &to,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    let taken: Vec<i32> = to.iter().copied().filter(|t| !free.iter().any(|f| f.seat_no == *t)).collect();
    if !taken.is_empty() {
        return Err(ExchangeError::SeatsUnavailable(taken));
    }
    let prices = sqlx::query!("select level, ticket_type, amount_minor from price where event_id = $1", event_id)
        .fetch_all(&mut **tx)
        .await?;
    let mut swaps = Vec::with_capacity(ask.pairs.len());
    for &(from, to) in &ask.pairs {
        let (Some(line), Some(seat)) =
            (lines.iter().find(|l| l.seat_no == from), free.iter().find(|f| f.seat_no == to))
        else {
            return Err(ExchangeError::SeatsNotSold(vec![from]));
        };
        let price = prices
            .iter()
            .find(|p| p.level == seat.level && p.ticket_type == line.ticket_type)
            .ok_or_else(|| ExchangeError::TicketTypeUnknown { seat_no: to, ticket_type: line.ticket_type.clone() })?;
        swaps.push(Swap {
            line_id: line.id,
            from,
            to,
            ticket_type: line.ticket_type.clone(),
            old_minor: line.amount_minor,
            new_minor: price.amount_minor,
        });
    }
    Ok(swaps)
}

async fn move_seats(
    tx: &mut Tx,
    event_id: i64,
    order_id: Uuid,
    swaps: &[Swap],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (from, to): (Vec<i32>, Vec<i32>) = swaps.iter().map(|s| (s.from, s.to)).unzip();
    let taken = sqlx::query!(
        "update event_seat set status = 2, order_id = $3, hold_id = null, held_until = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and (status = 0 or (status = 1 and held_until <= $4))
         returning seat_no, version",
        event_id,
        &to,
        order_id,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    let freed = sqlx::query!(
        "update event_seat set status = 0, order_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and status = 2 and order_id = $3 returning seat_no, version",
        event_id,
        &from,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    if taken.len() != to.len() || freed.len() != from.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats exchanged", taken.len().min(freed.len()), to.len())));
    }
    let change = |status| move |(seat_no, version)| SeatChange { seat_no, status, version, held_until: None };
    let changes: Vec<SeatChange> = taken
        .into_iter()
        .map(|s| (s.seat_no, s.version))
        .map(change(Status::Sold))
        .chain(freed.into_iter().map(|s| (s.seat_no, s.version)).map(change(Status::Available)))
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

async fn move_lines(
    tx: &mut Tx,
    event_id: i64,
    order_id: Uuid,
    swaps: &[Swap],
    difference: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let ids: Vec<i64> = swaps.iter().map(|s| s.line_id).collect();
    let (from, to): (Vec<i32>, Vec<i32>) = swaps.iter().map(|s| (s.from, s.to)).unzip();
    let types: Vec<String> = swaps.iter().map(|s| s.ticket_type.clone()).collect();
    let amounts: Vec<i64> = swaps.iter().map(|s| s.new_minor).collect();
    sqlx::query!("update order_line set state = 'exchanged' where id = any($1)", &ids).execute(&mut **tx).await?;
    sqlx::query!(
        "insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, state, tax_milli_percent)
         select $1, $2, u.seat_no, u.ticket_type, u.amount, 'sold',
                (select max(tax_milli_percent) from order_line where order_id = $1) -- as the order was bought
         from unnest($3::int[], $4::text[], $5::bigint[]) as u(seat_no, ticket_type, amount)",
        order_id,
        event_id,
        &to,
        &types,
        &amounts
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(r#"update "order" set total_minor = total_minor + $2 where id = $1"#, order_id, difference)
        .execute(&mut **tx)
        .await?;
    ticket::void(tx, order_id, Some(&from), "exchanged", now).await?;
    // No attempt is under way, so the money is here.
    ticket::issue(tx, order_id, event_id, &to, ticket::State::Valid, now).await
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
    swaps: &[Swap],
    body_hash: &[u8],
    difference: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let (from, to): (Vec<i32>, Vec<i32>) = swaps.iter().map(|s| (s.from, s.to)).unzip();
    let said = format!("seats {from:?} exchanged for {to:?} ({difference:+}): {}", ask.reason);
    log::note(tx, ask.order_id, "exchange", &said, &ask.actor, now).await?;
    sqlx::query_scalar!(
        "insert into order_exchange (id, order_id, key, body_hash, from_seats, to_seats, difference_minor, reason, actor, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning id",
        Uuid::now_v7(),
        ask.order_id,
        ask.key,
        body_hash,
        &from,
        &to,
        difference,
        ask.reason,
        ask.actor,
        now
    )
    .fetch_one(&mut **tx)
    .await
}
