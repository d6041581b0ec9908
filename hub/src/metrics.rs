//! Numbers for the people who run it, in Prometheus' text. A registry a hub: two in one process do not mix.

mod recent; // since somebody asked last

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

pub use self::recent::Recent;

/// The addresses where seats are taken.
const HOLDS: [&str; 2] = ["/api/events/{id}/hold", "/api/box-office/holds"];

/// Seconds. The aim is 100 ms at the 99th percentile, so the buckets are close there.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    /// As it is declared (`/api/events/{id}`), never as it was asked for: the number of series is bounded.
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Mail {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Invariant {
    invariant: &'static str,
}

/// What is counted. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Request, Counter>,
    request_seconds: Family<Route, Histogram, fn() -> Histogram>,
    /// From the commit of a change to its frame's arrival in a room.
    pub frame_lag_seconds: Histogram,
    violations: Family<Invariant, Gauge>,
    mails: Family<Mail, Counter>,
    mails_queued: Gauge,
    mails_dead: Gauge,
    mail_oldest_seconds: Gauge,
    /// When the invariants were last checked, Unix seconds. Alert when it stands still.
    pub checked_at: Gauge,
    /// People who were forgotten by themselves, and those of the last round who could not be yet.
    pub people_forgotten: Counter,
    pub people_kept: Gauge,
    recent: Arc<recent::Counting>,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Metrics {
    /// `parts` are asked for their own numbers whenever somebody reads.
    pub fn new(parts: impl Collector) -> Self {
        let mut r = Registry::with_prefix("fullhouse");
        let requests = Family::default();
        let request_seconds = Family::new_with_constructor(seconds as fn() -> Histogram);
        let frame_lag_seconds = seconds();
        let violations = Family::default();
        let mails = Family::default();
        let (mails_queued, mails_dead, mail_oldest_seconds) = (Gauge::default(), Gauge::default(), Gauge::default());
        let checked_at = Gauge::default();
        r.register("http_requests", "Requests answered", requests.clone());
        r.register("http_request_seconds", "Time to answer", request_seconds.clone());
        r.register(
            "frame_lag_seconds",
            "From the commit of a change to its frame in a room",
            frame_lag_seconds.clone(),
        );
        r.register("invariant_violations", "What must never be true, and is", violations.clone());
        r.register("invariants_checked_at", "When the invariants were last checked, Unix seconds", checked_at.clone());
        r.register("mails", "Tries to send a mail, by what became of it", mails.clone());
        r.register("mails_queued", "Mails that wait, for their turn or for a server", mails_queued.clone());
        r.register("mails_dead", "Mails that nobody will send unless a person sees to them", mails_dead.clone());
        r.register("mail_oldest_seconds", "Age of the oldest mail that waits", mail_oldest_seconds.clone());
        let (people_forgotten, people_kept) = (Counter::default(), Gauge::default());
        let told = "People forgotten some time after their last event";
        r.register("people_forgotten", told, people_forgotten.clone());
        let told = "People whose time to be forgotten has come and who have money or tickets open";
        r.register("people_kept", told, people_kept.clone());
        r.register_collector(Box::new(parts));
        Self {
            registry: Arc::new(r),
            requests,
            request_seconds,
            frame_lag_seconds,
            violations,
            checked_at,
            mails,
            mails_queued,
            mails_dead,
            mail_oldest_seconds,
            people_forgotten,
            people_kept,
            recent: Arc::default(),
        }
    }

    /// Counts an answer.
    pub fn answered(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        self.requests.get_or_create(&Request { method, route: route.to_owned(), status }).inc();
        self.request_seconds.get_or_create(&Route { route: route.to_owned() }).observe(took.as_secs_f64());
        self.recent.answered(method == "POST" && HOLDS.contains(&route), status, took);
    }

    /// What was answered since this was asked the last time.
    pub fn take_recent(&self) -> Recent {
        self.recent.take()
    }

    /// Counts a mail that was tried: `sent`, `dropped`, `later` or `dead`.
    pub fn mailed(&self, outcome: &'static str) {
        self.mails.get_or_create(&Mail { outcome }).inc();
    }

    /// What waits, what is dead, and how many seconds the oldest has waited.
    pub fn mail_queue(&self, queued: i64, dead: i64, oldest_s: i64) {
        self.mails_queued.set(queued);
        self.mails_dead.set(dead);
        self.mail_oldest_seconds.set(oldest_s);
    }

    /// How often an invariant was found broken by the last check.
    pub fn set_violations(&self, invariant: &'static str, count: usize) {
        self.violations.get_or_create(&Invariant { invariant }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// All of it, as a scraper reads it.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a String does not fail; a metric that can't be encoded leaves the text short, which scrapers report.
        if let Err(error) = text::encode(&mut out, &self.registry) {
            tracing::error!(%error, "the metrics could not be written");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        encoding::{DescriptorEncoder, EncodeMetric},
        metrics::gauge::ConstGauge,
    };

    use super::*;

    #[derive(Debug)]
    struct Parts;

    impl Collector for Parts {
        fn encode(&self, mut encoder: DescriptorEncoder) -> std::fmt::Result {
            let parts = ConstGauge::new(3);
            let metric = encoder.encode_descriptor("parts", "How many", None, parts.metric_type())?;
            parts.encode(metric)
        }
    }

    #[test]
    fn clones_count_together_and_are_read_as_text() {
        let metrics = Metrics::new(Parts);
        metrics.clone().answered("GET", "/api/events/{id}", 200, Duration::from_millis(3));
        metrics.set_violations("seat_without_hold", 2);
        let text = metrics.text();
        for line in [
            r#"fullhouse_http_requests_total{method="GET",route="/api/events/{id}",status="200"} 1"#,
            r#"fullhouse_http_request_seconds_bucket{le="0.005",route="/api/events/{id}"} 1"#,
            r#"fullhouse_invariant_violations{invariant="seat_without_hold"} 2"#,
            "fullhouse_parts 3",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
