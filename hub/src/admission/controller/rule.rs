//! What each measurement may be, and which of them is nearest to its ceiling.

use serde::{Deserialize, Serialize};

use super::Measured;

/// What is too much of each.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    pub hold_ms: u32,
    pub lock_wait_ms: u32,
    pub write_ms: u32,
    pub pool_percent: u32,
    pub errors_percent: u32,
    pub payments_late_s: u32,
    pub payments_in_doubt: u32,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    Hold,
    LockWait,
    Write,
    Pool,
    Errors,
    PaymentsLate,
    PaymentsInDoubt,
}

/// A measurement beside its ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strain {
    pub signal: Signal,
    pub value: u32,
    pub ceiling: u32,
}

impl Strain {
    /// 100: at the ceiling.
    pub fn percent(&self) -> u32 {
        let percent = u64::from(self.value) * 100 / u64::from(self.ceiling.max(1));
        u32::try_from(percent).unwrap_or(u32::MAX)
    }
}

impl Ceilings {
    /// The measurement that is nearest to its ceiling, or furthest above it.
    pub fn nearest(&self, measured: &Measured) -> Strain {
        let all = [
            (Signal::Hold, measured.hold_ms.unwrap_or(0), self.hold_ms),
            (Signal::LockWait, measured.lock_wait_ms, self.lock_wait_ms),
            (Signal::Write, measured.write_ms, self.write_ms),
            (Signal::Pool, measured.pool_percent, self.pool_percent),
            (Signal::Errors, measured.errors_percent, self.errors_percent),
            (Signal::PaymentsLate, measured.payments_late_s, self.payments_late_s),
            (Signal::PaymentsInDoubt, measured.payments_in_doubt, self.payments_in_doubt),
        ];
        let strains = all.map(|(signal, value, ceiling)| Strain { signal, value, ceiling });
        strains.into_iter().max_by_key(Strain::percent).expect("there are seven")
    }
}
