//! The shift of an attended terminal: a drawer, from its float to its Z report.
//!
//! Invariants
//! - A terminal has one open shift at most (`shift_one_open`), and its Z reports are numbered without a gap.
//! - Cash is in the Z, or it is refused: whoever takes or gives it holds the shift's row (the function `drawer_of`), and
//!   closing takes that row for itself.
//! - What was sold without a network is in the Z of the shift in which its seats were leased: a terminal leases in a shift
//!   only, and closes none before its leases have ended.
//! - A variance is kept, with its explanation. A closed shift never changes (`shift_stays_closed`).
//!
//! Locks in order: what the verb itself locks (event, order, …), the shift.

mod check; // printer and scanner, tried as it begins
mod day; // the day's lock
mod report; // X and Z

use std::collections::BTreeSet;

use chrono::NaiveDate;
use fullhouse_protocol::shift::{Denomination, ShiftCloseRequest, ShiftMoveRequest, ShiftOpenRequest, ShiftReport};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

pub use self::{
    check::check,
    day::{DayError, lock as lock_day},
    report::{list, list_of_day, list_of_stopped, report},
};
use self::{
    day::{business_day, keep_open},
    report::{sums, with},
};
use crate::{
    auth::{Actor, Deed},
    clock, config, currency,
    db::{self, Tx},
};

/// What a drawer holds, or a hand gives, at most.
const CASH_MINOR_MAX: i64 = 999_999_999;
const DENOMINATIONS_MAX: usize = 50;
const COUNT_MAX: u32 = 1_000_000;

/// Somebody of the staff at a terminal.
#[derive(Debug, Clone)]
pub struct At {
    pub terminal_id: Uuid,
    pub staff_id: Uuid,
    pub actor: Actor,
}

#[derive(Debug, thiserror::Error)]
pub enum ShiftError {
    /// What is wrong, as a sentence.
    #[error("{0}")]
    Invalid(&'static str),
    #[error("shift {0} is open at this terminal")]
    Open(Uuid),
    #[error("no shift is open at this terminal")]
    Required,
    #[error("there is no such shift")]
    Unknown,
    #[error("{0} is locked")]
    DayLocked(NaiveDate),
    #[error("there should be {expected_minor} in the drawer")]
    DrawerShort { expected_minor: i64 },
    #[error("the key was used for another request")]
    KeyReused,
    /// What they sold may still be on its way.
    #[error("{0} leases of this terminal have not ended")]
    LeasesOpen(i64),
    #[error("{variance_minor} are not explained")]
    VarianceUnexplained { expected_minor: i64, counted_minor: i64, variance_minor: i64 },
    /// Closing it is a manager's.
    #[error("the shift is {opened_by}'s")]
    SomebodyElses { opened_by: String },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Opens a shift of today.
pub async fn open(
    pool: PgPool,
    house: &config::BoxOffice,
    at: At,
    asked: ShiftOpenRequest,
) -> Result<ShiftReport, ShiftError> {
    if !(0..=CASH_MINOR_MAX).contains(&asked.float_minor) {
        return Err(ShiftError::Invalid("A float is from 0 to 999999999."));
    }
    if !currency::is_known(&asked.currency) {
        return Err(ShiftError::Invalid("currency is a code of ISO 4217, such as EUR."));
    }
    let house = house.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        at.actor.acts(&mut tx).await?;
        let now = clock::now(&mut tx).await?;
        let day = business_day(&house, now);
        keep_open(&mut tx, day).await?;
        let shift_id = Uuid::now_v7();
        let written = sqlx::query!(
            "insert into shift (id, terminal_id, business_day, currency, float_minor, opened_by, opened_at)
             values ($1, $2, $3, $4, $5, $6, $7) on conflict (terminal_id) where closed_at is null do nothing",
            shift_id,
            at.terminal_id,
            day,
            asked.currency,
            asked.float_minor,
            at.staff_id,
            now
        )
        .execute(&mut *tx)
        .await?;
        if written.rows_affected() == 0 {
            return Err(match current(&mut tx, at.terminal_id).await? {
                Some(open) => ShiftError::Open(open.id),
                None => sqlx::Error::Protocol("a shift closed while another opened".into()).into(), // again is right
            });
        }
        let detail = format!("{} {}", asked.float_minor, asked.currency);
        let reason = "a shift is opened with a float";
        at.actor.writes(&mut tx, Deed { verb: "shift_open", event_id: None, detail: &detail, reason }, now).await?;
        let opened = report(&mut tx, shift_id).await?.ok_or(ShiftError::Unknown)?;
        tx.commit().await?;
        Ok(opened)
    })
    .await
}

pub(super) struct Current {
    pub id: Uuid,
    opened_by: Uuid,
    opened_by_name: String,
}

/// The open shift of a terminal.
pub(super) async fn current(tx: &mut Tx, terminal_id: Uuid) -> sqlx::Result<Option<Current>> {
    sqlx::query_as!(
        Current,
        "select h.id, h.opened_by, s.name as opened_by_name from shift h join staff s on s.id = h.opened_by
         where h.terminal_id = $1 and h.closed_at is null",
        terminal_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// The same, for whoever changes it: nobody takes or gives cash meanwhile.
async fn take_current(tx: &mut Tx, terminal_id: Uuid) -> sqlx::Result<Option<Current>> {
    sqlx::query!("select id from shift where terminal_id = $1 and closed_at is null for update", terminal_id)
        .fetch_optional(&mut **tx)
        .await?;
    current(tx, terminal_id).await // a statement of its own: one that waited has its old snapshot
}

/// So much can be taken out of a terminal's drawer; nobody takes or gives cash until `tx` ends.
pub(super) async fn take_out(tx: &mut Tx, terminal_id: Uuid, amount_minor: i64) -> Result<(), ShiftError> {
    let open = take_current(tx, terminal_id).await?.ok_or(ShiftError::Required)?;
    lies_in(&report(tx, open.id).await?.ok_or(ShiftError::Unknown)?, amount_minor)
}

fn lies_in(drawer: &ShiftReport, amount_minor: i64) -> Result<(), ShiftError> {
    if amount_minor > drawer.expected_minor {
        return Err(ShiftError::DrawerShort { expected_minor: drawer.expected_minor });
    }
    Ok(())
}

/// The X report of a terminal's open shift.
pub async fn x_report(pool: &PgPool, terminal_id: Uuid) -> Result<ShiftReport, ShiftError> {
    let mut tx = pool.begin().await?;
    let open = current(&mut tx, terminal_id).await?.ok_or(ShiftError::Unknown)?;
    let read = report(&mut tx, open.id).await?.ok_or(ShiftError::Unknown)?;
    tx.commit().await?;
    Ok(read)
}

/// Moves cash in or out of the drawer. The same key again is the same move. Answers with the X report after it.
pub async fn move_cash(pool: PgPool, at: At, key: String, asked: ShiftMoveRequest) -> Result<ShiftReport, ShiftError> {
    if !(1..=CASH_MINOR_MAX).contains(&asked.amount_minor) {
        return Err(ShiftError::Invalid("An amount is from 1 to 999999999."));
    }
    db::write(async move {
        let mut tx = pool.begin().await?;
        at.actor.acts(&mut tx).await?;
        let open = take_current(&mut tx, at.terminal_id).await?.ok_or(ShiftError::Required)?;
        let before = sqlx::query!(
            "select kind, amount_minor, reason from shift_move where shift_id = $1 and key = $2",
            open.id,
            key
        )
        .fetch_optional(&mut *tx)
        .await?;
        let so_far = report(&mut tx, open.id).await?.ok_or(ShiftError::Unknown)?;
        if let Some(before) = before {
            let same = before.kind == asked.kind.name()
                && before.amount_minor == asked.amount_minor
                && before.reason == asked.reason;
            return if same { Ok(so_far) } else { Err(ShiftError::KeyReused) };
        }
        let takes = !matches!(asked.kind, fullhouse_protocol::shift::ShiftMoveKind::PayIn);
        if takes {
            lies_in(&so_far, asked.amount_minor)?;
        }
        let now = clock::now(&mut tx).await?;
        sqlx::query!(
            "insert into shift_move (shift_id, key, kind, amount_minor, reason, staff_id, made_at)
             values ($1, $2, $3, $4, $5, $6, $7)",
            open.id,
            key,
            asked.kind.name(),
            asked.amount_minor,
            asked.reason,
            at.staff_id,
            now
        )
        .execute(&mut *tx)
        .await?;
        let detail = format!("{} {}", asked.amount_minor, so_far.currency);
        let verb = format!("shift_{}", asked.kind.name());
        let deed = Deed { verb: &verb, event_id: None, detail: &detail, reason: &asked.reason };
        at.actor.writes(&mut tx, deed, now).await?;
        let moved = report(&mut tx, open.id).await?.ok_or(ShiftError::Unknown)?;
        tx.commit().await?;
        Ok(moved)
    })
    .await
}

/// Closes the open shift with what was counted, and answers with its Z report. Asked again for that shift, it answers
/// with the same. `may_close_others`: of a manager, who also closes the shift of a terminal that is revoked or locked, from
/// another one: its drawer is still there to be counted, and the day could not be locked without.
pub async fn close(
    pool: PgPool,
    at: At,
    may_close_others: bool,
    asked: ShiftCloseRequest,
) -> Result<ShiftReport, ShiftError> {
    let counted_minor = counted(&asked.counted)?;
    db::write(async move {
        let mut tx = pool.begin().await?;
        at.actor.acts(&mut tx).await?;
        let stopped = match asked.shift_id {
            Some(named) if may_close_others => stopped_terminal(&mut tx, named).await?,
            _ => None,
        };
        let terminal_id = stopped.unwrap_or(at.terminal_id);
        let open = take_current(&mut tx, terminal_id).await?;
        if let Some(named) = asked.shift_id.filter(|named| open.as_ref().is_none_or(|open| open.id != *named)) {
            let closed = with(&mut tx, named, terminal_id).await?.ok_or(ShiftError::Unknown)?;
            return if closed.closed.is_some() { Ok(closed) } else { Err(ShiftError::Required) };
        }
        let open = open.ok_or(ShiftError::Required)?;
        if open.opened_by != at.staff_id && !may_close_others {
            return Err(ShiftError::SomebodyElses { opened_by: open.opened_by_name });
        }
        let leases = sqlx::query_scalar!(
            r#"select count(*) as "open!" from lease where terminal_id = $1 and state = 'open'"#,
            terminal_id
        )
        .fetch_one(&mut *tx)
        .await?;
        if leases > 0 {
            return Err(ShiftError::LeasesOpen(leases));
        }
        let expected_minor = sums(&mut tx, open.id).await?.expected_minor();
        let variance_minor = counted_minor - expected_minor;
        if variance_minor != 0 && asked.explanation.is_none() {
            return Err(ShiftError::VarianceUnexplained { expected_minor, counted_minor, variance_minor });
        }
        let closing = report::Closing {
            shift_id: open.id,
            staff_id: at.staff_id,
            expected_minor,
            counted_minor,
            counted: asked.counted,
            explanation: asked.explanation.filter(|_| variance_minor != 0),
        };
        let z = report::close(&mut tx, closing).await?;
        let number = z.closed.as_ref().map_or(0, |closed| closed.z_number);
        let of = stopped.map_or_else(String::new, |_| format!(" of {}", z.terminal_name));
        let detail = format!("Z {number}{of}, expected {expected_minor}, counted {counted_minor} {}", z.currency);
        let why =
            z.closed.as_ref().and_then(|closed| closed.explanation.as_deref()).unwrap_or("counted, and it agrees");
        let deed = Deed { verb: "shift_close", event_id: None, detail: &detail, reason: why };
        at.actor.writes(&mut tx, deed, z.now).await?;
        tx.commit().await?;
        Ok(z)
    })
    .await
}

/// Whose shift this is, if it is a terminal's that can't close it any more.
async fn stopped_terminal(tx: &mut Tx, shift_id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select t.id from shift h join terminal t on t.id = h.terminal_id
         where h.id = $1 and (t.revoked_at is not null or t.locked_at is not null)",
        shift_id
    )
    .fetch_optional(&mut **tx)
    .await
}

/// A shift of this terminal's, or of any (`terminal_id` is none).
pub async fn one(pool: &PgPool, shift_id: Uuid, terminal_id: Option<Uuid>) -> Result<ShiftReport, ShiftError> {
    let mut tx = pool.begin().await?;
    let read = report(&mut tx, shift_id).await?;
    tx.commit().await?;
    read.filter(|shift| terminal_id.is_none_or(|own| own == shift.terminal_id)).ok_or(ShiftError::Unknown)
}

/// What coins and notes come to.
fn counted(kinds: &[Denomination]) -> Result<i64, ShiftError> {
    let values: BTreeSet<i64> = kinds.iter().map(|kind| kind.value_minor).collect();
    if kinds.len() > DENOMINATIONS_MAX || values.len() != kinds.len() {
        return Err(ShiftError::Invalid("counted: each value once, 50 at most."));
    }
    if kinds.iter().any(|kind| !(1..=CASH_MINOR_MAX).contains(&kind.value_minor) || kind.count > COUNT_MAX) {
        return Err(ShiftError::Invalid("counted: a value is from 1 to 999999999, a count at most 1000000."));
    }
    let total = kinds.iter().map(|kind| kind.value_minor * i64::from(kind.count)).sum();
    if total > CASH_MINOR_MAX {
        return Err(ShiftError::Invalid("counted: no drawer holds that much."));
    }
    Ok(total)
}

/// As it is kept.
type Stored = Json<ShiftReport>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_added_up_or_refused() {
        let kind = |value_minor, count| Denomination { value_minor, count };
        assert_eq!(counted(&[]).ok(), Some(0));
        assert_eq!(counted(&[kind(5_000, 3), kind(200, 7), kind(1, 0)]).ok(), Some(16_400));
        for wrong in
            [vec![kind(100, 1), kind(100, 2)], vec![kind(0, 1)], vec![kind(-5, 1)], vec![kind(999_999_999, 1_000_000)]]
        {
            assert!(counted(&wrong).is_err(), "{wrong:?}");
        }
    }
}
