//! The places of draws, in memory: four bytes an entry, computed once a process from what the draw's row has.
//!
//! Losing them costs a computation, never a place.

use std::sync::Arc;

use dashmap::DashMap;
use sqlx::{PgConnection, PgPool};
use tokio::sync::Mutex;

use super::draw::{self, Tree};

/// Draws that are remembered: lines of one evening.
const REMEMBERED_MAX: usize = 64;

#[derive(Clone)]
pub struct Places(Arc<Inner>);

struct Inner {
    pool: PgPool,
    drawn: DashMap<(i64, i32), Arc<Vec<u32>>>,
    trees: DashMap<(i64, i32), Arc<Tree>>,
    /// One computation at a time of each kind: a hub that has just started is asked by thousands at once. Whoever waits
    /// here for places has a connection already, and so has whoever is waited for.
    drawing: Mutex<()>,
    growing: Mutex<()>,
}

impl Places {
    pub fn new(pool: PgPool) -> Self {
        Self(Arc::new(Inner {
            pool,
            drawn: DashMap::new(),
            trees: DashMap::new(),
            drawing: Mutex::default(),
            growing: Mutex::default(),
        }))
    }

    /// The place of each drawn number; `None` before the draw. Reads over the caller's connection: whoever has one and
    /// waits for another can wait for ever, when all do.
    pub async fn of(&self, db: &mut PgConnection, event_id: i64, draw_no: i32) -> sqlx::Result<Option<Arc<Vec<u32>>>> {
        if let Some(known) = self.0.drawn.get(&(event_id, draw_no)) {
            return Ok(Some(known.clone()));
        }
        let row = sqlx::query!(
            r#"select secret, root as "root!", public_value, entry_count as "entry_count!" from draw
               where event_id = $1 and draw_no = $2 and drawn_at is not null"#,
            event_id,
            draw_no
        )
        .fetch_optional(db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let _alone = self.0.drawing.lock().await;
        if let Some(known) = self.0.drawn.get(&(event_id, draw_no)) {
            return Ok(Some(known.clone()));
        }
        let bytes =
            |bytes: Vec<u8>| <[u8; 32]>::try_from(bytes).map_err(|_| sqlx::Error::Protocol("not 32 bytes".into()));
        let seed = draw::seed(&bytes(row.secret)?, &bytes(row.root)?, row.public_value.as_deref());
        let count = row.entry_count as u32;
        let places = computed(move || draw::places(&seed, count)).await?;
        Ok(Some(remember(&self.0.drawn, (event_id, draw_no), places)))
    }

    /// The tree over a draw's entries; `None` before they are fixed.
    pub async fn tree(&self, event_id: i64, draw_no: i32) -> Result<Option<Arc<Tree>>, TreeError> {
        if let Some(known) = self.0.trees.get(&(event_id, draw_no)) {
            return Ok(Some(known.clone()));
        }
        let count = sqlx::query_scalar!(
            r#"select entry_count as "entry_count!" from draw where event_id = $1 and draw_no = $2 and closed_at is not null"#,
            event_id,
            draw_no
        )
        .fetch_optional(&self.0.pool)
        .await?;
        let Some(count) = count else { return Ok(None) };
        let _alone = self.0.growing.lock().await;
        if let Some(known) = self.0.trees.get(&(event_id, draw_no)) {
            return Ok(Some(known.clone()));
        }
        // One text of bytes, not half a million rows.
        let keys = sqlx::query_scalar!(
            r#"select coalesce(string_agg(entry_key, ''::bytea order by number), ''::bytea) as "keys!"
               from line_entry where event_id = $1 and number < $2"#,
            event_id,
            count
        )
        .fetch_one(&self.0.pool)
        .await?;
        if keys.len() as i64 != count * 16 {
            return Err(TreeError::Incomplete { event_id, draw_no, count, found: keys.len() as i64 / 16 });
        }
        let tree = computed(move || {
            let keys = keys.chunks_exact(16).map(|key| <[u8; 16]>::try_from(key).expect("chunks are 16 bytes"));
            Tree::new(keys.enumerate().map(|(number, key)| draw::leaf(event_id, number as u64, &key)).collect())
        })
        .await?;
        Ok(Some(remember(&self.0.trees, (event_id, draw_no), tree)))
    }
}

/// Why a draw's tree can't be had.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Entries are never deleted (`line_entry_stays`): of a database that lost some, nothing can be proved.
    #[error("draw {draw_no} of event {event_id} has {count} entries, and {found} are there")]
    Incomplete { event_id: i64, draw_no: i32, count: i64, found: i64 },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// For whoever only tells it to the log. Waiting does not help: not a transient one.
impl From<TreeError> for sqlx::Error {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Database(e) => e,
            incomplete => sqlx::Error::Decode(Box::new(incomplete)),
        }
    }
}

/// The place of a number: drawn, or behind all of those in order of arrival. `None` before the draw.
pub fn place(places: Option<&[u32]>, number: i64) -> Option<i64> {
    let places = places?;
    Some(places.get(number as usize).map_or(number, |place| i64::from(*place)))
}

/// Off the runtime: half a million take some tens of milliseconds.
async fn computed<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> sqlx::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| sqlx::Error::Io(std::io::Error::other(e)))
}

fn remember<T>(of: &DashMap<(i64, i32), Arc<T>>, key: (i64, i32), value: T) -> Arc<T> {
    if of.len() >= REMEMBERED_MAX {
        of.clear();
    }
    let value = Arc::new(value);
    of.insert(key, value.clone());
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_after_the_drawn_stands_behind_in_order_of_arrival() {
        assert_eq!(place(None, 0), None);
        let places = [2, 0, 1];
        let of = |number| place(Some(&places), number);
        assert_eq!([of(0), of(1), of(2), of(3), of(9)], [Some(2), Some(0), Some(1), Some(3), Some(9)]);
    }
}
