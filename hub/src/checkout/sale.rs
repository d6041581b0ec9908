//! An order becomes sold seats: the one path there.
//!
//! Invariants
//! - A hold is confirmed only if it is alive by the database's clock, asked after the locks are taken.
//! - An order is confirmed once. While a payment of it lives, nothing else pays for it.
//!
//! Locks in order: the event, the order, its attempt, the hold, the seats.

use chrono::{DateTime, Utc};
use fullhouse_protocol::seat::Status;
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
    let order = sqlx::query!(
        r#"select event_id, hold_id, state, currency, order_due_minor(o) as "due_minor!", credit_minor
           from "order" o where id = $1 for no key update"#,
        order_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(ConfirmError::OrderUnknown)?;
    let mut cash_minor = 0; // beside the card
    if let Tendered::Card { attempt_id, .. } = &tendered {
        let attempt = sqlx::query!(
            "select state, cash_minor from attempt where id = $1 and order_id = $2 for no key update",
            attempt_id,
            order_id
        )
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(ConfirmError::OrderUnknown)?;
        if attempt.state != "authorised" {
            return Err(ConfirmError::AttemptNotAuthorised(attempt.state));
        }
        cash_minor = attempt.cash_minor;
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
            *amount_minor + cash_minor == order.due_minor && *currency == order.currency
        }
        Tendered::Cash { received_minor } => *received_minor >= order.due_minor,
        Tendered::Comp { reason } => !reason.trim().is_empty() && order.credit_minor == 0,
        Tendered::Exchanged => order.due_minor == 0 && order.credit_minor > 0,
    };
    if !pays {
        return Err(ConfirmError::AmountMismatch);
    }
    let seats: Vec<SeatNo> = sqlx::query_scalar!(
        r#"select seat_no as "seat_no!" from order_line where order_id = $1 and seat_no is not null order by seat_no"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
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
    match tickets {
        None => ticket::issue(tx, order_id, order.event_id, &seats, state, now).await?,
        Some(made) => ticket::issue_made(tx, order_id, order.event_id, made, state, now).await?,
    }
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
        .map(|s| SeatChange { seat_no: s.seat_no, status: Status::Sold, version: s.version, held_until: None })
        .collect();
    outbox::append(tx, event_id, now, &changes).await
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

/// A card's own tender was written when its attempt began; the others are written here.
async fn record_tender(
    tx: &mut Tx,
    order_id: Uuid,
    due_minor: i64,
    tendered: Tendered,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (kind, received, reason) = match tendered {
        Tendered::Card { attempt_id, .. } => return take_cash_beside(tx, attempt_id, now).await,
        Tendered::Exchanged => return Ok(()),
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
