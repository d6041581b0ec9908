//! The new seats of a swap: a hold and an order like any other, but without fees, and with a credit.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    checkout,
    db::Tx,
    hold::aside,
    payment::pairs::{ExchangeError, NewSeat},
};

pub struct Buyer {
    pub event_id: i64,
    pub buyer_id: Uuid,
    pub from_order: Uuid,
}

/// Nobody has more than the event's limit for it. Seats that are given up for others of the same event count once: their
/// buyer can have one or the other, never both.
pub async fn limit(
    tx: &mut Tx,
    buyer: Buyer,
    new: usize,
    given_up: usize,
    seat_limit: i32,
) -> Result<(), ExchangeError> {
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
pub async fn hold(
    tx: &mut Tx,
    event_id: i64,
    buyer_id: Uuid,
    seats: &[NewSeat],
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let seat_nos: Vec<i32> = seats.iter().map(|s| s.seat_no).collect();
    aside::set_aside(tx, event_id, buyer_id, &seat_nos, now, until).await
}

pub struct New<'a> {
    pub event_id: i64,
    pub buyer_id: Uuid,
    pub hold_id: Uuid,
    pub currency: &'a str,
    pub total: i64,
    pub credit: i64,
}

/// Fees were paid with the old order; an exchange costs what the seats do.
pub async fn insert_order(
    tx: &mut Tx,
    new: &New<'_>,
    channel: &str,
    actor: &str,
    seats: &[NewSeat],
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        r#"insert into "order" (id, code, event_id, buyer_id, hold_id, currency, total_minor, credit_minor, channel, actor, created_at, refund_policy, tax_name)
           select $1, $2, e.id, $4, $5, $6, $7, $8, $9, $10, $11, e.refund_policy, e.tax_name from event e where e.id = $3"#,
        id,
        checkout::new_code(),
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
