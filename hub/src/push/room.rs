//! A room: the present map of an event, the last frames, and whoever follows them.
//!
//! A room is a keyframe and the frames after it, never a read of the database that might be ahead of
//! the stream. Only a room without a feed reads the database, under an epoch of its own.
//!
//! Invariants
//! - Within an epoch a room never goes back, and it never jumps over a frame without telling its viewers.
//! - It encodes nothing for a viewer. A viewer is a cursor, and that is all it is.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use flate2::Compression;
use fullhouse_protocol::{
    frames::{Change, Frame, Head, Position, Statuses, encode_body, encode_delta, encode_resync, encode_snapshot},
    track::{Step, Track},
};
use tokio::sync::watch;

use super::{
    resource::{Resource, Shelf},
    ring::Ring,
};
use crate::config;

/// Frames that a viewer is given at once.
const FRAMES_AT_ONCE_MAX: usize = 16;
/// A poller's body. Whoever is further behind than this needs a snapshot anyway.
const BODY_BYTES_MAX: usize = 256 * 1024;

pub struct Room {
    state: RwLock<State>,
    head: watch::Sender<Position>,
    snapshot: Shelf,
    recent: Shelf,
    asked: AtomicBool,
    frame_changes_max: usize,
}

struct State {
    track: Track,
    ring: Ring,
    source: Source,
}

/// Where a room's map comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Keyframes and frames.
    Feed,
    /// The feed, until it turned out to be another stream: the next keyframe decides.
    FormerFeed,
    /// The database, at most once a second, until there is a feed.
    Database,
}

/// What there is for a viewer.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// The viewer comes from a node that is ahead of this one; going back to ours would take seats back in time.
    Ahead,
    Frames(Vec<Bytes>),
}

impl Room {
    pub fn new(track: Track, source: Source, config: &config::Push) -> Self {
        let ring = Ring::new(track.at().frame, config.ring_frames_max, Duration::from_secs(config.ring_s));
        Self {
            head: watch::Sender::new(track.at()),
            state: RwLock::new(State { track, ring, source }),
            snapshot: Shelf::default(),
            recent: Shelf::default(),
            asked: AtomicBool::new(true),
            frame_changes_max: config.frame_changes_max,
        }
    }

    /// Takes a keyframe. Returns whether the map is now another one than the frames led to.
    pub fn take_keyframe(&self, track: Track) -> bool {
        let mut state = self.write();
        let step = if state.source == Source::Feed { state.track.place(track.at()) } else { Step::Gap };
        state.source = Source::Feed;
        if step == Step::Known && (track.at() != state.track.at() || track.statuses == state.track.statuses) {
            return false;
        }
        if track == state.track {
            return false;
        }
        match step {
            // A change that was too large for frames: it stands in their row, as a resync.
            Step::Applied if track.head.seat_count == state.track.head.seat_count => {
                state.ring.push(encode_resync(&track.head), Instant::now());
            }
            _ => state.ring.restart(track.at().frame),
        }
        state.track = track;
        self.tell(&state);
        true
    }

    /// Takes a frame; `bytes` is what viewers get.
    pub fn take_frame(&self, head: &Head, changes: &[Change], bytes: Bytes) -> Step {
        let mut state = self.write();
        if state.source != Source::Feed {
            return Step::Known; // a keyframe has to come first
        }
        let step = state.track.apply(head, changes);
        if step == Step::Applied {
            state.ring.push(bytes, Instant::now());
            self.tell(&state);
        }
        step
    }

    /// Takes what was read from the database, if this room has no feed. Returns what that amounts to.
    pub fn take_rows(&self, statuses: Statuses, now_ms: u64) -> Option<Frame> {
        let mut state = self.write();
        if state.source != Source::Database {
            return None;
        }
        let (at, seat_count) = (state.track.at(), statuses.seat_count());
        if seat_count != state.track.head.seat_count {
            let at = Position { epoch: at.epoch + 2, frame: 0 };
            let head = Head { at, seat_count, committed_at_ms: now_ms, ..state.track.head };
            state.track = Track::new(head, statuses.clone());
            state.ring.restart(at.frame);
            self.tell(&state);
            return Some(Frame::Snapshot { head, statuses });
        }
        let changes: Vec<Change> = (0..seat_count)
            .map(|seat_no| Change { seat_no, status: statuses.get(seat_no) })
            .filter(|change| state.track.statuses.get(change.seat_no) != change.status)
            .collect();
        if changes.is_empty() {
            return None;
        }
        let at = Position { frame: at.frame + 1, ..at };
        let head = Head { at, committed_at_ms: now_ms, ..state.track.head };
        let bytes =
            if changes.len() > self.frame_changes_max { encode_resync(&head) } else { encode_delta(&head, &changes) };
        state.track.apply(&head, &changes);
        state.ring.push(bytes, Instant::now());
        self.tell(&state);
        Some(Frame::Delta { head, changes })
    }

    /// The stream is another one than this room was made from.
    pub fn doubt(&self) {
        let mut state = self.write();
        if state.source == Source::Feed {
            state.source = Source::FormerFeed;
        }
    }

    pub fn source(&self) -> Source {
        self.read().source
    }

    pub fn at(&self) -> Position {
        *self.head.borrow()
    }

    /// Every seat at present: for tests, and for whoever needs no bytes.
    pub fn track(&self) -> Track {
        self.read().track.clone()
    }

    /// Notes that somebody wants this room.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Wakes with each new position.
    pub fn watch(&self) -> watch::Receiver<Position> {
        self.head.subscribe()
    }

    /// Whether somebody watches, or has asked since this was called last.
    pub fn is_wanted(&self) -> bool {
        self.head.receiver_count() > 0 || self.asked.swap(false, Ordering::Relaxed)
    }

    /// What follows on a viewer's cursor, which moves on. Nothing at all as a cursor begins with a resync.
    pub fn next(&self, cursor: &mut Option<Position>) -> Next {
        let state = self.read();
        let head = state.track.at();
        if let Some(at) = cursor {
            if *at == head {
                return Next::Nothing;
            }
            let of_relay = at.is_of_relay() && head.is_of_relay();
            if (at.epoch == head.epoch && at.frame > head.frame) || (at.epoch > head.epoch && of_relay) {
                return Next::Ahead;
            }
            if at.epoch == head.epoch
                && let Some(frames) = state.ring.after(at.frame)
            {
                let frames: Vec<Bytes> = frames.take(FRAMES_AT_ONCE_MAX).cloned().collect();
                at.frame += frames.len() as u64;
                return Next::Frames(frames);
            }
        }
        *cursor = Some(head);
        Next::Frames(vec![encode_resync(&state.track.head)])
    }

    /// The map as of the head.
    pub fn snapshot(&self) -> Arc<Resource> {
        self.snapshot.get(self.at(), || {
            let state = self.read();
            let bytes = encode_snapshot(&state.track.head, &state.track.statuses);
            Resource::new(state.track.at(), bytes, Compression::default())
        })
    }

    /// The last frames, as pollers get them.
    pub fn recent(&self) -> Arc<Resource> {
        self.recent.get(self.at(), || {
            let state = self.read();
            let bytes = encode_body(&state.track.head, state.ring.newest(BODY_BYTES_MAX).map(|bytes| &bytes[..]));
            Resource::new(state.track.at(), bytes, Compression::fast())
        })
    }

    fn tell(&self, state: &State) {
        self.head.send_replace(state.track.at());
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests;
