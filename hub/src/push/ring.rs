//! The last encoded frames of a room: what viewers are written from, and what pollers get.
//!
//! They are kept as a socket carries them, so that the same bytes go to every viewer.
//!
//! Invariants
//! - The frames are consecutive, of one epoch, and end at the room's head.
//! - It is bounded by number and by age.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;

#[derive(Debug)]
pub struct Ring {
    frames: VecDeque<(Instant, Bytes)>,
    /// The number of the last frame.
    last: u64,
    frames_max: usize,
    age_max: Duration,
}

impl Ring {
    /// Empty; the next frame is the one after `last`.
    pub fn new(last: u64, frames_max: usize, age_max: Duration) -> Self {
        Self { frames: VecDeque::new(), last, frames_max, age_max }
    }

    /// Forgets all; the next frame is the one after `last`.
    pub fn restart(&mut self, last: u64) {
        self.frames.clear();
        self.last = last;
    }

    /// Adds the next frame, and lets go of what is too old or too much.
    pub fn push(&mut self, bytes: Bytes, now: Instant) {
        self.last += 1;
        self.frames.push_back((now, bytes));
        while self.frames.len() > self.frames_max
            || self.frames.front().is_some_and(|(at, _)| now.duration_since(*at) > self.age_max)
        {
            self.frames.pop_front();
        }
    }

    /// The frames after `frame`, oldest first; `None` if the first of them is gone.
    pub fn after(&self, frame: u64) -> Option<impl Iterator<Item = &Bytes>> {
        let missing = usize::try_from(self.last.checked_sub(frame)?).ok()?;
        let skip = self.frames.len().checked_sub(missing)?;
        Some(self.frames.range(skip..).map(|(_, bytes)| bytes))
    }

    /// The newest frames that together have at most `bytes_max`, oldest first.
    pub fn newest(&self, bytes_max: usize) -> impl Iterator<Item = &Bytes> {
        let mut room = bytes_max;
        let fits = self.frames.iter().rev().take_while(|(_, bytes)| {
            let fits = bytes.len() <= room;
            room = room.saturating_sub(bytes.len());
            fits
        });
        let count = fits.count();
        self.frames.range(self.frames.len() - count..).map(|(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(n: u8) -> Bytes {
        Bytes::from(vec![n; 10])
    }

    fn after(ring: &Ring, frame: u64) -> Option<Vec<u8>> {
        ring.after(frame).map(|frames| frames.map(|bytes| bytes[0]).collect())
    }

    #[test]
    fn it_is_bounded_by_number_and_by_age() {
        let start = Instant::now();
        let mut ring = Ring::new(7, 3, Duration::from_secs(30));
        assert_eq!((after(&ring, 7), after(&ring, 6), after(&ring, 8)), (Some(vec![]), None, None));
        for n in 8..=11 {
            ring.push(frame(n), start);
        }
        assert_eq!(after(&ring, 8), Some(vec![9, 10, 11]));
        assert_eq!((after(&ring, 7), after(&ring, 11), after(&ring, 12)), (None, Some(vec![]), None));
        ring.push(frame(12), start + Duration::from_secs(31));
        assert_eq!((after(&ring, 10), after(&ring, 11)), (None, Some(vec![12])));
        ring.restart(50);
        assert_eq!((after(&ring, 49), after(&ring, 50)), (None, Some(vec![])));
    }

    #[test]
    fn the_newest_are_those_that_fit() {
        let mut ring = Ring::new(0, 9, Duration::from_secs(30));
        for n in 1..=5 {
            ring.push(frame(n), Instant::now());
        }
        let newest = |bytes_max| ring.newest(bytes_max).map(|bytes| bytes[0]).collect::<Vec<_>>();
        assert_eq!((newest(29), newest(30), newest(9), newest(1000).len()), (vec![4, 5], vec![3, 4, 5], vec![], 5));
    }
}
