//! Our client and the simulator, over a real socket: what the wire promises, kept from both ends.

mod knobs; // what goes wrong on request

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::{
    config::Config,
    payment::{
        provider::{Answer, Back, Call, Client, IntentStatus, NewIntent, Outcome, PaymentIntent, Refund, RefundStatus},
        signature,
    },
};

const HOUSE: Uuid = Uuid::from_u128(5);

struct Scene {
    client: Client,
    url: String,
    attempt_id: Uuid,
    stop: CancellationToken,
    served: Option<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Scene {
    async fn new(timeout_ms: u64) -> Self {
        Self::with(timeout_ms, SimulatorConfig::default()).await
    }

    async fn with(timeout_ms: u64, simulator: SimulatorConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut config = Config::defaults().payment;
        config.provider_url = url.clone();
        config.secret_key = simulator.secret_key.clone();
        config.publishable_key = simulator.publishable_key.clone();
        config.timeout_ms = timeout_ms;
        let stop = CancellationToken::new();
        let served = Some(tokio::spawn(serve(listener, simulator, stop.clone())));
        Self { client: Client::new(&config).unwrap(), url, attempt_id: Uuid::new_v4(), stop, served }
    }

    /// Ends the simulator, and returns when it has ended.
    async fn end(mut self) {
        self.stop.cancel();
        self.served.take().unwrap().await.unwrap().unwrap();
    }

    fn create(&self, payment_method: &str) -> Call {
        let (attempt_id, order_id) = (self.attempt_id, Uuid::from_u128(7));
        let new = NewIntent {
            installation: HOUSE,
            attempt_id,
            order_id,
            amount_minor: 12_500,
            currency: "JPY",
            payment_method,
        };
        Call::create(new, 0).unwrap()
    }

    fn confirm(&self, intent: &PaymentIntent, n: i32) -> Call {
        Call::confirm(self.attempt_id, &intent.id, n, "http://fans.test/orders/1")
    }

    async fn created(&self, payment_method: &str) -> PaymentIntent {
        done(&self.client.send(&self.create(payment_method)).await)
    }

    async fn get(&self, id: &str) -> PaymentIntent {
        done(&self.client.send(&Call::get(id)).await)
    }

    async fn rules(&self, rules: Value) {
        self.control("rules", rules).await;
    }

    async fn control(&self, what: &str, body: Value) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.post(format!("{}/_sim/{what}", self.url)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{what}: {answer:?}");
    }

    /// Waits until a request of this kind is under way.
    async fn arrived(&self, op: &str) {
        for _ in 0..1_000 {
            let log: Vec<Value> =
                reqwest::get(format!("{}/_sim/requests", self.url)).await.unwrap().json().await.unwrap();
            if log.iter().any(|entry| entry["op"] == op) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("no {op} has arrived");
    }

    async fn ledger(&self) -> Value {
        reqwest::get(format!("{}/_sim/ledger", self.url)).await.unwrap().json().await.unwrap()
    }

    async fn answer_challenge(&self, intent: &PaymentIntent, answer: &str) {
        let url: reqwest::Url = intent.action_url().expect("a challenge").parse().unwrap();
        assert!(reqwest::get(url.clone()).await.unwrap().text().await.unwrap().contains("JPY"));
        let secret = url.query_pairs().find(|(k, _)| k == "secret").unwrap().1.into_owned();
        let form = [("answer", answer), ("secret", &secret)];
        let done = reqwest::Client::new().post(url).form(&form).send().await.unwrap();
        assert!(done.status().is_success());
    }
}

fn done<T: serde::de::DeserializeOwned>(answer: &Answer) -> T {
    answer.object().unwrap_or_else(|| panic!("not done: {answer:?}"))
}

#[tokio::test]
async fn authorise_then_capture_then_refund() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_visa").await;
    assert_eq!(
        (&intent.status, intent.amount, intent.currency.as_str()),
        (&IntentStatus::RequiresConfirmation, 12_500, "jpy")
    );
    assert_eq!(intent.metadata["attempt"], scene.attempt_id.to_string());
    let intent: PaymentIntent = done(&scene.client.send(&scene.confirm(&intent, 1)).await);
    assert_eq!((&intent.status, intent.amount_capturable), (&IntentStatus::RequiresCapture, 12_500));
    let intent: PaymentIntent = done(&scene.client.send(&Call::capture(scene.attempt_id, &intent.id, 0)).await);
    assert_eq!((&intent.status, intent.amount_received), (&IntentStatus::Succeeded, 12_500));

    let back = |refund_id| Back {
        installation: HOUSE,
        attempt_id: scene.attempt_id,
        refund_id,
        pi_id: &intent.id,
        amount: Some(("JPY", 12_500)),
    };
    let call = Call::refund(back(Uuid::from_u128(3)), 0).unwrap();
    let refund: Refund = done(&scene.client.send(&call).await);
    assert_eq!((&refund.status, refund.amount), (&RefundStatus::Succeeded, 12_500));
    let again = scene.client.send(&call).await;
    assert!(again.replayed);
    let more = Call::refund(Back { amount: Some(("JPY", 1)), ..back(Uuid::from_u128(4)) }, 0).unwrap();
    assert!(
        matches!(scene.client.send(&more).await.outcome, Outcome::Rejected(r) if r.code == "charge_already_refunded")
    );
    let ledger = scene.ledger().await;
    assert_eq!((&ledger["captured"], &ledger["refunded"]), (&json!(12_500), &json!(12_500)));
}

#[tokio::test]
async fn a_decline_is_definite_and_is_replayed() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_chargeDeclinedInsufficientFunds").await;
    for replayed in [false, true] {
        let answer = scene.client.send(&scene.confirm(&intent, 1)).await;
        assert_eq!(answer.replayed, replayed);
        let intent = answer.body.as_ref().and_then(|body| body.pointer("/error/payment_intent/status"));
        assert_eq!(intent, Some(&serde_json::json!("requires_payment_method")));
        assert!(matches!(answer.outcome, Outcome::Declined(r) if r.reason() == "insufficient_funds"));
    }
    let seen = scene.get(&intent.id).await;
    assert_eq!(seen.last_payment_error.unwrap().code, "card_declined");
}

#[tokio::test]
async fn a_challenge_does_not_authorise_by_itself() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_threeDSecure2Required").await;
    let intent: PaymentIntent = done(&scene.client.send(&scene.confirm(&intent, 1)).await);
    assert_eq!(intent.status, IntentStatus::RequiresAction);
    scene.answer_challenge(&intent, "approve").await;
    let intent = scene.get(&intent.id).await;
    assert_eq!((&intent.status, intent.amount_capturable), (&IntentStatus::RequiresConfirmation, 0));
    let intent: PaymentIntent = done(&scene.client.send(&scene.confirm(&intent, 2)).await);
    assert_eq!(intent.status, IntentStatus::RequiresCapture);
    let intent: PaymentIntent = done(&scene.client.send(&Call::cancel(scene.attempt_id, &intent.id, 0)).await);
    assert_eq!(intent.status, IntentStatus::Canceled);
    assert_eq!(scene.ledger().await["authorised"], 0);
}

#[tokio::test]
async fn a_challenge_that_fails_is_a_decline() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_threeDSecure2Required").await;
    let intent: PaymentIntent = done(&scene.client.send(&scene.confirm(&intent, 1)).await);
    scene.answer_challenge(&intent, "fail").await;
    let intent = scene.get(&intent.id).await;
    assert_eq!(intent.status, IntentStatus::RequiresPaymentMethod);
    assert_eq!(intent.last_payment_error.unwrap().code, "payment_intent_authentication_failure");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_asking_tells() {
    let scene = Scene::new(300).await;
    let intent = scene.created("pm_card_visa").await;
    for (network, status) in [
        ("timeout_before", IntentStatus::RequiresConfirmation),
        ("reset_before", IntentStatus::RequiresConfirmation),
        ("timeout_after", IntentStatus::RequiresCapture),
    ] {
        scene.rules(json!([{"match": {"op": "confirm", "first": 1}, "effect": {"network": network}}])).await;
        let answer = scene.client.send(&scene.confirm(&intent, 1)).await;
        assert!(matches!(answer.outcome, Outcome::Unknown), "{network}: {answer:?}");
        assert_eq!(scene.get(&intent.id).await.status, status, "{network}");
    }
    // The same key again: the answer that was lost, and one authorisation.
    let answer = scene.client.send(&scene.confirm(&intent, 1)).await;
    assert!(answer.replayed);
    assert_eq!(scene.ledger().await["intents"][0]["confirms"], 1);
}

#[tokio::test]
async fn half_an_answer_and_garbage_are_unknown() {
    let scene = Scene::new(2_000).await;
    for network in ["half_body", "garbage_2xx", "reset_after"] {
        scene.rules(json!([{"match": {"op": "create"}, "effect": {"network": network}}])).await;
        let answer = scene.client.send(&scene.create("pm_card_visa")).await;
        assert!(matches!(answer.outcome, Outcome::Unknown), "{network}: {answer:?}");
    }
    scene.rules(json!([])).await;
    assert!(scene.client.send(&scene.create("pm_card_visa")).await.replayed);
    assert_eq!(scene.ledger().await["intents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_stored_500_is_replayed_and_one_that_came_before_is_not() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_visa").await;
    let first = json!({"op": "confirm", "first": 1});
    scene.rules(json!([{"match": first, "effect": {"status": "500_before"}}])).await;
    assert!(matches!(scene.client.send(&scene.confirm(&intent, 1)).await.outcome, Outcome::Unknown));
    scene.rules(json!([{"match": first, "effect": {"status": "500_stored", "should_retry": false}}])).await;
    for replayed in [false, true] {
        let answer = scene.client.send(&scene.confirm(&intent, 1)).await;
        assert_eq!((answer.http.unwrap().as_u16(), answer.replayed), (500, replayed));
    }
    assert_eq!(scene.get(&intent.id).await.status, IntentStatus::RequiresConfirmation);
    let intent: PaymentIntent = done(&scene.client.send(&scene.confirm(&intent, 2)).await);
    assert_eq!(intent.status, IntentStatus::RequiresCapture);
}

#[tokio::test]
async fn a_key_belongs_to_one_request_and_answers_409_while_it_runs() {
    let scene = Scene::new(5_000).await;
    let call = scene.create("pm_card_visa");
    scene
        .rules(json!([{"match": {"op": "create", "first": 1}, "effect": {"latency": {"kind": "fixed", "ms": 400}}}]))
        .await;
    let (first, second) = tokio::join!(scene.client.send(&call), async {
        scene.arrived("create").await; // within the first one's 400 ms
        scene.client.send(&call).await
    });
    assert!(matches!(first.outcome, Outcome::Done(_)));
    assert_eq!(second.http.unwrap(), 409);
    assert!(matches!(second.outcome, Outcome::Unknown));
    let mut other = call.clone();
    other.body.extend_from_slice(b"&description=x");
    let refused = scene.client.send(&other).await;
    assert!(matches!(refused.outcome, Outcome::Rejected(r) if r.kind == "idempotency_error"));
    assert!(scene.client.send(&call).await.replayed);
}

#[tokio::test]
async fn what_is_not_an_amount_is_refused() {
    let scene = Scene::new(5_000).await;
    for amount in ["0", "-5", "100000000", "1e308", "9999999999999999999", "12.50", "ten", ""] {
        let mut call = scene.create("pm_card_visa");
        let body = String::from_utf8(call.body).unwrap().replace("amount=12500", &format!("amount={amount}"));
        call.body = body.into_bytes();
        assert!(matches!(scene.client.send(&call).await.outcome, Outcome::Rejected(_)), "{amount}");
    }
    assert_eq!(scene.ledger().await["intents"], json!([]));
}

#[tokio::test]
async fn another_key_opens_nothing() {
    let scene = Scene::new(5_000).await;
    let mut config = Config::defaults().payment;
    config.provider_url = scene.url.clone();
    config.secret_key = Secret::new("sk_test_other");
    config.publishable_key = "pk_test_simulator".into();
    let stranger = Client::new(&config).unwrap();
    let answer = stranger.send(&scene.create("pm_card_visa")).await;
    assert_eq!(answer.http.unwrap(), 401);
    assert!(matches!(answer.outcome, Outcome::NotServed(_)));
}

#[tokio::test]
async fn an_authorisation_lapses_by_the_clock() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_visa").await;
    scene.client.send(&scene.confirm(&intent, 1)).await;
    scene.control("clock", json!({"advance": 7 * 86_400_000 + 1})).await;
    assert_eq!(scene.get(&intent.id).await.status, IntentStatus::Canceled);
    let late = scene.client.send(&Call::capture(scene.attempt_id, &intent.id, 0)).await;
    assert!(matches!(late.outcome, Outcome::Rejected(r) if r.code == "payment_intent_unexpected_state"));
}

#[tokio::test]
async fn webhooks_are_signed_repeated_and_dropped_as_asked() {
    let (sender, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    let sink = Router::new().route(
        "/hook",
        axum::routing::post(async move |headers: axum::http::HeaderMap, body: axum::body::Bytes| {
            let header = headers["stripe-signature"].to_str().unwrap().to_owned();
            // The first delivery is refused, so that it comes again.
            let first = sender.send((header, body)).is_ok() && !std::mem::replace(&mut *SEEN.lock().unwrap(), true);
            if first { axum::http::StatusCode::INTERNAL_SERVER_ERROR } else { axum::http::StatusCode::OK }
        }),
    );
    static SEEN: Mutex<bool> = Mutex::new(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, sink).await });

    let secrets = vec![Secret::new("old"), Secret::new("new")];
    let scene = Scene::with(
        5_000,
        SimulatorConfig {
            webhook_url: Some(url),
            webhook_secrets: secrets.clone(),
            webhook_retry_ms: vec![10],
            ..SimulatorConfig::default()
        },
    )
    .await;
    scene.rules(json!([{"match": {"op": "confirm"}, "effect": {"webhook": {"drop": true}}}])).await;
    let intent = scene.created("pm_card_visa").await;
    scene.client.send(&scene.confirm(&intent, 1)).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (header, body) = arrived.recv().await.unwrap();
        let now = chrono::Utc::now().timestamp();
        assert_eq!(signature::verify(&header, &body, &secrets[1..], now), Ok(()));
        let event: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(event["type"], "payment_intent.created");
        ids.push(event["id"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    // The dropped one is in the list of events all the same, and can be sent again.
    scene.control("replay", json!({})).await;
    let types: Vec<String> = vec![kind(&mut arrived).await, kind(&mut arrived).await];
    assert!(types.contains(&"payment_intent.amount_capturable_updated".to_owned()), "{types:?}");
}

async fn kind(arrived: &mut tokio::sync::mpsc::UnboundedReceiver<(String, axum::body::Bytes)>) -> String {
    let (_, body) = arrived.recv().await.unwrap();
    let event: Value = serde_json::from_slice(&body).unwrap();
    event["type"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_form_makes_a_payment_method_with_the_public_key_only() {
    let scene = Scene::new(5_000).await;
    let form = format!("{}/form?pk=pk_test_simulator&origin=http://fans.test&lang=ja", scene.url);
    let page = reqwest::get(&form).await.unwrap();
    assert!(page.headers()["content-security-policy"].to_str().unwrap().contains("nonce-"));
    let text = page.text().await.unwrap();
    assert!(text.contains("カード番号") && text.contains("http://fans.test") && !text.contains("{{"));
    assert_eq!(reqwest::get(form.replace("pk_test_simulator", "pk_test_x")).await.unwrap().status(), 403);
    assert_eq!(reqwest::get(form.replace("http://fans.test", "*")).await.unwrap().status(), 400);

    let http = reqwest::Client::new();
    let make = async |path: &str, number: &str| {
        let body = [("type", "card"), ("card[number]", number)];
        let request = http.post(format!("{}/v1/{path}", scene.url)).bearer_auth("pk_test_simulator").form(&body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, method) = make("payment_methods", "4000 0000 0000 0002").await;
    assert_eq!((status, &method["card"]["last4"]), (200, &json!("0002")));
    assert_eq!(make("payment_methods", "5555555555554444").await.0, 402);
    assert_eq!(make("payment_intents", "4242424242424242").await.0, 401);
    let intent = scene.created(method["id"].as_str().unwrap()).await;
    assert!(matches!(scene.client.send(&scene.confirm(&intent, 1)).await.outcome, Outcome::Declined(_)));
}

#[tokio::test]
async fn what_was_promised_outlives_a_restart() {
    let directory = std::env::temp_dir().join(format!("fullhouse-simulator-{}", Uuid::new_v4()));
    std::fs::create_dir(&directory).unwrap();
    let settings = || SimulatorConfig { state_file: Some(directory.join("state.json")), ..Default::default() };
    let scene = Scene::with(5_000, settings()).await;
    let create = scene.create("pm_card_threeDSecure2Required");
    let created: PaymentIntent = done(&scene.client.send(&create).await);
    let challenged: PaymentIntent = done(&scene.client.send(&scene.confirm(&created, 1)).await);
    scene.end().await;

    let mut again = Scene::with(5_000, settings()).await;
    again.attempt_id = Uuid::nil(); // the objects are found by themselves
    let seen = again.get(&challenged.id).await;
    assert_eq!((&seen.status, seen.amount), (&IntentStatus::RequiresAction, challenged.amount));
    assert!(seen.action_url().unwrap().starts_with(&again.url), "the challenge is where the simulator is now");
    let replay = again.client.send(&create).await;
    assert!(replay.replayed);
    assert_eq!(done::<PaymentIntent>(&replay).id, created.id);
    again.answer_challenge(&seen, "approve").await;
    assert_eq!(again.get(&seen.id).await.status, IntentStatus::RequiresConfirmation);
    again.end().await;

    let last = Scene::with(5_000, settings()).await;
    assert_eq!(last.get(&seen.id).await.status, IntentStatus::RequiresConfirmation, "an answered challenge too");
    assert_ne!(last.created("pm_card_visa").await.id, created.id, "no number is given twice");
    last.end().await;
    std::fs::remove_dir_all(directory).unwrap();
}
