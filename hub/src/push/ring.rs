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
    frames: VecDeque<Kept>,
    /// The number of the last frame.
    last: u64,
    frames_max: usize,
    age_max: Duration,
}

#[derive(Debug)]
struct Kept {
    since: Instant,
    /// When the oldest change in it was made.
    made_at_ms: u64,
    bytes: Bytes,
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
    pub fn push(&mut self, bytes: Bytes, made_at_ms: u64, now: Instant) {
        self.last += 1;
        self.frames.push_back(Kept { since: now, made_at_ms, bytes });
        while self.frames.len() > self.frames_max
            || self.frames.front().is_some_and(|kept| now.duration_since(kept.since) > self.age_max)
        {
            self.frames.pop_front();
        }
    }

    /// The last frame, if it is still there.
    pub fn last(&self) -> Option<&Bytes> {
        self.frames.back().map(|kept| &kept.bytes)
    }

    /// When the oldest change after `frame` was made; `None` if there is none, or the first of them is gone.
    pub fn oldest_after(&self, frame: u64) -> Option<u64> {
        let missing = usize::try_from(self.last.checked_sub(frame)?).ok()?;
        let skip = self.frames.len().checked_sub(missing)?;
        self.frames.range(skip..).map(|kept| kept.made_at_ms).min()
    }

    /// The newest frames that together have at most `bytes_max`, oldest first.
    pub fn newest(&self, bytes_max: usize) -> impl Iterator<Item = &Bytes> {
        let mut room = bytes_max;
        let fits = self.frames.iter().rev().take_while(|kept| {
            let fits = kept.bytes.len() <= room;
            room = room.saturating_sub(kept.bytes.len());
            fits
        });
        let count = fits.count();
        self.frames.range(self.frames.len() - count..).map(|kept| &kept.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(n: u8) -> Bytes {
        Bytes::from(vec![n; 10])
    }

    /// The frames of these tests are made in the ms of their number.
    fn push(ring: &mut Ring, n: u8, now: Instant) {
        ring.push(frame(n), n.into(), now);
    }

    #[test]
    fn it_is_bounded_by_number_and_by_age() {
        let start = Instant::now();
        let mut ring = Ring::new(7, 3, Duration::from_secs(30));
        let after = |ring: &Ring, frames: [u64; 3]| frames.map(|frame| ring.oldest_after(frame));
        assert_eq!(after(&ring, [7, 6, 8]), [None; 3]);
        for n in 8..=11 {
            push(&mut ring, n, start);
        }
        assert_eq!(after(&ring, [8, 7, 10]), [Some(9), None, Some(11)]);
        assert_eq!((after(&ring, [11, 12, 99]), ring.last()), ([None; 3], Some(&frame(11))));
        push(&mut ring, 12, start + Duration::from_secs(31));
        assert_eq!(after(&ring, [10, 11, 12]), [None, Some(12), None]);
        ring.push(frame(13), 5, start + Duration::from_secs(31));
        assert_eq!(after(&ring, [11, 12, 13]), [Some(5), Some(5), None], "one that was made earlier and came later");
        ring.restart(50);
        assert_eq!((after(&ring, [49, 50, 51]), ring.last()), ([None; 3], None));
    }

    #[test]
    fn the_newest_are_those_that_fit() {
        let mut ring = Ring::new(0, 9, Duration::from_secs(30));
        for n in 1..=5 {
            push(&mut ring, n, Instant::now());
        }
        let newest = |bytes_max| ring.newest(bytes_max).map(|bytes| bytes[0]).collect::<Vec<_>>();
        assert_eq!((newest(29), newest(30), newest(9), newest(1000).len()), (vec![4, 5], vec![3, 4, 5], vec![], 5));
    }
}
