//! An order becomes sold seats: the one path there.
//!
//! Invariants
//! - A hold is confirmed only if it is alive by the database's clock, asked after the locks are taken.
//! - An order is confirmed once. While a payment of it lives, nothing else pays for it.
//!
//! Locks in order: the event, the order, its attempt, the hold, its voucher, the seats.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
use sqlx::PgPool;
use uuid::Uuid;

use super::voucher::{self, VoucherRefusal};
use crate::{
    clock,
    db::{self, Tx},
    mail,
    outbox::{self, SeatChange},
    seat_map::SeatNo,
    ticket,
};

/// What pays for an order that is to be confirmed.
#[derive(Debug, Clone)]
pub enum Tendered {
    /// Authorised: amount and currency as the provider says them. Valid once it is captured.
    Card { attempt_id: Uuid, amount_minor: i64, currency: String },
    /// In the drawer.
    Cash { received_minor: i64 },
    /// Given away, with a reason; also whatever costs nothing.
    Comp { reason: String },
    /// Given away beforehand: to whoever brings a voucher.
    Voucher { voucher_id: Uuid },
    /// Owed by the partner of this name, whose order it is.
    Account { partner: String },
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
    Voucher(#[from] VoucherRefusal),
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
    confirm_with(tx, order_id, tendered, actor, None).await
}

/// [`confirm`], with tickets that exist already, one for each seat, in the order of their numbers.
pub(super) async fn confirm_with(
    tx: &mut Tx,
    order_id: Uuid,
    tendered: Tendered,
    actor: &str,
    tickets: Option<&[ticket::Made]>,
) -> Result<Confirmed, ConfirmError> {
    let order = lock_order(tx, order_id).await?;
    let card = match &tendered {
        Tendered::Card { attempt_id, .. } => Some(lock_card(tx, order_id, *attempt_id).await?),
        _ => None,
    };
    let live = other_attempt(tx, order_id, card.as_ref().map(|card| card.attempt_id)).await?;
    let hold = lock_hold(tx, order.hold_id).await?;
    let now = clock::now(tx).await?;
    if order.state != "open" {
        return Err(ConfirmError::OrderNotOpen(order.state));
    }
    if let Some(live) = live {
        return Err(ConfirmError::AttemptLive(live));
    }
    if hold.attempt_id.is_some() && hold.attempt_id != card.as_ref().map(|card| card.attempt_id) {
        return Err(ConfirmError::HoldFrozen);
    }
    if !order.is_paid_by(&tendered, card.as_ref().map_or(0, |card| card.cash_minor)) {
        return Err(ConfirmError::AmountMismatch);
    }
    let seats = seats_of(tx, order_id).await?;
    let owned = owned(tx, &order, &seats).await?;
    if hold.state != "live" || hold.held_until <= now || hold.seat_nos != seats || owned != seats.len() as i64 {
        return Err(ConfirmError::HoldEnded);
    }
    if let Tendered::Voucher { voucher_id } = &tendered {
        voucher::lock(tx, *voucher_id, order.event_id, seats.len(), now).await?;
    }

    // From here on everything must succeed, or the transaction fails as a whole.
    sell(tx, order.event_id, order.hold_id, order_id, &seats, now).await?;
    close_order(tx, order_id, actor, now).await?;
    record_tenders(tx, order_id, &order, tendered, now).await?;
    let state = if card.is_some() { ticket::State::Pending } else { ticket::State::Valid };
    match tickets {
        None => ticket::issue(tx, order_id, order.event_id, &seats, state, now).await?,
        Some(made) => ticket::issue_made(tx, order_id, order.event_id, made, state, now).await?,
    }
    if card.is_none() {
        mail::enqueue(tx, mail::Kind::Tickets, order_id, "").await?; // a card's tickets go out once they are paid
    }
    Ok(Confirmed { event_id: order.event_id, seats, now })
}

struct Order {
    event_id: i64,
    hold_id: Uuid,
    state: String,
    currency: String,
    due_minor: i64,
    credit_minor: i64,
}

impl Order {
    /// `beside_minor`: the cash beside a card.
    fn is_paid_by(&self, tendered: &Tendered, beside_minor: i64) -> bool {
        match tendered {
            Tendered::Card { amount_minor, currency, .. } => {
                *amount_minor + beside_minor == self.due_minor && *currency == self.currency
            }
            Tendered::Cash { received_minor } => *received_minor >= self.due_minor,
            Tendered::Comp { reason } => !reason.trim().is_empty() && self.credit_minor == 0,
            Tendered::Voucher { .. } | Tendered::Account { .. } => self.credit_minor == 0,
            Tendered::Exchanged => self.due_minor == 0 && self.credit_minor > 0,
        }
    }
}

async fn lock_order(tx: &mut Tx, order_id: Uuid) -> Result<Order, ConfirmError> {
    sqlx::query_as!(
        Order,
        r#"select event_id, hold_id, state, currency, order_due_minor(o) as "due_minor!", credit_minor
           from "order" o where id = $1 for no key update"#,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ConfirmError::OrderUnknown)
}

struct Card {
    attempt_id: Uuid,
    cash_minor: i64,
}

/// A card that has said yes.
async fn lock_card(tx: &mut Tx, order_id: Uuid, attempt_id: Uuid) -> Result<Card, ConfirmError> {
    let attempt = sqlx::query!(
        "select state, cash_minor from attempt where id = $1 and order_id = $2 for no key update",
        attempt_id,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ConfirmError::OrderUnknown)?;
    if attempt.state == "authorised" {
        Ok(Card { attempt_id, cash_minor: attempt.cash_minor })
    } else {
        Err(ConfirmError::AttemptNotAuthorised(attempt.state))
    }
}

/// An attempt of the order that lives, and is not ours. One is opened under the same locks: whoever comes second sees
/// the other.
async fn other_attempt(tx: &mut Tx, order_id: Uuid, ours: Option<Uuid>) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select id from attempt where order_id = $1 and id is distinct from $2
           and state not in ('declined', 'voided', 'captured', 'capture_failed', 'refunded') limit 1",
        order_id,
        ours
    )
    .fetch_optional(&mut **tx)
    .await
}

struct Hold {
    seat_nos: Vec<SeatNo>,
    state: String,
    held_until: DateTime<Utc>,
    attempt_id: Option<Uuid>,
}

async fn lock_hold(tx: &mut Tx, hold_id: Uuid) -> sqlx::Result<Hold> {
    sqlx::query_as!(
        Hold,
        "select seat_nos, state, held_until, attempt_id from hold where id = $1 for no key update",
        hold_id
    )
    .fetch_one(&mut **tx)
    .await
}

async fn seats_of(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Vec<SeatNo>> {
    sqlx::query_scalar!(
        r#"select seat_no as "seat_no!" from order_line where order_id = $1 and seat_no is not null order by seat_no"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await
}

/// How many of the seats the order's hold has.
async fn owned(tx: &mut Tx, order: &Order, seats: &[SeatNo]) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from event_seat
           where event_id = $1 and seat_no = any($2) and hold_id = $3 and status = 1"#,
        order.event_id,
        seats,
        order.hold_id
    )
    .fetch_one(&mut **tx)
    .await
}

async fn close_order(tx: &mut Tx, order_id: Uuid, actor: &str, now: DateTime<Utc>) -> sqlx::Result<()> {
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
    Ok(())
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
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Sold, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
}

/// What pays for the order. A card's own tender was written when its attempt began.
async fn record_tenders(
    tx: &mut Tx,
    order_id: Uuid,
    order: &Order,
    tendered: Tendered,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    match tendered {
        Tendered::Card { attempt_id, .. } => take_cash_beside(tx, attempt_id, now).await?,
        Tendered::Cash { received_minor } => {
            record(tx, order_id, "cash", order.due_minor, Some(received_minor), None, now).await?;
        }
        Tendered::Comp { reason } => record(tx, order_id, "comp", order.due_minor, None, Some(reason), now).await?,
        Tendered::Voucher { voucher_id } => voucher::record(tx, voucher_id, order_id, order.due_minor, now).await?,
        Tendered::Account { partner } => {
            record(tx, order_id, "account", order.due_minor, None, Some(partner), now).await?
        }
        Tendered::Exchanged => {}
    }
    if order.credit_minor > 0 {
        record(tx, order_id, "exchange", order.credit_minor, None, None, now).await?;
    }
    Ok(())
}

async fn record(
    tx: &mut Tx,
    order_id: Uuid,
    kind: &str,
    amount_minor: i64,
    received_minor: Option<i64>,
    reason: Option<String>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into tender (id, order_id, kind, amount_minor, received_minor, reason, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
        Uuid::now_v7(),
        order_id,
        kind,
        amount_minor,
        received_minor,
        reason,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A card has paid its part: the cash beside it, if there is any, goes into the drawer of the terminal at which the
/// payment was begun, which has stayed open for it (`shift_waits_for_cash`).
pub async fn take_cash_beside(tx: &mut Tx, attempt_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into tender (id, order_id, kind, amount_minor, received_minor, created_at, attempt_id, terminal_id, staff_id)
         select $2, a.order_id, 'cash', a.cash_minor, a.cash_minor, $3, a.id, t.terminal_id, t.staff_id
         from attempt a join tender t on t.id = a.tender_id where a.id = $1 and a.cash_minor > 0",
        attempt_id,
        Uuid::now_v7(),
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}
