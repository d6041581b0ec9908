//! Seats put aside for a customer under a name, until a time of their own.
//!
//! Invariants
//! - It is a hold: one owner a seat, and what runs out is free by the database's clock, with nobody's help.
//! - A clerk puts aside as many as one buyer may have; a supervisor as many as a group needs.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::box_office::{CustomerHold, CustomerHoldRequest};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    free::{self, NotFree},
    walk_in,
};
use crate::{
    auth::{Actor, Deed},
    checkout::log,
    clock,
    db::{self, Tx},
    hold::aside::{self, LetGoError},
    seat_map::SeatSet,
};

/// Shorter is a sale.
const SHORTEST: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, thiserror::Error)]
pub enum CustomerHoldError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event is cancelled")]
    EventCancelled,
    /// Over before it begins, or after the event does.
    #[error("it may end until {latest}")]
    UntilInvalid { latest: DateTime<Utc> },
    #[error(transparent)]
    NotFree(#[from] NotFree),
    #[error("one buyer may have {limit}")]
    LimitReached { limit: i32 },
    #[error("the key was used for another request")]
    KeyReused,
    #[error("there is no such hold for a customer")]
    Unknown,
    #[error("{made_by} made it")]
    SomebodyElses { made_by: String },
    #[error(transparent)]
    LetGo(#[from] LetGoError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Who puts seats aside.
#[derive(Debug, Clone)]
pub struct By {
    pub terminal_id: Uuid,
    pub actor: Actor,
    pub staff_id: Option<Uuid>,
    /// Of a supervisor: more than one buyer's limit, and other people's holds.
    pub supervises: bool,
}

/// Puts seats aside. The same key again finds the same hold.
pub async fn put_aside(
    pool: PgPool,
    by: By,
    key: String,
    seats: SeatSet,
    asked: CustomerHoldRequest,
) -> Result<CustomerHold, CustomerHoldError> {
    let buyer_id = walk_in(pool.clone(), by.terminal_id, &format!("customer {key}")).await?;
    db::write(async move {
        if !event_exists(&pool, asked.event_id).await? {
            return Err(CustomerHoldError::EventUnknown);
        }
        let mut tx = db::event_tx(&pool, asked.event_id).await?;
        by.actor.acts(&mut tx).await?;
        if let Some(before) = of_buyer(&mut tx, buyer_id).await? {
            let same = before.event_id == asked.event_id
                && before.seats == seats.as_slice()
                && before.name == asked.name
                && before.note == asked.note
                && before.until == asked.until;
            return if same { Ok(before) } else { Err(CustomerHoldError::KeyReused) };
        }
        let now = check(&mut tx, &by, &seats, &asked).await?;
        let hold_id = aside::set_aside(&mut tx, asked.event_id, buyer_id, seats.as_slice(), now, asked.until).await?;
        sqlx::query!(
            "insert into customer_hold (hold_id, buyer_id, event_id, name, note, made_by, terminal_id, made_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
            hold_id,
            buyer_id,
            asked.event_id,
            asked.name,
            asked.note,
            by.actor.name(),
            by.terminal_id,
            now
        )
        .execute(&mut *tx)
        .await?;
        let names = log::named(&mut tx, asked.event_id, seats.as_slice()).await?;
        let detail = format!("{} seats until {}: {names}", seats.as_slice().len(), asked.until);
        let why = if asked.note.is_empty() { "for a customer" } else { asked.note.as_str() };
        let deed = Deed { verb: "customer_hold", event_id: Some(asked.event_id), detail: &detail, reason: why };
        by.actor.writes(&mut tx, deed, now).await?;
        let made = of_buyer(&mut tx, buyer_id).await?.ok_or(CustomerHoldError::Unknown)?;
        tx.commit().await?;
        Ok(made)
    })
    .await
}

async fn event_exists(pool: &PgPool, event_id: i64) -> sqlx::Result<bool> {
    sqlx::query_scalar!(r#"select exists(select from event where id = $1) as "exists!""#, event_id)
        .fetch_one(pool)
        .await
}

/// That it may be, by the time that it returns.
async fn check(
    tx: &mut Tx,
    by: &By,
    seats: &SeatSet,
    asked: &CustomerHoldRequest,
) -> Result<DateTime<Utc>, CustomerHoldError> {
    let event =
        sqlx::query!("select sale_state, starts_at, seat_limit from event where id = $1 for share", asked.event_id)
            .fetch_one(&mut **tx)
            .await?;
    let now = clock::now(tx).await?;
    if event.sale_state == "cancelled" {
        return Err(CustomerHoldError::EventCancelled);
    }
    if asked.until < now + SHORTEST || asked.until > event.starts_at {
        return Err(CustomerHoldError::UntilInvalid { latest: event.starts_at });
    }
    if !by.supervises && seats.as_slice().len() > event.seat_limit as usize {
        return Err(CustomerHoldError::LimitReached { limit: event.seat_limit });
    }
    free::named(tx, asked.event_id, seats, now).await?;
    Ok(now)
}

/// What waits for somebody at an event, or everywhere; by name.
pub async fn list(pool: &PgPool, event_id: Option<i64>) -> sqlx::Result<Vec<CustomerHold>> {
    sqlx::query_as!(
        CustomerHold,
        r#"select c.hold_id, c.buyer_id, c.event_id, h.seat_nos as seats, c.name, c.note, h.held_until as until, c.made_by, c.made_at
           from customer_hold c join hold h on h.id = c.hold_id
           where h.state = 'live' and h.held_until > db_clock() and ($1::bigint is null or c.event_id = $1)
           order by lower(c.name), c.made_at limit 1000"#,
        event_id
    )
    .fetch_all(pool)
    .await
}

async fn of_buyer(tx: &mut Tx, buyer_id: Uuid) -> sqlx::Result<Option<CustomerHold>> {
    sqlx::query_as!(
        CustomerHold,
        r#"select c.hold_id, c.buyer_id, c.event_id, h.seat_nos as seats, c.name, c.note, h.held_until as until, c.made_by, c.made_at
           from customer_hold c join hold h on h.id = c.hold_id
           where c.buyer_id = $1"#,
        buyer_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// Lets seats go before their time: whoever put them aside, or a supervisor. Those that went already are no error.
pub async fn release(pool: PgPool, by: By, hold_id: Uuid, reason: String) -> Result<(), CustomerHoldError> {
    db::write(async move {
        let found = sqlx::query!(
            "select c.event_id, c.staff_id, c.made_by, h.seat_nos
             from customer_hold c join hold h on h.id = c.hold_id where c.hold_id = $1",
            hold_id
        )
        .fetch_optional(&pool)
        .await?
        .ok_or(CustomerHoldError::Unknown)?;
        if by.staff_id.is_some() && found.staff_id != by.staff_id && !by.supervises {
            return Err(CustomerHoldError::SomebodyElses { made_by: found.made_by });
        }
        let mut tx = db::event_tx(&pool, found.event_id).await?;
        by.actor.acts(&mut tx).await?;
        match aside::let_go(&mut tx, found.event_id, hold_id).await {
            Err(LetGoError::Ended) => return Ok(()),
            done => done?,
        }
        let now = clock::now(&mut tx).await?;
        let names = log::named(&mut tx, found.event_id, &found.seat_nos).await?;
        let detail = format!("{} seats: {names}", found.seat_nos.len());
        let event_id = Some(found.event_id);
        let deed = Deed { verb: "customer_release", event_id, detail: &detail, reason: &reason };
        by.actor.writes(&mut tx, deed, now).await?;
        tx.commit().await?;
        Ok(())
    })
    .await
}
