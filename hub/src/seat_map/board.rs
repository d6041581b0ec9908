//! A hint of each seat's state, for proposing seats without reading sixty thousand rows.
//!
//! Fed by the desk after each commit, and by the frames that this hub's room receives. It may be
//! late in both directions; the desk checks every proposal against the rows that own the seats.

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use fullhouse_protocol::seat::Status;
use sqlx::PgPool;
use tokio::sync::Mutex;

use super::{Edition, Hall, SeatNo};

#[derive(Debug)]
pub struct Board {
    pub hall: Arc<Hall>,
    states: Vec<AtomicU8>,
    /// When all states were read last, and how long that took.
    read: std::sync::Mutex<Option<(Instant, Duration)>>,
}

/// A reading is followed by a rest of so many times what it took, so that a hall that is sold out,
/// where each wish for the best seats finds the board wanting, is not read all the time.
const REST_ROUNDS: u32 = 4;

impl Board {
    pub fn new(hall: Arc<Hall>) -> Self {
        let states = hall.seats.iter().map(|_| AtomicU8::new(Status::Available.bits())).collect();
        Self { hall, states, read: std::sync::Mutex::new(None) }
    }

    pub fn is_available(&self, seat: SeatNo) -> bool {
        self.states.get(seat as usize).is_some_and(|s| s.load(Ordering::Relaxed) == Status::Available.bits())
    }

    pub fn set(&self, seat: SeatNo, state: Status) {
        if let Some(slot) = usize::try_from(seat).ok().and_then(|i| self.states.get(i)) {
            slot.store(state.bits(), Ordering::Relaxed);
        }
    }

    /// Whether it was read after `asked`, or so lately that it is not to be read again.
    pub fn is_fresh(&self, asked: Instant) -> bool {
        let read = *self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.is_some_and(|(began, took)| began >= asked || began.elapsed() < took * (1 + REST_ROUNDS))
    }

    /// Reads every seat's state anew: what is free by the database's clock is free here.
    pub async fn refresh(&self, pool: &PgPool) -> sqlx::Result<()> {
        let began = Instant::now();
        let rows = sqlx::query!(
            r#"select seat_no, case when status = 1 and held_until <= db_clock() then 0::smallint else status end as "status!"
               from event_seat where event_id = $1"#,
            self.hall.event_id
        )
        .fetch_all(pool)
        .await?;
        for row in rows {
            self.set(row.seat_no, Status::from_bits(row.status as u8));
        }
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some((began, began.elapsed()));
        Ok(())
    }
}

/// The boards of the events that this hub has had to do with. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Boards(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    boards: DashMap<i64, Arc<Board>>,
    /// Reading a hall takes a moment: when a sale opens, one reads and everybody else waits for it.
    reading: DashMap<i64, Arc<Mutex<()>>>,
}

impl Boards {
    /// The board of an event at its present edition; reads it the first time, and again where that is another one than
    /// is known: after an import, or when seats were said to be something else.
    pub async fn get(
        &self,
        pool: &PgPool,
        event_id: i64,
        edition: Option<Edition>,
    ) -> sqlx::Result<Option<Arc<Board>>> {
        if let Some(board) = self.known(event_id, edition) {
            return Ok(Some(board));
        }
        let reading = self.0.reading.entry(event_id).or_default().clone();
        let _one = reading.lock().await;
        if let Some(board) = self.known(event_id, edition) {
            return Ok(Some(board));
        }
        let Some(hall) = Hall::load(pool, event_id).await? else {
            self.0.reading.remove(&event_id); // made-up numbers leave nothing behind
            return Ok(None);
        };
        let board = Arc::new(Board::new(Arc::new(hall)));
        board.refresh(pool).await?;
        self.0.boards.insert(event_id, board.clone());
        Ok(Some(board))
    }

    fn known(&self, event_id: i64, edition: Option<Edition>) -> Option<Arc<Board>> {
        let board = self.0.boards.get(&event_id)?.clone();
        edition.is_none_or(|edition| edition == board.hall.edition).then_some(board)
    }

    /// Lets go of an event that nobody asks about any more.
    pub fn forget(&self, event_id: i64) {
        self.0.boards.remove(&event_id);
        self.0.reading.remove(&event_id);
    }

    /// What a frame says of a seat. Events that nobody has held seats of have no board, and need none.
    pub fn apply(&self, event_id: i64, changes: impl Iterator<Item = (SeatNo, Status)>) {
        if let Some(board) = self.0.boards.get(&event_id) {
            for (seat, state) in changes {
                board.set(seat, state);
            }
        }
    }
}
