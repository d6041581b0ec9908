//! How the sale is doing: each hub writes down what it measured of itself, and whoever paces a line reads all of it.
//!
//! Invariants
//! - A row that is old does not count, nor one from a time to come: of a hub that went as the clock was set back. If none does, nothing is known, and that is said.
//! - What is said of payments is read from their own rows, not from what a hub remembers.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::controller::{Ceilings, Measured};
use crate::config;

/// How often a hub writes.
pub const REPORT_INTERVAL_MS: u64 = 2_000;
/// Of fewer holds the 99th of a hundred says nothing; the median does, of a few.
const HOLDS_FOR_P99: i32 = 20;
const HOLDS_FOR_P50: i32 = 3;
/// Of fewer answers a share says nothing.
const ANSWERS_MIN: i64 = 20;

/// What a hub measured since its last row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    pub holds: i32,
    pub hold_p50_ms: Option<i32>,
    pub hold_p99_ms: Option<i32>,
    pub lock_wait_ms: i32,
    /// How long it took to write the last row, milliseconds.
    pub write_ms: i32,
    pub pool_percent: i32,
    pub answers: i32,
    /// Of those, 5xx.
    pub faults: i32,
}

/// Writes this hub's row anew.
pub async fn report(pool: &PgPool, hub: Uuid, s: &Sample) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into hub_load (hub, at, holds, hold_p50_ms, hold_p99_ms, lock_wait_ms, write_ms, pool_percent, answers, faults)
         values ($1, clock_timestamp(), $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (hub) do update set at = excluded.at, holds = excluded.holds, hold_p50_ms = excluded.hold_p50_ms,
             hold_p99_ms = excluded.hold_p99_ms, lock_wait_ms = excluded.lock_wait_ms, write_ms = excluded.write_ms,
             pool_percent = excluded.pool_percent, answers = excluded.answers, faults = excluded.faults",
        hub,
        s.holds,
        s.hold_p50_ms,
        s.hold_p99_ms,
        s.lock_wait_ms,
        s.write_ms,
        s.pool_percent,
        s.answers,
        s.faults
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Forgets hubs that have been gone for an hour.
pub async fn forget(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query!("delete from hub_load where abs(extract(epoch from clock_timestamp() - at)) > 3600")
        .execute(pool)
        .await?;
    Ok(())
}

/// What is known at `now` (the database's clock). Who is inside, and who came in of late, is for the caller to say.
pub async fn measured(db: &mut PgConnection, now: DateTime<Utc>) -> sqlx::Result<Measured> {
    let hubs = sqlx::query!(
        r#"select count(*) as "hubs!",
                  max(case when holds >= $1 then hold_p99_ms when holds >= $2 then hold_p50_ms end) as hold_ms,
                  coalesce(max(lock_wait_ms), 0) as "lock_wait_ms!", coalesce(max(write_ms), 0) as "write_ms!",
                  coalesce(max(pool_percent), 0) as "pool_percent!",
                  coalesce(sum(answers), 0) as "answers!", coalesce(sum(faults), 0) as "faults!"
           from hub_load
           where at between clock_timestamp() - interval '10 seconds' and clock_timestamp() + interval '10 seconds'"#,
        HOLDS_FOR_P99,
        HOLDS_FOR_P50
    )
    .fetch_one(&mut *db)
    .await?;
    let payments = sqlx::query!(
        r#"select (select min(next_run_at) from attempt where next_run_at <= $1
                      and (leased_until is null or leased_until <= $1) and installation = (select installation_id())) as due_since,
                  (select count(*) from attempt where state in ('auth_unknown', 'capture_unknown', 'void_unknown')
                      and installation = (select installation_id())) as "in_doubt!",
                  exists(select from checkout_gate where reopened_at is null) as "gate_closed!""#,
        now
    )
    .fetch_one(&mut *db)
    .await?;
    let errors = if hubs.answers < ANSWERS_MIN { 0 } else { hubs.faults * 100 / hubs.answers };
    let late_s = payments.due_since.map_or(0, |since| (now - since).num_seconds());
    Ok(Measured {
        at_ms: now.timestamp_millis(),
        hubs: at_least_0(hubs.hubs),
        hold_ms: hubs.hold_ms.map(at_least_0),
        lock_wait_ms: at_least_0(hubs.lock_wait_ms),
        write_ms: at_least_0(hubs.write_ms),
        pool_percent: at_least_0(hubs.pool_percent),
        errors_percent: at_least_0(errors),
        payments_late_s: at_least_0(late_s),
        payments_in_doubt: at_least_0(payments.in_doubt),
        gate_closed: payments.gate_closed,
        inside: 0,
        let_in_minute: 0,
    })
}

fn at_least_0(value: impl Into<i64>) -> u32 {
    value.into().clamp(0, u32::MAX.into()) as u32
}

impl From<&config::Admission> for Ceilings {
    fn from(settings: &config::Admission) -> Self {
        Self {
            hold_ms: settings.hold_max_ms,
            lock_wait_ms: settings.lock_wait_max_ms,
            write_ms: settings.write_max_ms,
            pool_percent: settings.pool_percent_max,
            errors_percent: settings.errors_percent_max,
            payments_late_s: settings.payments_late_max_s,
            payments_in_doubt: settings.payments_in_doubt_max,
        }
    }
}
