//! What a buyer may give back by themselves. An event says it; an order keeps what was said when it was bought.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_protocol::orders::RefundTerms;
use serde::{Deserialize, Serialize};

/// As it is written in an event's specification, and kept with an order. Without one, nothing goes back by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefundPolicy {
    /// Until so many hours before the start.
    pub until_hours: i64,
    /// Of a ticket's price, what the house keeps; rounded in its favour.
    #[serde(default)]
    pub keep_percent: i64,
    /// The same as an amount a ticket, in minor units.
    #[serde(default)]
    pub keep_minor: i64,
    /// Booking fees are kept; otherwise a seat takes its share of them along.
    #[serde(default)]
    pub keep_fees: bool,
}

impl RefundPolicy {
    /// From how it is stored. What can't be read gives nothing back.
    pub fn read(stored: Option<serde_json::Value>) -> Option<Self> {
        serde_json::from_value(stored?).ok()
    }

    /// The last moment.
    pub fn until(&self, starts_at: DateTime<Utc>) -> DateTime<Utc> {
        starts_at - TimeDelta::hours(self.until_hours)
    }

    /// As pages and orders say it.
    pub fn terms(&self, starts_at: DateTime<Utc>) -> RefundTerms {
        let Self { keep_percent, keep_minor, keep_fees, .. } = *self;
        RefundTerms { until: self.until(starts_at), keep_percent, keep_minor, keep_fees }
    }

    /// What is kept of a ticket of this price, in steps that the provider can say.
    pub fn keeps(&self, price_minor: i64, step: i64) -> i64 {
        let percent = (price_minor * self.keep_percent + 99) / 100;
        let kept = percent.max(self.keep_minor);
        (kept.div_euclid(step) * step + if kept % step == 0 { 0 } else { step }).min(price_minor)
    }

    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |sound: bool, message: &str| {
            if !sound {
                faults.push(message.to_owned());
            }
        };
        check((0..=8_760).contains(&self.until_hours), "refund.until_hours: from 0 to 8760, a year");
        check(
            (0..=99).contains(&self.keep_percent),
            "refund.keep_percent: from 0 to 99; without [refund] nothing goes back",
        );
        check((0..=99_999_999).contains(&self.keep_minor), "refund.keep_minor: from 0 to 99999999");
        check(
            self.keep_percent == 0 || self.keep_minor == 0,
            "refund.keep_minor: a share or an amount is kept, not both",
        );
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_rounded_up_in_steps_and_never_more_than_the_price() {
        let policy =
            |keep_percent, keep_minor| RefundPolicy { until_hours: 1, keep_percent, keep_minor, keep_fees: true };
        assert_eq!(policy(10, 0).keeps(3_333, 1), 334);
        assert_eq!(policy(10, 0).keeps(3_333, 10), 340);
        assert_eq!(policy(0, 500).keeps(3_333, 1), 500);
        assert_eq!(policy(0, 500).keeps(300, 1), 300);
        assert_eq!(policy(0, 0).keeps(3_333, 10), 0);
        assert_eq!(policy(50, 0).faults().len() + policy(100, 5).faults().len(), 2);
    }
}
