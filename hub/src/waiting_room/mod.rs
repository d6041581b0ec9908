//! The waiting room: who stands where in an event's line, and what everybody is shown of it.
//!
//! Invariants
//! - One standing entry an account and event (`line_entry_one_standing`); its number never changes.
//! - A place is a function of the draw and the number: nobody writes it, so no restart, failover or
//!   second draw by another hub can change it.
//! - A line never lacks a draw, and a draw's commitment is published with it: it is older than every entry.

pub mod draw; // who stands where, so that anybody can check it
pub mod line; // what everybody is shown
pub mod bounds; // what a line may be set to
pub mod open; // a line begins, with its draw's commitment
pub mod drawing; // entries fixed, root published, value taken, secret revealed
pub mod places; // the places of a draw, in memory
pub mod door; // the challenge
pub mod receipt; // the signed place-ticket
pub mod joins; // the desk of joins: many at a time
pub mod entry; // one's own stand in the line

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use dashmap::DashMap;
use sqlx::PgPool;

use self::{door::Door, joins::Joins, line::Seen, places::Places};
use crate::{
    config::{self, Config},
    db,
    keys::Keys,
};

/// How long an event's line is taken to be as it was read.
const FACTS_AGE_MAX: Duration = Duration::from_secs(1);
/// How long what everybody is shown is handed out without looking again.
const SHOWN_AGE_MAX: Duration = Duration::from_millis(500);
/// A database that has not answered for so long is late, and who waits is told.
const LATE_AFTER: Duration = Duration::from_secs(3);

/// What a hub needs for lines. Cheap to clone.
#[derive(Clone)]
pub struct WaitingRoom(Arc<Inner>);

struct Inner {
    pool: PgPool,
    settings: config::WaitingRoom,
    keys: Keys,
    facts: DashMap<i64, (Instant, Option<Arc<Facts>>)>,
    shown: Mutex<BTreeMap<i64, Shown>>,
    places: Places,
    door: Door,
    joins: Joins,
}

/// What about a line does not change while it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub challenge_key: [u8; 32],
}

struct Shown {
    seen: Seen,
    looked_at: Instant,
    /// Somebody looks at this moment.
    looking: bool,
}

impl WaitingRoom {
    pub fn new(config: &Config, pool: PgPool, keys: Keys) -> Self {
        let settings = config.waiting_room.clone();
        let places = Places::new(pool.clone());
        Self(Arc::new(Inner {
            joins: Joins::new(&settings, pool.clone(), places.clone()),
            door: Door::new(settings.clone()),
            facts: DashMap::new(),
            shown: Mutex::new(BTreeMap::new()),
            places,
            keys,
            settings,
            pool,
        }))
    }

    pub fn settings(&self) -> &config::WaitingRoom {
        &self.0.settings
    }

    pub fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub fn places(&self) -> &Places {
        &self.0.places
    }

    pub fn door(&self) -> &Door {
        &self.0.door
    }

    pub fn joins(&self) -> &Joins {
        &self.0.joins
    }

    /// Of an event without a line: `None`.
    pub async fn facts(&self, event_id: i64) -> sqlx::Result<Option<Arc<Facts>>> {
        if let Some(known) = self.0.facts.get(&event_id)
            && known.0.elapsed() < FACTS_AGE_MAX
        {
            return Ok(known.1.clone());
        }
        let row = sqlx::query_scalar!("select challenge_key from line where event_id = $1", event_id)
            .fetch_optional(&self.0.pool)
            .await;
        let facts = match row {
            Ok(row) => row.and_then(|key| Some(Arc::new(Facts { challenge_key: key.try_into().ok()? }))),
            // The key does not change: what was read before is good while the database is away.
            Err(error) => match self.0.facts.get(&event_id) {
                Some(known) if db::is_transient(&error) && known.1.is_some() => return Ok(known.1.clone()),
                _ => return Err(error),
            },
        };
        self.0.facts.insert(event_id, (Instant::now(), facts.clone()));
        Ok(facts)
    }

    /// What everybody is shown. Looked at twice a second at most, however many ask; when the database does not
    /// answer, how things stood, and that it is late.
    pub async fn shown(&self, event_id: i64) -> sqlx::Result<Option<Seen>> {
        if let Some(known) = self.known(event_id) {
            return Ok(Some(known));
        }
        let looked = async { line::look(&mut *self.0.pool.acquire().await?, event_id).await };
        let looked = tokio::time::timeout(LATE_AFTER, looked).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let mut shown = self.0.shown.lock().expect("nobody panics while holding it");
        match looked {
            Ok(Some(seen)) => {
                let fresh = Shown { seen: seen.clone(), looked_at: Instant::now(), looking: false };
                shown.insert(event_id, fresh);
                Ok(Some(seen))
            }
            Ok(None) => {
                shown.remove(&event_id);
                Ok(None)
            }
            Err(error) => match shown.get_mut(&event_id) {
                Some(last) if db::is_transient(&error) => {
                    last.looking = false;
                    Ok(Some(last.seen_late()))
                }
                _ => Err(error),
            },
        }
    }

    /// What is known, if it is fresh or somebody else is looking. Otherwise the caller is to look.
    fn known(&self, event_id: i64) -> Option<Seen> {
        let mut shown = self.0.shown.lock().expect("nobody panics while holding it");
        let last = shown.get_mut(&event_id)?;
        let age = last.looked_at.elapsed();
        if age < SHOWN_AGE_MAX {
            return Some(last.seen.clone());
        }
        // A look that never came back does not stand in the way for ever.
        if last.looking && age < LATE_AFTER * 10 {
            return Some(last.seen_late());
        }
        last.looking = true;
        None
    }
}

impl Shown {
    fn seen_late(&self) -> Seen {
        let mut seen = self.seen.clone();
        seen.line.database_late = self.looked_at.elapsed() >= LATE_AFTER;
        seen
    }
}
