//! The payment provider: the simulator over its real socket, what a test asks of it, and a fan who pays.

use std::{sync::Mutex, time::Duration};

use chrono::TimeDelta;
use fullhouse::{
    child::{Kept, Spec},
    config::{Config, Secret},
    payment::simulator::{self, SimulatorConfig},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{binary, clock::Clock, database::Database, eventually, fan::Fan, run::run};

pub const CARD: &str = "pm_card_visa";
pub const DECLINED: &str = "pm_card_chargeDeclined";
pub const CHALLENGED: &str = "pm_card_threeDSecure2Required";

pub struct Provider {
    url: String,
    /// Answers even while nobody listens at `url`.
    control_url: String,
    http: reqwest::Client,
    settings: SimulatorConfig,
    stop: CancellationToken,
    serves: Option<JoinHandle<()>>,
    /// Where it is a process of its own.
    _process: Option<Kept>,
    webhook_url: Mutex<Option<String>>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Provider {
    /// Answers at once, and does nothing wrong until it is told to.
    pub async fn start() -> Self {
        Self::seeded(SimulatorConfig::default().seed).await
    }

    /// The same; everything random follows from the seed.
    pub async fn seeded(seed: u64) -> Self {
        Self::with(SimulatorConfig { seed, ..SimulatorConfig::default() }).await
    }

    /// The same; and it may be started anew with all that it had promised.
    pub async fn kept(seed: u64) -> Self {
        let state_file = Some(run().await.directory("provider").join("state.json"));
        Self::with(SimulatorConfig { seed, state_file, ..SimulatorConfig::default() }).await
    }

    async fn with(settings: SimulatorConfig) -> Self {
        let settings = SimulatorConfig { webhook_retry_ms: vec![50, 100, 200, 500, 1_000], ..settings };
        let mut provider = Self {
            url: "127.0.0.1:0".into(),
            control_url: "127.0.0.1:0".into(),
            http: reqwest::Client::builder().no_proxy().build().expect("a client"),
            settings,
            stop: CancellationToken::new(),
            serves: None,
            _process: None,
            webhook_url: Mutex::default(),
        };
        provider.serve().await;
        provider
    }

    /// `fullhouse simulate-payments`, as an operator starts it. It answers at once.
    pub async fn process() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let listen = format!("127.0.0.1:{port}");
        let log = run().await.directory("simulator").join("log");
        let spec = Spec::new(binary::path())
            .args(["simulate-payments", "--listen", &listen, "--latency-p50-ms", "1", "--latency-p99-ms", "2"])
            .output(std::fs::File::create(log).expect("the run's directory is writable"));
        let url = format!("http://{listen}");
        let provider = Self {
            url: url.clone(),
            control_url: url,
            http: reqwest::Client::builder().no_proxy().build().expect("a client"),
            settings: SimulatorConfig::default(),
            stop: CancellationToken::new(),
            serves: None,
            _process: Some(spec.spawn().expect("the simulator starts")),
            webhook_url: Mutex::default(),
        };
        eventually("the simulator answers", || async {
            provider.http.get(format!("{}/_sim/ledger", provider.url)).send().await.ok()
        })
        .await;
        provider
    }

    async fn serve(&mut self) {
        let bind = async |url: &str| {
            let address = url.trim_start_matches("http://").to_owned();
            tokio::net::TcpListener::bind(address).await.expect("its port")
        };
        let (listener, control) = (bind(&self.url).await, bind(&self.control_url).await);
        [self.url, self.control_url] =
            [&listener, &control].map(|l| format!("http://{}", l.local_addr().expect("its address")));
        self.stop = CancellationToken::new();
        let served = simulator::serve_with_control(listener, Some(control), self.settings.clone(), self.stop.clone());
        self.serves = Some(tokio::spawn(async move { served.await.expect("the simulator serves") }));
    }

    /// Ends it as an operator would, and starts it anew at the same address, with all that it had promised. Rules
    /// stay as they were.
    pub async fn restart(&mut self, away: Duration) {
        let rules = self.show("rules").await;
        self.stop.cancel();
        self.serves.take().expect("it runs").await.expect("it ends well");
        tokio::time::sleep(away).await;
        self.settings.webhook_url = self.webhook_url.lock().expect("nobody panics with it").clone();
        self.serve().await;
        self.rules(rules).await;
    }

    /// Points a hub's settings here. A lost answer costs a test less than a second.
    pub fn configure(&self, config: &mut Config) {
        config.payment.provider_url.clone_from(&self.url);
        config.payment.form_url = format!("{}/form", self.url);
        config.payment.secret_key = self.settings.secret_key.clone();
        config.payment.publishable_key.clone_from(&self.settings.publishable_key);
        config.payment.webhook_secrets.clone_from(&self.settings.webhook_secrets);
        config.payment.timeout_ms = 600;
        config.payment.worker_tick_ms = 20;
        config.gate.tick_ms = 200;
        config.reconcile.settle_s = 3;
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn control_url(&self) -> &str {
        &self.control_url
    }

    pub fn secrets(&self) -> &[Secret] {
        &self.settings.webhook_secrets
    }

    async fn control(&self, what: &str, body: Value) -> Value {
        let answer =
            self.http.post(format!("{}/_sim/{what}", self.control_url)).json(&body).send().await.expect("it answers");
        assert!(answer.status().is_success(), "{what}: {}", answer.status());
        answer.json().await.unwrap_or_default()
    }

    async fn show(&self, what: &str) -> Value {
        let answer = self.http.get(format!("{}/_sim/{what}", self.control_url)).send().await.expect("it answers");
        answer.json().await.expect("JSON")
    }

    /// Replaces what goes wrong.
    pub async fn rules(&self, rules: Value) {
        self.control("rules", rules).await;
    }

    /// One rule: the first request of a kind.
    pub async fn first(&self, op: &str, effect: Value) {
        self.rules(json!([{ "match": { "op": op, "first": 1 }, "effect": effect }])).await;
    }

    pub async fn webhooks_to(&self, hub_url: &str) {
        let url = format!("{hub_url}/api/webhooks/payments");
        *self.webhook_url.lock().expect("nobody panics with it") = Some(url.clone());
        self.control("webhook", json!({ "url": url })).await;
    }

    /// Every event once more.
    pub async fn replay(&self) -> u64 {
        self.control("replay", json!({})).await["events"].as_u64().expect("a count")
    }

    /// Until nothing is left to be delivered: every webhook has arrived, or was given up.
    pub async fn until_delivered(&self) {
        eventually("webhooks are delivered", || async { (self.show("webhooks").await["waiting"] == 0).then_some(()) })
            .await;
    }

    pub async fn advance(&self, by: TimeDelta) {
        self.control("clock", json!({ "advance": by.num_milliseconds() })).await;
    }

    /// The truth about money.
    pub async fn ledger(&self) -> Ledger {
        Ledger(self.show("ledger").await)
    }

    /// Requests of a kind that have arrived.
    pub async fn requests(&self, op: &str) -> Vec<Value> {
        let log = self.show("requests").await;
        log.as_array().expect("a log").iter().filter(|entry| entry["op"] == op).cloned().collect()
    }

    /// What it was asked for, in order.
    pub async fn ops(&self) -> Vec<String> {
        let log = self.show("requests").await;
        let asked = log.as_array().expect("a log").iter().filter(|entry| entry["op"] != "webhook");
        asked.map(|entry| entry["op"].as_str().expect("a kind").to_owned()).collect()
    }

    /// Every event so far, the oldest first.
    pub async fn events(&self) -> Vec<Value> {
        self.get("events?limit=100").await["data"].as_array().expect("a page").iter().rev().cloned().collect()
    }

    /// What whoever has the key is shown.
    pub async fn get(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}/v1/{path}", self.url)).bearer_auth(self.settings.secret_key.reveal());
        request.send().await.expect("it answers").json().await.expect("JSON")
    }

    /// The customer holds a card to the reader.
    pub async fn present_card(&self, reader: &str) {
        let path = format!("test_helpers/terminal/readers/{reader}/present_payment_method");
        let reader = self.call(&path, String::new()).await;
        assert_eq!(reader["action"]["status"], "succeeded", "{reader}");
    }

    /// Somebody pulls a reader's plug, or puts it in again.
    pub async fn switch_reader(&self, reader: &str, offline: bool) {
        self.control("reader", json!({ "id": reader, "offline": offline })).await;
    }

    /// Until a request of a kind is under way.
    pub async fn until_asked(&self, op: &str) {
        eventually(&format!("the provider is asked to {op}"), || async {
            (!self.requests(op).await.is_empty()).then_some(())
        })
        .await;
    }

    /// The buyer meets the bank's challenge, or fails it.
    pub async fn answer_challenge(&self, attempt: &Value, answer: &str) {
        let url: reqwest::Url = attempt["action_url"].as_str().expect("a challenge").parse().expect("an address");
        let secret = url.query_pairs().find(|(k, _)| k == "secret").expect("its secret").1.into_owned();
        let body = format!("answer={answer}&secret={secret}");
        let done = self.http.post(url).body(body).send().await.expect("it answers");
        assert!(done.status().is_success());
    }
}

/// What the provider holds and has taken.
#[derive(Debug)]
pub struct Ledger(pub Value);

impl Ledger {
    pub fn captured(&self) -> i64 {
        self.0["captured"].as_i64().expect("a sum")
    }

    pub fn refunded(&self) -> i64 {
        self.0["refunded"].as_i64().expect("a sum")
    }

    /// Reserved and not taken.
    pub fn authorised(&self) -> i64 {
        self.0["authorised"].as_i64().expect("a sum")
    }

    pub fn intents(&self) -> &Vec<Value> {
        self.0["intents"].as_array().expect("intents")
    }

    /// How often the only intent was confirmed.
    pub fn confirms(&self) -> i64 {
        assert_eq!(self.intents().len(), 1, "{self:?}");
        self.intents()[0]["confirms"].as_i64().expect("a number")
    }

    /// What must be true of money after every run: what was taken and kept is what confirmed orders
    /// cost, and what policies kept of others; nothing is reserved without a live attempt; no order was captured twice.
    pub async fn agrees_with(&self, database: &Database) {
        let confirmed: i64 = sqlx::query_scalar(
            "select (coalesce(sum(t.amount_minor), 0) - coalesce(sum((
                 select sum(r.amount_minor) from refund r join attempt a on a.id = r.attempt_id
                 where a.tender_id = t.id and a.state = 'captured' and r.kind = 'card' and r.state <> 'failed')), 0))::bigint
             from tender t join \"order\" o on o.id = t.order_id where t.kind = 'card'
               and (o.state = 'confirmed' or (o.cancel_reason = 'refunded' and exists (
                   select from attempt a where a.tender_id = t.id and a.state = 'captured')))",
        )
        .fetch_one(database.pool())
        .await
        .expect("the test's database answers");
        assert_eq!(self.captured() - self.refunded(), confirmed, "{self:?}");
        assert_eq!(self.authorised(), 0, "{self:?}");
        let nothing =
            json!({ "orders_kept_twice": [], "refunded_more_than_captured": [], "books_do_not_add_up": false });
        assert_eq!(self.0["broken"], nothing, "{self:?}");
    }
}

/// An order for these seats, ready to be paid.
pub async fn order(fan: &Fan, event: i64, seats: &[i32]) -> Value {
    let hold = fan.hold(event, seats).await.ok();
    let answer = fan.checkout(hold["hold"]["id"].as_str().expect("a hold")).await.ok();
    answer["order"].clone()
}

pub fn key() -> String {
    Uuid::new_v4().to_string()
}

/// Until the order's attempt is in one of these states; the order then.
pub async fn until(fan: &Fan, order: &Value, states: &[&str]) -> Value {
    let id = order["id"].as_str().expect("an order's id");
    eventually(&format!("the attempt is {states:?}"), || async {
        let order = fan.order(id).await.ok()["order"].clone();
        let state = order["attempt"]["state"].as_str().unwrap_or_default().to_owned();
        states.contains(&state.as_str()).then_some(order)
    })
    .await
}

/// The same; whenever nothing but time is waited for, the database's clock is moved to that time.
pub async fn until_in_time(clock: &Clock, fan: &Fan, order: &Value, states: &[&str]) -> Value {
    let id = order["id"].as_str().expect("an order's id");
    let order_id: Uuid = id.parse().expect("an order's id");
    eventually(&format!("the attempt is {states:?}, in time"), || async {
        let order = fan.order(id).await.ok()["order"].clone();
        let state = order["attempt"]["state"].as_str().unwrap_or_default().to_owned();
        if states.contains(&state.as_str()) {
            return Some(order);
        }
        clock.advance_to_next_look(order_id).await;
        None
    })
    .await
}

impl Provider {
    /// What a worker would have asked for: an intent of the attempt's, confirmed. Returns the intent's id.
    pub async fn authorise(&self, attempt: Uuid, amount: i64, currency: &str) -> String {
        let create = format!(
            "amount={amount}&currency={currency}&payment_method={CARD}&capture_method=manual\
             &confirmation_method=manual&metadata[attempt]={attempt}"
        );
        let intent = self.call("payment_intents", create).await;
        let id = intent["id"].as_str().expect("an intent").to_owned();
        let confirmed = self.call(&format!("payment_intents/{id}/confirm"), String::new()).await;
        assert_eq!(confirmed["status"], "requires_capture");
        id
    }

    /// What somebody does on the provider's own pages, beside us.
    pub async fn beside(&self, path: &str, body: &str) -> Value {
        let done = self.call(path, body.to_owned()).await;
        assert!(done.get("error").is_none(), "{path}: {done}");
        done
    }

    /// Somebody takes money for an order of ours without asking us.
    pub async fn take_behind_our_backs(&self, order: &str, amount: i64) {
        let create = format!("amount={amount}&currency=eur&payment_method={CARD}&confirm=true&metadata[order]={order}");
        let intent = self.call("payment_intents", create).await;
        assert_eq!(intent["status"], "succeeded");
    }

    pub async fn call(&self, path: &str, body: String) -> Value {
        self.send(None, path, body).await
    }

    /// The same under an idempotency key of the test's own.
    pub async fn call_under(&self, key: &str, path: &str, body: String) -> Value {
        self.send(Some(key), path, body).await
    }

    async fn send(&self, key: Option<&str>, path: &str, body: String) -> Value {
        let request = self.http.post(format!("{}/v1/{path}", self.url)).bearer_auth(self.settings.secret_key.reveal());
        let request = key.iter().fold(request, |request, key| request.header("idempotency-key", *key));
        request.body(body).send().await.expect("it answers").json().await.expect("JSON")
    }
}
