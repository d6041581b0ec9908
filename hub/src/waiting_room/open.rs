//! A line begins: its times, its limits, and the commitment of its draw, all in one transaction.

use chrono::{DateTime, Utc};
pub use fullhouse_protocol::line::PublicValue;
use rand::RngCore;
use sqlx::PgConnection;

use super::{
    bounds::{self, Faults, Wanted},
    draw::{Public, Terms},
};
use crate::{clock, db};

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

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no such event")]
    EventUnknown,
    #[error("the event has a waiting room already")]
    Exists,
    #[error(transparent)]
    Invalid(#[from] Faults),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Gives an event its line. The caller commits.
pub async fn open(db: &mut PgConnection, event_id: i64, new: &NewLine, actor: &str) -> Result<(), OpenError> {
    let event = sqlx::query!("select on_sale_at from event where id = $1 for share", event_id)
        .fetch_optional(&mut *db)
        .await?
        .ok_or(OpenError::EventUnknown)?;
    bounds::faults(&new.wanted(), Some(event.on_sale_at)).none()?;
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
        Some(_) => OpenError::Invalid(Faults::one("times, rates or numbers are not within their bounds")),
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

impl NewLine {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            joins_at: Some(self.joins_at),
            closes_at: Some(self.closes_at),
            rate_minute_min: Some(self.rate_minute_min),
            rate_minute_max: Some(self.rate_minute_max),
            inside_max: Some(self.inside_max),
            public: self.public.as_ref(),
            ..Wanted::default()
        }
    }
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
