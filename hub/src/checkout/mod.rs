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

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rand::Rng;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    clock,
    db::{self, Tx},
    mail,
    outbox::{self, SeatChange},
    seat_map::SeatNo,
    ticket,
};

pub mod view; // orders as their buyers see them
pub mod log; // what people did to an order
pub mod find; // an order, by whatever somebody has

/// Letters and digits that can't be taken for one another when they are read out.
pub const CODE_ALPHABET: &[u8; 31] = b"23456789ABCDEFGHJKLMNPQRSTUVWXY";

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

/// What is to be priced.
#[derive(Debug, Clone)]
pub struct Basket {
    pub hold_id: Uuid,
    pub buyer_id: Uuid,
    /// The ticket type of a seat; a seat that is not named gets the first of its price level.
    pub ticket_types: HashMap<SeatNo, String>,
    pub channel: Channel,
    pub actor: String,
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
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The largest amount that a provider takes at once (`order_total_bounded`).
const TOTAL_MINOR_MAX: i64 = 99_999_999;

#[derive(Debug, PartialEq, Eq)]
struct Line {
    seat_no: Option<SeatNo>,
    ticket_type: Option<String>,
    fee_code: Option<String>,
    amount_minor: i64,
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
        let order_id = price_in(&mut tx, event_id, &basket).await?;
        tx.commit().await?;
        Ok(order_id)
    })
    .await
}

async fn price_in(tx: &mut Tx, event_id: i64, basket: &Basket) -> Result<Uuid, CheckoutError> {
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
    insert(tx, event_id, basket, &lines, now).await
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
    if let Some(seat_no) = basket.ticket_types.keys().copied().find(|s| !seats.contains(s)) {
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
            amount_minor: price.amount_minor,
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

async fn insert(
    tx: &mut Tx,
    event_id: i64,
    basket: &Basket,
    lines: &[Line],
    now: DateTime<Utc>,
) -> Result<Uuid, CheckoutError> {
    let id = Uuid::now_v7();
    let code: String = {
        let mut rng = rand::rng();
        (0..8).map(|_| char::from(CODE_ALPHABET[rng.random_range(0..CODE_ALPHABET.len())])).collect()
    };
    let total: i64 = lines.iter().map(|l| l.amount_minor).sum();
    sqlx::query!(
        r#"insert into "order" (id, code, event_id, buyer_id, hold_id, currency, total_minor, channel, actor, created_at,
                                refund_policy, tax_name)
           select $1, $2, e.id, $4, $5, e.currency, $6, $7, $8, $9, e.refund_policy, e.tax_name from event e where e.id = $3"#,
        id,
        code,
        event_id,
        basket.buyer_id,
        basket.hold_id,
        total,
        basket.channel.name(),
        basket.actor,
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
    Ok(id)
}

/// What pays for an order that is to be confirmed.
#[derive(Debug, Clone)]
pub enum Tendered {
    /// Authorised: amount and currency as the provider says them. Valid once it is captured.
    Card { attempt_id: Uuid, amount_minor: i64, currency: String },
    /// In the drawer.
    Cash { received_minor: i64 },
    /// Given away, with a reason; also whatever costs nothing.
    Comp { reason: String },
    /// Nothing more: all of it was paid with another order.
    Exchanged,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    pub event_id: i64,
    pub seats: Vec<SeatNo>,
    pub now: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    #[error("there is no such order")]
    OrderUnknown,
    /// Confirmed already, or cancelled.
    #[error("the order is {0}")]
    OrderNotOpen(String),
    /// Whoever has the seats now, it is not this hold; they are never taken again for this order.
    #[error("the hold has ended")]
    HoldEnded,
    #[error("the amount is not the order's total")]
    AmountMismatch,
    #[error("the attempt is {0}")]
    AttemptNotAuthorised(String),
    /// It may still take the money: it ends first, whatever else is offered.
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    /// By a payment of another order of the same hold.
    #[error("a payment for these seats is under way")]
    HoldFrozen,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Sells an order that costs nothing: no provider is asked. Asked again, it is no error.
pub async fn claim(pool: PgPool, order_id: Uuid, buyer_id: Uuid) -> Result<(), ConfirmError> {
    db::write(async move {
        let order = sqlx::query!(
            r#"select event_id, state, total_minor from "order" where id = $1 and buyer_id = $2"#,
            order_id,
            buyer_id
        )
        .fetch_optional(&pool)
        .await?
        .ok_or(ConfirmError::OrderUnknown)?;
        if order.total_minor != 0 {
            return Err(ConfirmError::AmountMismatch);
        }
        if order.state == "confirmed" {
            return Ok(());
        }
        let mut tx = db::event_tx(&pool, order.event_id).await?;
        let free = Tendered::Comp { reason: "free of charge".to_owned() };
        match confirm(&mut tx, order_id, free, "buyer").await {
            Ok(_) => Ok(tx.commit().await?),
            // A second click came here while the first was selling.
            Err(ConfirmError::OrderNotOpen(state)) if state == "confirmed" => Ok(()),
            Err(error) => Err(error),
        }
    })
    .await
}

/// Sells the seats of an order, in the caller's transaction, which was opened by [`db::event_tx`].
///
/// A refusal writes nothing, so that the caller may go on in the same transaction and write down
/// what becomes of the money.
pub async fn confirm(tx: &mut Tx, order_id: Uuid, tendered: Tendered, actor: &str) -> Result<Confirmed, ConfirmError> {
    let order = sqlx::query!(
        r#"select event_id, hold_id, state, currency, total_minor - credit_minor as "due_minor!", credit_minor
           from "order" where id = $1 for no key update"#,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ConfirmError::OrderUnknown)?;
    if let Tendered::Card { attempt_id, .. } = &tendered {
        let attempt = sqlx::query!(
            "select state from attempt where id = $1 and order_id = $2 for no key update",
            attempt_id,
            order_id
        )
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(ConfirmError::OrderUnknown)?;
        if attempt.state != "authorised" {
            return Err(ConfirmError::AttemptNotAuthorised(attempt.state));
        }
    }
    // An attempt is opened under the same locks: whoever comes second sees the other.
    let ours = if let Tendered::Card { attempt_id, .. } = &tendered { Some(*attempt_id) } else { None };
    let live = sqlx::query_scalar!(
        "select id from attempt where order_id = $1 and id is distinct from $2
           and state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded') limit 1",
        order_id,
        ours
    )
    .fetch_optional(&mut **tx)
    .await?;
    let hold = sqlx::query!(
        "select seat_nos, state, held_until, attempt_id from hold where id = $1 for no key update",
        order.hold_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let now = clock::now(tx).await?;
    if order.state != "open" {
        return Err(ConfirmError::OrderNotOpen(order.state));
    }
    if let Some(live) = live {
        return Err(ConfirmError::AttemptLive(live));
    }
    if hold.attempt_id.is_some() && hold.attempt_id != ours {
        return Err(ConfirmError::HoldFrozen);
    }
    let pays = match &tendered {
        Tendered::Card { amount_minor, currency, .. } => {
            *amount_minor == order.due_minor && *currency == order.currency
        }
        Tendered::Cash { received_minor } => *received_minor >= order.due_minor,
        Tendered::Comp { reason } => !reason.trim().is_empty() && order.credit_minor == 0,
        Tendered::Exchanged => order.due_minor == 0 && order.credit_minor > 0,
    };
    if !pays {
        return Err(ConfirmError::AmountMismatch);
    }
    let seats: Vec<SeatNo> = open_lines(tx, order_id).await?.into_iter().filter_map(|line| line.seat_no).collect();
    let ours = sqlx::query_scalar!(
        r#"select count(*) as "count!" from event_seat
           where event_id = $1 and seat_no = any($2) and hold_id = $3 and status = 1"#,
        order.event_id,
        &seats,
        order.hold_id
    )
    .fetch_one(&mut **tx)
    .await?;
    if hold.state != "live" || hold.held_until <= now || hold.seat_nos != seats || ours != seats.len() as i64 {
        return Err(ConfirmError::HoldEnded);
    }

    // From here on everything must succeed, or the transaction fails as a whole.
    sell(tx, order.event_id, order.hold_id, order_id, &seats, now).await?;
    sqlx::query!(
        r#"update "order" set state = 'confirmed', confirmed_at = $2, actor = $3 where id = $1"#,
        order_id,
        now,
        actor
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!("update order_line set state = 'sold' where order_id = $1 and state = 'open'", order_id)
        .execute(&mut **tx)
        .await?;
    let card = matches!(tendered, Tendered::Card { .. });
    record_tender(tx, order_id, order.due_minor, tendered, now).await?;
    if order.credit_minor > 0 {
        sqlx::query!(
            "insert into tender (id, order_id, kind, amount_minor, created_at) values ($1, $2, 'exchange', $3, $4)",
            Uuid::now_v7(),
            order_id,
            order.credit_minor,
            now
        )
        .execute(&mut **tx)
        .await?;
    }
    let state = if card { ticket::State::Pending } else { ticket::State::Valid };
    ticket::issue(tx, order_id, order.event_id, &seats, state, now).await?;
    if !card {
        mail::enqueue(tx, mail::Kind::Tickets, order_id, "").await?; // a card's tickets go out once they are paid
    }
    Ok(Confirmed { event_id: order.event_id, seats, now })
}

/// Seats, their hold and their outbox row; the event's lock is held.
async fn sell(
    tx: &mut Tx,
    event_id: i64,
    hold_id: Uuid,
    order_id: Uuid,
    seats: &[SeatNo],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let sold = sqlx::query!(
        "update event_seat set status = 2, order_id = $4, hold_id = null, held_until = null, version = version + 1
         where event_id = $1 and seat_no = any($2) and hold_id = $3 and status = 1
         returning seat_no, version",
        event_id,
        seats,
        hold_id,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let ended = sqlx::query!(
        "update hold set state = 'bought', ended_at = $2, attempt_id = null, version = version + 1
         where id = $1 and state = 'live'",
        hold_id,
        now
    )
    .execute(&mut **tx)
    .await?
    .rows_affected();
    if sold.len() != seats.len() || ended != 1 {
        return Err(sqlx::Error::Protocol(format!("{} of {} seats sold, {ended} hold ended", sold.len(), seats.len())));
    }
    let changes: Vec<SeatChange> = sold
        .into_iter()
        .map(|s| SeatChange {
            seat_no: s.seat_no,
            status: fullhouse_protocol::seat::Status::Sold,
            version: s.version,
            held_until: None,
        })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// A card's tender was written when its attempt began; the others are written here.
async fn record_tender(
    tx: &mut Tx,
    order_id: Uuid,
    due_minor: i64,
    tendered: Tendered,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (kind, received, reason) = match tendered {
        Tendered::Card { .. } | Tendered::Exchanged => return Ok(()),
        Tendered::Cash { received_minor } => ("cash", Some(received_minor), None),
        Tendered::Comp { reason } => ("comp", None, Some(reason)),
    };
    sqlx::query!(
        "insert into tender (id, order_id, kind, amount_minor, received_minor, reason, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
        Uuid::now_v7(),
        order_id,
        kind,
        due_minor,
        received,
        reason,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
