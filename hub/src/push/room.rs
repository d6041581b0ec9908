//! A room: what an event's viewers are told, the last of it, and whoever follows.
//!
//! A room has a topic: an event's [`Map`], or the [`Line`] of people before it. The topic knows what follows on a
//! viewer's cursor; everything else (shards, sockets, polling) is the same for both.
//!
//! Invariants
//! - Within an epoch a room never goes back, and it never jumps over a frame without telling its viewers.
//! - It encodes nothing for a viewer. A viewer is a cursor, and that is all it is.

mod line; // people who wait
mod map; // seats

use std::{
    ops::Deref,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use flate2::Compression;
use fullhouse_protocol::frames::Position;

pub use self::{line::Line, map::Map};
use super::{
    resource::{Resource, Shelf},
    shard::Doors,
};

/// A poller's body. Whoever is further behind than this begins anew anyway.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// What a room is about. Whoever only follows it needs to know no more than this.
pub trait Topic: Send + Sync + 'static {
    /// Where the head is.
    fn at(&self) -> Position;
    /// What follows on a viewer's cursor. Nothing at all as a cursor is somebody who comes without a position.
    fn next(&self, cursor: Option<Position>) -> Next;
    /// The last frames, for those who poll; at most so many bytes of them.
    fn body(&self, bytes_max: usize) -> Bytes;
}

pub struct Room<T: Topic + ?Sized = dyn Topic> {
    /// Where the head is, and since when.
    head: RwLock<(Position, Instant)>,
    doors: Doors,
    /// Shards with viewers of it.
    watches: AtomicUsize,
    recent: Shelf,
    asked: AtomicBool,
    topic: RwLock<T>,
}

/// Where a room's frames come from.
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
    /// The viewer comes from a node that is ahead of this one; going back to ours would take it back in time.
    Ahead,
    /// A message as a socket carries it, and where the viewer stands after it.
    Message {
        bytes: Bytes,
        at: Position,
    },
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
        Arc::as_ptr(&self.0).cast::<()>() as usize
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

impl<T: Topic> Room<T> {
    /// `doors` lead to those who watch it.
    pub fn new(topic: T, doors: Doors) -> Self {
        Self {
            head: RwLock::new((topic.at(), Instant::now())),
            doors,
            watches: AtomicUsize::new(0),
            recent: Shelf::default(),
            asked: AtomicBool::new(true),
            topic: RwLock::new(topic),
        }
    }
}

impl<T: Topic + ?Sized> Room<T> {
    pub fn at(&self) -> Position {
        self.head().0
    }

    /// Where the head is, and since when.
    pub fn head(&self) -> (Position, Instant) {
        *self.head.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What follows on a viewer's cursor.
    pub fn next(&self, cursor: Option<Position>) -> Next {
        self.read().next(cursor)
    }

    /// The last frames, as pollers get them.
    pub fn recent(&self) -> Arc<Resource> {
        self.recent.get(self.at(), || {
            let topic = self.read();
            Resource::new(topic.at(), topic.body(BODY_BYTES_MAX), Compression::fast())
        })
    }

    /// Notes that somebody wants this room.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether somebody watches, or has asked since this was called last.
    pub fn is_wanted(&self) -> bool {
        self.watches.load(Ordering::Relaxed) > 0 || self.asked.swap(false, Ordering::Relaxed)
    }

    /// The head has moved.
    fn tell(&self, topic: &T) {
        *self.head.write().unwrap_or_else(PoisonError::into_inner) = (topic.at(), Instant::now());
        self.doors.ring();
    }

    fn read(&self) -> RwLockReadGuard<'_, T> {
        self.topic.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.topic.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests;
