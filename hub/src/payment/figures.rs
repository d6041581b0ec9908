//! Payments as numbers: what the metrics show, counted at each round of [`super::oversight`].

use std::sync::{Mutex, PoisonError};

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{family::Family, gauge::Gauge},
};

use super::list::Counts;

/// The last counts. A node that does not drive payments has none.
#[derive(Debug, Default)]
pub struct Figures(Mutex<Option<Counts>>);

impl Figures {
    pub(super) fn set(&self, counts: Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
    }

    /// For the metrics.
    pub fn encode(&self, encoder: &mut DescriptorEncoder) -> std::fmt::Result {
        let Some(counts) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return Ok(()) };
        let mut labelled = |name, help, label: &'static str, values: Vec<(String, i64)>| {
            let family = Family::<Vec<(&'static str, String)>, Gauge>::default();
            for (value, count) in values {
                family.get_or_create(&vec![(label, value)]).set(count);
            }
            family.encode(encoder.encode_descriptor(name, help, None, family.metric_type())?)
        };
        labelled(
            "payment_attempts",
            "Attempts to pay by state, of the last two days and whatever is not decided",
            "state",
            counts.attempts,
        )?;
        labelled("payment_gate_closed", "1 for each reason that no new payments begin for", "reason", counts.gate)?;
        labelled("payment_findings", "Where the provider's books and ours differ, by class", "class", counts.findings)?;
        let mut gauge = |name, help, value: i64| {
            let gauge = Gauge::<i64>::default();
            gauge.set(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("payment_doubt_age_seconds", "Age of the oldest payment that is in doubt", counts.doubt_age_s)?;
        gauge("payment_reconciled_age_seconds", "Since the books were compared; -1: never", counts.reconciled_age_s)?;
        gauge(
            "payment_webhook_age_seconds",
            "Age of the oldest webhook that nobody has applied",
            counts.webhook_age_s,
        )?;
        gauge("payment_webhooks_waiting", "Webhooks that nobody has applied", counts.webhooks)?;
        gauge(
            "payment_refunds_failed",
            "Refunds that the provider refused and nobody has seen to",
            counts.refunds_failed,
        )?;
        gauge("payment_refunds_waiting", "Refunds on their way", counts.refunds_waiting)?;
        gauge("payment_due_orders", "Orders whose money could not be taken after the sale", counts.payment_due)
    }
}
