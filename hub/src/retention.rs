//! What is forgotten: a person who asks to be, and what others said of them in their own words.
//!
//! Invariants
//! - Books stay whole: orders, amounts, tickets and prints are kept; who bought them is not.
//! - Nobody is forgotten while they have something to come to, or money under way.
//! - By themselves people are forgotten some time after the last event that they had tickets or an order for, and only
//!   if they have not been here since. Looking once more forgets nobody twice.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{config, db, metrics::Metrics};

const DAY: Duration = Duration::from_secs(86_400);
/// Rows that one statement touches: nobody waits long for their locks.
const ROWS_MAX: i64 = 1000;

#[derive(Debug, thiserror::Error)]
pub enum ShredError {
    #[error("there is no account with this address")]
    Unknown,
    #[error("operators are not forgotten; take the role away first")]
    Operator,
    #[error("there are valid tickets for an event that has not begun")]
    Expected,
    #[error("a payment or a refund is under way")]
    MoneyUnderWay,
    #[error("reading or writing the account")]
    Database(#[from] sqlx::Error),
}

/// Forgets who an account was: address, name, password, sessions, and what mail servers said. Returns the account's id,
/// which stays in the books.
pub async fn shred(pool: PgPool, email: &str) -> Result<Uuid, ShredError> {
    let email = email.trim().to_lowercase();
    let id = sqlx::query_scalar!("select id from account where email = $1", email)
        .fetch_optional(&pool)
        .await?
        .ok_or(ShredError::Unknown)?;
    forget(pool, id).await
}

async fn forget(pool: PgPool, account_id: Uuid) -> Result<Uuid, ShredError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        let account = sqlx::query!("select id, role from account where id = $1 for update", account_id)
            .fetch_optional(&mut *tx)
            .await?
            .ok_or(ShredError::Unknown)?;
        if account.role != "fan" {
            return Err(ShredError::Operator);
        }
        let expected = sqlx::query_scalar!(
            r#"select exists(
                   select from ticket t join "order" o on o.id = t.order_id join buyer b on b.id = o.buyer_id
                   join event e on e.id = t.event_id
                   where b.account_id = $1 and t.state <> 'void' and e.starts_at > db_clock() and e.sale_state <> 'cancelled'
               ) as "expected!""#,
            account.id
        )
        .fetch_one(&mut *tx)
        .await?;
        if expected {
            return Err(ShredError::Expected);
        }
        let under_way = sqlx::query_scalar!(
            r#"select exists(
                   select from attempt a join "order" o on o.id = a.order_id join buyer b on b.id = o.buyer_id
                   where b.account_id = $1
                     and (a.state not in ('declined', 'voided', 'captured', 'refunded')
                          or exists (select from refund r where r.attempt_id = a.id and r.state <> 'succeeded'))
               ) as "under_way!""#,
            account.id
        )
        .fetch_one(&mut *tx)
        .await?;
        if under_way {
            return Err(ShredError::MoneyUnderWay);
        }
        sqlx::query!(
            "update account set email = 'forgotten-' || id || '@invalid', name = '—', password_hash = '!', forgotten_at = db_clock(),
                    email_checked_at = null
             where id = $1",
            account.id
        )
        .execute(&mut *tx)
        .await?;
        // What staff wrote beside their orders may name them; that something was written stays.
        sqlx::query!(
            r#"update order_note n set text = '—' from "order" o join buyer b on b.id = o.buyer_id
               where n.order_id = o.id and b.account_id = $1 and n.verb = 'note'"#,
            account.id
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!("delete from session where account_id = $1", account.id).execute(&mut *tx).await?;
        sqlx::query!(
            r#"update mail m set last_error = null,
                   state = case when m.state = 'queued' then 'dropped' else m.state end,
                   next_try_at = null, decided_at = coalesce(m.decided_at, db_clock())
               from "order" o join buyer b on b.id = o.buyer_id
               where m.order_id = o.id and b.account_id = $1"#,
            account.id
        )
        .execute(&mut *tx)
        .await?;
        // What they would have liked of a sale, a wheelchair's place included; that they stood in line stays.
        sqlx::query!(
            "update line_entry set party_size = null, price_level = null, accessible = 0, companions = 0 where account_id = $1",
            account.id
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!("delete from mail where account_id = $1", account.id).execute(&mut *tx).await?;
        sqlx::query!(
            r#"update provider_call c set answer = null
               from attempt a join "order" o on o.id = a.order_id join buyer b on b.id = o.buyer_id
               where c.attempt_id = a.id and b.account_id = $1 and c.state = 'answered'"#,
            account.id
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            r#"update webhook_event w set raw = ''::bytea
               from attempt a join "order" o on o.id = a.order_id join buyer b on b.id = o.buyer_id
               where w.object_id = a.pi_id and b.account_id = $1 and w.done_at is not null"#,
            account.id
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(account.id)
    })
    .await
}

/// Forgets what the provider said longer ago than `provider_days`, of payments that are decided. Returns how many rows.
pub async fn tidy(pool: &PgPool, provider_days: i32) -> sqlx::Result<u64> {
    let calls = sqlx::query!(
        "update provider_call set answer = null where id in (
             select c.id from provider_call c join attempt a on a.id = c.attempt_id
             where c.answer is not null and c.created_at < db_clock() - make_interval(days => $1) and c.state = 'answered'
               and a.state in ('declined', 'voided', 'captured', 'refunded') limit $2)",
        provider_days,
        ROWS_MAX
    )
    .execute(pool)
    .await?;
    let hooks = sqlx::query!(
        "update webhook_event set raw = ''::bytea where event_id in (
             select event_id from webhook_event
             where done_at < db_clock() - make_interval(days => $1) and raw <> ''::bytea limit $2)",
        provider_days,
        ROWS_MAX
    )
    .execute(pool)
    .await?;
    Ok(calls.rows_affected() + hooks.rows_affected())
}

/// How a round of forgetting went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    pub forgotten: u64,
    /// Their time has come, and something is still open: they are looked at again the next day.
    pub kept: u64,
}

/// Forgets people whose last event ended more than `people_days` ago and who have not been here since. Orders, amounts,
/// ids and dates stay. Bounded: what is left waits for the next round.
pub async fn forget_old(pool: &PgPool, people_days: i32) -> sqlx::Result<Round> {
    let due = sqlx::query_scalar!(
        r#"select a.id from account a
           where a.role = 'fan' and a.forgotten_at is null
             and a.created_at < db_clock() - make_interval(days => $1)
             and not exists (select from session s where s.account_id = a.id
                             and s.created_at >= db_clock() - make_interval(days => $1))
             and exists (select from buyer b join "order" o on o.buyer_id = b.id where b.account_id = a.id)
             and not exists (select from buyer b join "order" o on o.buyer_id = b.id join event e on e.id = o.event_id
                             where b.account_id = a.id
                               and greatest(e.starts_at, e.off_sale_at, o.created_at) >= db_clock() - make_interval(days => $1))
           order by a.created_at limit $2"#,
        people_days,
        ROWS_MAX
    )
    .fetch_all(pool)
    .await?;
    let mut round = Round::default();
    for account_id in due {
        match forget(pool.clone(), account_id).await {
            Ok(_) => round.forgotten += 1,
            Err(ShredError::Database(error)) => return Err(error),
            // Money that is owed to them, above all: a person sees to that first.
            Err(_) => round.kept += 1,
        }
    }
    Ok(round)
}

/// Tidies until `stop`, a bounded number of rows a time; people are looked for once a day.
pub async fn run(settings: config::Retention, pool: PgPool, metrics: Metrics, stop: CancellationToken) {
    let mut tick = tokio::time::interval(Duration::from_secs(settings.tick_s.max(1)));
    let mut day = tokio::time::interval(DAY);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = day.tick(), if settings.people_days > 0 => {
                match forget_old(&pool, settings.people_days).await {
                    Ok(round) => {
                        metrics.people_forgotten.inc_by(round.forgotten);
                        metrics.people_kept.set(round.kept as i64);
                        if round != Round::default() {
                            tracing::info!(people.forgotten = round.forgotten, people.kept = round.kept, "people whose last event is long over were forgotten");
                        }
                    }
                    Err(error) => tracing::warn!(%error, "people could not be forgotten"),
                }
                continue;
            }
            _ = tick.tick() => {}
        }
        match tidy(&pool, settings.provider_days).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "old words of the payment provider were forgotten"),
            Err(error) => tracing::warn!(%error, "what is old could not be forgotten"),
        }
    }
}
