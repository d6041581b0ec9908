//! Time that goes on while the machine sleeps, and that nobody can set.
//!
//! Invariants:
//! - It never goes back, and counts a suspended machine's sleep: a lease that ran out in a closed notebook has run out.
//! - It means nothing after a restart of the machine, and so it is never stored.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};

/// Since the machine started, its sleep counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinceBoot(pub Duration);

/// Where a till reads the time that its leases run by.
pub trait Clock: Send + Sync {
    /// `None` if the clock can't be read: then nothing is sold that time ends.
    fn now(&self) -> Option<SinceBoot>;
}

/// The system's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Boottime;

impl Clock for Boottime {
    fn now(&self) -> Option<SinceBoot> {
        clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(|t| SinceBoot(Duration::from(t)))
    }
}

/// One that is set by hand, in milliseconds.
#[derive(Debug, Default)]
pub struct SetClock(AtomicU64);

impl SetClock {
    pub fn set_ms(&self, ms: u64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Option<SinceBoot> {
        Some(SinceBoot(Duration::from_millis(self.0.load(Ordering::SeqCst))))
    }
}

impl<C: Clock> Clock for std::sync::Arc<C> {
    fn now(&self) -> Option<SinceBoot> {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_one_that_counts_sleep() {
        let before = Boottime.now().expect("Linux has it");
        // The first number of this file is CLOCK_BOOTTIME, in hundredths.
        let uptime = std::fs::read_to_string("/proc/uptime").expect("proc is there");
        let uptime: f64 = uptime.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        let after = Boottime.now().expect("Linux has it");
        assert!(before <= after);
        assert!(before.0.as_secs_f64() - 0.02 <= uptime && uptime <= after.0.as_secs_f64() + 0.02);
    }
}
