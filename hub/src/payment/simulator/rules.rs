//! What goes wrong, and when. `POST /_sim/rules` replaces them; scripted rules win over random ones.

use rand::{Rng, rngs::StdRng};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(default, rename = "match")]
    pub matches: Match,
    pub effect: Effect,
    /// How often the rule's other conditions were met.
    #[serde(skip)]
    pub seen: u32,
}

/// All that is given must hold; nothing given holds always.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// create, confirm, get, list, search, capture, cancel, refund, list_refunds, get_refund,
    /// balance_transactions, events, payment_method, challenge, settle.
    pub op: Option<String>,
    /// `metadata[attempt]`
    pub attempt: Option<String>,
    pub payment_method: Option<String>,
    /// Only the nth request that the rest matches; the first is 1.
    pub nth: Option<u32>,
    /// Only the first so many of them.
    pub first: Option<u32>,
    /// By chance, from the seed.
    pub probability: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Effect {
    pub latency: Option<Latency>,
    pub network: Option<Network>,
    pub status: Option<Status>,
    /// Seconds, in a `Retry-After` header.
    pub retry_after: Option<u64>,
    /// The `Stripe-Should-Retry` header.
    pub should_retry: Option<bool>,
    pub outcome: Option<Outcome>,
    pub webhook: Option<Webhook>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Latency {
    Fixed { ms: u64 },
    Uniform { from_ms: u64, to_ms: u64 },
    Lognormal { p50_ms: u64, p99_ms: u64 },
    Spike { ms: u64, probability: f64 },
}

impl Latency {
    pub const NONE: Latency = Latency::Fixed { ms: 0 };

    pub fn sample_ms(self, rng: &mut StdRng) -> u64 {
        match self {
            Latency::Fixed { ms } => ms,
            Latency::Uniform { from_ms, to_ms } => rng.random_range(from_ms..=to_ms.max(from_ms)),
            Latency::Spike { ms, probability } => u64::from(rng.random_bool(probability.clamp(0.0, 1.0))) * ms,
            Latency::Lognormal { p50_ms, p99_ms } => {
                let (p50, p99) = (p50_ms.max(1) as f64, p99_ms.max(1) as f64);
                let sigma = (p99 / p50).ln().max(0.0) / 2.326_347_9; // the normal distribution's 99th percentile
                let (u, v): (f64, f64) = (rng.random_range(f64::MIN_POSITIVE..1.0), rng.random());
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                (p50 * (sigma * normal).exp()) as u64
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing is done, and nobody answers.
    TimeoutBefore,
    /// It is done, and nobody answers.
    TimeoutAfter,
    /// The connection breaks before anything is done.
    ResetBefore,
    /// It is done, then the connection breaks.
    ResetAfter,
    /// Done; half of the answer arrives.
    HalfBody,
    /// Done; 200 with something that is not JSON.
    #[serde(rename = "garbage_2xx")]
    Garbage2xx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Nothing is done, and nothing is stored under the key.
    #[serde(rename = "500_before")]
    Before500,
    /// Nothing is done, and the 500 is stored under the key: it will be replayed.
    #[serde(rename = "500_stored")]
    Stored500,
    /// It is done, and the 500 is stored under the key.
    #[serde(rename = "500_after")]
    After500,
    #[serde(rename = "503")]
    Unavailable503,
    #[serde(rename = "429")]
    TooMany429,
    #[serde(rename = "409_in_use")]
    InUse409,
    /// Refused before it is done.
    #[serde(rename = "400")]
    Bad400,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Outcome {
    Approve,
    Decline {
        code: String,
    },
    #[serde(rename = "3ds")]
    Challenge,
    /// Not known for so long; then as the card has it.
    Processing {
        ms: i64,
    },
    /// Another amount than asked for is authorised.
    WrongAmount {
        delta: i64,
    },
    /// Authorised, for so long.
    AuthExpires {
        ms: i64,
    },
    /// The capture fails for good: the authorisation is gone.
    CaptureFails,
    /// Refuses to cancel.
    CancelFails,
    /// Captured by the time that the cancellation arrives.
    CapturedMeanwhile,
    RefundPending {
        ms: i64,
    },
    /// Succeeds, and fails this much later.
    RefundFailsLater {
        ms: i64,
    },
    RefundFails,
}

/// What becomes of the webhooks that a request causes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Webhook {
    pub delay_ms: Option<u64>,
    pub drop: bool,
    /// Delivered so many times more.
    pub duplicate: u32,
    /// A second event object for the same change.
    pub twin: bool,
    pub bad_signature: bool,
    /// Signed at a time so far away.
    pub signed_ago_s: i64,
    /// Delivered before the request is answered.
    pub before_response: bool,
    pub livemode: bool,
    pub unknown_type: bool,
}

/// What a request is, for matching.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub op: &'a str,
    pub attempt: Option<&'a str>,
    pub payment_method: Option<&'a str>,
}

/// The effects of all rules that match: of two that say something about the same thing, the first
/// wins, and scripted ones come before random ones.
pub fn apply(rules: &mut [Rule], rng: &mut StdRng, subject: Subject<'_>) -> Effect {
    let mut effect = Effect::default();
    let (scripted, random): (Vec<&mut Rule>, Vec<&mut Rule>) =
        rules.iter_mut().partition(|r| r.matches.probability.is_none());
    for rule in scripted.into_iter().chain(random) {
        let m = &rule.matches;
        let same = |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        if !(same(&m.op, Some(subject.op))
            && same(&m.attempt, subject.attempt)
            && same(&m.payment_method, subject.payment_method))
        {
            continue;
        }
        if m.probability.is_some_and(|p| !rng.random_bool(p.clamp(0.0, 1.0))) {
            continue;
        }
        rule.seen += 1;
        if m.nth.is_some_and(|n| n != rule.seen) || m.first.is_some_and(|n| rule.seen > n) {
            continue;
        }
        let e = &rule.effect;
        effect.latency = effect.latency.or(e.latency);
        effect.network = effect.network.or(e.network);
        effect.status = effect.status.or(e.status);
        effect.retry_after = effect.retry_after.or(e.retry_after);
        effect.should_retry = effect.should_retry.or(e.should_retry);
        effect.outcome = effect.outcome.or_else(|| e.outcome.clone());
        effect.webhook = effect.webhook.or_else(|| e.webhook.clone());
    }
    effect
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn rule(json: serde_json::Value) -> Rule {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn scripted_rules_win_and_nth_counts() {
        let mut rules = [
            rule(serde_json::json!({"match": {"probability": 1.0}, "effect": {"status": "503"}})),
            rule(serde_json::json!({"match": {"op": "confirm", "nth": 2}, "effect": {"status": "500_after"}})),
        ];
        let mut rng = StdRng::seed_from_u64(1);
        let subject = Subject { op: "confirm", attempt: None, payment_method: None };
        assert_eq!(apply(&mut rules, &mut rng, subject).status, Some(Status::Unavailable503));
        assert_eq!(apply(&mut rules, &mut rng, subject).status, Some(Status::After500));
        assert_eq!(apply(&mut rules, &mut rng, subject).status, Some(Status::Unavailable503));
    }

    #[test]
    fn the_same_seed_takes_the_same_time() {
        let sample = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            (0..5).map(|_| Latency::Lognormal { p50_ms: 300, p99_ms: 3000 }.sample_ms(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(sample(7), sample(7));
        assert_ne!(sample(7), sample(8));
    }

    #[test]
    fn a_knob_that_does_not_exist_is_refused() {
        let bad = serde_json::json!({"effect": {"netwrok": "reset_before"}});
        assert!(serde_json::from_value::<Rule>(bad).is_err());
    }
}
