//! Refunds that the provider refused, or that failed later: a person sees to them.
//!
//! Invariants
//! - A refund that failed is replaced once (`replaced_by`), and stays on the list until then.
//! - What takes its place is counted like any other: no more goes back than came.

use sqlx::PgPool;
use uuid::Uuid;

use super::refund::poke;
use crate::{
    checkout::log,
    clock,
    db::{self, Tx},
};

/// How the money of a refund that failed is given back after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// The provider is asked once more, under another key.
    Card,
    /// Somebody has handed it over, or sent it by the bank.
    ByHand,
}

#[derive(Debug, thiserror::Error)]
pub enum RetryError {
    #[error("there is no such refund")]
    RefundUnknown,
    /// It has not failed, or was seen to already.
    #[error("the refund is {0}")]
    NotFailed(String),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Sees to a refund that failed. Returns the refund that takes its place; asked again, the same one.
pub async fn retry(
    pool: &PgPool,
    refund_id: Uuid,
    instead: Instead,
    reason: String,
    actor: String,
) -> Result<Uuid, RetryError> {
    let pool = pool.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        let id = retry_in(&mut tx, refund_id, instead, &reason, &actor).await?;
        tx.commit().await?;
        Ok(id)
    })
    .await
}

/// [`retry`] in the caller's transaction.
pub async fn retry_in(
    tx: &mut Tx,
    refund_id: Uuid,
    instead: Instead,
    reason: &str,
    actor: &str,
) -> Result<Uuid, RetryError> {
    let found = sqlx::query!(
        "select r.attempt_id, t.order_id from refund r join tender t on t.id = r.tender_id where r.id = $1",
        refund_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(RetryError::RefundUnknown)?;
    sqlx::query!(r#"select id from "order" where id = $1 for no key update"#, found.order_id)
        .fetch_one(&mut **tx)
        .await?;
    if let Some(attempt_id) = found.attempt_id {
        sqlx::query!("select id from attempt where id = $1 for no key update", attempt_id).fetch_one(&mut **tx).await?;
    }
    let failed =
        sqlx::query!("select state, replaced_by, amount_minor from refund where id = $1 for no key update", refund_id)
            .fetch_one(&mut **tx)
            .await?;
    if let Some(replaced_by) = failed.replaced_by {
        return Ok(replaced_by);
    }
    let (Some(attempt_id), "failed") = (found.attempt_id, failed.state.as_str()) else {
        return Err(RetryError::NotFailed(failed.state));
    };
    let now = clock::now(tx).await?;
    let by_hand = instead == Instead::ByHand;
    let id = sqlx::query_scalar!(
        "insert into refund (id, attempt_id, tender_id, request_id, kind, amount_minor, state, reason, created_at, settled_at)
         select $2, case when $3 then null else attempt_id end, tender_id, request_id, case when $3 then 'cash' else 'card' end,
                amount_minor, case when $3 then 'succeeded' else 'pending' end, reason, $4::timestamptz,
                case when $3 then $4::timestamptz end
         from refund where id = $1 returning id",
        refund_id,
        Uuid::now_v7(),
        by_hand,
        now
    )
    .fetch_one(&mut **tx)
    .await?;
    sqlx::query!("update refund set replaced_by = $2 where id = $1", refund_id, id).execute(&mut **tx).await?;
    if by_hand {
        sqlx::query!(
            "update attempt set state = 'refunded', version = version + 1, next_run_at = null where id = $1 and state = 'refund_failed'",
            attempt_id
        )
        .execute(&mut **tx)
        .await?;
    } else {
        poke(tx, attempt_id, now).await?;
    }
    let how = if by_hand { "by hand" } else { "to the card once more" };
    log::note(tx, found.order_id, "refund", &format!("{} given back {how}: {reason}", failed.amount_minor), actor, now)
        .await?;
    Ok(id)
}
