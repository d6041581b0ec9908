//! A hall: the viewers of one room in one shard, and how far the present round has come among them.
//!
//! Invariant: a round reaches every viewer that was there when it began and is still there.

use std::time::Instant;

use fullhouse_protocol::frames::Position;

use crate::push::room::Watch;

pub(super) struct Hall {
    pub room: Watch,
    /// Their slots.
    viewers: Vec<u32>,
    /// The head that the present round leads to, or the last one led to.
    served: Position,
    /// Since when that is the head.
    since: Instant,
    /// Viewers that the present round has not reached: the first so many of the list. It goes from
    /// the end, so that nobody is missed when the last one takes the place of one that left.
    left: usize,
}

impl Hall {
    pub fn new(room: Watch) -> Self {
        let (served, since) = room.head();
        Self { served, since, room, viewers: Vec::new(), left: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.viewers.is_empty()
    }

    /// Returns where in the list the viewer stands.
    pub fn enter(&mut self, slot: u32) -> u32 {
        self.viewers.push(slot);
        self.viewers.len() as u32 - 1
    }

    /// Takes a viewer off the list. Returns whoever stands in its place now.
    pub fn leave(&mut self, listed: u32) -> Option<u32> {
        self.viewers.swap_remove(listed as usize);
        self.left = self.left.min(self.viewers.len());
        self.viewers.get(listed as usize).copied()
    }

    /// Begins a round if the last one is done and the head has moved. Whether there is one.
    pub fn begins_round(&mut self) -> bool {
        let (head, since) = self.room.head();
        if self.left == 0 && head != self.served {
            (self.served, self.since) = (head, since);
            self.left = self.viewers.len();
        }
        self.left > 0
    }

    /// The next viewer of the round.
    pub fn next_in_round(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        self.viewers.get(self.left).copied()
    }

    /// Since when there was something to say, if the viewer that [`Hall::next_in_round`] returned is the last one.
    pub fn ends_round(&self) -> Option<Instant> {
        (self.left == 0).then_some(self.since)
    }
}
