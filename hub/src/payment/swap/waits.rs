//! New seats that wait to be paid, while their buyer stands at a counter: after a card that was declined they pay in
//! cash, or leave it.

use sqlx::PgPool;
use uuid::Uuid;

use super::{credit_is_good, done, unsold};
use crate::{
    auth::Actor,
    checkout::{self, ConfirmError, Tendered},
    db,
    payment::{due::DueError, order, pairs::ExchangeError},
};

/// The order of new seats that are not paid yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub buyer_id: Uuid,
    pub hold_id: Uuid,
}

/// Whether an order is of an exchange that waits to be paid.
pub async fn waiting(pool: &PgPool, order_id: Uuid) -> sqlx::Result<Option<Waiting>> {
    sqlx::query_as!(
        Waiting,
        r#"select n.buyer_id, n.hold_id from order_swap w join "order" n on n.id = w.to_order
           where n.id = $1 and n.state = 'open' and w.done_at is null and w.dropped_at is null"#,
        order_id
    )
    .fetch_optional(pool)
    .await
}

/// What the new seats cost more is paid in cash over the counter: they are sold and the old ones given up, in one
/// transaction. Returns the change, in minor units. None: no exchange waits there.
pub async fn pay_in_cash(
    pool: &PgPool,
    to_order: Uuid,
    received_minor: i64,
    actor: &Actor,
) -> Result<Option<i64>, DueError> {
    let (pool, actor) = (pool.clone(), actor.clone());
    db::write(async move {
        let Some(swap) = sqlx::query!(
            r#"select w.id, o.event_id as from_event, n.event_id as to_event
               from order_swap w join "order" o on o.id = w.from_order join "order" n on n.id = w.to_order
               where w.to_order = $1 and w.done_at is null and w.dropped_at is null and n.state = 'open'"#,
            to_order
        )
        .fetch_optional(&pool)
        .await?
        else {
            return Ok(None);
        };
        let mut tx = db::event_tx(&pool, swap.from_event.min(swap.to_event)).await?;
        if swap.from_event != swap.to_event {
            db::lock_event(&mut tx, swap.from_event.max(swap.to_event)).await?;
        }
        actor.acts(&mut tx).await?;
        order::lock(&mut tx, to_order).await?;
        let order = sqlx::query!(
            r#"select order_due_minor(o) as "due_minor!", currency from "order" o where id = $1"#,
            to_order
        )
        .fetch_one(&mut *tx)
        .await?;
        if received_minor < order.due_minor {
            return Err(DueError::TooLittleCash { due_minor: order.due_minor, currency: order.currency });
        }
        if !credit_is_good(&mut tx, to_order).await? {
            return Err(DueError::NotDue("of an exchange that is over".to_owned()));
        }
        match checkout::confirm(&mut tx, to_order, Tendered::Cash { received_minor }, actor.name()).await {
            Ok(_) => {}
            Err(ConfirmError::AttemptLive(id)) => return Err(DueError::AttemptLive(id)),
            Err(ConfirmError::OrderNotOpen(state)) => return Err(DueError::NotDue(state)),
            Err(ConfirmError::HoldEnded) => return Err(DueError::NotDue("over".to_owned())),
            Err(other) => return Err(unsold(other).into()),
        }
        done::give_up(&mut tx, swap.id).await.map_err(|error| match error {
            ExchangeError::Database(error) => error,
            other => sqlx::Error::Protocol(format!("the old seats could not be given up: {other}")),
        })?;
        tx.commit().await?;
        Ok(Some(received_minor - order.due_minor))
    })
    .await
}
