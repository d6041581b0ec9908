//! Where the books differ, as it is kept: one open row a class and subject, seen again or cleared.
//!
//! Invariants
//! - A finding stays open until it is found no more; that a person has acknowledged it only keeps the gate out of it.
//! - Finding the same thing twice is one row.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// PAYMENTS' classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Captured without a confirmed order.
    M1,
    /// A confirmed order whose money is not captured.
    M2,
    /// Amount or currency differs.
    M3,
    /// Two captures for one order.
    M4,
    /// Authorised, and nobody waits for it.
    M5,
    /// A refund is missing on one side.
    M6,
    /// A row of a type that we do not know, or of somebody else who uses the account.
    M7,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::M1 => "M1",
            Class::M2 => "M2",
            Class::M3 => "M3",
            Class::M4 => "M4",
            Class::M5 => "M5",
            Class::M6 => "M6",
            Class::M7 => "M7",
        }
    }

    /// Closes the gate as soon as it is seen.
    pub fn closes_at_once(self) -> bool {
        matches!(self, Class::M1 | Class::M3 | Class::M4)
    }

    /// Closes the gate when a try to repair it has failed.
    pub fn closes_after_repair(self) -> bool {
        matches!(self, Class::M2 | Class::M5 | Class::M6)
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub class: Class,
    /// What it is about: `attempt:…`, `intent:…`, `charge:…`, `refund:…`, `transaction:…`, `order:…`.
    pub subject: String,
    pub order_id: Option<Uuid>,
    pub attempt_id: Option<Uuid>,
    pub pi_id: Option<String>,
    /// The provider's units, and its lower-case currency.
    pub amount: Option<i64>,
    pub currency: Option<String>,
    pub detail: String,
}

impl Found {
    /// The list of transactions lacks it, or has it and can't name it: nothing can be done but to read that list
    /// again, which the next run does.
    pub fn is_of_a_list(&self) -> bool {
        self.subject.starts_with("charge:") || self.subject.starts_with("transaction:")
    }
}

/// As it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub id: i64,
    /// Nobody has seen it before.
    pub is_new: bool,
    pub repair_tries: i32,
    pub acknowledged: bool,
}

/// Writes a finding down, or that it was seen again.
pub async fn keep(db: &mut PgConnection, found: &Found, now: DateTime<Utc>) -> sqlx::Result<Kept> {
    let row = sqlx::query!(
        r#"insert into money_finding (class, subject, order_id, attempt_id, pi_id, amount, currency, detail, found_at, last_seen_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
           on conflict (class, subject) where cleared_at is null
           do update set last_seen_at = excluded.last_seen_at, detail = excluded.detail, amount = excluded.amount
           returning id, (xmax = 0) as "is_new!", repair_tries, (acknowledged_at is not null) as "acknowledged!""#,
        found.class.name(),
        found.subject,
        found.order_id,
        found.attempt_id,
        found.pi_id,
        found.amount,
        found.currency,
        found.detail,
        now
    )
    .fetch_one(db)
    .await?;
    if row.is_new {
        tracing::error!(
            finding.class = found.class.name(),
            finding.subject = found.subject,
            finding.detail = found.detail,
            "the books differ"
        );
    }
    Ok(Kept { id: row.id, is_new: row.is_new, repair_tries: row.repair_tries, acknowledged: row.acknowledged })
}

/// A repair was tried; `done`: and it is repaired.
pub async fn repaired(db: &mut PgConnection, id: i64, done: bool, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update money_finding set repair_tries = repair_tries + 1, repaired_at = case when $2 then $3::timestamptz end where id = $1",
        id,
        done,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

/// A person has seen to it. False: there is no such finding that is open and that nobody has seen to.
pub async fn acknowledge(pool: &PgPool, id: i64, by: &str, note: &str) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update money_finding set acknowledged_at = db_clock(), acknowledged_by = $2, acknowledged_note = $3
         where id = $1 and cleared_at is null and acknowledged_at is null",
        id,
        by,
        note
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Those that were not seen since then are over.
pub async fn clear_unseen(db: &mut PgConnection, since: DateTime<Utc>, now: DateTime<Utc>) -> sqlx::Result<u64> {
    let cleared = sqlx::query!(
        "update money_finding set cleared_at = $2 where cleared_at is null and last_seen_at < $1",
        since,
        now
    )
    .execute(db)
    .await?;
    Ok(cleared.rows_affected())
}
