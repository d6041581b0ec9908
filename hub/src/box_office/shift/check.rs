//! What is tried as a shift begins: the printer by a test page, the scanner by the code on it.
//!
//! Invariants
//! - Whatever is not tried says why, in the shift's report and in the audit log.
//! - The same word again is the same word: asked again, nothing is written.

use fullhouse_protocol::shift::{ShiftCheck, ShiftCheckRequest, ShiftCheckWhat, ShiftReport};
use sqlx::PgPool;
use uuid::Uuid;

use super::{At, ShiftError, report, take_current};
use crate::{
    auth::Deed,
    clock,
    db::{self, Tx},
};

/// Writes down whether printer or scanner work, in the open shift. Answers with its X report after it.
pub async fn check(pool: PgPool, at: At, asked: ShiftCheckRequest) -> Result<ShiftReport, ShiftError> {
    db::write(async move {
        let mut tx = pool.begin().await?;
        at.actor.acts(&mut tx).await?;
        let open = take_current(&mut tx, at.terminal_id).await?.ok_or(ShiftError::Required)?;
        let said = checks(&mut tx, open.id).await?.into_iter().find(|before| before.what == asked.what);
        if said.is_none_or(|before| before.skipped != asked.skipped) {
            let now = clock::now(&mut tx).await?;
            sqlx::query!(
                "insert into shift_check (shift_id, what, skipped, staff_id, checked_at) values ($1, $2, $3, $4, $5)",
                open.id,
                asked.what.name(),
                asked.skipped,
                at.staff_id,
                now
            )
            .execute(&mut *tx)
            .await?;
            let detail = match (asked.what, &asked.skipped) {
                (ShiftCheckWhat::Printer, None) => "a test page was printed",
                (ShiftCheckWhat::Scanner, None) => "the test page was scanned",
                (ShiftCheckWhat::Printer, Some(_)) => "no test page was printed",
                (ShiftCheckWhat::Scanner, Some(_)) => "the test page was not scanned",
            };
            let reason = asked.skipped.as_deref().unwrap_or("it works");
            at.actor.writes(&mut tx, Deed { verb: "shift_check", event_id: None, detail, reason }, now).await?;
        }
        let checked = report(&mut tx, open.id).await?.ok_or(ShiftError::Unknown)?;
        tx.commit().await?;
        Ok(checked)
    })
    .await
}

/// The last word about each.
pub(super) async fn checks(tx: &mut Tx, shift_id: Uuid) -> sqlx::Result<Vec<ShiftCheck>> {
    let rows = sqlx::query!(
        "select distinct on (c.what) c.what, c.skipped, s.name as by, c.checked_at as at
         from shift_check c join staff s on s.id = c.staff_id where c.shift_id = $1 order by c.what, c.id desc",
        shift_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let checks = rows.into_iter().filter_map(|c| {
        let what = ShiftCheckWhat::read(&c.what)?; // the column is checked
        Some(ShiftCheck { what, skipped: c.skipped, by: c.by, at: c.at })
    });
    Ok(checks.collect())
}
