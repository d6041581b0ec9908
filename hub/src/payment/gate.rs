//! The gate: while it is closed no new attempt begins; captures, voids, refunds and looks go on.
//!
//! Each reason is a row of its own, and the rows are the log. A reason that can be measured opens again
//! by itself when it is over; where money did not agree, only a person opens, and their name is kept.
//!
//! Invariants
//! - Open means that no row is without `reopened_at` (`checkout_gate_one_reason`).
//! - A reason that is for a person is never opened from here but by [`open`].

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

use crate::{clock, config, db};

/// What is measured, and opens by itself.
pub const STALE: &str = "reconciliation_stale";
pub const UNKNOWN: &str = "payments_unknown";
pub const WEBHOOKS: &str = "webhooks_late";
pub const PROVIDER: &str = "provider_errors";
pub const SKEW: &str = "clock_skew";
/// What a person wanted.
pub const PAUSED: &str = "paused";

/// The reason that a class of difference between the books closes the gate for; M7 does not.
pub fn reason_of_class(class: &str) -> Option<&'static str> {
    Some(match class {
        "M1" => "captured_without_order",
        "M2" => "sold_not_captured",
        "M3" => "amount_differs",
        "M4" => "captured_twice",
        "M5" => "authorised_orphan",
        "M6" => "refund_on_one_side",
        _ => return None,
    })
}

fn class_of_reason(reason: &str) -> Option<&'static str> {
    ["M1", "M2", "M3", "M4", "M5", "M6"].into_iter().find(|class| reason_of_class(class) == Some(reason))
}

/// Why the gate is closed, if it is.
pub async fn closed(db: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select reason from checkout_gate where reopened_at is null order by closed_at limit 1")
        .fetch_optional(db)
        .await
}

/// A reason that the gate is, or was, closed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    pub reason: String,
    pub detail: String,
    /// Only a person opens it.
    pub by_person: bool,
    pub closed_at: DateTime<Utc>,
    pub closed_by: String,
}

/// All reasons that it is closed for now, the oldest first.
pub async fn reasons(pool: &PgPool) -> sqlx::Result<Vec<Closing>> {
    sqlx::query_as!(
        Closing,
        "select reason, detail, by_person, closed_at, closed_by from checkout_gate where reopened_at is null order by closed_at"
    )
    .fetch_all(pool)
    .await
}

/// Closes the gate for a reason that only a person may take back. Closed twice for one reason is closed once.
pub async fn close(db: &mut PgConnection, reason: &str, detail: &str, now: DateTime<Utc>) -> sqlx::Result<()> {
    write(db, reason, detail, true, "fullhouse", now).await
}

async fn write(
    db: &mut PgConnection,
    reason: &str,
    detail: &str,
    by_person: bool,
    closed_by: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let written = sqlx::query!(
        "insert into checkout_gate (reason, detail, by_person, closed_at, closed_by) values ($1, $2, $3, $4, $5)
         on conflict (reason) where reopened_at is null do nothing",
        reason,
        detail,
        by_person,
        now,
        closed_by
    )
    .execute(db)
    .await?;
    match (written.rows_affected() > 0, reason == PAUSED) {
        (true, true) => tracing::info!(gate.detail = detail, "a person has closed the gate: no new payments begin"),
        (true, false) => {
            tracing::error!(gate.reason = reason, gate.detail = detail, "the gate is closed: no new payments begin");
        }
        (false, _) => {}
    }
    Ok(())
}

/// A person closes it.
pub async fn pause(pool: &PgPool, note: &str, by: &str) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    let now = clock::now(&mut tx).await?;
    write(&mut tx, PAUSED, note, true, by, now).await?;
    tx.commit().await
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the gate is not closed for {0}")]
    NotClosed(String),
    /// It would close again at once.
    #[error("{0} opens by itself when it is over")]
    OpensByItself(String),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A person has looked, and takes a reason back. The differences that it was closed for are
/// acknowledged with it: they stay on the list, and do not close the gate again.
pub async fn open(pool: &PgPool, reason: &str, by: &str, note: &str) -> Result<(), OpenError> {
    let (pool, reason, by, note) = (pool.clone(), reason.to_owned(), by.to_owned(), note.to_owned());
    db::write(async move {
        let mut tx = pool.begin().await?;
        let by_person = sqlx::query_scalar!(
            "select by_person from checkout_gate where reason = $1 and reopened_at is null for no key update",
            reason
        )
        .fetch_optional(&mut *tx)
        .await?;
        match by_person {
            None => return Err(OpenError::NotClosed(reason)),
            Some(false) => return Err(OpenError::OpensByItself(reason)),
            Some(true) => {}
        }
        let now = clock::now(&mut tx).await?;
        if let Some(class) = class_of_reason(&reason) {
            sqlx::query!(
                "update money_finding set acknowledged_at = $2, acknowledged_by = $3, acknowledged_note = $4
                 where class = $1 and cleared_at is null and acknowledged_at is null",
                class,
                now,
                by,
                note
            )
            .execute(&mut *tx)
            .await?;
        }
        reopen(&mut tx, &reason, &by, Some(&note), now).await?;
        tx.commit().await?;
        tracing::warn!(gate.reason = reason, "a person opened the gate");
        Ok(())
    })
    .await
}

async fn reopen(
    db: &mut PgConnection,
    reason: &str,
    by: &str,
    note: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<u64> {
    let opened = sqlx::query!(
        "update checkout_gate set reopened_at = $2, reopened_by = $3, reopen_note = $4 where reason = $1 and reopened_at is null",
        reason,
        now,
        by,
        note
    )
    .execute(db)
    .await?;
    Ok(opened.rows_affected())
}

/// What was measured, and why the gate has to be closed for it, if it has to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub reason: &'static str,
    pub wrong: Option<String>,
}

/// Measures everything that can be, and closes or opens accordingly. Any number of hubs may do this.
pub async fn measure(pool: &PgPool, settings: &config::Gate) -> sqlx::Result<Vec<Measured>> {
    let mut tx = pool.begin().await?;
    let now = clock::now(&mut tx).await?;
    let measured = vec![
        Measured { reason: STALE, wrong: stale(&mut tx, settings, now).await? },
        Measured { reason: UNKNOWN, wrong: unknown(&mut tx, settings, now).await? },
        Measured { reason: WEBHOOKS, wrong: webhooks(&mut tx, settings, now).await? },
        Measured { reason: PROVIDER, wrong: provider(&mut tx, settings, now).await? },
        Measured { reason: SKEW, wrong: skew(&mut tx, settings).await? },
    ];
    for Measured { reason, wrong } in &measured {
        match wrong {
            Some(detail) => write(&mut tx, reason, detail, false, "fullhouse", now).await?,
            None => {
                if reopen(&mut tx, reason, "fullhouse", None, now).await? > 0 {
                    tracing::warn!(gate.reason = reason, "the gate opened by itself: it is over");
                }
            }
        }
    }
    tx.commit().await?;
    Ok(measured)
}

/// Nobody has compared the books for too long. Before the first attempt there is nothing to compare.
async fn stale(db: &mut PgConnection, s: &config::Gate, now: DateTime<Utc>) -> sqlx::Result<Option<String>> {
    let since = sqlx::query_scalar!(
        "select coalesce((select max(finished_at) from reconciliation_run where ok), (select min(created_at) from attempt))"
    )
    .fetch_one(db)
    .await?;
    let age_s = since.map_or(0, |since| (now - since).num_seconds());
    Ok((age_s > s.stale_after_s).then(|| format!("the books were not compared for {age_s} s")))
}

async fn unknown(db: &mut PgConnection, s: &config::Gate, now: DateTime<Utc>) -> sqlx::Result<Option<String>> {
    let counts = sqlx::query!(
        r#"select count(*) filter (where state in ('auth_unknown', 'capture_unknown', 'void_unknown')) as "unknown!",
                  count(*) filter (where created_at > $1) as "begun!",
                  count(*) filter (where created_at > $1 and state in ('auth_unknown', 'capture_unknown', 'void_unknown')) as "lately!"
           from attempt where installation = (select installation_id())
             and (created_at > $1 or state in ('auth_unknown', 'capture_unknown', 'void_unknown'))"#,
        now - chrono::TimeDelta::seconds(s.window_s)
    )
    .fetch_one(db)
    .await?;
    if counts.unknown > s.unknown_max {
        return Ok(Some(format!("{} payments are in doubt", counts.unknown)));
    }
    let share = counts.begun >= s.attempts_min && counts.lately * 100 > s.unknown_percent_max * counts.begun;
    Ok(share.then(|| format!("{} of {} payments are in doubt", counts.lately, counts.begun)))
}

async fn webhooks(db: &mut PgConnection, s: &config::Gate, now: DateTime<Utc>) -> sqlx::Result<Option<String>> {
    let oldest =
        sqlx::query_scalar!("select min(received_at) from webhook_event where done_at is null").fetch_one(db).await?;
    let age_s = oldest.map_or(0, |at| (now - at).num_seconds());
    Ok((age_s > s.webhook_age_max_s).then(|| format!("a webhook waits for {age_s} s")))
}

/// The circuit: closes on failures among the last calls, opens when the last few were answered.
async fn provider(db: &mut PgConnection, s: &config::Gate, now: DateTime<Utc>) -> sqlx::Result<Option<String>> {
    let closed_at =
        sqlx::query_scalar!("select closed_at from checkout_gate where reason = $1 and reopened_at is null", PROVIDER)
            .fetch_optional(&mut *db)
            .await?;
    let calls = sqlx::query!(
        "select ok, at from provider_answer where at > $1 order by at desc, id desc limit $2",
        now - chrono::TimeDelta::seconds(s.window_s),
        s.provider_calls
    )
    .fetch_all(db)
    .await?;
    if let Some(closed_at) = closed_at {
        let since = calls.iter().take_while(|c| c.ok && c.at >= closed_at).count() as i64;
        return Ok((since < s.provider_calls_to_open).then(|| "the provider does not answer".to_owned()));
    }
    let failed = calls.iter().filter(|c| !c.ok).count() as i64;
    let enough = calls.len() as i64 >= s.provider_calls;
    let wrong = enough && failed * 100 > s.provider_errors_percent_max * calls.len() as i64;
    Ok(wrong.then(|| format!("{failed} of the last {} calls failed", calls.len())))
}

/// The difference between any two of the clocks that a hub reads, whichever hub.
async fn skew(db: &mut PgConnection, s: &config::Gate) -> sqlx::Result<Option<String>> {
    let readings = sqlx::query!(
        "select host_ms, provider_ms from clock_reading where at > clock_timestamp() - interval '1 minute'"
    )
    .fetch_all(db)
    .await?;
    let worst_ms = readings.iter().map(|r| spread_ms(r.host_ms, r.provider_ms)).max().unwrap_or(0);
    Ok((worst_ms > s.clock_skew_max_s * 1000).then(|| format!("clocks differ by {} s", worst_ms / 1000)))
}

/// How far the database's clock (0), the host's and the provider's are apart.
fn spread_ms(host_ms: i64, provider_ms: Option<i64>) -> i64 {
    let clocks = [0, host_ms, provider_ms.unwrap_or(0)];
    clocks.iter().max().unwrap_or(&0) - clocks.iter().min().unwrap_or(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_clocks_may_not_be_apart() {
        assert_eq!(spread_ms(0, None), 0);
        assert_eq!(spread_ms(-20_000, Some(15_000)), 35_000, "neither is far from the database's");
        assert_eq!(spread_ms(31_000, None), 31_000);
    }

    #[test]
    fn each_class_that_closes_has_a_reason_and_only_those() {
        for class in ["M1", "M2", "M3", "M4", "M5", "M6"] {
            assert_eq!(class_of_reason(reason_of_class(class).expect("a reason")), Some(class));
        }
        assert_eq!(reason_of_class("M7"), None);
        assert_eq!(class_of_reason(STALE), None);
    }
}
