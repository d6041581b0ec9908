//! Refunds that the provider refused, or that failed later, and cash that nobody was there to take back: a person sees to
//! them.
//!
//! Invariants
//! - A refund that failed is replaced once (`replaced_by`), and stays on the list until then.
//! - What takes its place is counted like any other, by card or by hand, where the money came from: no more goes back
//!   than was captured (`attempt_refund_within_capture`), or taken (`tender_refund_within_amount`).
//! - What somebody gave back elsewhere takes the place of what failed before it explains anything else.

use chrono::{DateTime, Utc};
use fullhouse_protocol::money::Refund;
use sqlx::PgPool;
use uuid::Uuid;

use super::{order, refund::poke};
use crate::{
    auth::Actor,
    checkout::log,
    clock,
    db::{self, Tx},
};

/// Why cash was not handed back: its owner was not at the counter.
pub(super) const CASH_OWED: &str = "not_handed_over";

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
    /// Somebody has seen to it, and not in the way that is asked for now.
    #[error("refund {replaced_by} by {kind} has taken its place")]
    SeenToOtherwise { replaced_by: Uuid, kind: String },
    /// The rest went back already.
    #[error("{left_minor} are left to give back")]
    MoreThanIsLeft { left_minor: i64 },
    /// The provider says that more went back than we know of.
    #[error("the books were not compared since the provider refused it")]
    BooksNotCompared,
    /// It was cash: no card can be asked.
    #[error("it goes back by hand alone")]
    ByHandAlone,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Words by which the provider says that it has given back more than we know of: how much is owed by hand is known
/// when the books were compared.
const GIVEN_BACK_ELSEWHERE: [&str; 2] = ["amount_too_large", "charge_already_refunded"];

/// Sees to a refund that failed. Returns the refund that takes its place; asked again, the same one.
pub async fn retry(
    pool: &PgPool,
    refund_id: Uuid,
    instead: Instead,
    reason: String,
    actor: Actor,
) -> Result<Uuid, RetryError> {
    let pool = pool.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        actor.acts(&mut tx).await?;
        let id = retry_in(&mut tx, refund_id, instead, &reason, actor.name()).await?;
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
        "select r.attempt_id, r.tender_id, t.order_id from refund r join tender t on t.id = r.tender_id where r.id = $1",
        refund_id
    )
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(RetryError::RefundUnknown)?;
    order::lock(tx, found.order_id).await?;
    if let Some(attempt_id) = found.attempt_id {
        sqlx::query!("select id from attempt where id = $1 for no key update", attempt_id).fetch_one(&mut **tx).await?;
        cover_by_outside(tx, attempt_id).await?;
    }
    let failed = sqlx::query!(
        r#"select r.state, r.replaced_by, r.amount_minor, r.failure, r.settled_at, i.kind as "instead?"
           from refund r left join refund i on i.id = r.replaced_by where r.id = $1 for no key update of r"#,
        refund_id
    )
    .fetch_one(&mut **tx)
    .await?;
    if let (Some(replaced_by), Some(kind)) = (failed.replaced_by, failed.instead) {
        return if (kind == "card") == (instead == Instead::Card) {
            Ok(replaced_by)
        } else {
            Err(RetryError::SeenToOtherwise { replaced_by, kind })
        };
    }
    if failed.state != "failed" {
        return Err(RetryError::NotFailed(failed.state));
    }
    let by_hand = instead == Instead::ByHand;
    if found.attempt_id.is_none() && !by_hand {
        return Err(RetryError::ByHandAlone);
    }
    let left_minor = left_of(tx, found.attempt_id, found.tender_id).await?;
    if failed.amount_minor > left_minor {
        return Err(RetryError::MoreThanIsLeft { left_minor });
    }
    let elsewhere = failed.failure.as_deref().is_some_and(|word| GIVEN_BACK_ELSEWHERE.contains(&word));
    if elsewhere && by_hand && !compared_since(tx, failed.settled_at).await? {
        return Err(RetryError::BooksNotCompared);
    }
    let now = clock::now(tx).await?;
    let id = put_in_its_place(tx, refund_id, by_hand, now).await?;
    if let (true, Some(attempt_id)) = (by_hand, found.attempt_id) {
        sqlx::query!(
            "update attempt set state = 'refunded', version = version + 1, next_run_at = null where id = $1 and state = 'refund_failed'",
            attempt_id
        )
        .execute(&mut **tx)
        .await?;
    } else if let Some(attempt_id) = found.attempt_id {
        poke(tx, attempt_id, now).await?;
    }
    let how = if by_hand { "by hand" } else { "to the card once more" };
    log::note(tx, found.order_id, "refund", &format!("{} given back {how}: {reason}", failed.amount_minor), actor, now)
        .await?;
    Ok(id)
}

/// Another refund of the same money, which is asked for of the provider or has been handed over.
async fn put_in_its_place(tx: &mut Tx, refund_id: Uuid, by_hand: bool, now: DateTime<Utc>) -> sqlx::Result<Uuid> {
    let id = sqlx::query_scalar!(
        "insert into refund (id, attempt_id, tender_id, request_id, kind, amount_minor, state, reason, created_at, settled_at)
         select $2, attempt_id, tender_id, request_id, case when $3 then 'cash' else 'card' end,
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
    Ok(id)
}

/// What can still go back, where the money came from: a card's attempt, or cash in a drawer.
async fn left_of(tx: &mut Tx, attempt_id: Option<Uuid>, tender_id: Uuid) -> sqlx::Result<i64> {
    match attempt_id {
        Some(id) => {
            sqlx::query_scalar!(r#"select captured_minor - refunded_minor as "left!" from attempt where id = $1"#, id)
                .fetch_one(&mut **tx)
                .await
        }
        None => {
            sqlx::query_scalar!(
                r#"select amount_minor - refunded_minor as "left!" from tender where id = $1 for no key update"#,
                tender_id
            )
            .fetch_one(&mut **tx)
            .await
        }
    }
}

/// Refunds that somebody made elsewhere and that explain nothing yet take the place of those of this attempt that failed.
async fn cover_by_outside(tx: &mut Tx, attempt_id: Uuid) -> sqlx::Result<()> {
    let outside = sqlx::query!(
        "select id, amount_minor from refund
         where attempt_id = $1 and reason = 'outside' and request_id is null and state <> 'failed'
         order by created_at, id",
        attempt_id
    )
    .fetch_all(&mut **tx)
    .await?;
    for refund in outside {
        if let Some(failed) = to_cover(tx, attempt_id, refund.amount_minor).await? {
            cover(tx, failed, refund.id, refund.amount_minor).await?;
        }
    }
    Ok(())
}

/// A refund of the attempt that failed, that nobody has seen to, and that is owed so much or more.
pub(super) async fn to_cover(tx: &mut Tx, attempt_id: Uuid, amount_minor: i64) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select id from refund
         where attempt_id = $1 and kind = 'card' and state = 'failed' and replaced_by is null and amount_minor >= $2
         order by amount_minor, created_at, id limit 1 for no key update",
        attempt_id,
        amount_minor
    )
    .fetch_optional(&mut **tx)
    .await
}

/// Of what failed, `by` has given back so much: all of it, or a part; then the rest is owed.
pub(super) async fn cover(tx: &mut Tx, failed: Uuid, by: Uuid, amount_minor: i64) -> sqlx::Result<()> {
    sqlx::query!(
        "update refund b set request_id = f.request_id, reason = 'outside_instead' from refund f where b.id = $2 and f.id = $1",
        failed,
        by
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        "update refund set replaced_by = case when amount_minor = $3 then $2::uuid end,
                amount_minor = case when amount_minor = $3 then amount_minor else amount_minor - $3 end
         where id = $1",
        failed,
        by,
        amount_minor
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Whether the books were read to their end by a run that began after this.
async fn compared_since(tx: &mut Tx, at: Option<DateTime<Utc>>) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from reconciliation_run where ok and ($1::timestamptz is null or started_at > $1)) as "compared!""#,
        at
    )
    .fetch_one(&mut **tx)
    .await
}

/// A refund as it is now.
pub async fn one(pool: &PgPool, refund_id: Uuid) -> sqlx::Result<Refund> {
    sqlx::query_as!(
        Refund,
        "select id, kind, amount_minor, state, failure, replaced_by from refund where id = $1",
        refund_id
    )
    .fetch_one(pool)
    .await
}
