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
//! - Money does not move: it is a tender of the new order, and one below nothing of the old.
//!
//! Locks in order: the events by number, the new order, the old one, its attempts and tenders, the seats.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::seat::Status;
use rand::Rng;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use super::{attempt, exchange::ExchangeError, refund};
use crate::{
    checkout::{self, CODE_ALPHABET, ConfirmError, Tendered, log},
    clock,
    db::{self, Tx},
    outbox::{self, SeatChange},
    ticket,
};

/// Swaps that one round gives the old seats up of.
const ROUND: i64 = 100;

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
    pub actor: String,
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
        let from_event = sqlx::query_scalar!(r#"select event_id from "order" where id = $1"#, ask.order_id)
            .fetch_optional(&pool)
            .await?
            .ok_or(ExchangeError::OrderUnknown)?;
        let to_event = ask.event_id.unwrap_or(from_event);
        let mut tx = db::event_tx(&pool, from_event.min(to_event)).await?;
        if from_event != to_event {
            db::lock_event(&mut tx, from_event.max(to_event)).await?;
        }
        let done = swap_in(&mut tx, to_event, &ask).await?;
        tx.commit().await?;
        Ok(done)
    })
    .await
}

/// A new seat, as it will be sold.
#[derive(Debug)]
struct NewSeat {
    seat_no: i32,
    ticket_type: String,
    amount_minor: i64,
}

async fn swap_in(tx: &mut Tx, to_event: i64, ask: &Ask) -> Result<Swapped, ExchangeError> {
    let order = sqlx::query!(
        r#"select state, currency, buyer_id, channel from "order" where id = $1 for no key update"#,
        ask.order_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let body_hash = Sha256::digest(format!("{to_event} {:?}", ask.pairs)).to_vec();
    let before = sqlx::query!(
        r#"select w.body_hash, w.to_order, w.value_minor, n.total_minor
           from order_swap w join "order" n on n.id = w.to_order where w.from_order = $1 and w.key = $2"#,
        ask.order_id,
        ask.key
    )
    .fetch_optional(&mut **tx)
    .await?;
    match before {
        Some(b) if b.body_hash == body_hash => {
            return Ok(Swapped { order_id: b.to_order, difference_minor: b.total_minor - b.value_minor });
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
    let (from, _): (Vec<i32>, Vec<i32>) = ask.pairs.iter().copied().unzip();
    let (types, value) = old_seats(tx, ask.order_id, &from).await?;
    let seats = new_seats(tx, to_event, ask, &types, now).await?;
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
    let given_up = if at_once.is_some() { from.len() } else { 0 };
    let buyer = Buyer { event_id: to_event, buyer_id: order.buyer_id, from_order: ask.order_id };
    limit(tx, buyer, seats.len(), given_up, event.seat_limit).await?;

    // From here on everything must succeed, or the transaction fails as a whole.
    let hold_id = hold(tx, to_event, order.buyer_id, &seats, now, now + within).await?;
    let new = New { event_id: to_event, buyer_id: order.buyer_id, hold_id, currency: &order.currency, total, credit };
    let to_order = insert_order(tx, &new, &order.channel, &ask.actor, &seats, now).await?;
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
        ask.actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    if let Some(tendered) = at_once {
        checkout::confirm(tx, to_order, tendered, &ask.actor).await.map_err(|error| match error {
            ConfirmError::Database(error) => error,
            other => sqlx::Error::Protocol(format!("a swap could not be sold: {other}")),
        })?;
        give_up(tx, swap_id).await?;
    }
    Ok(Swapped { order_id: to_order, difference_minor: total - value })
}

/// The ticket types of the old seats in their order, and what they cost together.
async fn old_seats(tx: &mut Tx, order_id: Uuid, from: &[i32]) -> Result<(Vec<String>, i64), ExchangeError> {
    let lines = sqlx::query!(
        r#"select seat_no as "seat_no!", ticket_type as "ticket_type!", amount_minor from order_line
           where order_id = $1 and state = 'sold' and refunded_minor = 0 and seat_no = any($2)"#,
        order_id,
        from
    )
    .fetch_all(&mut **tx)
    .await?;
    let missing: Vec<i32> = from.iter().copied().filter(|f| !lines.iter().any(|l| l.seat_no == *f)).collect();
    if !missing.is_empty() {
        return Err(ExchangeError::SeatsNotSold(missing));
    }
    let value = lines.iter().map(|l| l.amount_minor).sum();
    let type_of = |seat: &i32| lines.iter().find(|l| l.seat_no == *seat).map(|l| l.ticket_type.clone());
    Ok((from.iter().filter_map(type_of).collect(), value))
}

/// The new seats with their prices, by number: free, and sold as the old ones are.
async fn new_seats(
    tx: &mut Tx,
    event_id: i64,
    ask: &Ask,
    types: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<NewSeat>, ExchangeError> {
    let to: Vec<i32> = ask.pairs.iter().map(|p| p.1).collect();
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
    let mut seats = Vec::with_capacity(to.len());
    for (seat_no, ticket_type) in to.iter().zip(types) {
        let level = free.iter().find(|f| f.seat_no == *seat_no).map(|f| f.level);
        let price = prices
            .iter()
            .find(|p| Some(p.level) == level && p.ticket_type == *ticket_type)
            .ok_or_else(|| ExchangeError::TicketTypeUnknown { seat_no: *seat_no, ticket_type: ticket_type.clone() })?;
        seats.push(NewSeat { seat_no: *seat_no, ticket_type: ticket_type.clone(), amount_minor: price.amount_minor });
    }
    seats.sort_by_key(|s| s.seat_no);
    Ok(seats)
}

struct Buyer {
    event_id: i64,
    buyer_id: Uuid,
    from_order: Uuid,
}

/// Nobody has more than the event's limit for it, also not while both are theirs.
async fn limit(tx: &mut Tx, buyer: Buyer, new: usize, given_up: usize, seat_limit: i32) -> Result<(), ExchangeError> {
    let has = sqlx::query!(
        r#"select (select count(*) from hold where event_id = $1 and buyer_id = $2 and state = 'live') as "holds!",
                  (select count(*) from order_line l join "order" o on o.id = l.order_id
                   where o.event_id = $1 and o.buyer_id = $2 and l.state = 'sold' and l.seat_no is not null) as "bought!",
                  (select event_id = $1 from "order" where id = $3) as "same!""#,
        buyer.event_id,
        buyer.buyer_id,
        buyer.from_order
    )
    .fetch_one(&mut **tx)
    .await?;
    if has.holds > 0 {
        return Err(ExchangeError::BuyerHolds);
    }
    let leaving = if has.same { given_up as i64 } else { 0 };
    if has.bought - leaving + new as i64 > i64::from(seat_limit) {
        return Err(ExchangeError::LimitReached { limit: seat_limit });
    }
    Ok(())
}

/// The new seats are the buyer's to pay for, by a hold like any other.
async fn hold(
    tx: &mut Tx,
    event_id: i64,
    buyer_id: Uuid,
    seats: &[NewSeat],
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let hold_id = Uuid::now_v7();
    let seat_nos: Vec<i32> = seats.iter().map(|s| s.seat_no).collect();
    sqlx::query!(
        "insert into hold (id, event_id, buyer_id, seat_nos, held_until, seats_taken, created_at) values ($1, $2, $3, $4, $5, $6, $7)",
        hold_id,
        event_id,
        buyer_id,
        &seat_nos,
        until,
        seat_nos.len() as i32,
        now
    )
    .execute(&mut **tx)
    .await?;
    let held = sqlx::query!(
        "update event_seat set status = 1, hold_id = $3, held_until = $4, order_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and (status = 0 or (status = 1 and held_until <= $5))
         returning seat_no, version",
        event_id,
        &seat_nos,
        hold_id,
        until,
        now
    )
    .fetch_all(&mut **tx)
    .await?;
    if held.len() != seat_nos.len() {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats held", held.len(), seat_nos.len())));
    }
    let changes: Vec<SeatChange> = held
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Held, version: s.version, held_until: Some(until) })
        .collect();
    outbox::append(tx, event_id, now, &changes).await?;
    Ok(hold_id)
}

struct New<'a> {
    event_id: i64,
    buyer_id: Uuid,
    hold_id: Uuid,
    currency: &'a str,
    total: i64,
    credit: i64,
}

/// Fees were paid with the old order; an exchange costs what the seats do.
async fn insert_order(
    tx: &mut Tx,
    new: &New<'_>,
    channel: &str,
    actor: &str,
    seats: &[NewSeat],
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    let code: String = {
        let mut rng = rand::rng();
        (0..8).map(|_| char::from(CODE_ALPHABET[rng.random_range(0..CODE_ALPHABET.len())])).collect()
    };
    sqlx::query!(
        r#"insert into "order" (id, code, event_id, buyer_id, hold_id, currency, total_minor, credit_minor, channel, actor, created_at, refund_policy, tax_name)
           select $1, $2, e.id, $4, $5, $6, $7, $8, $9, $10, $11, e.refund_policy, e.tax_name from event e where e.id = $3"#,
        id,
        code,
        new.event_id,
        new.buyer_id,
        new.hold_id,
        new.currency,
        new.total,
        new.credit,
        channel,
        actor,
        now
    )
    .execute(&mut **tx)
    .await?;
    let seat_nos: Vec<i32> = seats.iter().map(|s| s.seat_no).collect();
    let types: Vec<String> = seats.iter().map(|s| s.ticket_type.clone()).collect();
    let amounts: Vec<i64> = seats.iter().map(|s| s.amount_minor).collect();
    sqlx::query!(
        "insert into order_line (order_id, event_id, seat_no, ticket_type, amount_minor, tax_milli_percent)
         select $1, $2, u.seat_no, u.ticket_type, u.amount, (select tax_milli_percent from event where id = $2)
         from unnest($3::int[], $4::text[], $5::bigint[]) as u(seat_no, ticket_type, amount)",
        id,
        new.event_id,
        &seat_nos,
        &types,
        &amounts
    )
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

/// Whether what an order's credit stands for is still there: its seats are sold, and nothing of them went back.
/// The old order is locked from then on. True of an order without a credit.
pub(super) async fn credit_is_good(tx: &mut Tx, to_order: Uuid) -> sqlx::Result<bool> {
    let swap = sqlx::query!("select from_order, from_seats from order_swap where to_order = $1", to_order)
        .fetch_optional(&mut **tx)
        .await?;
    let Some(swap) = swap else { return Ok(true) };
    let state = sqlx::query_scalar!(r#"select state from "order" where id = $1 for no key update"#, swap.from_order)
        .fetch_one(&mut **tx)
        .await?;
    if state != "confirmed" || attempt::live(tx, swap.from_order).await?.is_some() {
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
    sqlx::query_scalar!(
        r#"select a.id from order_swap w join "order" n on n.id = w.to_order join attempt a on a.order_id = n.id
           where w.done_at is null and w.dropped_at is null
             and ((w.from_order = $1 and (n.state in ('confirmed', 'payment_due')
                     or a.state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded')))
                  or (w.to_order = $1 and n.state = 'confirmed'))
           order by a.created_at desc limit 1"#,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// Gives up the old seats of what is paid by now. Returns how many swaps are done.
pub(super) async fn complete(pool: &PgPool) -> sqlx::Result<usize> {
    sqlx::query!(
        r#"update order_swap set dropped_at = db_clock() where done_at is null and dropped_at is null
             and to_order in (select n.id from "order" n where n.id = to_order and n.state = 'cancelled')"#
    )
    .execute(pool)
    .await?;
    let paid = sqlx::query!(
        r#"select w.id, o.event_id from order_swap w join "order" n on n.id = w.to_order join "order" o on o.id = w.from_order
           where w.done_at is null and w.dropped_at is null and n.state = 'confirmed'
             and exists (select from attempt a where a.order_id = n.id and a.state = 'captured')
           order by w.created_at limit $1"#,
        ROUND
    )
    .fetch_all(pool)
    .await?;
    let mut done = 0;
    for swap in paid {
        let mut tx = db::event_tx(pool, swap.event_id).await?;
        match give_up(&mut tx, swap.id).await {
            Ok(gave_up) => {
                tx.commit().await?;
                done += usize::from(gave_up);
            }
            // One that can't be done (a person has to look) holds no other up.
            Err(error) => {
                tracing::error!(swap.id = %swap.id, %error, "the old seats of an exchange could not be given up")
            }
        }
    }
    Ok(done)
}

/// The old seats are free, their tickets dead, and what they cost belongs to the new order. False: it was done before.
async fn give_up(tx: &mut Tx, swap_id: Uuid) -> Result<bool, ExchangeError> {
    let swap = sqlx::query!(
        r#"select w.from_order, w.to_order, w.from_seats, w.value_minor, w.surplus_minor, w.reason, w.actor,
                  o.event_id, o.currency, o.code as from_code, n.code as to_code
           from order_swap w join "order" o on o.id = w.from_order join "order" n on n.id = w.to_order where w.id = $1"#,
        swap_id
    )
    .fetch_one(&mut **tx)
    .await?;
    for order_id in [swap.to_order, swap.from_order] {
        sqlx::query!(r#"select id from "order" where id = $1 for no key update"#, order_id)
            .fetch_one(&mut **tx)
            .await?;
    }
    let now = clock::now(tx).await?;
    let ours = sqlx::query!("update order_swap set done_at = $2 where id = $1 and done_at is null", swap_id, now)
        .execute(&mut **tx)
        .await?;
    if ours.rows_affected() == 0 {
        return Ok(false);
    }
    free(tx, swap.event_id, swap.from_order, &swap.from_seats, now).await?;
    let credit = swap.value_minor - swap.surplus_minor;
    sqlx::query!(
        r#"update "order" set total_minor = total_minor - $2 where id = $1"#,
        swap.from_order,
        swap.value_minor
    )
    .execute(&mut **tx)
    .await?;
    if credit > 0 {
        sqlx::query!(
            "insert into tender (id, order_id, kind, amount_minor, created_at) values ($1, $2, 'exchange', $3, $4)",
            Uuid::now_v7(),
            swap.from_order,
            -credit,
            now
        )
        .execute(&mut **tx)
        .await?;
    }
    if swap.surplus_minor > 0 {
        let (order, surplus) = (swap.from_order, swap.surplus_minor);
        refund::give_back_difference(tx, order, &swap.currency, surplus, "exchange", now).await?;
    }
    for (order_id, other) in [(swap.from_order, &swap.to_code), (swap.to_order, &swap.from_code)] {
        let said = format!("seats {:?} exchanged with order {other}: {}", swap.from_seats, swap.reason);
        log::note(tx, order_id, "exchange", &said, &swap.actor, now).await?;
    }
    Ok(true)
}

async fn free(tx: &mut Tx, event_id: i64, order_id: Uuid, seats: &[i32], now: DateTime<Utc>) -> sqlx::Result<()> {
    let freed = sqlx::query!(
        "update event_seat set status = 0, order_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and status = 2 and order_id = $3 returning seat_no, version",
        event_id,
        seats,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let ended = sqlx::query!(
        "update order_line set state = 'exchanged' where order_id = $1 and seat_no = any($2) and state = 'sold' and refunded_minor = 0",
        order_id,
        seats
    )
    .execute(&mut **tx)
    .await?
    .rows_affected();
    if freed.len() != seats.len() || ended != seats.len() as u64 {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats given up", freed.len(), seats.len())));
    }
    ticket::void(tx, order_id, Some(seats), "exchanged", now).await?;
    let changes: Vec<SeatChange> = freed
        .into_iter()
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Available, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}
