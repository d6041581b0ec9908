//! Whether the hub is heard, and how long to wait before asking again.
//!
//! Invariants:
//! - A network that is gone is told within [`TOLD_WITHIN`]: after the last answer, silence counts, not errors. A cut and a
//!   wire that swallows everything look the same.
//! - Silence is measured by a clock that counts sleep: a machine that wakes up believes nothing until it is answered.

use std::time::Duration;

use rand::Rng;

use crate::clock::SinceBoot;

/// How often the hub is asked whether it is there. Several may be on their way at once: a slow answer is an answer.
pub const BEAT: Duration = Duration::from_millis(400);
/// Silence that means that it is gone.
pub const SILENCE: Duration = Duration::from_millis(1_500);
/// How often silence is looked at.
pub const LOOK: Duration = Duration::from_millis(100);
/// People are told so soon.
pub const TOLD_WITHIN: Duration = Duration::from_secs(2);

const _: () = assert!(SILENCE.as_millis() + LOOK.as_millis() < TOLD_WITHIN.as_millis());
const _: () = assert!(BEAT.as_millis() * 3 < SILENCE.as_millis(), "one lost beat is no silence");

/// When the hub was heard last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pulse {
    heard: Option<SinceBoot>,
}

impl Pulse {
    /// It answered, whatever it said.
    pub fn heard(&mut self, at: SinceBoot) {
        self.heard = self.heard.max(Some(at));
    }

    /// Whether it is there. A clock that can't be read hears nothing.
    pub fn beats(&self, now: Option<SinceBoot>) -> bool {
        match (self.heard, now) {
            (Some(heard), Some(now)) => now.0.saturating_sub(heard.0) < SILENCE,
            _ => false,
        }
    }
}

/// The longest wait between two tries.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
const WAIT_FIRST: Duration = Duration::from_millis(250);

/// How long to wait after so many tries in vain: anything up to twice as long each time, so that the tills of a house
/// whose network comes back don't all ask in the same moment.
pub fn wait(tries: u32) -> Duration {
    wait_by(tries, &mut rand::rng())
}

fn wait_by(tries: u32, rng: &mut impl Rng) -> Duration {
    let longest = WAIT_FIRST.saturating_mul(1 << tries.min(16)).min(WAIT_MAX);
    rng.random_range(Duration::from_millis(20)..=longest)
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::SmallRng};

    use super::*;

    fn at(ms: u64) -> SinceBoot {
        SinceBoot(Duration::from_millis(ms))
    }

    #[test]
    fn silence_is_told_within_two_seconds_of_the_last_answer_and_not_before_three_beats_were_lost() {
        let mut pulse = Pulse::default();
        assert!(!pulse.beats(Some(at(0))), "nobody was heard yet");
        pulse.heard(at(10_000));
        pulse.heard(at(9_000)); // an answer that came late takes nothing back
        assert!(pulse.beats(Some(at(10_000))) && pulse.beats(Some(at(11_499))));
        assert!(!pulse.beats(Some(at(11_500))));
        assert!(!pulse.beats(Some(at(3_600_000))), "the machine slept");
        assert!(!pulse.beats(None), "no clock, no hub");
    }

    #[test]
    fn waits_grow_to_a_bound_and_differ() {
        let mut rng = SmallRng::seed_from_u64(1);
        let waits: Vec<Duration> = (0..200).map(|n| wait_by(n % 20, &mut rng)).collect();
        assert!(waits.iter().all(|w| *w <= WAIT_MAX));
        assert!((0..50).all(|_| wait_by(0, &mut rng) <= WAIT_FIRST));
        let late: std::collections::BTreeSet<Duration> = (0..50).map(|_| wait_by(30, &mut rng)).collect();
        assert!(late.len() > 40, "{late:?}");
    }
}
