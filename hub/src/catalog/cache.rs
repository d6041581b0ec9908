//! Answers that many ask for at the same time: read once, encoded once, given to all.
//!
//! Invariants
//! - What it gives is a second old at most, or as long as reading it took; it decides nothing.
//! - Whoever comes while it is read waits for that one reading (single flight). The reading is a task
//!   of its own: a client that hangs up does not make the next one begin again.
//! - It is bounded: pages that nobody asked for go, and so do drawings beyond a number.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use flate2::Compression;
use sqlx::PgPool;
use tokio::sync::Mutex;

use super::{
    geometry::gzip,
    listing::{self, EventState, PlanSeat, Sizes},
    search::Listed,
};

const FRESH: Duration = Duration::from_millis(1000);
/// A database that needs long for a reading is not asked again at once.
const REST_ROUNDS: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(10);
/// A page with its 62,000 seats takes some 15 MB while it is asked for.
const IDLE: Duration = Duration::from_secs(60);
const PAGES_MAX: usize = 200;
const DRAWINGS_MAX: usize = 32;
const SLUGS_MAX: usize = 10_000;

/// Shared by all handlers of a hub.
#[derive(Clone, Default)]
pub struct EventCache(Arc<Inner>);

type Pages = HashMap<(i64, Seats), Arc<Mutex<PageSlot>>>;

#[derive(Default)]
struct Inner {
    list: Mutex<ListSlot>,
    pages: Mutex<Pages>,
    drawings: Mutex<HashMap<String, Bytes>>,
    slugs: Mutex<HashMap<String, i64>>,
}

/// Whether a page lists its seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seats {
    All,
    None,
}

#[derive(Default)]
struct ListSlot {
    read: Option<(Arc<Vec<Listed>>, DateTime<Utc>, Age)>,
    sizes: Sizes,
}

#[derive(Default)]
struct PageSlot {
    /// Gzipped JSON.
    body: Option<(Bytes, Age)>,
    plan: Option<(i64, Arc<Vec<PlanSeat>>)>,
    asked: Option<Instant>,
}

/// When something was read, and how long that took.
#[derive(Debug, Clone, Copy)]
struct Age {
    at: Instant,
    took: Duration,
}

impl Age {
    fn since(began: Instant) -> Self {
        Self { at: Instant::now(), took: began.elapsed() }
    }

    fn is_fresh(self) -> bool {
        self.at.elapsed() < FRESH.max(self.took * REST_ROUNDS).min(REST_MAX)
    }
}

impl EventCache {
    /// Every event, with counts that are a second old at most; and the time, by the database's clock.
    pub async fn list(&self, pool: &PgPool) -> sqlx::Result<(Arc<Vec<Listed>>, DateTime<Utc>)> {
        let (cache, pool) = (self.clone(), pool.clone());
        alone(async move {
            let mut slot = cache.0.list.lock().await;
            if let Some((list, now, age)) = &slot.read
                && age.is_fresh()
            {
                return Ok((list.clone(), *now + age.at.elapsed()));
            }
            let began = Instant::now();
            let (list, now) = listing::list(&mut *pool.acquire().await?, &mut slot.sizes).await?;
            let (list, age) = (Arc::new(list), Age::since(began));
            let now = now + age.took; // the clock was read first
            slot.read = Some((list.clone(), now, age));
            Ok((list, now))
        })
        .await
    }

    /// The event that an address names, by its number or its slug. An event keeps both for ever.
    pub async fn find(&self, pool: &PgPool, id_or_slug: &str) -> sqlx::Result<Option<i64>> {
        if let Ok(id) = id_or_slug.parse() {
            return Ok(Some(id));
        }
        if let Some(id) = self.0.slugs.lock().await.get(id_or_slug) {
            return Ok(Some(*id));
        }
        let Some(id) = listing::find(&mut *pool.acquire().await?, id_or_slug).await? else { return Ok(None) };
        let mut slugs = self.0.slugs.lock().await;
        if slugs.len() >= SLUGS_MAX {
            slugs.clear();
        }
        slugs.insert(id_or_slug.to_owned(), id);
        Ok(Some(id))
    }

    /// The page of an event as gzipped JSON; none if there is no such event.
    pub async fn page(&self, pool: &PgPool, event_id: i64, seats: Seats) -> sqlx::Result<Option<Bytes>> {
        let (cache, pool) = (self.clone(), pool.clone());
        alone(async move {
            let slot = cache.slot(event_id, seats).await;
            let mut slot = slot.lock().await;
            if let Some((body, age)) = &slot.body
                && age.is_fresh()
            {
                return Ok(Some(body.clone()));
            }
            let began = Instant::now();
            let mut db = pool.acquire().await?;
            let Some(state) = listing::state(&mut db, event_id, seats == Seats::All).await? else {
                cache.0.pages.lock().await.remove(&(event_id, seats));
                return Ok(None);
            };
            let plan = match (&slot.plan, seats) {
                (_, Seats::None) => None,
                (Some((revision_id, plan)), _) if *revision_id == state.revision_id() => Some(plan.clone()),
                _ => {
                    let plan = Arc::new(listing::plan_seats(&mut db, state.revision_id()).await?);
                    slot.plan = Some((state.revision_id(), plan.clone()));
                    Some(plan)
                }
            };
            drop(db);
            let body = tokio::task::spawn_blocking(move || encode(&state, plan.as_deref())).await;
            let body = match body {
                Ok(body) => body,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            };
            slot.body = Some((body.clone(), Age::since(began)));
            Ok(Some(body))
        })
        .await
    }

    /// What was read before this moment is not given any more: staff have changed something of the event that
    /// everybody is to see at once. Other hubs find it out by themselves, in seconds.
    pub async fn forget(&self, event_id: i64) {
        // A page that is being read at this moment goes too; whoever waits for it has asked before.
        self.0.pages.lock().await.retain(|(event, _), _| *event != event_id);
        self.0.list.lock().await.read = None;
    }

    /// The slot of a page; pages that nobody has asked for go.
    async fn slot(&self, event_id: i64, seats: Seats) -> Arc<Mutex<PageSlot>> {
        let mut pages = self.0.pages.lock().await;
        // A slot that is being filled is locked: somebody asks for it.
        pages.retain(|_, slot| slot.try_lock().map_or(true, |s| s.asked.is_none_or(|at| at.elapsed() < IDLE)));
        if pages.len() >= PAGES_MAX
            && !pages.contains_key(&(event_id, seats))
            && let Some(any) = pages.keys().next().copied()
        {
            pages.remove(&any);
        }
        let slot = pages.entry((event_id, seats)).or_default().clone();
        if let Ok(mut slot) = slot.try_lock() {
            slot.asked = Some(Instant::now());
        }
        slot
    }

    /// The drawing of a revision as gzipped JSON; none if no revision has this hash.
    pub async fn geometry(&self, pool: &PgPool, hash: &str) -> sqlx::Result<Option<Bytes>> {
        if let Some(known) = self.0.drawings.lock().await.get(hash) {
            return Ok(Some(known.clone()));
        }
        let Some(drawing) = listing::geometry(&mut *pool.acquire().await?, hash).await? else { return Ok(None) };
        let drawing = Bytes::from(drawing);
        let mut drawings = self.0.drawings.lock().await;
        if drawings.len() >= DRAWINGS_MAX
            && let Some(any) = drawings.keys().next().cloned()
        {
            drawings.remove(&any);
        }
        drawings.insert(hash.to_owned(), drawing.clone());
        Ok(Some(drawing))
    }
}

fn encode(state: &EventState, plan: Option<&Vec<PlanSeat>>) -> Bytes {
    let json = serde_json::to_vec(&state.page(plan.map(Vec::as_slice))).expect("text and numbers are always JSON");
    gzip(&json, Compression::fast()).into()
}

/// Goes on to its end when whoever asked has gone.
async fn alone<T: Send + 'static>(work: impl Future<Output = sqlx::Result<T>> + Send + 'static) -> sqlx::Result<T> {
    crate::db::write(work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_kept_longer() {
        let age = |took_ms, ago_ms| Age {
            at: Instant::now() - Duration::from_millis(ago_ms),
            took: Duration::from_millis(took_ms),
        };
        assert!(age(10, 900).is_fresh() && !age(10, 1_001).is_fresh());
        assert!(age(1_000, 3_900).is_fresh() && !age(1_000, 4_001).is_fresh());
        assert!(!age(60_000, 10_001).is_fresh());
    }
}
