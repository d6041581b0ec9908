//! What the provider does wrong in a soak: every kind of fault, each as likely as the seed has it.

use std::time::Duration;

use rand::{Rng, rngs::SmallRng};
use serde_json::{Value, json};

/// Rules for the simulator. `now_ms` is its clock.
pub fn rules(rng: &mut SmallRng, now_ms: i64, faults_for: Duration) -> Value {
    // Some evenings are worse than others; on one where most calls fail the gate is closed, and little happens.
    let mood = [0.3, 0.7, 1.0, 1.5][rng.random_range(0..4)];
    let mut rules = Vec::new();
    let mut random = |matches: Value, probability: f64, effect: Value| {
        let mut matches = matches;
        matches["probability"] = json!((probability * mood * rng.random_range(0.3..1.7)).min(0.6));
        rules.push(json!({ "match": matches, "effect": effect }));
    };
    for (network, probability) in [
        ("timeout_before", 0.04),
        ("timeout_after", 0.04),
        ("reset_before", 0.03),
        ("reset_after", 0.03),
        ("half_body", 0.02),
        ("garbage_2xx", 0.02),
    ] {
        random(json!({}), probability, json!({ "network": network }));
    }
    for (status, probability) in
        [("500_before", 0.03), ("500_stored", 0.015), ("500_after", 0.015), ("503", 0.02), ("409_in_use", 0.02)]
    {
        random(json!({}), probability, json!({ "status": status }));
    }
    random(json!({}), 0.02, json!({ "status": "429", "retry_after": 1 }));
    for (op, outcome, probability) in [
        ("confirm", json!({ "kind": "decline", "code": "do_not_honor" }), 0.05),
        ("confirm", json!({ "kind": "3ds" }), 0.05),
        ("confirm", json!({ "kind": "processing", "ms": 3_000 }), 0.05),
        ("confirm", json!({ "kind": "wrong_amount", "delta": -1 }), 0.01),
        ("confirm", json!({ "kind": "auth_expires", "ms": 1_500 }), 0.03),
        ("capture", json!({ "kind": "capture_fails" }), 0.03),
        ("cancel", json!({ "kind": "cancel_fails" }), 0.03),
        ("cancel", json!({ "kind": "captured_meanwhile" }), 0.05),
        ("refund", json!({ "kind": "refund_pending", "ms": 2_000 }), 0.3),
        ("refund", json!({ "kind": "refund_fails" }), 0.1),
        ("refund", json!({ "kind": "refund_fails_later", "ms": 3_000 }), 0.1),
    ] {
        random(json!({ "op": op }), probability, json!({ "outcome": outcome }));
    }
    random(json!({ "op": "refund" }), 0.05, json!({ "status": "400" }));
    for (op, reader, probability) in [
        ("process", json!({ "offline": true }), 0.05),
        ("process", json!({ "tap_after_ms": 800, "captures_at_once": true }), 0.1),
        ("process", json!({ "tap_after_ms": 400, "decline": "do_not_honor" }), 0.1),
        ("process", json!({ "tap_after_ms": 600 }), 0.1), // the people at the tills have cards of their own
        ("cancel_action", json!({ "cancel_race": true }), 0.3),
    ] {
        random(json!({ "op": op }), probability, json!({ "reader": reader }));
    }
    for (webhook, probability) in [
        (json!({ "drop": true }), 0.15),
        (json!({ "duplicate": 2 }), 0.1),
        (json!({ "twin": true }), 0.1),
        (json!({ "delay_ms": 2_500 }), 0.1),
        (json!({ "before_response": true, "delay_ms": 0 }), 0.05),
        (json!({ "bad_signature": true }), 0.02),
        (json!({ "signed_ago_s": 4_000 }), 0.02),
        (json!({ "unknown_type": true }), 0.02),
    ] {
        random(json!({}), probability, json!({ "webhook": webhook }));
    }
    // Nobody listens for a while.
    let length_ms = faults_for.as_millis() as i64;
    let from = now_ms + rng.random_range(length_ms / 4..length_ms / 2);
    rules.push(json!({
        "match": { "from_ms": from, "to_ms": from + rng.random_range(1_000..3_000) },
        "effect": { "network": "refuse" },
    }));
    let latency = json!({ "kind": "lognormal", "p50_ms": 15, "p99_ms": 500 });
    rules.push(json!({ "effect": { "latency": latency } }));
    json!(rules)
}
