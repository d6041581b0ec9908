//! Whether the hub is heard, and how long to wait before asking again.
//!
//! Invariants:
//! - A network that is gone is told within [`TOLD_WITHIN`]: after the last answer, silence counts, not errors. A cut and a
//!   wire that swallows everything look the same.
//! - Silence is measured by a clock that counts sleep: a machine that wakes up believes nothing until it is answered.
//! - A terminal has one [`Heart`]: what its screens say of the network, and what its till does about it, is decided once.

use std::{sync::Arc, time::Duration};

use rand::Rng;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};

use crate::clock::{Boottime, Clock, SinceBoot};

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

/// Whether the hub can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It was not heard yet, and may still answer the first question.
    Unknown,
    Up,
    Down,
}

/// Asks the hub whether it is there, all the time. It beats until its last clone is gone.
#[derive(Clone)]
pub struct Heart {
    reach: watch::Receiver<Reach>,
    _beats: Arc<Beats>,
}

struct Beats(AbortHandle);

impl Drop for Beats {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Heart {
    /// On a runtime. `is_there` asks once, and gives up after [`SILENCE`].
    pub fn of<F>(is_there: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let (tell, reach) = watch::channel(Reach::Unknown);
        let beats = tokio::spawn(beat(is_there, tell));
        Self { reach, _beats: Arc::new(Beats(beats.abort_handle())) }
    }

    /// Follows whether it can be reached.
    pub fn reach(&self) -> watch::Receiver<Reach> {
        self.reach.clone()
    }

    pub fn is_up(&self) -> bool {
        *self.reach.borrow() == Reach::Up
    }
}

async fn beat<F>(is_there: impl Fn() -> F, tell: watch::Sender<Reach>)
where
    F: Future<Output = bool> + Send + 'static,
{
    let (begun, mut pulse) = (Boottime.now(), Pulse::default());
    let (mut beat, mut look) = (interval(BEAT), interval(LOOK));
    // A runtime that stood still asks once, and not for every beat that it missed.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asked = JoinSet::new();
    loop {
        tokio::select! {
            _ = beat.tick() => {
                asked.spawn(is_there());
            }
            Some(answered) = asked.join_next() => {
                if let (Ok(true), Some(now)) = (answered, Boottime.now()) {
                    pulse.heard(now);
                }
            }
            _ = look.tick() => {}
        }
        let now = reach(&pulse, begun, Boottime.now());
        tell.send_if_modified(|known| std::mem::replace(known, now) != now);
    }
}

fn reach(pulse: &Pulse, begun: Option<SinceBoot>, now: Option<SinceBoot>) -> Reach {
    let waits = begun.zip(now).is_some_and(|(begun, now)| now.0.saturating_sub(begun.0) < SILENCE);
    match pulse.beats(now) {
        true => Reach::Up,
        false if pulse.heard.is_none() && waits => Reach::Unknown,
        false => Reach::Down,
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
    fn a_hub_that_was_never_heard_is_gone_once_it_had_its_time_to_answer() {
        let mut pulse = Pulse::default();
        let begun = Some(at(5_000));
        assert_eq!(reach(&pulse, begun, Some(at(6_499))), Reach::Unknown);
        assert_eq!(reach(&pulse, begun, Some(at(6_500))), Reach::Down);
        assert_eq!(reach(&pulse, begun, None), Reach::Down);
        pulse.heard(at(7_000));
        assert_eq!(reach(&pulse, begun, Some(at(7_001))), Reach::Up);
        assert_eq!(reach(&pulse, begun, Some(at(8_500))), Reach::Down);
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
