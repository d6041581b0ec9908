//! What a crowd has seen, and how late; of several crowds it adds up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Since it was asked last.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Messages with frames.
    pub messages: u64,
    pub frames: u64,
    /// Several frames in one, and how many of those were packed.
    pub spans: u64,
    pub ranges: u64,
    pub resyncs: u64,
    /// Frames that did not follow on what the viewer had.
    pub wrong: u64,
    /// Sockets that ended.
    pub lost: u64,
    /// Handshakes that were answered otherwise.
    pub refused: u64,
    /// Sockets that were closed with a code.
    pub closed: BTreeMap<u16, u64>,
    /// From a frame's time to its receipt, whole, in units of the crowd's clock.
    pub late: Histogram,
}

impl Tally {
    pub(super) fn received(&mut self, frames: u32, late: u64) {
        self.messages += 1;
        self.frames += u64::from(frames);
        self.late.add(late);
    }

    pub(super) fn close(&mut self, code: u16) {
        *self.closed.entry(code).or_default() += 1;
    }

    /// Adds another crowd's.
    pub fn merge(&mut self, other: &Self) {
        self.messages += other.messages;
        self.frames += other.frames;
        self.spans += other.spans;
        self.ranges += other.ranges;
        self.resyncs += other.resyncs;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.refused += other.refused;
        for (code, count) in &other.closed {
            *self.closed.entry(*code).or_default() += count;
        }
        self.late.merge(&other.late);
    }
}

/// How often each value, to within a sixteenth of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Histogram(BTreeMap<u32, u64>);

/// Steps between a power of two and the next.
const STEPS: u32 = 16;

impl Histogram {
    pub fn add(&mut self, value: u64) {
        *self.0.entry(bucket(value)).or_default() += 1;
    }

    fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    /// The value below which this part of all lies; 0 if there are none.
    pub fn quantile(&self, part: f64) -> u64 {
        let all: u64 = self.0.values().sum();
        let mut missing = (all as f64 * part).ceil() as u64;
        for (bucket, count) in &self.0 {
            missing = missing.saturating_sub(*count);
            if missing == 0 {
                return value(*bucket);
            }
        }
        0
    }
}

fn bucket(value: u64) -> u32 {
    if value < u64::from(STEPS) {
        return value as u32;
    }
    let power = value.ilog2();
    let step = (value >> (power - STEPS.ilog2())) as u32 - STEPS;
    STEPS * (power - STEPS.ilog2() + 1) + step
}

/// The largest value of a bucket.
fn value(bucket: u32) -> u64 {
    if bucket < STEPS {
        return bucket.into();
    }
    let (power, step) = (bucket / STEPS - 1, bucket % STEPS);
    ((u64::from(STEPS + step) + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_within_a_sixteenth() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|value| histogram.add(value));
        for (part, exact) in [(0.5, 5_000), (0.99, 9_900), (1.0, 10_000)] {
            let found = histogram.quantile(part);
            assert!(found >= exact && found <= exact + exact / 16, "{part}: {found}");
        }
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
