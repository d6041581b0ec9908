//! A room: the present map of an event, the last frames, and whoever follows them.
//!
//! A room is a keyframe and the frames after it, never a read of the database that might be ahead of
//! the stream. Only a room without a feed reads the database, under an epoch of its own.
//!
//! Invariants
//! - Within an epoch a room never goes back, and it never jumps over a frame without telling its viewers.
//! - It encodes nothing for a viewer. A viewer is a cursor, and that is all it is.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Deref,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use flate2::Compression;
use fullhouse_protocol::{
    frames::{
        Change, Frame, Head, Position, Statuses, encode_body, encode_delta, encode_resync, encode_snapshot, encode_span,
    },
    seat::Status,
    track::{Step, Track},
};

use super::{
    resource::{Resource, Shelf},
    ring::Ring,
    shard::Doors,
    wire,
};
use crate::config;

/// Frames that are put together for a viewer that is behind, at most: what that costs stays small.
const FRAMES_A_SPAN_MAX: usize = 64;
/// Spans that are remembered. Those who are behind stand at few different frames, unless they come back from elsewhere.
const SPANS_MAX: usize = 256;
/// A poller's body. Whoever is further behind than this needs a snapshot anyway.
const BODY_BYTES_MAX: usize = 256 * 1024;

pub struct Room {
    state: RwLock<State>,
    /// Where the head is, and since when.
    head: RwLock<(Position, Instant)>,
    doors: Doors,
    /// Shards with viewers of it.
    watches: AtomicUsize,
    spans: Mutex<Spans>,
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
    /// A message as a socket carries it, and where the viewer stands after it.
    Message {
        bytes: Bytes,
        at: Position,
    },
}

/// What was put together since the head moved last, by the frame that it follows on.
#[derive(Default)]
struct Spans {
    head: Position,
    made: HashMap<u64, (Bytes, Position)>,
}

/// A shard's interest in a room, until it is dropped.
pub struct Watch(Arc<Room>);

impl Watch {
    pub fn new(room: Arc<Room>) -> Self {
        room.watches.fetch_add(1, Ordering::Relaxed);
        Self(room)
    }

    /// Tells rooms apart.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl Deref for Watch {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.0
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Room {
    /// `doors` lead to those who watch it.
    pub fn new(track: Track, source: Source, config: &config::Push, doors: Doors) -> Self {
        let ring = Ring::new(track.at().frame, config.ring_frames_max, Duration::from_secs(config.ring_s));
        Self {
            head: RwLock::new((track.at(), Instant::now())),
            doors,
            watches: AtomicUsize::new(0),
            spans: Mutex::default(),
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
                state.ring.push(wire::binary(&encode_resync(&track.head)), Instant::now());
            }
            _ => state.ring.restart(track.at().frame),
        }
        state.track = track;
        self.tell(&state);
        true
    }

    /// Takes a frame; `bytes` are those of the frame, which viewers get.
    pub fn take_frame(&self, head: &Head, changes: &[Change], bytes: &[u8]) -> Step {
        let mut state = self.write();
        if state.source != Source::Feed {
            return Step::Known; // a keyframe has to come first
        }
        let step = state.track.apply(head, changes);
        if step == Step::Applied {
            state.ring.push(wire::binary(bytes), Instant::now());
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
        state.ring.push(wire::binary(&bytes), Instant::now());
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
        self.head().0
    }

    /// Where the head is, and since when.
    pub fn head(&self) -> (Position, Instant) {
        *self.head.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every seat at present: for tests, and for whoever needs no bytes.
    pub fn track(&self) -> Track {
        self.read().track.clone()
    }

    /// Notes that somebody wants this room.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether somebody watches, or has asked since this was called last.
    pub fn is_wanted(&self) -> bool {
        self.watches.load(Ordering::Relaxed) > 0 || self.asked.swap(false, Ordering::Relaxed)
    }

    /// What follows on a viewer's cursor: the next frame, or everything since in one, or a resync. Nothing
    /// at all as a cursor begins with a resync.
    pub fn next(&self, cursor: Option<Position>) -> Next {
        let state = self.read();
        let head = state.track.at();
        if let Some(at) = cursor {
            if at == head {
                return Next::Nothing;
            }
            let of_relay = at.is_of_relay() && head.is_of_relay();
            if (at.epoch == head.epoch && at.frame > head.frame) || (at.epoch > head.epoch && of_relay) {
                return Next::Ahead;
            }
            if at.epoch == head.epoch
                && let Some((bytes, at)) = self.since(&state, at.frame)
            {
                return Next::Message { bytes, at };
            }
        }
        Next::Message { bytes: wire::binary(&encode_resync(&state.track.head)), at: head }
    }

    /// The frames after `frame` as one message, and where it leads; `None` if they are gone.
    fn since(&self, state: &State, frame: u64) -> Option<(Bytes, Position)> {
        let epoch = state.track.at().epoch;
        let mut frames = state.ring.after(frame)?;
        let first = frames.next()?;
        let alone = (first.clone(), Position { epoch, frame: frame + 1 });
        if frames.next().is_none() {
            return Some(alone);
        }
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.head != state.track.at() {
            *spans = Spans { head: state.track.at(), made: HashMap::new() };
        }
        if let Some((bytes, at)) = spans.made.get(&frame) {
            return Some((bytes.clone(), *at));
        }
        let (bytes, at) = span(state.ring.after(frame)?, frame, self.frame_changes_max).unwrap_or(alone);
        if spans.made.len() < SPANS_MAX {
            spans.made.insert(frame, (bytes.clone(), at));
        }
        Some((bytes, at))
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
            let bytes = encode_body(&state.track.head, state.ring.newest(BODY_BYTES_MAX).map(wire::content));
            Resource::new(state.track.at(), bytes, Compression::fast())
        })
    }

    fn tell(&self, state: &State) {
        *self.head.write().unwrap_or_else(PoisonError::into_inner) = (state.track.at(), Instant::now());
        self.doors.ring();
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts as many frames together as fit into one, with the latest state of each seat; `None` if the first
/// one has to go alone: the next would be too much, or it is a resync.
fn span<'a>(messages: impl Iterator<Item = &'a Bytes>, since: u64, changes_max: usize) -> Option<(Bytes, Position)> {
    let mut latest: BTreeMap<u32, Status> = BTreeMap::new();
    let mut reached: Option<Head> = None;
    for message in messages.take(FRAMES_A_SPAN_MAX) {
        let Ok(Frame::Delta { head, changes }) = Frame::decode(wire::content(message)) else { break };
        let more = changes.iter().filter(|change| !latest.contains_key(&change.seat_no)).count();
        if reached.is_some() && latest.len() + more > changes_max {
            break;
        }
        latest.extend(changes.iter().map(|change| (change.seat_no, change.status)));
        let oldest = reached.map_or(head.committed_at_ms, |before| before.committed_at_ms.min(head.committed_at_ms));
        reached = Some(Head { committed_at_ms: oldest, ..head });
    }
    let head = reached.filter(|head| head.at.frame > since + 1)?;
    let changes: Vec<Change> = latest.into_iter().map(|(seat_no, status)| Change { seat_no, status }).collect();
    Some((wire::binary(&encode_span(&head, since, &changes)), head.at))
}

#[cfg(test)]
pub(super) mod tests;
