//! What a terminal sold from its lease becomes an order, at the prices of the lease: the seats are a walk-in customer's
//! hold for the length of a transaction, and then go the way of every other hold.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::{lease::SoldSeat, seat::Status};
use uuid::Uuid;

use super::{
    Channel,
    basket::{self, Basket, Line},
    sale::{self, ConfirmError, Tendered},
};
use crate::{
    auth::Actor,
    db::Tx,
    outbox::{self, SeatChange},
    seat_map::SeatNo,
    ticket,
};

/// Sold and paid for in cash, some time ago.
#[derive(Debug)]
pub struct LeasedSale<'a> {
    pub event_id: i64,
    pub terminal_id: Uuid,
    pub lease_id: Uuid,
    /// By number, at what the customer paid.
    pub seats: &'a [SoldSeat],
    /// What was printed for them, by number; none: the codes have died, and new ones are made.
    pub printed: Option<&'a [ticket::Made]>,
    pub actor: Actor,
}

/// Sells them, in the caller's transaction, which holds the event's lock and has seen that each seat is the lease's, or
/// lies blocked as its write-off left it.
pub async fn sell_leased(tx: &mut Tx, sold: &LeasedSale<'_>, now: DateTime<Utc>) -> Result<Uuid, ConfirmError> {
    let total_minor = sold.seats.iter().map(|s| s.amount_minor).sum();
    let (buyer_id, hold_id) = (Uuid::now_v7(), Uuid::now_v7());
    let basket = Basket {
        hold_id,
        buyer_id,
        ticket_types: HashMap::new(), // the lines are given
        prices: HashMap::new(),
        says_prices: false,
        channel: Channel::Counter,
        actor: sold.actor.clone(),
    };
    let lines: Vec<Line> = sold
        .seats
        .iter()
        .map(|s| Line {
            seat_no: Some(s.seat_no),
            ticket_type: Some(s.ticket_type.clone()),
            fee_code: None,
            amount_minor: s.amount_minor,
        })
        .collect();
    hold(tx, sold, &basket, now).await?;
    let order_id = basket::insert(tx, sold.event_id, &basket, &lines, now).await?;
    note_sold(tx, sold, order_id).await?;
    take_seats(tx, sold, hold_id, now).await?;
    let cash = Tendered::Cash { received_minor: total_minor };
    sale::confirm_with(tx, order_id, cash, sold.actor.name(), sold.printed).await?;
    if let Some(printed) = sold.printed {
        let ids: Vec<Uuid> = printed.iter().map(|m| m.ticket_id).collect();
        ticket::print::write_down_printed(tx, order_id, &ids, sold.actor.name(), now).await?;
    }
    Ok(order_id)
}

/// A buyer of their own, as at any counter, and a hold that ends before this transaction does.
async fn hold(tx: &mut Tx, sold: &LeasedSale<'_>, basket: &Basket, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!("insert into buyer (id, terminal_id) values ($1, $2)", basket.buyer_id, sold.terminal_id)
        .execute(&mut **tx)
        .await?;
    let seat_nos: Vec<SeatNo> = sold.seats.iter().map(|s| s.seat_no).collect();
    sqlx::query!(
        "insert into hold (id, event_id, buyer_id, seat_nos, held_until, seats_taken, created_at) values ($1, $2, $3, $4, $5, $6, $7)",
        basket.hold_id,
        sold.event_id,
        basket.buyer_id,
        &seat_nos,
        now + TimeDelta::minutes(1),
        seat_nos.len() as i32,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The lease lets go of them first: a seat's row can't leave it otherwise.
async fn note_sold(tx: &mut Tx, sold: &LeasedSale<'_>, order_id: Uuid) -> sqlx::Result<()> {
    let seat_nos: Vec<SeatNo> = sold.seats.iter().map(|s| s.seat_no).collect();
    let (from, to) = if sold.printed.is_some() { ("leased", "sold") } else { ("written_off", "resold") };
    let noted = sqlx::query!(
        "update lease_seat set state = $4, order_id = $5 where lease_id = $1 and seat_no = any($2) and state = $3",
        sold.lease_id,
        &seat_nos,
        from,
        to,
        order_id
    )
    .execute(&mut **tx)
    .await?;
    expect(noted.rows_affected(), seat_nos.len())
}

async fn take_seats(tx: &mut Tx, sold: &LeasedSale<'_>, hold_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<()> {
    let seat_nos: Vec<SeatNo> = sold.seats.iter().map(|s| s.seat_no).collect();
    let until = now + TimeDelta::minutes(1);
    let lease = sold.printed.is_some().then_some(sold.lease_id);
    let taken = sqlx::query!(
        "update event_seat set status = 1, hold_id = $3, held_until = $4, lease_id = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and status = 3 and lease_id is not distinct from $5
         returning seat_no, version",
        sold.event_id,
        &seat_nos,
        hold_id,
        until,
        lease
    )
    .fetch_all(&mut **tx)
    .await?;
    expect(taken.len() as u64, seat_nos.len())?;
    let change = |seat_no, version| SeatChange { seat_no, status: Status::Held, version, held_until: Some(until) };
    let changes: Vec<SeatChange> = taken.into_iter().map(|s| change(s.seat_no, s.version)).collect();
    outbox::append(tx, sold.event_id, now, &changes).await
}

fn expect(written: u64, expected: usize) -> sqlx::Result<()> {
    if written == expected as u64 {
        return Ok(());
    }
    Err(sqlx::Error::Protocol(format!("{written} of {expected} leased seats sold")))
}
