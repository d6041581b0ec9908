//! What the shards of a process have done, for its metrics.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use fullhouse_protocol::close;

/// Counted from the start of the process.
#[derive(Debug, Default)]
pub struct Numbers {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    /// How often a socket was full.
    pub lags: AtomicU64,
    pub rounds: AtomicU64,
    /// From a frame's arrival in its room until the last viewer of a shard had been given it, summed.
    pub round_us: AtomicU64,
    /// Of the last round.
    pub lag_us: AtomicU64,
    pub closed_slow: AtomicU64,
    pub closed_bad: AtomicU64,
}

impl Numbers {
    /// Adds what a shard has counted since it did this last.
    pub(super) fn add(&self, tally: &mut Tally) {
        let tally = std::mem::take(tally);
        if tally.rounds > 0 {
            self.lag_us.store(tally.lag_us, Ordering::Relaxed);
        }
        for (total, more) in [
            (&self.messages, tally.messages),
            (&self.bytes, tally.bytes),
            (&self.lags, tally.lags),
            (&self.rounds, tally.rounds),
            (&self.round_us, tally.round_us),
            (&self.closed_slow, tally.closed_slow),
            (&self.closed_bad, tally.closed_bad),
        ] {
            if more > 0 {
                total.fetch_add(more, Ordering::Relaxed);
            }
        }
    }
}

/// A shard's own, so that two of them do not write to one line of the cache for each viewer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub messages: u64,
    pub bytes: u64,
    pub lags: u64,
    pub rounds: u64,
    pub round_us: u64,
    pub lag_us: u64,
    pub closed_slow: u64,
    pub closed_bad: u64,
}

impl Tally {
    pub(super) fn sent(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }

    /// A round is done; its frame had been there for so long.
    pub(super) fn round(&mut self, lag: Duration) {
        self.lag_us = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        self.rounds += 1;
        self.round_us += self.lag_us;
    }

    pub(super) fn closed(&mut self, code: u16) {
        match code {
            close::TOO_SLOW => self.closed_slow += 1,
            close::BAD_REQUEST => self.closed_bad += 1,
            _ => {}
        }
    }
}
