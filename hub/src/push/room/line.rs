//! A line of people: its newest revision is all of it.
//!
//! The database numbers the revisions, and they only rise; so a late or repeated one is told apart whoever brings it,
//! and whoever is behind is given the newest. There is nothing to resync.

use std::time::Duration;

use bytes::Bytes;
use fullhouse_protocol::frames::{Frame, Head, Position, encode_body};

use super::{Next, Room, Source, Topic};
use crate::push::{ring::Ring, wire};

/// Of a frame that is the whole state nothing older is of use.
const RING_FRAMES: usize = 1;

pub struct Line {
    head: Head,
    ring: Ring,
    source: Source,
}

impl Line {
    /// As of a revision; `bytes` are those of its frame.
    pub fn new(head: Head, bytes: &[u8], source: Source) -> Self {
        let mut line = Self { head, ring: Ring::new(0, RING_FRAMES, Duration::MAX), source };
        line.put(head, bytes);
        line
    }

    fn put(&mut self, head: Head, bytes: &[u8]) {
        self.head = head;
        self.ring.restart(head.at.frame.saturating_sub(1));
        self.ring.push(wire::binary(bytes), head.committed_at_ms, std::time::Instant::now());
    }
}

impl Topic for Line {
    fn at(&self) -> Position {
        self.head.at
    }

    fn next(&self, cursor: Option<Position>) -> Next {
        let at = self.head.at;
        match cursor {
            Some(cursor) if cursor == at => Next::Nothing,
            Some(cursor) if cursor.epoch == at.epoch && cursor.frame > at.frame => Next::Ahead,
            _ => self.ring.last().map_or(Next::Nothing, |bytes| Next::Message { bytes: bytes.clone(), at }),
        }
    }

    fn body(&self, bytes_max: usize) -> Bytes {
        encode_body(&self.head, self.ring.newest(bytes_max).map(wire::content))
    }
}

impl Room<Line> {
    /// Takes a revision; `bytes` are those of its frame. Returns whether it is later than what was known.
    pub fn take(&self, head: &Head, bytes: &[u8], source: Source) -> bool {
        let mut line = self.write();
        if source == Source::Feed {
            line.source = source; // the database need not be asked any more
        }
        if head.at.epoch != line.head.at.epoch || head.at.frame <= line.head.at.frame {
            return false;
        }
        line.put(*head, bytes);
        self.tell(&line);
        true
    }

    /// The newest revision, as its frame says it: JSON.
    pub fn newest(&self) -> Option<String> {
        match Frame::decode(wire::content(self.read().ring.last()?)) {
            Ok(Frame::Line { json, .. }) => Some(json),
            _ => None,
        }
    }

    pub fn source(&self) -> Source {
        self.read().source
    }
}
