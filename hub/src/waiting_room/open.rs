//! A line begins: its times, its limits, and the commitment of its draw, all in one transaction.

use chrono::{DateTime, TimeDelta, Utc};
use rand::RngCore;
use sqlx::PgConnection;

use super::draw::{Public, Terms};
use crate::{clock, db};

/// Between the root that fixes the entries and the public value that shuffles them, at least.
pub const VALUE_AFTER_S: i64 = 60;

/// What an operator says of a new line.
#[derive(Debug, Clone)]
pub struct NewLine {
    pub joins_at: DateTime<Utc>,
    pub closes_at: DateTime<Utc>,
    pub public: Option<PublicValue>,
    pub rate_minute_min: i32,
    pub rate_minute_max: i32,
    pub inside_max: i32,
}

/// Where the value comes from that nobody here can choose, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicValue {
    pub source: String,
    pub round: String,
    pub due_at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event has a waiting room already")]
    Exists,
    #[error("{0}")]
    Invalid(&'static str),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Gives an event its line. The caller commits.
pub async fn open(db: &mut PgConnection, event_id: i64, new: &NewLine, actor: &str) -> Result<(), OpenError> {
    let event = sqlx::query!("select on_sale_at from event where id = $1 for share", event_id)
        .fetch_optional(&mut *db)
        .await?
        .ok_or(OpenError::EventUnknown)?;
    check(new, event.on_sale_at)?;
    let now = clock::now(db).await?;
    let mut challenge_key = [0; 32];
    rand::rng().fill_bytes(&mut challenge_key);
    let opened = sqlx::query!(
        "insert into line (event_id, changed_at, joins_at, closes_at, draw_no, challenge_key, rate_minute, rate_minute_min,
                           rate_minute_max, inside_max)
         values ($1, $2, $3, $4, 1, $5, $7, $6, $7, $8)",
        event_id,
        now,
        new.joins_at,
        new.closes_at,
        &challenge_key[..],
        new.rate_minute_min,
        new.rate_minute_max,
        new.inside_max
    )
    .execute(&mut *db)
    .await;
    opened.map_err(|error| match db::constraint(&error) {
        Some("line_pkey") => OpenError::Exists,
        Some(_) => OpenError::Invalid("times, rates or numbers are not within their bounds"),
        None => error.into(),
    })?;
    commit_to(db, event_id, 1, new.public.as_ref(), now).await?;
    let is_now =
        serde_json::json!({ "joins_at": new.joins_at, "closes_at": new.closes_at, "inside_max": new.inside_max });
    sqlx::query!(
        "insert into line_change (event_id, at, actor, what, is_now) values ($1, $2, $3, 'opened', $4)",
        event_id,
        now,
        actor,
        is_now
    )
    .execute(db)
    .await?;
    Ok(())
}

fn check(new: &NewLine, on_sale_at: DateTime<Utc>) -> Result<(), OpenError> {
    if new.joins_at >= new.closes_at {
        return Err(OpenError::Invalid("joining has to begin before it ends"));
    }
    if new.closes_at > on_sale_at {
        return Err(OpenError::Invalid("the entries have to be fixed before the sale opens"));
    }
    check_public(new.public.as_ref(), new.closes_at, on_sale_at)
}

/// A value that could be known before the entries are fixed makes nothing verifiable.
pub fn check_public(
    public: Option<&PublicValue>,
    closes_at: DateTime<Utc>,
    on_sale_at: DateTime<Utc>,
) -> Result<(), OpenError> {
    let Some(public) = public else { return Ok(()) };
    let text = |text: &str| (1..=200).contains(&text.len());
    if !text(&public.source) || !text(&public.round) {
        return Err(OpenError::Invalid("source and round have 1 to 200 characters"));
    }
    if public.due_at < closes_at + TimeDelta::seconds(VALUE_AFTER_S) {
        return Err(OpenError::Invalid("the public value has to come a minute after the entries are fixed, or later"));
    }
    if public.due_at > on_sale_at {
        return Err(OpenError::Invalid("the public value has to be out before the sale opens"));
    }
    Ok(())
}

/// Makes a secret and publishes the commitment to it.
pub async fn commit_to(
    db: &mut PgConnection,
    event_id: i64,
    draw_no: i32,
    public: Option<&PublicValue>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut secret = [0; 32];
    rand::rng().fill_bytes(&mut secret);
    let terms = Terms {
        event_id,
        draw_no: draw_no as u32,
        public: public.map(|p| Public { source: &p.source, round: &p.round }),
    };
    sqlx::query!(
        "insert into draw (event_id, draw_no, commitment, secret, public_source, public_round, value_due_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        event_id,
        draw_no,
        &terms.commitment(&secret)[..],
        &secret[..],
        public.map(|p| p.source.as_str()),
        public.map(|p| p.round.as_str()),
        public.map(|p| p.due_at),
        now
    )
    .execute(db)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    #[test]
    fn a_value_that_could_be_known_before_the_entries_are_fixed_is_refused() {
        let value = |due_at| PublicValue { source: "a beacon".into(), round: "7".into(), due_at };
        let check = |due_at| check_public(Some(&value(due_at)), at(100), at(500)).is_ok();
        assert!(!check(at(159)));
        assert!(check(at(160)) && check(at(500)));
        assert!(!check(at(501)));
    }
}
