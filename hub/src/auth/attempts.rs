//! How often somebody may try, counted in memory over a window. Each node counts for itself.

use std::time::{Duration, Instant};

use dashmap::{DashMap, Entry};
use sha2::{Digest, Sha256};

/// A counter lives for a window, and every try costs a password hash: that bounds how many there
/// are. This is the last net, far beyond what hashing allows.
const COUNTERS_MAX: usize = 200_000;

pub struct Attempts {
    window: Duration,
    counters: DashMap<[u8; 16], Counter>,
}

struct Counter {
    since: Instant,
    tries: u32,
}

impl Attempts {
    pub fn new(window: Duration) -> Self {
        Self { window, counters: DashMap::new() }
    }

    /// Counts a try before it is made, so that tries side by side are counted too. `false`: too many.
    pub fn take(&self, of: &str, tries_max: u32) -> bool {
        let full = self.counters.len() >= COUNTERS_MAX;
        match self.counters.entry(key(of)) {
            Entry::Occupied(mut held) => {
                let counter = held.get_mut();
                if counter.since.elapsed() >= self.window {
                    *counter = Counter { since: Instant::now(), tries: 0 };
                }
                if counter.tries >= tries_max {
                    return false;
                }
                counter.tries += 1;
                true
            }
            Entry::Vacant(_) if full => false,
            Entry::Vacant(free) => {
                free.insert(Counter { since: Instant::now(), tries: 1 });
                tries_max > 0
            }
        }
    }

    /// A try that succeeded, or was never made, does not count.
    pub fn give_back(&self, of: &str) {
        if let Some(mut counter) = self.counters.get_mut(&key(of)) {
            counter.tries = counter.tries.saturating_sub(1);
        }
    }

    pub fn tidy(&self) {
        self.counters.retain(|_, counter| counter.tries > 0 && counter.since.elapsed() < self.window);
    }
}

/// No address or mail is kept in memory for longer than its request.
fn key(of: &str) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(of).into();
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_counted_a_name_and_given_back() {
        let attempts = Attempts::new(Duration::from_secs(60));
        assert!(attempts.take("a", 2));
        assert!(attempts.take("a", 2));
        assert!(!attempts.take("a", 2));
        assert!(attempts.take("b", 2));
        attempts.give_back("a");
        assert!(attempts.take("a", 2));
        assert!(!attempts.take("a", 2));
    }

    #[test]
    fn a_window_that_has_passed_is_forgotten() {
        let attempts = Attempts::new(Duration::ZERO);
        assert!(attempts.take("a", 1));
        assert!(attempts.take("a", 1));
        attempts.tidy();
        assert!(attempts.counters.is_empty());
    }
}
