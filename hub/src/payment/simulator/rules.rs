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
    /// create, confirm, get, list, search, capture, cancel, refund, list_refunds, get_refund, charge,
    /// balance_transactions, events, payment_method, challenge, settle; and of a card reader
    /// readers, reader, process, cancel_action, present.
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
    /// From this moment of the simulator's clock on (unix milliseconds): an outage, say.
    pub from_ms: Option<i64>,
    /// Up to this moment, and not at it.
    pub to_ms: Option<i64>,
}

impl Match {
    fn is_time(&self, now: i64) -> bool {
        self.from_ms.is_none_or(|from| from <= now) && self.to_ms.is_none_or(|to| now < to)
    }

    /// Says nothing about requests: only time, or nothing at all.
    fn is_of_everything(&self) -> bool {
        let Match { op, attempt, payment_method, nth, first, probability, from_ms: _, to_ms: _ } = self;
        op.is_none()
            && attempt.is_none()
            && payment_method.is_none()
            && nth.is_none()
            && first.is_none()
            && probability.is_none()
    }
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
    pub idempotency: Option<Idempotency>,
    pub settlement: Option<Settlement>,
    pub reader: Option<ReaderEffect>,
    /// What the answer says instead of the truth, field by field; null: the field is missing.
    pub echo: Option<serde_json::Map<String, serde_json::Value>>,
    /// A search does not find what is younger.
    pub search_lag_ms: Option<i64>,
}

/// What is told, and where, of something that happens.
#[derive(Debug, Clone, Default)]
pub struct How {
    pub webhook: Webhook,
    pub settlement: Settlement,
}

impl Effect {
    pub fn how(&self) -> How {
        How {
            webhook: self.webhook.clone().unwrap_or_default(),
            settlement: self.settlement.clone().unwrap_or_default(),
        }
    }
}

/// How the key of a request is treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Idempotency {
    /// The key is forgotten after this long, and executes anew.
    pub ttl_ms: Option<i64>,
    /// As if no key had been sent: what a broken provider does.
    pub ignore: bool,
}

/// What the list of balance transactions tells of the money that a request moves: what it hides,
/// repeats or gets wrong. The ledger has the truth all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settlement {
    /// Never listed.
    pub drop: bool,
    /// Listed twice, under the same id.
    pub duplicate: bool,
    /// Listed with so much more (or less).
    pub amount_delta: i64,
    pub currency: Option<String>,
    /// A row about money of somebody else is listed beside it.
    pub foreign_row: bool,
    /// Listed only this much later, with the time at which it happened.
    pub late_by_ms: i64,
    /// Of a type that nobody has heard of.
    pub unknown_type: bool,
    /// The provider's fee, instead of the usual one.
    pub fee: Option<i64>,
    /// Of a refund: its money is listed, the refund itself is not.
    pub missing_refund: bool,
    /// Of a page of the list: it begins with so many rows of the page before.
    pub page_overlap: usize,
}

/// What happens at a card reader.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReaderEffect {
    /// Of process: a card is presented this much later. Without it somebody has to present one.
    pub tap_after_ms: Option<i64>,
    /// The card that is presented is declined, with this code.
    pub decline: Option<String>,
    /// The card captures at once, whatever the intent says (Interac).
    pub captures_at_once: bool,
    /// The reader can't be reached.
    pub offline: bool,
    /// Of cancel_action: the card is presented just before, and wins.
    pub cancel_race: bool,
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
    /// Nobody listens: connections are refused, and those that are open break. Of a rule that matches
    /// everything (in its time), for as long as that is; of a rule about requests, the connection of
    /// the request breaks before anything is done, and nobody listens for a second.
    Refuse,
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
    /// Our key is not accepted (any more).
    #[serde(rename = "401")]
    Unauthorised401,
    #[serde(rename = "403")]
    Forbidden403,
    #[serde(rename = "404")]
    Missing404,
    /// Declined, whatever was asked for.
    #[serde(rename = "402")]
    Declined402,
    /// The same, and it is stored under the key: it will be replayed.
    #[serde(rename = "402_stored")]
    Stored402,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Outcome {
    Approve,
    Decline {
        code: String,
    },
    #[serde(rename = "3ds")]
    Challenge {
        /// The buyer meets it by themselves after so long (or fails it); without it somebody has to.
        #[serde(default)]
        delay_ms: Option<i64>,
        #[serde(default)]
        fails: bool,
    },
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
    /// The same is said of a capture, and it is not true.
    SaidGone,
    /// Refuses to cancel.
    CancelFails,
    /// Captured by the time that the cancellation arrives.
    CapturedMeanwhile,
    /// Taken, and in another currency than was asked for: of a confirmation, a capture or a cancellation.
    TakenIn {
        currency: String,
    },
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Webhook {
    pub delay_ms: Option<u64>,
    /// The delay by chance, from the seed; `delay_ms` wins.
    pub delay: Option<Latency>,
    /// Delivered at any moment within so long, each by itself: in no order.
    pub shuffle_ms: Option<u64>,
    /// How long after each failed delivery the next one follows.
    pub retry_ms: Option<Vec<u64>>,
    pub drop: bool,
    /// Delivered so many times more.
    pub duplicate: u32,
    /// A second event object for the same change.
    pub twin: bool,
    pub bad_signature: bool,
    /// Signed under a second secret as well, which comes first: as while a secret is rotated.
    pub two_secrets: bool,
    /// Signed at a time so far away.
    pub signed_ago_s: i64,
    /// Delivered before the request is answered.
    pub before_response: bool,
    pub livemode: bool,
    pub unknown_type: bool,
    /// The event is of another version of the provider's interface.
    pub api_version: Option<String>,
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
pub fn apply(rules: &mut [Rule], rng: &mut StdRng, subject: Subject<'_>, now: i64) -> Effect {
    let mut effect = Effect::default();
    let (scripted, random): (Vec<&mut Rule>, Vec<&mut Rule>) =
        rules.iter_mut().partition(|r| r.matches.probability.is_none());
    for rule in scripted.into_iter().chain(random) {
        let m = &rule.matches;
        let same = |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        if !(m.is_time(now)
            && same(&m.op, Some(subject.op))
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
        effect.idempotency = effect.idempotency.or(e.idempotency);
        effect.settlement = effect.settlement.or_else(|| e.settlement.clone());
        effect.reader = effect.reader.or_else(|| e.reader.clone());
        effect.echo = effect.echo.or_else(|| e.echo.clone());
        effect.search_lag_ms = effect.search_lag_ms.or(e.search_lag_ms);
    }
    effect
}

/// Whether a rule about everything says that nobody listens now.
pub fn refuses(rules: &[Rule], now: i64) -> bool {
    rules.iter().any(|rule| {
        rule.effect.network == Some(Network::Refuse) && rule.matches.is_of_everything() && rule.matches.is_time(now)
    })
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
        assert_eq!(apply(&mut rules, &mut rng, subject, 0).status, Some(Status::Unavailable503));
        assert_eq!(apply(&mut rules, &mut rng, subject, 0).status, Some(Status::After500));
        assert_eq!(apply(&mut rules, &mut rng, subject, 0).status, Some(Status::Unavailable503));
    }

    #[test]
    fn an_outage_has_a_beginning_and_an_end() {
        let mut rules = [
            rule(serde_json::json!({"match": {"from_ms": 100, "to_ms": 200}, "effect": {"network": "refuse"}})),
            rule(
                serde_json::json!({"match": {"op": "get", "from_ms": 100, "to_ms": 200}, "effect": {"status": "503"}}),
            ),
        ];
        let seen: Vec<bool> = [99, 100, 199, 200].map(|now| refuses(&rules, now)).into();
        assert_eq!(seen, [false, true, true, false]);
        let mut rng = StdRng::seed_from_u64(1);
        let subject = Subject { op: "get", attempt: None, payment_method: None };
        let mut status = |now| apply(&mut rules, &mut rng, subject, now).status;
        assert_eq!([99, 100, 200].map(&mut status), [None, Some(Status::Unavailable503), None]);
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
