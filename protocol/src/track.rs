//! A copy of the map that follows the frames: what a client, a room and a relay that takes over have in common.
//!
//! Invariant: a track never goes back within its epoch, and never jumps over a frame. Whatever would
//! make it do so is told apart, and changes nothing.

use crate::frames::{Change, Frame, Head, Position, Statuses};

/// Frames, and changes in them, that a follower keeps while it waits for a snapshot.
const BUFFER_FRAMES_MAX: usize = 1_000;
const BUFFER_CHANGES_MAX: usize = 1_000_000;

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
        if at.epoch != here.epoch && !(at.is_of_relay() && here.is_of_relay()) {
            return Step::Gap;
        }
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
        self.apply_since(head, head.at.frame.saturating_sub(1), changes)
    }

    /// Applies a span if this track stands within it. A delta is one that spans a single frame.
    pub fn apply_since(&mut self, head: &Head, since: u64, changes: &[Change]) -> Step {
        match self.place(head.at) {
            Step::Applied => {}
            Step::Gap if head.at.epoch == self.at().epoch && since <= self.at().frame => {}
            step => return step,
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

/// A client's map: frames from a socket or a poll, snapshots when they are needed.
///
/// The caller fetches; the follower says when. After [`Need::Snapshot`] a client waits for a random
/// moment, so that a hall full of clients does not ask at once, and keeps feeding what arrives.
#[derive(Debug, Default)]
pub struct Follower {
    track: Option<Track>,
    waiting: Option<Waiting>,
}

/// For a snapshot.
#[derive(Debug)]
struct Waiting {
    /// The position that it has to reach.
    reach: Position,
    /// The frames that came meanwhile.
    frames: Vec<Kept>,
}

/// A delta, a span or a range: its head, what it follows on, and its changes.
type Kept = (Head, u64, Vec<Change>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Nothing,
    Snapshot,
}

impl Follower {
    /// The map as it is known, also while a snapshot is waited for.
    pub fn track(&self) -> Option<&Track> {
        self.track.as_ref()
    }

    /// A socket was closed before it brought anything: it does not know this position. The next one
    /// begins without.
    pub fn start_over(&mut self) {
        *self = Self::default();
    }

    /// A socket is about to be opened: where to resume from. What a former socket made it wait for is
    /// forgotten, since the new one may bridge it.
    pub fn connect(&mut self) -> Option<Position> {
        self.waiting = None;
        self.track.as_ref().map(Track::at)
    }

    pub fn needs_snapshot(&self) -> bool {
        self.waiting.is_some() || self.track.is_none()
    }

    /// Takes what a socket or a poll brought, or a snapshot.
    pub fn take(&mut self, frame: Frame) -> Need {
        match frame {
            Frame::Delta { head, changes } => self.take_changes((head, head.at.frame.saturating_sub(1), changes)),
            Frame::Span { head, since, changes } => self.take_changes((head, since, changes)),
            Frame::Range { head, since, first, statuses } => {
                let seat = |(seat_no, status)| Change { seat_no, status };
                self.take_changes((head, since, (first..).zip(statuses.iter()).map(seat).collect()))
            }
            Frame::Line { .. } => self.need(), // of another room
            // It has been there already: from another node, or from a snapshot that was newer than this.
            Frame::Resync { head } if self.track.as_ref().is_some_and(|t| t.place(head.at) == Step::Known) => {
                self.need()
            }
            Frame::Resync { head } => self.wait(head.at, Vec::new()),
            Frame::Snapshot { head, statuses } => self.take_snapshot(head, statuses),
        }
    }

    fn take_changes(&mut self, kept: Kept) -> Need {
        if let Some(waiting) = &mut self.waiting {
            let changes: usize = waiting.frames.iter().map(|(_, _, changes)| changes.len()).sum();
            if waiting.frames.len() < BUFFER_FRAMES_MAX && changes + kept.2.len() <= BUFFER_CHANGES_MAX {
                waiting.frames.push(kept); // beyond that, what is missing shows as a gap
            }
            return Need::Snapshot;
        }
        let (head, since, changes) = &kept;
        match self.track.as_mut().map(|track| track.apply_since(head, *since, changes)) {
            Some(Step::Applied | Step::Known) => Need::Nothing,
            Some(Step::Gap) | None => self.wait(head.at, vec![kept]),
        }
    }

    /// A snapshot from a cache or another node may be older than what is waited for: then it is not taken.
    fn take_snapshot(&mut self, head: Head, statuses: Statuses) -> Need {
        let Some(Waiting { reach, frames }) = self.waiting.take() else {
            if self.track.as_ref().is_none_or(|track| track.place(head.at) != Step::Known) {
                self.track = Some(Track::new(head, statuses));
            }
            return Need::Nothing;
        };
        let reached = if head.at.epoch == reach.epoch {
            head.at.frame >= reach.frame
        } else {
            head.at.epoch > reach.epoch && head.at.is_of_relay() && reach.is_of_relay()
        };
        if !reached {
            self.waiting = Some(Waiting { reach, frames });
            return Need::Snapshot;
        }
        self.track = Some(Track::new(head, statuses));
        // If one of these does not follow, the snapshot is waited for again, and the rest is kept.
        frames.into_iter().map(|kept| self.take_changes(kept)).last().unwrap_or(Need::Nothing)
    }

    fn need(&self) -> Need {
        if self.needs_snapshot() { Need::Snapshot } else { Need::Nothing }
    }

    fn wait(&mut self, reach: Position, frames: Vec<Kept>) -> Need {
        self.waiting = Some(Waiting { reach, frames });
        Need::Snapshot
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
        let mut track = Track::new(head(6, 10), Statuses::new(5));
        let changes = [Change { seat_no: 4, status: Status::Sold }];
        for (epoch, frame, expected) in
            [(6, 10, Step::Known), (6, 12, Step::Gap), (4, 11, Step::Known), (8, 11, Step::Gap), (3, 11, Step::Gap)]
        {
            assert_eq!(track.apply(&head(epoch, frame), &changes), expected);
            assert_eq!(track.statuses.get(4), Status::Available);
        }
        assert_eq!(track.apply(&head(6, 11), &changes), Step::Applied);
        assert_eq!((track.at().frame, track.statuses.get(4)), (11, Status::Sold));
    }

    #[test]
    fn a_span_is_for_whoever_stands_within_it() {
        let changes = [Change { seat_no: 4, status: Status::Sold }];
        for (frame, expected) in
            [(9, Step::Gap), (10, Step::Applied), (11, Step::Applied), (13, Step::Applied), (14, Step::Known)]
        {
            let mut track = Track::new(head(6, frame), Statuses::new(5));
            assert_eq!(track.apply_since(&head(6, 14), 10, &changes), expected, "at {frame}");
            assert_eq!(track.at().frame, if expected == Step::Applied { 14 } else { frame });
        }
        let mut elsewhere = Track::new(head(4, 11), Statuses::new(5));
        assert_eq!(elsewhere.apply_since(&head(6, 14), 10, &changes), Step::Gap, "of another epoch");
    }

    #[test]
    fn a_range_is_a_span_of_neighbours() {
        let mut map = Follower::default();
        map.take(snapshot(6, 10, Status::Held));
        let statuses = [Status::Sold, Status::Blocked].into_iter().collect();
        let range = Frame::Range { head: head(6, 14), since: 7, first: 2, statuses };
        assert_eq!((map.take(range.clone()), map.take(range)), (Need::Nothing, Need::Nothing), "the second is known");
        assert_eq!(format!("{:?}", map.track().unwrap().statuses), "10230");
        assert_eq!(map.connect(), Some(Position { epoch: 6, frame: 14 }));
    }

    #[test]
    fn another_number_of_seats_is_not_our_track() {
        let mut track = Track::new(head(6, 10), Statuses::new(5));
        assert_eq!(track.apply(&Head { seat_count: 6, ..head(6, 11) }, &[]), Step::Gap);
    }

    fn delta(epoch: u64, frame: u64, status: Status) -> Frame {
        Frame::Delta { head: head(epoch, frame), changes: vec![Change { seat_no: 0, status }] }
    }

    fn snapshot(epoch: u64, frame: u64, status: Status) -> Frame {
        let statuses = [status, Status::Available, Status::Available, Status::Available, Status::Available];
        Frame::Snapshot { head: head(epoch, frame), statuses: statuses.into_iter().collect() }
    }

    #[test]
    fn frames_that_come_before_the_snapshot_are_kept_for_it() {
        let mut map = Follower::default();
        assert_eq!(map.take(Frame::Resync { head: head(6, 10) }), Need::Snapshot);
        assert_eq!(map.take(delta(6, 11, Status::Held)), Need::Snapshot);
        assert_eq!(map.take(delta(6, 12, Status::Sold)), Need::Snapshot);
        assert_eq!(map.take(snapshot(6, 9, Status::Available)), Need::Snapshot, "older than what it has to reach");
        assert_eq!(map.take(snapshot(6, 11, Status::Held)), Need::Nothing);
        assert_eq!(map.connect(), Some(Position { epoch: 6, frame: 12 }));
        assert_eq!(map.track().unwrap().statuses.get(0), Status::Sold);
    }

    #[test]
    fn an_old_snapshot_does_not_take_the_map_back() {
        let mut map = Follower::default();
        assert_eq!(map.take(snapshot(6, 10, Status::Sold)), Need::Nothing);
        assert_eq!(map.take(snapshot(6, 9, Status::Held)), Need::Nothing);
        assert_eq!(map.take(Frame::Resync { head: head(6, 10) }), Need::Nothing, "it is there already");
        assert_eq!(map.track().unwrap().statuses.get(0), Status::Sold);
    }

    #[test]
    fn a_resync_that_is_behind_is_none() {
        let mut map = Follower::default();
        map.take(snapshot(4, 10, Status::Sold));
        assert_eq!(map.take(Frame::Resync { head: head(4, 9) }), Need::Nothing);
        assert_eq!(map.take(Frame::Resync { head: head(4, 11) }), Need::Snapshot);
        assert_eq!(map.take(snapshot(5, 0, Status::Held)), Need::Snapshot, "of some room without a feed");
        assert_eq!(map.take(snapshot(8, 0, Status::Held)), Need::Nothing, "of a later epoch");
    }

    #[test]
    fn a_gap_and_a_new_epoch_need_a_snapshot() {
        let mut map = Follower::default();
        map.take(snapshot(6, 10, Status::Held));
        assert_eq!(map.take(delta(6, 12, Status::Sold)), Need::Snapshot);
        assert_eq!(map.take(snapshot(6, 12, Status::Sold)), Need::Nothing);
        assert_eq!(map.take(Frame::Resync { head: head(8, 0) }), Need::Snapshot);
        assert_eq!(map.take(snapshot(6, 13, Status::Sold)), Need::Snapshot);
        assert_eq!(map.take(snapshot(8, 0, Status::Available)), Need::Nothing);
        assert_eq!(map.connect(), Some(Position { epoch: 8, frame: 0 }));
    }
}
