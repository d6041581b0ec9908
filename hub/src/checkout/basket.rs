//! A hold becomes a priced order.
//!
//! Invariants
//! - The same basket finds the same order; another takes its place, unless a payment is under way.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::Channel;
use crate::{
    auth::{Actor, Deed},
    clock,
    db::{self, Tx},
    seat_map::SeatNo,
};

/// What is to be priced.
#[derive(Debug, Clone)]
pub struct Basket {
    pub hold_id: Uuid,
    pub buyer_id: Uuid,
    /// The ticket type of a seat; a seat that is not named gets the first of its price level.
    pub ticket_types: HashMap<SeatNo, String>,
    /// Prices that staff say instead of the list's.
    pub prices: HashMap<SeatNo, OtherPrice>,
    /// Whoever asks may say them. Who may not repeats what was said of this hold by somebody who may.
    pub says_prices: bool,
    pub channel: Channel,
    pub actor: Actor,
}

/// A price that is not the list's, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherPrice {
    pub amount_minor: i64,
    pub reason: String,
}

#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error("the buyer has no such hold")]
    HoldUnknown,
    #[error("the hold has ended")]
    HoldEnded,
    #[error("a payment is under way")]
    HoldFrozen,
    #[error("the event is cancelled")]
    EventCancelled,
    /// As many pay as may at once (`checkouts_live_max` of its waiting room).
    #[error("the event is full of checkouts")]
    EventFull,
    #[error("seat {seat_no} is not part of the hold")]
    SeatNotHeld { seat_no: SeatNo },
    #[error("there is no ticket type {ticket_type:?} for seat {seat_no}")]
    TicketTypeUnknown { seat_no: SeatNo, ticket_type: String },
    /// Nothing can be paid that costs so much.
    #[error("the order costs {total_minor}")]
    TotalTooLarge { total_minor: i64 },
    #[error("nobody who may has said this price of seat {seat_no}")]
    PriceNotSaid { seat_no: SeatNo },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The largest amount that a provider takes at once (`order_total_bounded`).
const TOTAL_MINOR_MAX: i64 = 99_999_999;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub seat_no: Option<SeatNo>,
    pub ticket_type: Option<String>,
    pub fee_code: Option<String>,
    pub amount_minor: i64,
}

/// Prices a live hold. The same basket again finds the same order; another one replaces it.
pub async fn price(pool: PgPool, basket: Basket) -> Result<Uuid, CheckoutError> {
    db::write(async move {
        let event_id = sqlx::query_scalar!(
            "select event_id from hold where id = $1 and buyer_id = $2",
            basket.hold_id,
            basket.buyer_id
        )
        .fetch_optional(&pool)
        .await?
        .ok_or(CheckoutError::HoldUnknown)?;
        let mut tx = db::event_tx(&pool, event_id).await?;
        basket.actor.acts(&mut tx).await?;
        let order_id = price_in(&mut tx, event_id, &basket).await?;
        tx.commit().await?;
        Ok(order_id)
    })
    .await
}

/// [`price`], in the caller's transaction, which holds the event's lock.
pub(super) async fn price_in(tx: &mut Tx, event_id: i64, basket: &Basket) -> Result<Uuid, CheckoutError> {
    let open = sqlx::query!(
        r#"select id, credit_minor from "order" where hold_id = $1 and state = 'open' for no key update"#,
        basket.hold_id
    )
    .fetch_optional(&mut **tx)
    .await?;
    let hold = sqlx::query!(
        "select seat_nos, state, held_until, attempt_id from hold where id = $1 for no key update",
        basket.hold_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let now = clock::now(tx).await?;
    if hold.state != "live" || hold.held_until <= now {
        return Err(CheckoutError::HoldEnded);
    }
    if !basket.says_prices && !basket.prices.is_empty() {
        check_said(tx, open.as_ref().map(|open| open.id), basket).await?;
    }
    let lines = lines(tx, event_id, basket, &hold.seat_nos).await?;
    let total_minor = lines.iter().map(|l| l.amount_minor).sum();
    if total_minor > TOTAL_MINOR_MAX {
        return Err(CheckoutError::TotalTooLarge { total_minor });
    }
    if let Some(open) = open {
        if open.credit_minor > 0 {
            return Ok(open.id); // an exchange's: what it is for was agreed on
        }
        if open_lines(tx, open.id).await? == lines {
            return Ok(open.id);
        }
        if hold.attempt_id.is_some() {
            return Err(CheckoutError::HoldFrozen);
        }
        sqlx::query!(r#"update "order" set state = 'cancelled', cancel_reason = 'replaced' where id = $1"#, open.id)
            .execute(&mut **tx)
            .await?;
    } else if basket.channel == Channel::Web {
        check_room(tx, event_id, now).await?;
    }
    Ok(insert(tx, event_id, basket, &lines, now).await?)
}

/// A price is said once for a hold, by whoever may; the clerk then sells at it.
async fn check_said(tx: &mut Tx, open: Option<Uuid>, basket: &Basket) -> Result<(), CheckoutError> {
    let said = sqlx::query!(
        r#"select seat_no as "seat_no!", amount_minor, price_reason as "reason!" from order_line
           where order_id = $1 and seat_no is not null and price_reason is not null"#,
        open
    )
    .fetch_all(&mut **tx)
    .await?;
    let is_said = |seat_no: SeatNo, price: &OtherPrice| {
        said.iter().any(|s| s.seat_no == seat_no && s.amount_minor == price.amount_minor && s.reason == price.reason)
    };
    match basket.prices.iter().find(|(seat_no, price)| !is_said(**seat_no, price)) {
        Some((seat_no, _)) => Err(CheckoutError::PriceNotSaid { seat_no: *seat_no }),
        None => Ok(()),
    }
}

/// Whether one more may check out. Exact: the event's lock is held.
async fn check_room(tx: &mut Tx, event_id: i64, now: DateTime<Utc>) -> Result<(), CheckoutError> {
    let full = sqlx::query_scalar!(
        r#"select (select count(*) from "order" o join hold h on h.id = o.hold_id
                   where h.event_id = $1 and h.state = 'live' and h.held_until > $2 and o.state = 'open' and o.channel = 'web')
                  >= l.checkouts_live_max as "full!"
           from line l where l.event_id = $1 and l.checkouts_live_max is not null"#,
        event_id,
        now
    )
    .fetch_optional(&mut **tx)
    .await?;
    if full == Some(true) { Err(CheckoutError::EventFull) } else { Ok(()) }
}

/// Seats by number, then fees by code: the order in which [`open_lines`] reads them back.
async fn lines(tx: &mut Tx, event_id: i64, basket: &Basket, seats: &[SeatNo]) -> Result<Vec<Line>, CheckoutError> {
    let named = basket.ticket_types.keys().chain(basket.prices.keys());
    if let Some(seat_no) = named.copied().find(|s| !seats.contains(s)) {
        return Err(CheckoutError::SeatNotHeld { seat_no });
    }
    let event = sqlx::query!("select sale_state from event where id = $1", event_id).fetch_one(&mut **tx).await?;
    if event.sale_state == "cancelled" {
        return Err(CheckoutError::EventCancelled);
    }
    let prices = sqlx::query!(
        "select s.seat_no, p.ticket_type, p.amount_minor
         from event_seat s join price p on p.event_id = s.event_id and p.level = s.level
         where s.event_id = $1 and s.seat_no = any($2) order by s.seat_no, p.position, p.ticket_type",
        event_id,
        seats
    )
    .fetch_all(&mut **tx)
    .await?;
    let mut lines = Vec::with_capacity(seats.len() + 2);
    for &seat_no in seats {
        let asked = basket.ticket_types.get(&seat_no);
        let price =
            prices.iter().find(|p| p.seat_no == seat_no && asked.is_none_or(|t| *t == p.ticket_type)).ok_or_else(
                || CheckoutError::TicketTypeUnknown { seat_no, ticket_type: asked.cloned().unwrap_or_default() },
            )?;
        lines.push(Line {
            seat_no: Some(seat_no),
            ticket_type: Some(price.ticket_type.clone()),
            fee_code: None,
            amount_minor: basket.prices.get(&seat_no).map_or(price.amount_minor, |other| other.amount_minor),
        });
    }
    // Fees of the booking are the web's and the kiosk's; at the counter the price is the price.
    if basket.channel != Channel::Counter {
        let fees =
            sqlx::query!("select code, basis, amount_minor from fee where event_id = $1 order by code", event_id)
                .fetch_all(&mut **tx)
                .await?;
        let free = lines.iter().all(|l| l.amount_minor == 0);
        for fee in fees.into_iter().filter(|_| !free) {
            let times = if fee.basis == "seat" { seats.len() as i64 } else { 1 };
            lines.push(Line {
                seat_no: None,
                ticket_type: None,
                fee_code: Some(fee.code),
                amount_minor: fee.amount_minor * times,
            });
        }
    }
    Ok(lines)
}

async fn open_lines(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<Line>> {
    sqlx::query_as!(
        Line,
        "select seat_no, ticket_type, fee_code, amount_minor from order_line
         where order_id = $1 order by seat_no nulls last, fee_code",
        order_id
    )
    .fetch_all(&mut **tx)
    .await
}

pub(super) async fn insert(
    tx: &mut Tx,
    event_id: i64,
    basket: &Basket,
    lines: &[Line],
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    let total: i64 = lines.iter().map(|l| l.amount_minor).sum();
    sqlx::query!(
        r#"insert into "order" (id, code, event_id, buyer_id, hold_id, currency, total_minor, channel, actor, created_at,
                                refund_policy, tax_name)
           select $1, $2, e.id, $4, $5, e.currency, $6, $7, $8, $9, e.refund_policy, e.tax_name from event e where e.id = $3"#,
        id,
        super::new_code(),
        event_id,
        basket.buyer_id,
        basket.hold_id,
        total,
        basket.channel.name(),
        basket.actor.name(),
        now
    )
    .execute(&mut **tx)
    .await?;
    let seats: Vec<Option<i32>> = lines.iter().map(|l| l.seat_no).collect();
    let types: Vec<Option<String>> = lines.iter().map(|l| l.ticket_type.clone()).collect();
    let fees: Vec<Option<String>> = lines.iter().map(|l| l.fee_code.clone()).collect();
    let amounts: Vec<i64> = lines.iter().map(|l| l.amount_minor).collect();
    sqlx::query!(
        "insert into order_line (order_id, event_id, seat_no, ticket_type, fee_code, amount_minor, tax_milli_percent)
         select $1, $2, u.seat_no, u.ticket_type, u.fee_code, u.amount_minor,
                (select tax_milli_percent from event where id = $2)
         from unnest($3::int[], $4::text[], $5::text[], $6::bigint[]) as u(seat_no, ticket_type, fee_code, amount_minor)",
        id,
        event_id,
        &seats as &[Option<i32>],
        &types as &[Option<String>],
        &fees as &[Option<String>],
        &amounts
    )
    .execute(&mut **tx)
    .await?;
    if !basket.prices.is_empty() {
        explain_prices(tx, id, basket, now).await?;
    }
    Ok(id)
}

/// Each line with a price of its own keeps the list's beside it, and why; the log names who said so.
async fn explain_prices(tx: &mut Tx, order_id: Uuid, basket: &Basket, now: DateTime<Utc>) -> sqlx::Result<()> {
    for (seat_no, other) in &basket.prices {
        let line = sqlx::query!(
            r#"update order_line l set price_reason = $3, list_minor = p.amount_minor
               from event_seat s join price p on p.event_id = s.event_id and p.level = s.level, "order" o
               where l.order_id = $1 and l.seat_no = $2 and o.id = l.order_id and s.event_id = l.event_id
                 and s.seat_no = l.seat_no and p.ticket_type = l.ticket_type
               returning o.code, o.event_id, o.currency, p.amount_minor as list_minor"#,
            order_id,
            seat_no,
            other.reason
        )
        .fetch_one(&mut **tx)
        .await?;
        let detail = format!(
            "order {}, seat {seat_no}: {} instead of {} {}",
            line.code, other.amount_minor, line.list_minor, line.currency
        );
        let deed =
            Deed { verb: "price_override", event_id: Some(line.event_id), detail: &detail, reason: &other.reason };
        basket.actor.writes(tx, deed, now).await?;
    }
    Ok(())
}
