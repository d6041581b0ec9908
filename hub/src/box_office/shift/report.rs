//! What a shift came to: X while it is open, Z when it is closed.
//!
//! Invariants
//! - A Z is kept as it was printed: printed again, it says the same.

use chrono::NaiveDate;
use fullhouse_protocol::shift::{
    Denomination, ShiftClosed, ShiftListed, ShiftMove, ShiftMoveKind, ShiftReport, ShiftSum, TenderSum,
};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

use super::{Stored, check::checks};
use crate::{clock, db::Tx};

/// The latest are listed.
const LISTED_MAX: i64 = 100;
const LISTED_A_DAY_MAX: i64 = 1_000;

/// A shift, open or closed.
pub async fn report(tx: &mut Tx, shift_id: Uuid) -> sqlx::Result<Option<ShiftReport>> {
    let Some(head) = sqlx::query!(
        r#"select h.terminal_id, t.name as terminal_name, h.business_day, h.currency, h.opened_at, s.name as opened_by,
                  h.float_minor, h.report as "report: Stored"
           from shift h join terminal t on t.id = h.terminal_id join staff s on s.id = h.opened_by where h.id = $1"#,
        shift_id
    )
    .fetch_optional(&mut **tx)
    .await?
    else {
        return Ok(None);
    };
    let now = clock::now(tx).await?;
    if let Some(Json(z)) = head.report {
        return Ok(Some(ShiftReport { now, ..z }));
    }
    let sums = sums(tx, shift_id).await?;
    Ok(Some(ShiftReport {
        shift_id,
        terminal_id: head.terminal_id,
        terminal_name: head.terminal_name,
        business_day: head.business_day,
        currency: head.currency,
        opened_at: head.opened_at,
        opened_by: head.opened_by,
        float_minor: head.float_minor,
        cash_sales: sums.cash_sales,
        cash_back: sums.cash_back,
        pay_ins: sums.pay_ins,
        pay_outs: sums.pay_outs,
        drops: sums.drops,
        expected_minor: sums.expected_minor(),
        tenders: tenders(tx, shift_id).await?,
        moves: moves(tx, shift_id).await?,
        checks: checks(tx, shift_id).await?,
        closed: None,
        now,
    }))
}

/// The same, if it is this terminal's.
pub(super) async fn with(tx: &mut Tx, shift_id: Uuid, terminal_id: Uuid) -> sqlx::Result<Option<ShiftReport>> {
    Ok(report(tx, shift_id).await?.filter(|shift| shift.terminal_id == terminal_id))
}

#[derive(Debug, Default)]
pub(super) struct Sums {
    float_minor: i64,
    cash_sales: ShiftSum,
    cash_back: ShiftSum,
    pay_ins: ShiftSum,
    pay_outs: ShiftSum,
    drops: ShiftSum,
}

impl Sums {
    /// What should lie in the drawer.
    pub fn expected_minor(&self) -> i64 {
        self.float_minor + self.cash_sales.amount_minor - self.cash_back.amount_minor + self.pay_ins.amount_minor
            - self.pay_outs.amount_minor
            - self.drops.amount_minor
    }
}

/// All cash of a shift.
pub(super) async fn sums(tx: &mut Tx, shift_id: Uuid) -> sqlx::Result<Sums> {
    let rows = sqlx::query!(
        r#"select 'float' as "kind!", 1::bigint as "count!", float_minor as "amount!" from shift where id = $1
           union all
           select 'sales', count(*), coalesce(sum(amount_minor), 0)::bigint from tender where shift_id = $1 and kind = 'cash'
           union all
           select 'back', count(*), coalesce(sum(amount_minor), 0)::bigint from refund
           where shift_id = $1 and kind = 'cash' and state <> 'failed'
           union all
           select kind, count(*), sum(amount_minor)::bigint from shift_move where shift_id = $1 group by kind"#,
        shift_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let mut sums = Sums::default();
    for row in rows {
        let sum = ShiftSum { count: row.count, amount_minor: row.amount };
        match row.kind.as_str() {
            "float" => sums.float_minor = row.amount,
            "sales" => sums.cash_sales = sum,
            "back" => sums.cash_back = sum,
            "pay_in" => sums.pay_ins = sum,
            "pay_out" => sums.pay_outs = sum,
            _ => sums.drops = sum,
        }
    }
    Ok(sums)
}

/// What was sold here by what paid for it. A card counts once its money is taken.
async fn tenders(tx: &mut Tx, shift_id: Uuid) -> sqlx::Result<Vec<TenderSum>> {
    sqlx::query_as!(
        TenderSum,
        r#"select t.kind, count(*) as "count!",
                  sum(case when t.kind in ('comp', 'voucher') then 0 else t.amount_minor end)::bigint as "amount_minor!"
           from tender t
           where t.shift_id = $1 and t.kind in ('cash', 'card', 'account', 'comp', 'voucher')
             and (t.kind <> 'card' or exists(select from attempt a where a.tender_id = t.id and a.captured_minor > 0))
           group by t.kind order by t.kind"#,
        shift_id
    )
    .fetch_all(&mut **tx)
    .await
}

async fn moves(tx: &mut Tx, shift_id: Uuid) -> sqlx::Result<Vec<ShiftMove>> {
    let rows = sqlx::query!(
        "select m.kind, m.amount_minor, m.reason, s.name as by, m.made_at as at
         from shift_move m join staff s on s.id = m.staff_id where m.shift_id = $1 order by m.id",
        shift_id
    )
    .fetch_all(&mut **tx)
    .await?;
    let moves = rows.into_iter().filter_map(|m| {
        let kind = ShiftMoveKind::read(&m.kind)?; // the column is checked
        Some(ShiftMove { kind, amount_minor: m.amount_minor, reason: m.reason, by: m.by, at: m.at })
    });
    Ok(moves.collect())
}

/// What a shift is closed with. Its row is the transaction's own.
pub(super) struct Closing {
    pub shift_id: Uuid,
    pub staff_id: Uuid,
    pub expected_minor: i64,
    pub counted_minor: i64,
    pub counted: Vec<Denomination>,
    pub explanation: Option<String>,
}

/// Closes, under the terminal's next number, and keeps the report.
pub(super) async fn close(tx: &mut Tx, closing: Closing) -> sqlx::Result<ShiftReport> {
    let missing = || sqlx::Error::RowNotFound;
    let x = report(tx, closing.shift_id).await?.ok_or_else(missing)?;
    let now = clock::now(tx).await?;
    let closed = sqlx::query!(
        r#"select (select coalesce(max(z_number), 0) + 1 from shift where terminal_id = $1) as "z_number!",
                  (select name from staff where id = $2) as "closed_by!""#,
        x.terminal_id,
        closing.staff_id
    )
    .fetch_one(&mut **tx)
    .await?;
    let z = ShiftReport {
        closed: Some(ShiftClosed {
            z_number: closed.z_number,
            closed_at: now,
            closed_by: closed.closed_by,
            counted: closing.counted,
            counted_minor: closing.counted_minor,
            variance_minor: closing.counted_minor - closing.expected_minor,
            explanation: closing.explanation.clone(),
        }),
        now,
        ..x
    };
    let written = sqlx::query!(
        "update shift set closed_by = $2, closed_at = $3, z_number = $4, expected_minor = $5, counted_minor = $6,
             explanation = $7, report = $8
         where id = $1 and closed_at is null",
        closing.shift_id,
        closing.staff_id,
        now,
        closed.z_number,
        closing.expected_minor,
        closing.counted_minor,
        closing.explanation,
        Json(&z) as _
    )
    .execute(&mut **tx)
    .await?;
    if written.rows_affected() != 1 {
        return Err(sqlx::Error::Protocol("a shift was closed by somebody else".into()));
    }
    Ok(z)
}

/// The shifts of a terminal, the latest first.
pub async fn list(pool: &PgPool, terminal_id: Uuid) -> sqlx::Result<Vec<ShiftListed>> {
    sqlx::query_as!(
        ShiftListed,
        r#"select h.id as shift_id, t.name as terminal_name, h.business_day, h.opened_at, s.name as opened_by,
                  h.z_number, h.closed_at, h.counted_minor - h.expected_minor as variance_minor, h.currency
           from shift h join terminal t on t.id = h.terminal_id join staff s on s.id = h.opened_by
           where h.terminal_id = $1 order by h.opened_at desc limit $2"#,
        terminal_id,
        LISTED_MAX
    )
    .fetch_all(pool)
    .await
}

/// The shifts of terminals that are revoked or locked: those that nobody has counted come first.
pub async fn list_of_stopped(pool: &PgPool) -> sqlx::Result<Vec<ShiftListed>> {
    sqlx::query_as!(
        ShiftListed,
        r#"select h.id as shift_id, t.name as terminal_name, h.business_day, h.opened_at, s.name as opened_by,
                  h.z_number, h.closed_at, h.counted_minor - h.expected_minor as variance_minor, h.currency
           from shift h join terminal t on t.id = h.terminal_id join staff s on s.id = h.opened_by
           where t.revoked_at is not null or t.locked_at is not null
           order by h.closed_at is not null, h.opened_at desc limit $1"#,
        LISTED_MAX
    )
    .fetch_all(pool)
    .await
}

/// The shifts of a day, at whatever terminal.
pub async fn list_of_day(db: &mut sqlx::PgConnection, day: NaiveDate) -> sqlx::Result<Vec<ShiftListed>> {
    sqlx::query_as!(
        ShiftListed,
        r#"select h.id as shift_id, t.name as terminal_name, h.business_day, h.opened_at, s.name as opened_by,
                  h.z_number, h.closed_at, h.counted_minor - h.expected_minor as variance_minor, h.currency
           from shift h join terminal t on t.id = h.terminal_id join staff s on s.id = h.opened_by
           where h.business_day = $1 order by t.name, h.opened_at limit $2"#,
        day,
        LISTED_A_DAY_MAX
    )
    .fetch_all(db)
    .await
}
