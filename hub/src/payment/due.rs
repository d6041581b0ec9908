//! Orders whose seats were sold and whose money could not be had: paid again in time, or the seats go back.
//!
//! Who bought on the page pays again there; of who bought at a till, any counter takes cash or a card. A card's attempt
//! is opened like any other (`attempt::open`).
//!
//! Invariants
//! - While a payment by card lives, nobody pays in cash and nobody gives the order up.
//! - Cash that was taken beside the card goes back with the seats: over the counter at once, or it is owed.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    attempt, order, owed,
    seats_back::{self, SeatsBecome},
};
use crate::{
    auth::Actor,
    checkout::log,
    clock,
    db::{self, Tx},
    mail, ticket,
};

const ORDERS_MAX: i64 = 100;

/// Releases what was not paid again in time. Returns how many orders.
pub async fn release(pool: &PgPool) -> sqlx::Result<usize> {
    let due = sqlx::query!(
        r#"select id, event_id from "order" where state = 'payment_due' and payment_due_until <= (select db_clock())
           order by payment_due_until limit $1"#,
        ORDERS_MAX
    )
    .fetch_all(pool)
    .await?;
    let mut released = 0;
    for order in due {
        let mut tx = db::event_tx(pool, order.event_id).await?;
        released += usize::from(release_one(&mut tx, order.event_id, order.id).await?);
        tx.commit().await?;
    }
    Ok(released)
}

async fn release_one(tx: &mut Tx, event_id: i64, order_id: Uuid) -> sqlx::Result<bool> {
    let order =
        sqlx::query!(r#"select state, payment_due_until from "order" where id = $1 for no key update"#, order_id)
            .fetch_one(&mut **tx)
            .await?;
    // An attempt that lives decides first: it is looked at again when it has.
    let live = attempt::own_live(tx, order_id).await?.is_some();
    let now = clock::now(tx).await?;
    if live || order.state != "payment_due" || order.payment_due_until.is_none_or(|until| until > now) {
        return Ok(false);
    }
    give_back(tx, event_id, order_id, SeatsBecome::OnSale, "not_paid", Cash::Owed, now).await?;
    tracing::info!(order.id = %order_id, "an order was not paid again in time; its seats went back");
    Ok(true)
}

#[derive(Debug, thiserror::Error)]
pub enum DueError {
    #[error("there is no such order")]
    OrderUnknown,
    /// Nothing is due of it (any more).
    #[error("the order is {0}")]
    NotDue(String),
    /// It decides first.
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    #[error("the cash does not pay {due_minor} {currency}")]
    TooLittleCash { due_minor: i64, currency: String },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

struct Due {
    state: String,
    currency: String,
    due_minor: i64,
    until: Option<DateTime<Utc>>,
}

async fn lock(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Due> {
    sqlx::query_as!(
        Due,
        r#"select state, currency, order_due_minor(o) as "due_minor!", payment_due_until as until
           from "order" o where id = $1 for no key update"#,
        order_id
    )
    .fetch_one(&mut **tx)
    .await
}

/// An order that is due is paid in cash over the counter. Returns the change, in minor units. Told again with the same
/// cash at the same terminal, it has been paid.
pub async fn pay_in_cash(pool: &PgPool, order_id: Uuid, received_minor: i64, actor: &Actor) -> Result<i64, DueError> {
    let (pool, actor) = (pool.clone(), actor.clone());
    db::write(async move {
        let (mut tx, _) = order::open(&pool, order_id).await?.ok_or(DueError::OrderUnknown)?;
        actor.acts(&mut tx).await?;
        let order = lock(&mut tx, order_id).await?;
        if order.state == "confirmed"
            && let Some(change_minor) = was_paid_so(&mut tx, order_id, received_minor).await?
        {
            return Ok(change_minor);
        }
        if let Some(id) = attempt::live(&mut tx, order_id).await? {
            return Err(DueError::AttemptLive(id));
        }
        let now = clock::now(&mut tx).await?;
        if order.state != "payment_due" || order.until.is_none_or(|until| until <= now) {
            return Err(DueError::NotDue(order.state));
        }
        if received_minor < order.due_minor {
            return Err(DueError::TooLittleCash { due_minor: order.due_minor, currency: order.currency });
        }
        sqlx::query!(
            "insert into tender (id, order_id, kind, amount_minor, received_minor, created_at) values ($1, $2, 'cash', $3, $4, $5)",
            Uuid::now_v7(),
            order_id,
            order.due_minor,
            received_minor,
            now
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            r#"update "order" set state = 'confirmed', payment_due_until = null, actor = $2 where id = $1"#,
            order_id,
            actor.name()
        )
        .execute(&mut *tx)
        .await?;
        ticket::make_valid(&mut tx, order_id).await?;
        mail::enqueue(&mut tx, mail::Kind::Tickets, order_id, "").await?;
        log::note(&mut tx, order_id, "note", "paid in cash after its card could not be charged", actor.name(), now).await?;
        tx.commit().await?;
        Ok(received_minor - order.due_minor)
    })
    .await
}

/// The change, if the order was paid with this cash at this terminal, and nothing beside it. The same sum in another
/// drawer is another customer's, or a second time this one's.
async fn was_paid_so(tx: &mut Tx, order_id: Uuid, received_minor: i64) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!(
        r#"select received_minor - amount_minor as "change!" from tender
           where order_id = $1 and kind = 'cash' and attempt_id is null and received_minor = $2
             and terminal_id is not distinct from acting_terminal()"#,
        order_id,
        received_minor
    )
    .fetch_optional(&mut **tx)
    .await
}

/// The order of a hold that is due, if there is one.
pub async fn of_hold(pool: &PgPool, hold_id: Uuid, buyer_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        r#"select id from "order" where hold_id = $1 and buyer_id = $2 and state = 'payment_due'"#,
        hold_id,
        buyer_id
    )
    .fetch_optional(pool)
    .await
}

/// Nobody will pay: the seats become what somebody says, before the time is over. Returns what goes back over the
/// counter. An order that is over already is no error.
pub async fn give_up(
    pool: &PgPool,
    order_id: Uuid,
    become_: SeatsBecome,
    reason: &str,
    actor: &Actor,
) -> Result<i64, DueError> {
    let (pool, reason, actor) = (pool.clone(), reason.to_owned(), actor.clone());
    db::write(async move {
        let (mut tx, event_id) = order::open(&pool, order_id).await?.ok_or(DueError::OrderUnknown)?;
        actor.acts(&mut tx).await?;
        let order = lock(&mut tx, order_id).await?;
        if let Some(id) = attempt::live(&mut tx, order_id).await? {
            return Err(DueError::AttemptLive(id));
        }
        match order.state.as_str() {
            "payment_due" => {}
            "cancelled" => return Ok(handed_back(&mut tx, order_id).await?),
            _ => return Err(DueError::NotDue(order.state)),
        }
        let now = clock::now(&mut tx).await?;
        let cash = if actor.is_at_terminal() { Cash::HandedBack } else { Cash::Owed };
        let back_minor = give_back(&mut tx, event_id, order_id, become_, "not_paid", cash, now).await?;
        log::note(&mut tx, order_id, "cancel", &reason, actor.name(), now).await?;
        tx.commit().await?;
        Ok(if cash == Cash::HandedBack { back_minor } else { 0 })
    })
    .await
}

/// What becomes of the cash that was taken beside the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cash {
    /// The customer stands at the counter.
    HandedBack,
    /// Nobody is there to take it: on people's list until somebody has handed it over.
    Owed,
}

/// All seats go back, and the order is over. Returns the cash that goes back with them. The order is locked, and no
/// attempt of it lives.
pub(super) async fn give_back(
    tx: &mut Tx,
    event_id: i64,
    order_id: Uuid,
    become_: SeatsBecome,
    why: &str,
    cash: Cash,
    now: DateTime<Utc>,
) -> sqlx::Result<i64> {
    let seats = sqlx::query_scalar!(
        r#"select seat_no as "seat_no!" from order_line where order_id = $1 and state = 'sold' and seat_no is not null"#,
        order_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let taken = seats_back::Taken { event_id, order_id, seats: &seats, why };
    seats_back::take_back(tx, taken, become_, "not paid", "fullhouse", now).await?;
    sqlx::query!("update order_line set state = 'void' where order_id = $1 and state = 'sold'", order_id)
        .execute(&mut **tx)
        .await?;
    seats_back::close_if_empty(tx, order_id, why).await?;
    cash_back(tx, order_id, cash, why, now).await
}

async fn cash_back(tx: &mut Tx, order_id: Uuid, cash: Cash, why: &str, now: DateTime<Utc>) -> sqlx::Result<i64> {
    let back = sqlx::query_scalar!(
        "insert into refund (id, tender_id, kind, amount_minor, state, failure, reason, created_at, settled_at)
         select gen_random_uuid(), id, 'cash', amount_minor - refunded_minor,
                case when $2 then 'succeeded' else 'failed' end, case when not $2 then $5::text end, $3, $4, $4
         from tender where order_id = $1 and attempt_id is not null and amount_minor > refunded_minor
         returning amount_minor",
        order_id,
        cash == Cash::HandedBack,
        why,
        now,
        owed::CASH_OWED
    )
    .fetch_all(&mut **tx)
    .await?;
    Ok(back.iter().sum())
}

/// Of an order that is over: the cash beside its card that was handed back at this terminal. Another one hands out
/// nothing more.
async fn handed_back(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select coalesce(sum(r.amount_minor), 0)::bigint as "back!" from refund r join tender t on t.id = r.tender_id
           where t.order_id = $1 and t.attempt_id is not null and r.kind = 'cash' and r.state = 'succeeded'
             and r.terminal_id is not distinct from acting_terminal()"#,
        order_id
    )
    .fetch_one(&mut **tx)
    .await
}
