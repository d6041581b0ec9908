//! What happened since somebody asked last: for a hub that judges itself by the last two seconds, of which Prometheus'
//! sums since the start say nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Milliseconds, each a fifth to a half above the one before; what takes longer is counted with the last.
const UP_TO_MS: [u64; 28] = [
    1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 125, 150, 200, 250, 300, 400, 500, 700, 1000, 1500, 2500, 5000,
    10_000, 15_000,
];

/// Counts that never grow in size, and are taken and begun anew.
#[derive(Debug, Default)]
pub(super) struct Counting {
    holds: [AtomicU64; UP_TO_MS.len()],
    answers: AtomicU64,
    faults: AtomicU64,
}

impl Counting {
    pub fn answered(&self, is_hold: bool, status: u16, took: Duration) {
        if is_hold {
            let ms = took.as_micros().div_ceil(1000) as u64;
            let bucket = UP_TO_MS.partition_point(|up_to| *up_to < ms).min(UP_TO_MS.len() - 1);
            self.holds[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.answers.fetch_add(1, Ordering::Relaxed);
        if status >= 500 {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn take(&self) -> Recent {
        Recent {
            holds: self.holds.each_ref().map(|count| count.swap(0, Ordering::Relaxed)),
            answers: self.answers.swap(0, Ordering::Relaxed),
            faults: self.faults.swap(0, Ordering::Relaxed),
        }
    }
}

/// What was counted.
#[derive(Debug, Clone)]
pub struct Recent {
    holds: [u64; UP_TO_MS.len()],
    pub answers: u64,
    /// Of those, 5xx.
    pub faults: u64,
}

impl Recent {
    /// Requests to hold seats, whatever was answered.
    pub fn holds(&self) -> u64 {
        self.holds.iter().sum()
    }

    /// So many per cent of the holds took no longer than this, rounded up to the next bucket. `None` if there were none.
    pub fn hold_ms(&self, percent: u64) -> Option<u64> {
        let rank = (self.holds() * percent).div_ceil(100).max(1);
        let mut below = 0;
        let bucket = self.holds.iter().position(|count| {
            below += count;
            below >= rank
        });
        bucket.map(|bucket| UP_TO_MS[bucket])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_gone_and_shares_are_rounded_up() {
        let counting = Counting::default();
        assert_eq!(counting.take().hold_ms(99), None);
        for ms in 1..=100 {
            counting.answered(true, if ms > 97 { 503 } else { 201 }, Duration::from_millis(ms));
        }
        counting.answered(false, 200, Duration::from_secs(9));
        let recent = counting.take();
        assert_eq!((recent.holds(), recent.answers, recent.faults), (100, 101, 3));
        assert_eq!((recent.hold_ms(50), recent.hold_ms(99), recent.hold_ms(1)), (Some(50), Some(100), Some(1)));
        assert_eq!(counting.take().holds(), 0);
        counting.answered(true, 201, Duration::from_secs(60));
        assert_eq!(counting.take().hold_ms(50), Some(15_000), "what takes longer counts with the last");
    }
}
