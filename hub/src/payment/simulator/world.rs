//! The simulated provider's truth: intents, refunds, the money that moved, and the events about it.
//!
//! Everything here is decided under one lock, by one clock that tests may set, from one seed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use rand::{Rng, SeedableRng, distr::Alphanumeric, rngs::StdRng};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    cards::{self, Behaviour},
    reader::Reader,
    rules::{How, Rule, Webhook},
    settlement::Listed,
};

/// Unix milliseconds by the simulator's clock.
pub type Millis = i64;

/// So many events outlive a restart: an old one says nothing that its object does not.
const EVENTS_KEPT_MAX: usize = 1_000;

/// An authorisation of a customer who is online lasts seven days.
pub const AUTHORISATION_MS: i64 = 7 * 86_400_000;
/// One of a card at a reader lasts two.
pub const AUTHORISATION_PRESENT_MS: i64 = 2 * 86_400_000;

#[derive(Serialize, Deserialize)]
pub struct World {
    pub seed: u64,
    /// A world that was read goes on with other numbers: those of its seed are given away.
    #[serde(skip, default = "unused_numbers")]
    pub rng: StdRng,
    pub ahead_ms: i64,
    /// The clock stands still here.
    #[serde(default)]
    pub frozen: Option<Millis>,
    pub intents: Vec<Intent>,
    pub refunds: Vec<Refund>,
    /// The money that moved: the truth.
    pub transactions: Vec<Value>,
    /// What the list of balance transactions says of it.
    #[serde(default)]
    pub listed: Vec<Listed>,
    #[serde(default)]
    pub readers: BTreeMap<String, Reader>,
    #[serde(serialize_with = "newest")]
    pub events: Vec<Value>,
    pub methods: HashMap<String, Method>,
    pub keys: HashMap<String, Key>,
    /// What goes wrong, and what was asked, is of this run.
    #[serde(skip)]
    pub rules: Vec<Rule>,
    #[serde(skip)]
    pub log: Vec<Value>,
    /// Nobody listens until then.
    #[serde(skip)]
    pub refused_until: Millis,
    /// Events that are to be delivered, and how.
    pub outgoing: Vec<(Value, Webhook)>,
    /// Those that are being delivered, until somebody has said 2xx or there were tries enough.
    #[serde(default)]
    pub delivering: BTreeMap<u64, (Value, Webhook)>,
    /// Numbers them.
    #[serde(skip)]
    pub deliveries: u64,
    /// Something here is not in the state file yet.
    #[serde(skip)]
    pub changed: bool,
}

fn unused_numbers() -> StdRng {
    StdRng::seed_from_u64(rand::random())
}

fn newest<S: serde::Serializer>(events: &[Value], to: S) -> Result<S::Ok, S::Error> {
    events[events.len().saturating_sub(EVENTS_KEPT_MAX)..].serialize(to)
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Method {
    pub last4: String,
    /// The token that rules know it by.
    pub token: String,
}

impl Method {
    pub fn behaviour(&self) -> Behaviour {
        cards::by_token(&self.token).map_or(Behaviour::Approve, |card| card.behaviour)
    }
}

/// What is known of an idempotency key. `answer` is none while the first request runs.
#[derive(Serialize, Deserialize)]
pub struct Key {
    pub path: String,
    pub params: Vec<(String, String)>,
    pub answer: Option<(u16, Value)>,
    pub request_id: String,
    pub at: Millis,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Intent {
    pub id: String,
    pub secret: String,
    pub created: Millis,
    pub amount: i64,
    pub currency: String,
    pub status: Cow<'static, str>,
    pub manual_capture: bool,
    pub manual_confirmation: bool,
    #[serde(default = "card")]
    pub types: Vec<String>,
    pub payment_method: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub amount_capturable: i64,
    pub amount_received: i64,
    pub refunded: i64,
    pub last_error: Option<Value>,
    pub return_url: Option<String>,
    /// The buyer met the challenge: the next confirmation authorises.
    pub authenticated: bool,
    pub challenge: Option<String>,
    /// When the buyer meets it by themselves, and whether they fail.
    #[serde(default)]
    pub challenge_due: Option<(Millis, bool)>,
    pub charge: Option<String>,
    pub expires_at: Option<Millis>,
    /// Not known until then; then authorised.
    pub processing_until: Option<Millis>,
    pub cancellation_reason: Option<Cow<'static, str>>,
    pub confirms: u32,
    pub captures: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refund {
    pub id: String,
    pub created: Millis,
    pub intent: String,
    pub charge: Option<String>,
    pub amount: i64,
    pub currency: String,
    pub status: Cow<'static, str>,
    pub metadata: BTreeMap<String, String>,
    /// What it becomes, and when.
    pub then: Option<(Millis, Cow<'static, str>)>,
    /// No list has it.
    #[serde(default)]
    pub unlisted: bool,
}

fn card() -> Vec<String> {
    vec!["card".into()]
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            rng: StdRng::seed_from_u64(seed),
            ahead_ms: 0,
            frozen: None,
            intents: Vec::new(),
            refunds: Vec::new(),
            transactions: Vec::new(),
            listed: Vec::new(),
            readers: BTreeMap::new(),
            events: Vec::new(),
            methods: HashMap::new(),
            keys: HashMap::new(),
            rules: Vec::new(),
            log: Vec::new(),
            refused_until: 0,
            outgoing: Vec::new(),
            delivering: BTreeMap::new(),
            deliveries: 0,
            changed: false,
        }
    }

    /// After it was read: whoever serves it may have another address now, the requests that were under way
    /// died before they had done anything, and what was being delivered is delivered anew.
    pub fn resume(&mut self, public_url: &str) {
        self.outgoing.extend(std::mem::take(&mut self.delivering).into_values());
        self.keys.retain(|_, key| key.answer.is_some());
        for intent in self.intents.iter_mut().filter(|intent| intent.challenge.is_some()) {
            intent.challenge = Some(intent.challenge_url(public_url));
        }
    }

    pub fn now(&self) -> Millis {
        self.frozen.unwrap_or_else(|| chrono::Utc::now().timestamp_millis() + self.ahead_ms)
    }

    /// Moves the clock to an instant, whether it runs or stands.
    pub fn set_clock(&mut self, at: Millis) {
        match &mut self.frozen {
            Some(frozen) => *frozen = at,
            None => self.ahead_ms = at.saturating_sub(chrono::Utc::now().timestamp_millis()),
        }
    }

    /// Stops the clock, or lets it run on from where it stands.
    pub fn freeze(&mut self, still: bool) {
        let now = self.now();
        self.frozen = still.then_some(now);
        self.set_clock(now);
    }

    /// A rule's or an outage's: nobody listens now.
    pub fn refuses(&self) -> bool {
        let now = self.now();
        now < self.refused_until || super::rules::refuses(&self.rules, now)
    }

    pub fn id(&mut self, prefix: &str) -> String {
        let tail: String = (&mut self.rng).sample_iter(Alphanumeric).take(24).map(char::from).collect();
        format!("{prefix}_{tail}")
    }

    pub fn intent(&self, id: &str) -> Option<usize> {
        self.intents.iter().position(|i| i.id == id)
    }

    /// Notes an event about an object, as it is now, and queues its delivery.
    pub fn event(&mut self, kind: &str, object: Value, how: &Webhook) {
        self.changed = true;
        let now = self.now();
        let mut how = how.clone();
        if let (None, Some(delay)) = (how.delay_ms, how.delay) {
            how.delay_ms = Some(delay.sample_ms(&mut self.rng));
        }
        for twin in 0..=u32::from(how.twin) {
            let id = self.id("evt");
            let kind = if how.unknown_type { "moon.phase_changed" } else { kind };
            let api_version = how.api_version.as_deref().unwrap_or(super::API_VERSION);
            let event = json!({
                "id": id, "object": "event", "api_version": api_version, "created": (now / 1000) + i64::from(twin),
                "type": kind, "livemode": how.livemode, "pending_webhooks": 1,
                "data": {"object": object}, "request": {"id": null, "idempotency_key": null},
            });
            self.events.push(event.clone());
            if !how.drop {
                for _ in 0..=how.duplicate {
                    let mut how = how.clone();
                    if let Some(within) = how.shuffle_ms {
                        how.delay_ms = Some(self.rng.random_range(0..=within));
                    }
                    self.outgoing.push((event.clone(), how));
                }
            }
        }
    }

    pub fn intent_event(&mut self, at: usize, kind: &str, how: &How) {
        let object = self.intents[at].render();
        self.event(&format!("payment_intent.{kind}"), object, &how.webhook);
    }

    /// The bank said yes: funds are reserved, or taken at once if the capture is automatic.
    pub fn authorise(&mut self, at: usize, amount: i64, expires_in: i64, how: &How) {
        let charge = self.id("ch");
        let now = self.now();
        let intent = &mut self.intents[at];
        intent.status = "requires_capture".into();
        intent.amount_capturable = amount;
        intent.last_error = None;
        intent.challenge = None;
        intent.charge = Some(charge);
        intent.expires_at = Some(now + expires_in);
        if intent.manual_capture {
            self.intent_event(at, "amount_capturable_updated", how);
        } else {
            self.capture(at, amount, how);
        }
    }

    /// Money moves.
    pub fn capture(&mut self, at: usize, amount: i64, how: &How) {
        let (txn, now) = (self.id("txn"), self.now());
        let intent = &mut self.intents[at];
        intent.status = "succeeded".into();
        intent.amount_capturable = 0;
        intent.amount_received = amount;
        intent.captures += 1;
        intent.expires_at = None;
        let fee = how.settlement.fee.unwrap_or(amount * 29 / 1000 + 30);
        let row = json!({
            "id": txn, "object": "balance_transaction", "type": "charge", "amount": amount, "fee": fee,
            "net": amount - fee, "currency": intent.currency, "source": intent.charge, "created": now / 1000,
            "available_on": now / 1000 + 2 * 86_400, "status": "pending", "reporting_category": "charge",
        });
        self.book(row, &how.settlement);
        self.intent_event(at, "succeeded", how);
    }

    pub fn cancel(&mut self, at: usize, reason: Option<&'static str>, how: &How) {
        let intent = &mut self.intents[at];
        intent.status = "canceled".into();
        intent.amount_capturable = 0;
        intent.cancellation_reason = reason.map(Cow::Borrowed);
        intent.challenge = None;
        intent.challenge_due = None;
        intent.expires_at = None;
        intent.processing_until = None;
        self.intent_event(at, "canceled", how);
    }

    pub fn decline(&mut self, at: usize, code: &str, decline_code: Option<&str>, how: &How) {
        let charge = self.id("ch");
        let intent = &mut self.intents[at];
        intent.status = "requires_payment_method".into();
        intent.challenge = None;
        intent.charge = Some(charge);
        intent.last_error = Some(json!({
            "type": if code == "payment_intent_authentication_failure" { "invalid_request_error" } else { "card_error" },
            "code": code, "decline_code": decline_code, "message": "Your card was declined.",
        }));
        self.intent_event(at, "payment_failed", how);
    }

    /// Whatever time has brought about: authorisations that lapse, doubts that end, refunds that arrive or fail.
    pub fn settle(&mut self) {
        let now = self.now();
        for at in 0..self.intents.len() {
            if self.intents[at].processing_until.is_some_and(|until| until <= now) {
                self.intents[at].processing_until = None;
                let (amount, how) = (self.intents[at].amount, self.hook("settle", at));
                self.authorise(at, amount, AUTHORISATION_MS, &how);
            }
            if let Some((_, fails)) = self.intents[at].challenge_due.take_if(|(due, _)| *due <= now) {
                let how = self.hook("challenge", at);
                super::api::answer_challenge(self, at, !fails, &how);
            }
            if self.intents[at].expires_at.is_some_and(|until| until <= now) {
                let how = self.hook("settle", at);
                self.cancel(at, Some("automatic"), &how);
            }
        }
        self.settle_readers(now);
        for at in 0..self.refunds.len() {
            if let Some((_, status)) = self.refunds[at].then.take_if(|(due, _)| *due <= now) {
                self.refunds[at].status = status;
                let how = self.intent(&self.refunds[at].intent.clone()).map(|i| self.hook("settle", i));
                let how = how.unwrap_or_default();
                self.money_comes_back_if_failed(at, &how);
                let object = self.refunds[at].render();
                self.event("refund.updated", object, &how.webhook);
            }
        }
    }

    /// The charge of an intent, with the card that paid.
    pub fn charge(&self, at: usize) -> Option<Value> {
        let intent = self.intents.get(at)?;
        intent.render_charge(intent.payment_method.as_ref().and_then(|m| self.methods.get(m)))
    }

    /// A refund that fails after all is money that we have again.
    fn money_comes_back_if_failed(&mut self, at: usize, how: &How) {
        let refund = self.refunds[at].clone();
        if refund.status != "failed" {
            return;
        }
        if let Some(intent) = self.intent(&refund.intent) {
            self.intents[intent].refunded -= refund.amount;
        }
        let (txn, now) = (self.id("txn"), self.now() / 1000);
        let row = json!({
            "id": txn, "object": "balance_transaction", "type": "refund_failure", "amount": refund.amount, "fee": 0,
            "net": refund.amount, "currency": refund.currency, "source": refund.id, "created": now,
            "available_on": now, "status": "available", "reporting_category": "refund_failure",
        });
        self.book(row, &how.settlement);
    }

    /// What is told of something that no request caused.
    pub fn hook(&mut self, op: &str, intent: usize) -> How {
        let (now, attempt) = (self.now(), self.intents[intent].metadata.get("attempt").cloned());
        let subject = super::rules::Subject { op, attempt: attempt.as_deref(), payment_method: None };
        super::rules::apply(&mut self.rules, &mut self.rng, subject, now).how()
    }
}

impl Intent {
    pub fn challenge_url(&self, public_url: &str) -> String {
        format!("{public_url}/challenge/{}?secret={}", self.id, self.secret)
    }

    /// Its charge, once there was one: what the money of a settlement names as its source.
    fn render_charge(&self, method: Option<&Method>) -> Option<Value> {
        let charge = self.charge.as_ref()?;
        let captured = self.amount_received > 0;
        let kind = if self.is_at_reader() { "card_present" } else { "card" };
        Some(json!({
            "id": charge, "object": "charge", "amount": if captured { self.amount_received } else { self.amount },
            "amount_captured": self.amount_received, "amount_refunded": self.refunded, "captured": captured,
            "created": self.created / 1000, "currency": self.currency, "livemode": false, "metadata": self.metadata,
            "paid": self.amount_capturable > 0 || captured, "payment_intent": self.id,
            "payment_method": self.payment_method, "refunded": captured && self.refunded == self.amount_received,
            "status": if self.last_error.is_some() { "failed" } else { "succeeded" },
            "payment_method_details": {"type": kind, kind: {
                "brand": method.map(|_| "visa"), "last4": method.map(|m| &m.last4),
                "capture_before": self.expires_at.map(|ms| ms / 1000)}},
        }))
    }

    /// Paid by a card at a reader, which a request by itself can't confirm.
    pub fn is_at_reader(&self) -> bool {
        self.types.iter().any(|kind| matches!(&**kind, "card_present" | "interac_present"))
    }

    pub fn render(&self) -> Value {
        let next_action = self.challenge.as_ref().map(|url| match &self.return_url {
            Some(back) => json!({"type": "redirect_to_url", "redirect_to_url": {"url": url, "return_url": back}}),
            None => json!({"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect", "stripe_js": url}}),
        });
        json!({
            "id": self.id, "object": "payment_intent", "amount": self.amount,
            "amount_capturable": self.amount_capturable, "amount_received": self.amount_received,
            "canceled_at": null, "cancellation_reason": self.cancellation_reason,
            "capture_method": if self.manual_capture { "manual" } else { "automatic" },
            "client_secret": self.secret,
            "confirmation_method": if self.manual_confirmation { "manual" } else { "automatic" },
            "created": self.created / 1000, "currency": self.currency, "last_payment_error": self.last_error,
            "latest_charge": self.charge, "livemode": false, "metadata": self.metadata, "next_action": next_action,
            "payment_method": self.payment_method, "payment_method_types": self.types, "status": self.status,
        })
    }
}

impl Refund {
    pub fn render(&self) -> Value {
        json!({
            "id": self.id, "object": "refund", "amount": self.amount, "charge": self.charge, "created": self.created / 1000,
            "currency": self.currency, "metadata": self.metadata, "payment_intent": self.intent, "status": self.status,
            "pending_reason": if self.status == "pending" { Some("processing") } else { None }, "reason": null,
        })
    }
}
