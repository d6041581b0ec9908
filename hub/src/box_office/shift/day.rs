//! The day in the books, and its lock.
//!
//! Invariants
//! - A locked day has no open shift, and none opens any more: both take the day's lock.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use fullhouse_protocol::shift::{DayLocked, ShiftListed};
use sqlx::PgPool;

use super::{At, ShiftError, list_of_day};
use crate::{
    auth::Deed,
    clock, config,
    db::{self, Tx},
};

/// Beside the locks of events, which have one number.
const DAYS: i32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum DayError {
    #[error("the day has not come yet")]
    Future,
    #[error("{} shifts are open", .0.len())]
    ShiftsOpen(Vec<ShiftListed>),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The day to which a moment belongs: what comes after midnight is the evening's.
pub(super) fn business_day(house: &config::BoxOffice, at: DateTime<Utc>) -> NaiveDate {
    let zone: Tz = house.time_zone.parse().unwrap_or(Tz::UTC); // the settings were checked
    (at.with_timezone(&zone).naive_local() - TimeDelta::hours(house.day_begins_h)).date()
}

/// Keeps anybody from locking the day until the transaction ends, unless it is locked.
pub(super) async fn keep_open(tx: &mut Tx, day: NaiveDate) -> Result<(), ShiftError> {
    sqlx::query!("select pg_advisory_xact_lock_shared($1, $2::date - date '2000-01-01')", DAYS, day)
        .execute(&mut **tx)
        .await?;
    let locked = sqlx::query_scalar!(r#"select exists(select from day_lock where day = $1) as "locked!""#, day)
        .fetch_one(&mut **tx)
        .await?;
    if locked { Err(ShiftError::DayLocked(day)) } else { Ok(()) }
}

/// Locks a day whose shifts are closed, at every terminal. Again: it is locked, by whoever did it first.
pub async fn lock(pool: PgPool, house: &config::BoxOffice, at: At, day: NaiveDate) -> Result<DayLocked, DayError> {
    let house = house.clone();
    db::write(async move {
        let mut tx = pool.begin().await?;
        at.actor.acts(&mut tx).await?;
        sqlx::query!("select pg_advisory_xact_lock($1, $2::date - date '2000-01-01')", DAYS, day)
            .execute(&mut *tx)
            .await?;
        let now = clock::now(&mut tx).await?;
        if day > business_day(&house, now) {
            return Err(DayError::Future);
        }
        let shifts = list_of_day(&mut tx, day).await?;
        let open: Vec<ShiftListed> = shifts.iter().filter(|shift| shift.closed_at.is_none()).cloned().collect();
        if !open.is_empty() {
            return Err(DayError::ShiftsOpen(open));
        }
        let written = sqlx::query!(
            "insert into day_lock (day, locked_at, locked_by, staff_id) values ($1, $2, $3, $4) on conflict do nothing",
            day,
            now,
            at.actor.name(),
            at.staff_id
        )
        .execute(&mut *tx)
        .await?;
        if written.rows_affected() == 1 {
            let (detail, reason) = (&*day.to_string(), "the books of the day are closed");
            at.actor.writes(&mut tx, Deed { verb: "day_lock", event_id: None, detail, reason }, now).await?;
        }
        let lock =
            sqlx::query!("select locked_at, locked_by from day_lock where day = $1", day).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(DayLocked { date: day, locked_at: lock.locked_at, locked_by: lock.locked_by, shifts })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_midnight_is_the_evenings() {
        let house = config::BoxOffice {
            time_zone: "Europe/Berlin".to_owned(),
            day_begins_h: 5,
            reader_ask_s: 30,
            until_sold_look_s: 3,
        };
        let day = |text: &str| business_day(&house, text.parse().unwrap()).to_string();
        assert_eq!(day("2026-07-01T02:59:59Z"), "2026-06-30", "one second before five in the morning");
        assert_eq!(day("2026-07-01T03:00:00Z"), "2026-07-01");
        assert_eq!(day("2026-07-01T22:30:00Z"), "2026-07-01");
    }
}
