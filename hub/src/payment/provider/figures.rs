//! What is noticed about the provider on the way: how long it takes, how often it fails, what its clock says.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use chrono::{DateTime, Utc};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
};

use super::Op;

/// Seconds. The provider's 99th percentile is 3 s, its time-out 10 s.
const SECONDS: [f64; 10] = [0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0];
/// What its clock said is believed for so long.
const CLOCK_FRESH_S: i64 = 900;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    op: &'static str,
}

/// Shared by all clones of a client.
#[derive(Debug)]
pub struct Figures {
    seconds: Family<Kind, Histogram, fn() -> Histogram>,
    failures: Family<Kind, Counter>,
    /// The provider's clock ahead of the host's, milliseconds, and when it was read (Unix seconds; 0: never).
    ahead_ms: AtomicI64,
    read_at: AtomicI64,
}

impl Default for Figures {
    fn default() -> Self {
        let histogram = || Histogram::new(SECONDS);
        Self {
            seconds: Family::new_with_constructor(histogram as fn() -> Histogram),
            failures: Family::default(),
            ahead_ms: AtomicI64::new(0),
            read_at: AtomicI64::new(0),
        }
    }
}

impl Figures {
    pub(super) fn note(&self, op: Op, took: Duration, ok: bool, date: Option<DateTime<Utc>>) {
        let kind = Kind { op: op.name() };
        self.seconds.get_or_create(&kind).observe(took.as_secs_f64());
        if !ok {
            self.failures.get_or_create(&kind).inc();
        }
        if let Some(date) = date {
            // It is cut to the second; and it was read somewhere in the time that the answer took.
            let half_ms = took.as_millis() as i64 / 2 + 500;
            let ahead = (date.timestamp_millis() + half_ms) - Utc::now().timestamp_millis();
            self.ahead_ms.store(ahead, Ordering::Relaxed);
            self.read_at.store(Utc::now().timestamp(), Ordering::Relaxed);
        }
    }

    /// How far the provider's clock is ahead of the host's, if it spoke lately. Exact to a second or so.
    pub fn clock_ahead_ms(&self) -> Option<i64> {
        let fresh = Utc::now().timestamp() - self.read_at.load(Ordering::Relaxed) < CLOCK_FRESH_S;
        fresh.then(|| self.ahead_ms.load(Ordering::Relaxed))
    }

    /// For the metrics.
    pub fn encode(&self, encoder: &mut DescriptorEncoder) -> std::fmt::Result {
        let kind = self.seconds.metric_type();
        self.seconds.encode(encoder.encode_descriptor(
            "provider_seconds",
            "Time until the payment provider answered, or was given up",
            None,
            kind,
        )?)?;
        let kind = self.failures.metric_type();
        self.failures.encode(encoder.encode_descriptor(
            "provider_failures",
            "Calls that the payment provider did not answer, or put off",
            None,
            kind,
        )?)
    }
}
