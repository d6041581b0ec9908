//! A hint of each seat's state, for proposing seats without reading sixty thousand rows.
//!
//! Fed by the desk after each commit, and by the frames that this hub's room receives. It may be
//! late in both directions; the desk checks every proposal against the rows that own the seats.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use dashmap::DashMap;
use fullhouse_protocol::seat::Status;
use sqlx::PgPool;

use super::{Hall, SeatNo};

#[derive(Debug)]
pub struct Board {
    pub hall: Arc<Hall>,
    states: Vec<AtomicU8>,
}

impl Board {
    pub fn new(hall: Arc<Hall>) -> Self {
        let states = hall.seats.iter().map(|_| AtomicU8::new(Status::Available.bits())).collect();
        Self { hall, states }
    }

    pub fn is_available(&self, seat: SeatNo) -> bool {
        self.states.get(seat as usize).is_some_and(|s| s.load(Ordering::Relaxed) == Status::Available.bits())
    }

    pub fn set(&self, seat: SeatNo, state: Status) {
        if let Some(slot) = usize::try_from(seat).ok().and_then(|i| self.states.get(i)) {
            slot.store(state.bits(), Ordering::Relaxed);
        }
    }

    /// Reads every seat's state anew: what is free by the database's clock is free here.
    pub async fn refresh(&self, pool: &PgPool) -> sqlx::Result<()> {
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
        Ok(())
    }
}

/// The boards of the events that this hub has had to do with.
#[derive(Debug, Clone, Default)]
pub struct Boards(Arc<DashMap<i64, Arc<Board>>>);

impl Boards {
    /// The board of an event at its present plan; reads it the first time, and again after an import.
    pub async fn get(
        &self,
        pool: &PgPool,
        event_id: i64,
        plan_revision_id: Option<i64>,
    ) -> sqlx::Result<Option<Arc<Board>>> {
        if let Some(board) = self.0.get(&event_id).map(|b| b.clone())
            && plan_revision_id.is_none_or(|id| id == board.hall.plan_revision_id)
        {
            return Ok(Some(board));
        }
        let Some(hall) = Hall::load(pool, event_id).await? else { return Ok(None) };
        let board = Arc::new(Board::new(Arc::new(hall)));
        board.refresh(pool).await?;
        self.0.insert(event_id, board.clone());
        Ok(Some(board))
    }

    /// What a frame says of a seat. Events that nobody has held seats of have no board, and need none.
    pub fn apply(&self, event_id: i64, changes: impl Iterator<Item = (SeatNo, Status)>) {
        if let Some(board) = self.0.get(&event_id) {
            for (seat, state) in changes {
                board.set(seat, state);
            }
        }
    }
}
