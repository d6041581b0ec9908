//! An event's map: every seat's status, and the frames that led there.
//!
//! A map is a keyframe and the frames after it, never a read of the database that might be ahead of the stream. Only a
//! room without a feed reads the database, under an epoch of its own.
//!
//! Invariant: one message brings whoever is behind to the head, however far behind it is on the ring, and it is never
//! larger than the packed hall.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use flate2::Compression;
use fullhouse_protocol::{
    frames::{
        Change, Frame, Head, Position, Statuses, encode_body, encode_delta, encode_range, encode_resync,
        encode_snapshot, encode_span,
    },
    track::{Step, Track},
};

use super::{Next, Room, Source, Topic};
use crate::{
    config,
    push::{
        resource::{Resource, Shelf},
        ring::Ring,
        wire,
    },
};

/// What was put together for those who are behind, since the head moved last. They stand at few different frames,
/// unless they come back from elsewhere.
const SPANS_MAX: usize = 256;
/// A span of more changes than this many bytes is a range if that is smaller. Below it the difference is not worth that
/// older clients skip ranges.
const SPAN_BYTES_MAX: usize = 1_024;
/// A frame counts its changes with 16 bits.
const CHANGES_MAX: usize = u16::MAX as usize;

pub struct Map {
    track: Track,
    ring: Ring,
    source: Source,
    /// Which frame gave each seat the status that it has, counted from `began`; 0 for what was there then.
    changed: Vec<u32>,
    /// The frame at which this map was whole: a keyframe's.
    began: u64,
    spans: Mutex<Spans>,
    snapshot: Shelf,
}

/// By the frame that they follow on.
#[derive(Default)]
struct Spans {
    head: Position,
    made: HashMap<u64, Bytes>,
}

impl Map {
    pub fn new(track: Track, source: Source, config: &config::Push) -> Self {
        Self {
            ring: Ring::new(track.at().frame, config.ring_frames_max, Duration::from_secs(config.ring_s)),
            source,
            changed: vec![0; track.head.seat_count as usize],
            began: track.at().frame,
            spans: Mutex::default(),
            snapshot: Shelf::default(),
            track,
        }
    }

    /// Another map than the frames led to.
    fn begin(&mut self, track: Track) {
        self.ring.restart(track.at().frame);
        self.changed = vec![0; track.head.seat_count as usize];
        self.began = track.at().frame;
        self.track = track;
    }

    /// Applies changes if they lead to the next frame. `bytes` are the frame's, if it has come as one.
    fn apply(&mut self, head: &Head, changes: &[Change], bytes: Option<&[u8]>) -> Step {
        let since = self.track.at().frame;
        let step = self.track.apply(head, changes);
        if step == Step::Applied {
            let number = u32::try_from(head.at.frame - self.began).unwrap_or(u32::MAX);
            changes.iter().for_each(|change| self.changed[change.seat_no as usize] = number);
            let message = bytes.map_or_else(|| wire::binary(&self.encode_since(since, head)), wire::binary);
            self.ring.push(message, head.committed_at_ms, Instant::now());
        }
        step
    }

    /// Everything after `frame` as one message; `None` if that is no longer known.
    fn since(&self, frame: u64) -> Option<Bytes> {
        let oldest_ms = self.ring.oldest_after(frame)?;
        if frame + 1 == self.track.at().frame {
            return self.ring.last().cloned();
        }
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.head != self.track.at() {
            *spans = Spans { head: self.track.at(), made: HashMap::new() };
        }
        if let Some(bytes) = spans.made.get(&frame) {
            return Some(bytes.clone());
        }
        let head = Head { committed_at_ms: oldest_ms, ..self.track.head };
        let bytes = wire::binary(&self.encode_since(frame, &head));
        if spans.made.len() < SPANS_MAX {
            spans.made.insert(frame, bytes.clone());
        }
        Some(bytes)
    }

    /// The latest status of each seat that has changed after `frame`, in the form that is worth its bytes.
    fn encode_since(&self, frame: u64, head: &Head) -> Bytes {
        let after = u32::try_from(frame - self.began).unwrap_or(u32::MAX);
        let changed = || self.changed.iter().enumerate().filter(|(_, number)| **number > after).map(|(seat, _)| seat);
        let count = changed().count();
        let (first, last) = (changed().next().unwrap_or(0) as u32 & !3, self.changed.iter().rposition(|n| *n > after));
        let in_range = last.map_or(0, |last| last as u32 + 1 - first);
        let (span_bytes, range_bytes) = (count * 4, in_range.div_ceil(4) as usize);
        if count > CHANGES_MAX || (span_bytes > SPAN_BYTES_MAX && range_bytes < span_bytes) {
            return encode_range(head, frame, first, &self.track.statuses.range(first, in_range));
        }
        let change = |seat: usize| Change { seat_no: seat as u32, status: self.track.statuses.get(seat as u32) };
        let changes: Vec<Change> = changed().map(change).collect();
        if frame + 1 == head.at.frame { encode_delta(head, &changes) } else { encode_span(head, frame, &changes) }
    }

    fn differing(&self, statuses: &Statuses) -> Vec<Change> {
        let all = statuses.iter().zip(self.track.statuses.iter()).enumerate();
        let differing = all.filter(|(_, (new, old))| new != old);
        differing.map(|(seat_no, (status, _))| Change { seat_no: seat_no as u32, status }).collect()
    }
}

impl Topic for Map {
    fn at(&self) -> Position {
        self.track.at()
    }

    /// The next frame, or everything since in one, or a resync.
    fn next(&self, cursor: Option<Position>) -> Next {
        let head = self.track.at();
        if let Some(at) = cursor {
            if at == head {
                return Next::Nothing;
            }
            let of_relay = at.is_of_relay() && head.is_of_relay();
            if (at.epoch == head.epoch && at.frame > head.frame) || (at.epoch > head.epoch && of_relay) {
                return Next::Ahead;
            }
            if at.epoch == head.epoch
                && let Some(bytes) = self.since(at.frame)
            {
                return Next::Message { bytes, at: head };
            }
        }
        Next::Message { bytes: wire::binary(&encode_resync(&self.track.head)), at: head }
    }

    fn body(&self, bytes_max: usize) -> Bytes {
        encode_body(&self.track.head, self.ring.newest(bytes_max).map(wire::content))
    }
}

impl Room<Map> {
    /// Takes a keyframe. Returns whether the map is now another one than the frames led to.
    pub fn take_keyframe(&self, track: Track) -> bool {
        let mut map = self.write();
        let step = if map.source == Source::Feed { map.track.place(track.at()) } else { Step::Gap };
        map.source = Source::Feed;
        if step == Step::Known && (track.at() != map.track.at() || track.statuses == map.track.statuses) {
            return false;
        }
        if track == map.track {
            return false;
        }
        if step == Step::Applied && track.head.seat_count == map.track.head.seat_count {
            let changes = map.differing(&track.statuses); // too many for the bus's frames, and one of them here
            map.apply(&track.head, &changes, None);
        } else {
            map.begin(track);
        }
        self.tell(&map);
        true
    }

    /// Takes a frame; `bytes` are those of the frame, which viewers get.
    pub fn take_frame(&self, head: &Head, changes: &[Change], bytes: &[u8]) -> Step {
        let mut map = self.write();
        if map.source != Source::Feed {
            return Step::Known; // a keyframe has to come first
        }
        let step = map.apply(head, changes, Some(bytes));
        if step == Step::Applied {
            self.tell(&map);
        }
        step
    }

    /// Takes what was read from the database, if this room has no feed. Returns what that amounts to.
    pub fn take_rows(&self, statuses: Statuses, now_ms: u64) -> Option<Frame> {
        let mut map = self.write();
        if map.source != Source::Database {
            return None;
        }
        let (at, seat_count) = (map.track.at(), statuses.seat_count());
        if seat_count != map.track.head.seat_count {
            let at = Position { epoch: at.epoch + 2, frame: 0 };
            let head = Head { at, seat_count, committed_at_ms: now_ms, ..map.track.head };
            map.begin(Track::new(head, statuses.clone()));
            self.tell(&map);
            return Some(Frame::Snapshot { head, statuses });
        }
        let changes = map.differing(&statuses);
        if changes.is_empty() {
            return None;
        }
        let at = Position { frame: at.frame + 1, ..at };
        let head = Head { at, committed_at_ms: now_ms, ..map.track.head };
        map.apply(&head, &changes, None);
        self.tell(&map);
        Some(Frame::Delta { head, changes })
    }

    /// The stream is another one than this room was made from.
    pub fn doubt(&self) {
        let mut map = self.write();
        if map.source == Source::Feed {
            map.source = Source::FormerFeed;
        }
    }

    pub fn source(&self) -> Source {
        self.read().source
    }

    /// Every seat at present: for tests, and for whoever needs no bytes.
    pub fn track(&self) -> Track {
        self.read().track.clone()
    }

    /// The map as of the head.
    pub fn snapshot(&self) -> Arc<Resource> {
        let map = self.read();
        map.snapshot.get(map.track.at(), || {
            let bytes = encode_snapshot(&map.track.head, &map.track.statuses);
            Resource::new(map.track.at(), bytes, Compression::default())
        })
    }
}
