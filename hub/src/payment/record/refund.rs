//! Refunds of an attempt, as they are written down.
//!
//! Invariants
//! - What goes back can't be more than came (`attempt_refund_within_capture`).
//! - A refund changes by [`machine::counts`] only (`refund_never_goes_back`), and one that was replaced not at all.
//! - News of it are done with only by a look that was begun after them.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::Row;
use crate::{
    db::Tx,
    payment::machine::{self, RefundState, Said, Strays},
};

/// Why a refund gives back what was taken as a whole: it was not taken in our currency, so that no amount of ours says
/// how much. Our books have it as what was asked for.
pub const IN_ANOTHER_CURRENCY: &str = "captured_in_another_currency";

#[derive(Debug, Clone)]
pub struct RefundRow {
    pub id: Uuid,
    pub amount_minor: i64,
    /// All that was taken goes back, whatever its currency.
    pub whole: bool,
    pub provider_id: Option<String>,
    /// The provider has it: it is only asked about.
    pub asked_for: bool,
    /// When there was news of it, if there is some.
    pub look_at: Option<DateTime<Utc>>,
}

/// The refund that is to be seen to next: what was not asked for yet, then news, then those on their way, in turn.
pub async fn to_see_to(pool: &PgPool, attempt_id: Uuid) -> sqlx::Result<Option<RefundRow>> {
    sqlx::query_as!(
        RefundRow,
        r#"select id, amount_minor, reason = $2 as "whole!", provider_id, state <> 'pending' as "asked_for!", look_at
           from refund where attempt_id = $1 and (state in ('pending', 'accepted') or look_at is not null)
           order by state <> 'pending', look_at nulls last, asked_at nulls first, created_at limit 1"#,
        attempt_id,
        IN_ANOTHER_CURRENCY
    )
    .fetch_optional(pool)
    .await
}

/// Writes down that `amount_minor` is to go back. `attempt_refund_within_capture` says that it can't be more than came.
pub async fn new_refund(
    tx: &mut Tx,
    row: &Row,
    amount_minor: i64,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "update attempt set captured_minor = greatest(captured_minor, $2) where id = $1",
        row.id,
        amount_minor
    )
    .execute(&mut **tx)
    .await?;
    sqlx::query!(
        "insert into refund (id, attempt_id, tender_id, amount_minor, state, reason, created_at)
         select $1, id, tender_id, $3, 'pending', $4, $5 from attempt where id = $2",
        id,
        row.id,
        amount_minor,
        reason,
        now
    )
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

/// What was learnt of a refund, and who says so.
#[derive(Debug)]
pub struct News<'a> {
    pub state: RefundState,
    pub said: Said,
    /// The provider's id.
    pub provider_id: Option<&'a str>,
    /// The provider's word for why not.
    pub failure: Option<&'a str>,
}

/// Writes down what became of a refund, if it counts. The attempt is locked. Says what it is now.
pub async fn update_refund(tx: &mut Tx, refund: &RefundRow, news: &News<'_>) -> sqlx::Result<RefundState> {
    let is = sqlx::query!(
        // What failed may turn out to be there only while its money was not given to another.
        r#"select r.state, (r.replaced_by is null
               and (r.state <> 'failed' or a.refunded_minor + r.amount_minor <= a.captured_minor)) as "open!"
           from refund r join attempt a on a.id = r.attempt_id where r.id = $1"#,
        refund.id
    )
    .fetch_one(&mut **tx)
    .await?;
    let state = RefundState::from_name(&is.state)
        .ok_or_else(|| sqlx::Error::Protocol(format!("no such state: {}", is.state)))?;
    let same = state == news.state;
    let counts = is.open && machine::counts(state, news.state, news.said);
    if !is.open && !same {
        tracing::error!(refund.id = %refund.id, refund.is = is.state, refund.becomes = news.state.name(),
            "a refund that failed, and whose money went back another way, is there after all");
    }
    let becomes = if counts { news.state } else { state };
    sqlx::query!(
        "update refund set state = $2, provider_id = coalesce($3, provider_id),
                failure = case when not $8 then failure when $2 = 'failed' then coalesce($4, failure) end,
                look_at = case when $9 and look_at is not distinct from $5 then null else look_at end, asked_at = db_clock(),
                looked_at = case when $6 then db_clock() else looked_at end,
                settled_at = case when $7 and state = $2 then coalesce(settled_at, db_clock()) when $7 then db_clock() end
         where id = $1",
        refund.id,
        becomes.name(),
        news.provider_id,
        news.failure,
        refund.look_at,
        news.said == Said::Look,
        matches!(becomes, RefundState::Succeeded | RefundState::Failed),
        counts || same,
        news.said != Said::Answer
    )
    .execute(&mut **tx)
    .await?;
    Ok(becomes)
}

/// Refunds of an attempt that was decided.
pub async fn strays(tx: &mut Tx, attempt_id: Uuid, now: DateTime<Utc>) -> sqlx::Result<Strays> {
    let found = sqlx::query!(
        r#"select count(*) filter (where state = 'failed') as "failed!",
                  coalesce(bool_or(state <> 'failed'), false)
                      or coalesce(bool_and(replaced_by is not null), false) as "seen_to!",
                  max(settled_at) filter (where state = 'failed') as failed_at
           from refund where attempt_id = $1"#,
        attempt_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let failed_for = found.failed_at.map_or(TimeDelta::zero(), |at| now - at);
    Ok(Strays { failed: found.failed, seen_to: found.seen_to, failed_for })
}

/// What failed is seen to by another: people are shown one of them.
pub async fn replace_failed(tx: &mut Tx, attempt_id: Uuid, by: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update refund set replaced_by = $2, look_at = null
         where id = (select id from refund where attempt_id = $1 and state = 'failed' and replaced_by is null and id <> $2
                     order by created_at desc, id desc limit 1)",
        attempt_id,
        by
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Whether more is to be seen to of the attempt's refunds, without waiting.
pub async fn has_refund_to_ask_for(tx: &mut Tx, attempt_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from refund where attempt_id = $1 and (state = 'pending' or look_at is not null)) as "has!""#,
        attempt_id
    )
    .fetch_one(&mut **tx)
    .await
}

/// Whether a refund of the attempt is on its way.
pub async fn has_refund_under_way(tx: &mut Tx, attempt_id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists(select from refund where attempt_id = $1 and state in ('pending', 'accepted')) as "has!""#,
        attempt_id
    )
    .fetch_one(&mut **tx)
    .await
}
