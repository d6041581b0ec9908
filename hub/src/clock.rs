//! Time. Verbs ask the database's clock; people plan by local time in a venue's zone.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use sqlx::PgConnection;

/// The database's clock. Ask it in a statement of its own, after the locks are taken.
pub async fn now(db: &mut PgConnection) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(r#"select db_clock() as "now!""#).fetch_one(db).await
}

/// Whether `db_clock()` is the function that the migration made. A test harness replaces it.
pub async fn is_real(db: &mut PgConnection) -> sqlx::Result<bool> {
    let body =
        sqlx::query_scalar!(r#"select prosrc as "prosrc!" from pg_proc where proname = 'db_clock' and pronargs = 0"#)
            .fetch_optional(db)
            .await?;
    Ok(body.as_deref() == Some("select clock_timestamp()"))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalTimeError {
    #[error("there is no time zone called {0}")]
    UnknownZone(String),
    #[error("{local} does not exist in {zone}: the clocks go forward over it")]
    Skipped { local: NaiveDateTime, zone: Tz },
    #[error("{local} happens twice in {zone}, at {earlier} and at {later}: choose a time that is clear to everybody")]
    Twice { local: NaiveDateTime, zone: Tz, earlier: DateTime<Utc>, later: DateTime<Utc> },
}

pub fn zone(name: &str) -> Result<Tz, LocalTimeError> {
    name.parse().map_err(|_| LocalTimeError::UnknownZone(name.to_owned()))
}

/// The instant of a local time. A time in a gap or an overlap is refused, never guessed.
pub fn instant(local: NaiveDateTime, zone: Tz) -> Result<DateTime<Utc>, LocalTimeError> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) => Ok(at.to_utc()),
        LocalResult::None => Err(LocalTimeError::Skipped { local, zone }),
        LocalResult::Ambiguous(a, b) => {
            Err(LocalTimeError::Twice { local, zone, earlier: a.to_utc(), later: b.to_utc() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").unwrap()
    }

    #[test]
    fn gaps_and_overlaps_are_refused_aloud() {
        let berlin = zone("Europe/Berlin").unwrap();
        assert!(matches!(instant(local("2027-03-28T02:30"), berlin), Err(LocalTimeError::Skipped { .. })));
        assert!(matches!(instant(local("2027-10-31T02:30"), berlin), Err(LocalTimeError::Twice { .. })));
        assert_eq!(instant(local("2027-07-01T19:00"), berlin).unwrap().to_rfc3339(), "2027-07-01T17:00:00+00:00");
        assert_eq!(zone("Mars/Olympus"), Err(LocalTimeError::UnknownZone("Mars/Olympus".into())));
    }

    #[test]
    fn saving_the_same_local_time_again_moves_nothing() {
        let tokyo = zone("Asia/Tokyo").unwrap();
        let mut at = instant(local("2027-05-01T10:00"), tokyo).unwrap();
        for _ in 0..3 {
            at = instant(at.with_timezone(&tokyo).naive_local(), tokyo).unwrap();
        }
        assert_eq!(at.to_rfc3339(), "2027-05-01T01:00:00+00:00");
    }
}
