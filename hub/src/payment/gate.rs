//! The gate: while it is closed no new attempt begins; captures, voids, refunds and looks go on.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// Why the gate is closed, if it is.
pub async fn closed(db: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select reason from checkout_gate where reopened_at is null order by closed_at limit 1")
        .fetch_optional(db)
        .await
}

/// Closes the gate for a reason that only a person may take back. Closed twice for one reason is closed once.
pub async fn close(db: &mut PgConnection, reason: &str, detail: &str, now: DateTime<Utc>) -> sqlx::Result<()> {
    tracing::error!(gate.reason = reason, gate.detail = detail, "the gate is closed: no new payments begin");
    sqlx::query!(
        "insert into checkout_gate (reason, detail, by_person, closed_at) values ($1, $2, true, $3)
         on conflict (reason) where reopened_at is null do nothing",
        reason,
        detail,
        now
    )
    .execute(db)
    .await?;
    Ok(())
}
