//! The plan as drawn, and a hint of the state of each seat.
//!
//! Invariants
//! - A [`SeatSet`] is ascending, without repeats, bounded and not empty, because it can't be built otherwise.
//! - A [`Board`] is a hint that may be late: it proposes seats and never decides about one.

mod hall; // who sits beside whom, how far from the stage
mod board; // the hint of each seat's state, fed by the desk and by frames

pub use board::{Board, Boards};
#[cfg(test)]
pub(crate) use hall::testing;
pub use hall::{ACCESSIBLE, COMPANION, Edition, Hall, HallSeat, RESTRICTED_VIEW, RETIRED, STANDING};

/// A seat's number: dense within a plan, the same in each of its revisions.
pub type SeatNo = i32;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeatSet(Vec<SeatNo>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SeatSetError {
    #[error("no seat is named")]
    Empty,
    #[error("{named} seats are named; a request may name {limit}")]
    TooMany { named: usize, limit: usize },
    #[error("seats are named twice: {0:?}")]
    Repeated(Vec<SeatNo>),
}

impl SeatSet {
    pub fn new(mut seats: Vec<SeatNo>, limit: usize) -> Result<Self, SeatSetError> {
        if seats.is_empty() {
            return Err(SeatSetError::Empty);
        }
        if seats.len() > limit {
            return Err(SeatSetError::TooMany { named: seats.len(), limit });
        }
        seats.sort_unstable();
        let mut repeated: Vec<_> = seats.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        if !repeated.is_empty() {
            repeated.dedup();
            return Err(SeatSetError::Repeated(repeated));
        }
        Ok(Self(seats))
    }

    pub fn as_slice(&self) -> &[SeatNo] {
        &self.0
    }

    pub fn contains(&self, seat: SeatNo) -> bool {
        self.0.binary_search(&seat).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_ascending_unique_bounded_and_not_empty() {
        assert_eq!(SeatSet::new(vec![], 6), Err(SeatSetError::Empty));
        assert_eq!(SeatSet::new(vec![1; 7], 6), Err(SeatSetError::TooMany { named: 7, limit: 6 }));
        assert_eq!(SeatSet::new(vec![5, 3, 5, 3, 5], 6), Err(SeatSetError::Repeated(vec![3, 5])));
        assert_eq!(SeatSet::new(vec![9, 2], 6).unwrap().as_slice(), [2, 9]);
    }
}
