//! A copy of the map that follows the frames: what a client, a room and a relay that takes over have in common.
//!
//! Invariant: a track never goes back within its epoch, and never jumps over a frame. Whatever would
//! make it do so is told apart, and changes nothing.

use crate::frames::{Change, Head, Position, Statuses};

/// Every seat, as of a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    pub head: Head,
    pub statuses: Statuses,
}

/// What became of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It was the next one.
    Applied,
    /// It had been applied before, or belongs to an epoch that is over.
    Known,
    /// Frames between are missing, or a new epoch has begun: only a snapshot helps.
    Gap,
}

impl Track {
    pub fn new(head: Head, statuses: Statuses) -> Self {
        debug_assert_eq!(head.seat_count, statuses.seat_count());
        Self { head, statuses }
    }

    pub fn at(&self) -> Position {
        self.head.at
    }

    /// Where a frame of `at` stands, seen from here.
    pub fn place(&self, at: Position) -> Step {
        let here = self.at();
        match at.epoch.cmp(&here.epoch) {
            std::cmp::Ordering::Less => Step::Known,
            std::cmp::Ordering::Greater => Step::Gap,
            std::cmp::Ordering::Equal if at.frame <= here.frame => Step::Known,
            std::cmp::Ordering::Equal if at.frame == here.frame + 1 => Step::Applied,
            std::cmp::Ordering::Equal => Step::Gap,
        }
    }

    /// Applies a delta if it is the next one.
    pub fn apply(&mut self, head: &Head, changes: &[Change]) -> Step {
        let step = self.place(head.at);
        if step != Step::Applied {
            return step;
        }
        if head.seat_count != self.head.seat_count {
            return Step::Gap; // a plan that grew begins a new epoch, so this is not our track
        }
        for change in changes {
            self.statuses.set(change.seat_no, change.status);
        }
        self.head = *head;
        Step::Applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::Status;

    fn head(epoch: u64, frame: u64) -> Head {
        Head { event_id: 1, at: Position { epoch, frame }, seat_count: 5, committed_at_ms: 0 }
    }

    #[test]
    fn only_the_next_frame_is_applied() {
        let mut track = Track::new(head(5, 10), Statuses::new(5));
        let changes = [Change { seat_no: 4, status: Status::Sold }];
        for (epoch, frame, expected) in
            [(5, 10, Step::Known), (5, 12, Step::Gap), (4, 11, Step::Known), (6, 11, Step::Gap)]
        {
            assert_eq!(track.apply(&head(epoch, frame), &changes), expected);
            assert_eq!(track.statuses.get(4), Status::Available);
        }
        assert_eq!(track.apply(&head(5, 11), &changes), Step::Applied);
        assert_eq!((track.at().frame, track.statuses.get(4)), (11, Status::Sold));
    }

    #[test]
    fn another_number_of_seats_is_not_our_track() {
        let mut track = Track::new(head(5, 10), Statuses::new(5));
        assert_eq!(track.apply(&Head { seat_count: 6, ..head(5, 11) }, &[]), Step::Gap);
    }
}
