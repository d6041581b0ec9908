//! What goes wrong on request, each knob seen from a client's end.

use super::*;

impl Scene {
    /// A request without our client, as whoever holds the secret key may make it.
    async fn raw(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.keyed(method, path, body, None).await
    }

    async fn keyed(&self, method: &str, path: &str, body: &str, key: Option<&str>) -> (u16, Value) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = http.request(method.parse().unwrap(), format!("{}/v1/{path}", self.url));
        let mut request = request.bearer_auth("sk_test_simulator").body(body.to_owned());
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn captured(&self) -> PaymentIntent {
        let intent = self.created("pm_card_visa").await;
        let intent: PaymentIntent = done(&self.client.send(&self.confirm(&intent, 1)).await);
        done(&self.client.send(&Call::capture(self.attempt_id, &intent.id, 0)).await)
    }

    async fn at_reader(&self) -> String {
        let body = "amount=700&currency=eur&capture_method=manual&payment_method_types[0]=card_present\
                    &metadata[order]=o1&metadata[attempt]=a1";
        let (status, intent) = self.raw("POST", "payment_intents", body).await;
        assert_eq!((status, &intent["status"]), (200, &json!("requires_payment_method")));
        intent["id"].as_str().unwrap().to_owned()
    }

    async fn process(&self, intent: &str) -> (u16, Value) {
        self.raw("POST", "terminal/readers/tmr_1/process_payment_intent", &format!("payment_intent={intent}")).await
    }

    async fn status(&self, intent: &str) -> String {
        let (_, intent) = self.raw("GET", &format!("payment_intents/{intent}"), "").await;
        intent["status"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn nobody_listens_during_an_outage_and_everything_is_there_after_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, beside) = (listener.local_addr().unwrap(), control.local_addr().unwrap());
    let stop = CancellationToken::new();
    let _ends = stop.clone().drop_guard();
    tokio::spawn(serve_with_control(listener, Some(control), SimulatorConfig::default(), stop));
    let mut config = Config::defaults().payment;
    config.provider_url = format!("http://{url}");
    config.secret_key = Secret::new("sk_test_simulator");
    config.publishable_key = "pk_test_simulator".into();
    let client = Client::new(&config).unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let rules = async |rules: Value| {
        let sent = http.post(format!("http://{beside}/_sim/rules")).json(&rules).send().await.unwrap();
        assert!(sent.status().is_success());
    };
    let outcome = async || client.send(&Call::get("pi_none")).await.outcome;
    assert!(matches!(outcome().await, Outcome::Rejected(_)));
    rules(json!([{ "effect": { "network": "refuse" } }])).await;
    let mut refused = false;
    for _ in 0..500 {
        refused = matches!(outcome().await, Outcome::NotSent);
        if refused {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(refused, "connections are refused: not one byte was sent");
    rules(json!([])).await;
    for _ in 0..500 {
        if matches!(outcome().await, Outcome::Rejected(_)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody listens after the outage");
}

#[tokio::test]
async fn a_search_is_late_and_a_list_is_not() {
    let scene = Scene::new(5_000).await;
    let intent = scene.created("pm_card_visa").await;
    let query = format!("payment_intents/search?query=metadata['attempt']:'{}'", scene.attempt_id);
    scene.rules(json!([{ "match": { "op": "search" }, "effect": { "search_lag_ms": 60_000 } }])).await;
    assert_eq!(scene.raw("GET", &query, "").await.1["data"], json!([]));
    assert_eq!(scene.raw("GET", "payment_intents", "").await.1["data"][0]["id"], intent.id);
    scene.control("clock", json!({ "advance": 60_001 })).await;
    assert_eq!(scene.raw("GET", &query, "").await.1["data"][0]["id"], intent.id);
}

#[tokio::test]
async fn a_key_may_be_forgotten_early_or_not_heeded_at_all() {
    let scene = Scene::new(5_000).await;
    let create = async |key| {
        let (_, intent) = scene.keyed("POST", "payment_intents", "amount=5&currency=eur", Some(key)).await;
        intent["id"].clone()
    };
    assert_eq!(create("a").await, create("a").await);
    scene.rules(json!([{ "effect": { "idempotency": { "ttl_ms": 1_000 } } }])).await;
    let first = create("b").await;
    assert_eq!(create("b").await, first);
    scene.control("clock", json!({ "advance": 1_001 })).await;
    assert_ne!(create("b").await, first);
    scene.rules(json!([{ "effect": { "idempotency": { "ignore": true } } }])).await;
    assert_ne!(create("c").await, create("c").await);
}

#[tokio::test]
async fn a_buyer_meets_the_challenge_by_themselves_when_told_to() {
    let mut scene = Scene::new(5_000).await;
    for (fails, status) in [(false, IntentStatus::RequiresConfirmation), (true, IntentStatus::RequiresPaymentMethod)] {
        scene
            .rules(json!([{ "match": { "op": "confirm" },
                "effect": { "outcome": { "kind": "3ds", "delay_ms": 5_000, "fails": fails } } }]))
            .await;
        scene.attempt_id = Uuid::new_v4();
        let intent = scene.created("pm_card_visa").await;
        let intent: PaymentIntent = done(&scene.client.send(&scene.confirm(&intent, 1)).await);
        assert_eq!(intent.status, IntentStatus::RequiresAction);
        scene.control("clock", json!({ "advance": 5_001 })).await;
        assert_eq!(scene.get(&intent.id).await.status, status);
    }
}

#[tokio::test]
async fn what_the_books_say_and_what_is_true() {
    let scene = Scene::new(5_000).await;
    scene
        .rules(
            json!([{ "match": { "op": "capture" }, "effect": { "settlement": { "amount_delta": -100, "fee": 7 } } }]),
        )
        .await;
    let intent = scene.captured().await;
    let rows = scene.raw("GET", "balance_transactions?expand[]=data.source", "").await.1["data"].clone();
    assert_eq!((&rows[0]["amount"], &rows[0]["fee"]), (&json!(12_400), &json!(7)));
    assert_eq!(rows[0]["source"]["payment_intent"], intent.id);
    assert_eq!(rows[0]["source"]["metadata"]["attempt"], scene.attempt_id.to_string());
    scene.rules(json!([{ "match": { "op": "refund" }, "effect": { "settlement": { "missing_refund": true } } }])).await;
    let (_, refund) = scene.raw("POST", "refunds", &format!("payment_intent={}&amount=500", intent.id)).await;
    let list = format!("refunds?payment_intent={}", intent.id);
    assert_eq!(scene.raw("GET", &list, "").await.1["data"], json!([]));
    assert_eq!(scene.raw("GET", "balance_transactions?type=refund", "").await.1["data"][0]["source"], refund["id"]);
    let ledger = scene.ledger().await;
    assert_eq!(
        (&ledger["captured"], &ledger["refunded"], &ledger["kept"]),
        (&json!(12_500), &json!(500), &json!(12_000))
    );
    assert_eq!(ledger["orders"][0]["captures"], 1);
    let fine = json!({ "orders_kept_twice": [], "refunded_more_than_captured": [], "books_do_not_add_up": false });
    assert_eq!(ledger["broken"], fine);
}

#[tokio::test]
async fn the_ledger_says_when_an_order_was_charged_twice() {
    let scene = Scene::new(5_000).await;
    for _ in 0..2 {
        let body = "amount=5&currency=eur&payment_method=pm_card_visa&confirm=true&metadata[order]=o1";
        assert_eq!(scene.raw("POST", "payment_intents", body).await.1["status"], "succeeded");
    }
    assert_eq!(scene.ledger().await["broken"]["orders_kept_twice"], json!(["o1"]));
}

#[tokio::test]
async fn a_reader_collects_and_only_the_card_authorises() {
    let scene = Scene::new(5_000).await;
    let intent = scene.at_reader().await;
    let (status, reader) = scene.process(&intent).await;
    assert_eq!((status, &reader["action"]["status"]), (200, &json!("in_progress")));
    assert_eq!(scene.status(&intent).await, "requires_payment_method");
    let (status, refused) = scene.raw("POST", &format!("payment_intents/{intent}/capture"), "").await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("payment_intent_unexpected_state")));
    assert_eq!(scene.process(&intent).await.1["error"]["code"], "terminal_reader_busy");
    let present = "test_helpers/terminal/readers/tmr_1/present_payment_method";
    let (_, reader) = scene.raw("POST", present, "").await;
    assert_eq!(reader["action"]["status"], "succeeded");
    assert_eq!(scene.status(&intent).await, "requires_capture");
    assert_eq!(scene.raw("POST", &format!("payment_intents/{intent}/capture"), "").await.1["status"], "succeeded");

    // A card that is declined leaves the intent, and says so.
    let declined = scene.at_reader().await;
    scene.process(&declined).await;
    let (_, reader) = scene.raw("POST", present, "card_present[number]=4000000000000002").await;
    assert_eq!(reader["action"]["failure_code"], "card_declined");
    let intent = scene.get(&declined).await;
    assert_eq!(intent.status, IntentStatus::RequiresPaymentMethod);
    assert_eq!(intent.last_payment_error.unwrap().reason(), "generic_decline");
}

#[tokio::test]
async fn a_reader_by_rule_late_offline_captured_at_once_and_faster_than_its_cancel() {
    let scene = Scene::new(5_000).await;
    let rule = |op: &str, reader: Value| json!([{ "match": { "op": op }, "effect": { "reader": reader } }]);
    let cancel = "terminal/readers/tmr_1/cancel_action";

    scene.rules(rule("process", json!({ "tap_after_ms": 3_000 }))).await;
    let late = scene.at_reader().await;
    scene.process(&late).await;
    assert_eq!(scene.status(&late).await, "requires_payment_method");
    scene.control("clock", json!({ "advance": 3_001 })).await;
    assert_eq!(scene.status(&late).await, "requires_capture");

    scene.rules(rule("process", json!({ "offline": true }))).await;
    let offline = scene.at_reader().await;
    assert_eq!(scene.process(&offline).await.1["error"]["code"], "terminal_reader_offline");

    scene.rules(rule("process", json!({ "tap_after_ms": 0, "captures_at_once": true }))).await;
    let at_once = scene.at_reader().await;
    scene.process(&at_once).await;
    assert_eq!(scene.status(&at_once).await, "succeeded");

    scene.rules(rule("cancel_action", json!({ "cancel_race": true }))).await;
    let race = scene.at_reader().await;
    scene.process(&race).await;
    let (status, reader) = scene.raw("POST", cancel, "").await;
    assert_eq!((status, &reader["action"]), (200, &Value::Null));
    assert_eq!(scene.status(&race).await, "requires_capture", "the card has won");

    scene.rules(json!([])).await;
    let stopped = scene.at_reader().await;
    scene.process(&stopped).await;
    scene.raw("POST", cancel, "").await;
    assert_eq!(scene.status(&stopped).await, "requires_payment_method");
}

#[tokio::test]
async fn webhooks_by_rule_another_version_two_secrets_their_own_schedule() {
    let (sender, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    let sink = Router::new().fallback(async move |headers: axum::http::HeaderMap, body: axum::body::Bytes| {
        let header = headers["stripe-signature"].to_str().unwrap().to_owned();
        let _ = sender.send((header, body));
        axum::http::StatusCode::SERVICE_UNAVAILABLE
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, sink).await });
    let settings = SimulatorConfig { webhook_url: Some(url), ..SimulatorConfig::default() };
    let secrets = settings.webhook_secrets.clone();
    let scene = Scene::with(5_000, settings).await;
    let webhook = json!({ "two_secrets": true, "api_version": "2019-01-01", "retry_ms": [1, 1], "shuffle_ms": 5 });
    scene.rules(json!([{ "effect": { "webhook": webhook } }])).await;
    scene.created("pm_card_visa").await;
    for _ in 0..3 {
        let (header, body) = arrived.recv().await.unwrap();
        assert_eq!(header.matches("v1=").count(), 2);
        assert_eq!(signature::verify(&header, &body, &secrets, chrono::Utc::now().timestamp()), Ok(()));
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["api_version"], "2019-01-01");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(arrived.try_recv().is_err(), "its schedule has two more tries and no third");
}

#[tokio::test]
async fn the_same_seed_and_the_same_requests_have_the_same_ledger() {
    let run = async |seed: u64| {
        let scene = Scene::with(5_000, SimulatorConfig { seed, ..SimulatorConfig::default() }).await;
        scene.control("clock", json!({ "set": 1_700_000_000_000i64 })).await;
        scene.control("clock", json!({ "freeze": true })).await;
        scene.control("clock", json!({ "set": 1_700_000_000_000i64 })).await;
        scene
            .rules(json!([
                { "match": { "op": "confirm", "probability": 0.4 }, "effect": { "outcome": { "kind": "decline", "code": "do_not_honor" } } },
                { "match": { "op": "create", "probability": 0.3 }, "effect": { "status": "500_after" } },
            ]))
            .await;
        for n in 0..20 {
            let body = format!("amount={}&currency=eur&payment_method=pm_card_visa", 100 + n);
            if let Some(id) = scene.raw("POST", "payment_intents", &body).await.1["id"].as_str() {
                scene.raw("POST", &format!("payment_intents/{id}/confirm"), "").await;
            }
        }
        scene.ledger().await
    };
    let first = run(7).await;
    assert_eq!(first, run(7).await);
    assert_ne!(first, run(8).await);
    let declined =
        first["intents"].as_array().unwrap().iter().filter(|i| i["status"] == "requires_payment_method").count();
    assert!((1..19).contains(&declined), "{declined} of 20 were declined");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let scene = Scene::new(5_000).await;
    let intent = scene.captured().await;
    let before = scene.ledger().await;
    for amount in ["0", "-1", "1e308", "ten", "99999999999999999999", "5.5"] {
        let refund = format!("payment_intent={}&amount={amount}", intent.id);
        let (status, body) = scene.raw("POST", "refunds", &refund).await;
        assert_eq!((status, &body["error"]["type"]), (400, &json!("invalid_request_error")), "{amount}: {body}");
        let (status, _) = scene.raw("GET", &format!("payment_intents?limit={amount}"), "").await;
        assert!(status == 400 || amount == "5", "{amount}");
    }
    let (status, body) = scene.raw("POST", "payment_intents", &format!("x={}", "y".repeat(10 << 20))).await;
    assert_eq!((status, &body["error"]["code"]), (413, &json!("body_too_large")));
    let mut after = scene.ledger().await;
    after["now_ms"] = before["now_ms"].clone();
    assert_eq!(after, before);
}
