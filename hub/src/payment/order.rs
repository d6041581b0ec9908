//! An order that is paid: how everything begins that takes seats or money from it.
//!
//! Locks in order: the event, the order; what else is locked comes after them.

use sqlx::PgPool;
use uuid::Uuid;

use super::attempt;
use crate::db::{self, Tx};

/// The event of an order, whose lock a verb has to take. None: there is no such order.
pub async fn event_of(pool: &PgPool, order_id: Uuid) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!(r#"select event_id from "order" where id = $1"#, order_id).fetch_optional(pool).await
}

/// A transaction under the lock of the order's event, and that event. None: there is no such order.
pub async fn open(pool: &PgPool, order_id: Uuid) -> sqlx::Result<Option<(Tx, i64)>> {
    let Some(event_id) = event_of(pool, order_id).await? else { return Ok(None) };
    Ok(Some((db::event_tx(pool, event_id).await?, event_id)))
}

/// An order, locked.
#[derive(Debug)]
pub struct Locked {
    pub id: Uuid,
    pub state: String,
    pub currency: String,
    pub buyer_id: Uuid,
    pub channel: String,
}

/// Locks the order, before its attempts, as everywhere.
pub async fn lock(tx: &mut Tx, order_id: Uuid) -> sqlx::Result<Locked> {
    sqlx::query_as!(
        Locked,
        r#"select id, state, currency, buyer_id, channel from "order" where id = $1 for no key update"#,
        order_id
    )
    .fetch_one(&mut **tx)
    .await
}

/// Why nothing can be taken from an order now.
#[derive(Debug, thiserror::Error)]
pub enum Unpaid {
    /// Its money is on its way still: in a moment it can be given back.
    #[error("attempt {0} is under way")]
    AttemptLive(Uuid),
    /// Not sold, or given back already.
    #[error("the order is {0}")]
    State(String),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Locked {
    /// A partner owes for it, or for a part of it.
    pub async fn is_on_account(&self, tx: &mut Tx) -> sqlx::Result<bool> {
        sqlx::query_scalar!(
            r#"select exists(select from tender where order_id = $1 and kind = 'account') as "on_account!""#,
            self.id
        )
        .fetch_one(&mut **tx)
        .await
    }

    /// It is sold, and no money of it is under way.
    pub async fn is_paid(&self, tx: &mut Tx) -> Result<(), Unpaid> {
        if let Some(id) = attempt::live(tx, self.id).await? {
            return Err(Unpaid::AttemptLive(id));
        }
        if self.state != "confirmed" {
            return Err(Unpaid::State(self.state.clone()));
        }
        Ok(())
    }
}

/// Its seats cost so much more now; below 0: less. What it was paid with another order is never more than it costs.
pub async fn cost_more(tx: &mut Tx, order_id: Uuid, difference_minor: i64) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update "order" set total_minor = total_minor + $2, credit_minor = least(credit_minor, total_minor + $2)
           where id = $1"#,
        order_id,
        difference_minor
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The key was used for another request.
#[derive(Debug, thiserror::Error)]
#[error("the key was used for another request")]
pub struct KeyReused;

/// What the same request did before, if its key was used: `before` is what it was (by its hash) and what it did.
pub fn same<T>(before: Option<(Vec<u8>, T)>, body_hash: &[u8]) -> Result<Option<T>, KeyReused> {
    match before {
        Some((hash, done)) if hash == body_hash => Ok(Some(done)),
        Some(_) => Err(KeyReused),
        None => Ok(None),
    }
}
