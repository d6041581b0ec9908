//! The provider's books beside ours: each class of difference, what is repaired, and the gate that it closes.

use chrono::TimeDelta;
use fullhouse::{
    config::Config,
    payment::reconcile::{self, Outcome, finding::Class},
};
use fullhouse_tests::{
    binary, eventually,
    provider::{CARD, key, order, until},
    scene::Scene,
};
use serde_json::{Value, json};

#[tokio::test]
async fn books_that_agree_are_read_twice_and_change_nothing() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    let part = json!({ "what": { "kind": "seats", "seats": [1] }, "seats_become": "on_sale", "reason": "ill" });
    scene.till.refund(&paid, &key(), part).await.ok();
    eventually("the refund has arrived", || async {
        (scene.provider.ledger().await.refunded() == 4_500).then_some(())
    })
    .await;
    scene.clock.advance(TimeDelta::minutes(15)).await;
    for _ in 0..2 {
        let report = scene.reconcile().await;
        assert_eq!((report.intents, report.refunds, report.transactions), (1, 1, 2));
        assert!(report.found.is_empty(), "{:?}", report.found);
    }
    assert_eq!(scene.closed_for().await, [""; 0]);
    scene.end().await;
}

#[tokio::test]
async fn small_pages_are_read_to_their_end() {
    let scene = Scene::of_books(|config| config.reconcile.page_rows = 2).await;
    for seat in 0..5 {
        scene.bought(&scene.fan().await, &[seat]).await;
    }
    let report = scene.reconcile().await;
    assert_eq!((report.intents, report.transactions, report.found.len()), (5, 5, 0));
    scene.end().await;
}

#[tokio::test]
async fn a_book_that_has_more_and_does_not_say_where_is_not_read() {
    let scene = Scene::of_books(|_| {}).await;
    scene.bought(&scene.fan().await, &[1]).await;
    let parts = scene.hub.parts();
    for op in ["list", "list_refunds", "balance_transactions"] {
        // Without a row there is nothing to go on from; with the same rows again it would never end.
        for page in [json!({ "data": [], "has_more": true }), json!({ "has_more": true })] {
            scene.provider.rules(json!([{ "match": { "op": op }, "effect": { "echo": page } }])).await;
            reconcile::run(&parts.payments, &parts.pool, 48).await.expect_err(op);
        }
    }
    assert_eq!(scene.count("select count(*) from reconciliation_run where ok").await, 0);
    scene.provider.rules(json!([])).await;
    assert!(scene.reconcile().await.found.is_empty());
    scene.end().await;
}

#[tokio::test]
async fn m1_money_without_an_order_closes_the_gate_until_a_person_opens_it() {
    let scene = Scene::of_books(|_| {}).await;
    scene.charge(&scene.of_ours().await, true).await;
    assert_eq!(scene.found().await, [(Class::M1, Outcome::Listed)]);
    assert_eq!(scene.closed_for().await, ["captured_without_order"]);
    let (fan, operator) = (scene.fan().await, scene.operator().await);
    let open = order(&fan, scene.event, &[1]).await;
    assert_eq!(fan.pay(&open, &key(), CARD).await.code(), "payment_gate_closed");
    let list = operator.get("/api/staff/money").await.ok();
    assert_eq!(list["money_without_order"][0]["class"], "M1");
    let path = "/api/staff/gate/captured_without_order/open";
    assert_eq!(fan.post(path, json!({ "note": "let me" })).await.code(), "forbidden");
    assert_eq!(operator.post(path, json!({ "note": "seen: a test charge" })).await.status, 204);
    assert_eq!(operator.post(path, json!({ "note": "again" })).await.code(), "not_found");
    fan.pay(&open, &key(), CARD).await.ok();
    // Still there, and acknowledged: it stays on the list and closes nothing.
    assert_eq!(scene.found().await, [(Class::M1, Outcome::Acknowledged)]);
    assert_eq!(scene.closed_for().await, [""; 0]);
    let by: String = sqlx::query_scalar("select reopened_by || ': ' || reopen_note from checkout_gate")
        .fetch_one(scene.database.pool())
        .await
        .expect("the log");
    assert_eq!(by, format!("operator {}: seen: a test charge", operator.email));
    until(&fan, &open, &["captured"]).await;
    scene.end().await;
}

#[tokio::test]
async fn m2_sold_and_not_captured_is_captured_again_and_closes_the_gate_if_that_fails() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    scene.provider.rules(json!([{ "match": { "op": "capture" }, "effect": { "network": "timeout_before" } }])).await;
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["capture_unknown"]).await;
    assert!(scene.found().await.is_empty(), "young: it may be on its way");
    scene.clock.advance(TimeDelta::minutes(11)).await;
    assert_eq!(scene.found().await, [(Class::M2, Outcome::RepairFailed)]);
    assert_eq!(scene.closed_for().await, ["sold_not_captured"]);
    let list = scene.till.get("/api/staff/money").await.ok();
    assert_eq!(list["orders_without_money"][0]["why"], "capture_under_way");
    let doubt = list["doubts"][0]["state"].as_str().unwrap_or_default();
    assert!(matches!(doubt, "capture_unknown" | "capture_pending"), "{list}");

    scene.provider.rules(json!([])).await;
    assert_eq!(scene.found().await, [(Class::M2, Outcome::Repaired)]);
    until(&fan, &open, &["captured"]).await;
    assert!(scene.found().await.is_empty());
    assert_eq!(scene.closed_for().await, ["sold_not_captured"], "it was money: a person opens");
    scene.end().await;
}

#[tokio::test]
async fn m3_another_amount_closes_the_gate() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    scene.bought(&fan, &[1]).await;
    scene.run("update attempt set amount_minor = amount_minor - 1").await;
    assert_eq!(scene.found().await, [(Class::M3, Outcome::Listed)]);
    assert_eq!(scene.closed_for().await, ["amount_differs"]);
    scene.run("update attempt set amount_minor = amount_minor + 1").await;
    assert!(scene.found().await.is_empty());
    scene.end().await;
}

#[tokio::test]
async fn m4_an_order_that_was_paid_twice_closes_the_gate() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    let metadata = format!("{}&metadata[order]={}", scene.of_ours().await, paid["id"].as_str().expect("an id"));
    scene.charge(&metadata, true).await;
    assert_eq!(scene.found().await, [(Class::M1, Outcome::Listed), (Class::M4, Outcome::Listed)]);
    assert_eq!(scene.closed_for().await, ["captured_without_order", "captured_twice"]);
    scene.end().await;
}

#[tokio::test]
async fn m5_a_reservation_that_nobody_waits_for_is_let_go() {
    let scene = Scene::of_books(|_| {}).await;
    scene.charge(&scene.of_ours().await, false).await;
    assert!(scene.found().await.is_empty(), "young: its attempt may not be written yet");
    scene.clock.advance(TimeDelta::minutes(11)).await;
    scene.provider.first("cancel", json!({ "outcome": { "kind": "cancel_fails" } })).await;
    assert_eq!(scene.found().await, [(Class::M5, Outcome::RepairFailed)]);
    assert_eq!(scene.closed_for().await, ["authorised_orphan"]);
    assert_eq!(scene.found().await, [(Class::M5, Outcome::Repaired)]);
    assert_eq!(scene.provider.ledger().await.authorised(), 0);
    assert!(scene.found().await.is_empty());
    scene.end().await;
}

#[tokio::test]
async fn m6_a_refund_of_ours_that_the_provider_does_not_have_closes_the_gate() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    scene.bought(&fan, &[1]).await;
    scene
        .run(
            "insert into refund (id, attempt_id, tender_id, amount_minor, state, provider_id, reason, created_at)
             select gen_random_uuid(), id, tender_id, 1, 'succeeded', 're_nobody', 'made up', db_clock() from attempt",
        )
        .await;
    scene.clock.advance(TimeDelta::minutes(11)).await;
    assert_eq!(scene.found().await, [(Class::M6, Outcome::RepairFailed)]);
    assert_eq!(scene.closed_for().await, ["refund_on_one_side"]);
    scene.run("update refund set state = 'failed', look_at = null").await;
    scene.run("delete from refund").await;
    scene.end().await;
}

#[tokio::test]
async fn m7_what_others_sell_through_the_account_is_listed_and_left_alone() {
    for shared in [true, false] {
        let scene = Scene::of_books(|config| config.reconcile.account_shared = shared).await;
        let (taken, reserved) = (scene.charge("", true).await, scene.charge("", false).await);
        scene.clock.advance(TimeDelta::minutes(11)).await;
        let found = scene.found().await;
        let intents = scene.provider.ledger().await;
        let status = |id: &str| intents.intents().iter().find(|i| i["id"] == id).expect("an intent")["status"].clone();
        if shared {
            assert_eq!(found, [(Class::M7, Outcome::Listed)]);
            assert_eq!((status(&taken), status(&reserved)), (json!("succeeded"), json!("requires_capture")));
            assert_eq!(scene.closed_for().await, [""; 0]);
        } else {
            assert_eq!(found, [(Class::M1, Outcome::Listed), (Class::M5, Outcome::Repaired)]);
            assert_eq!((status(&taken), status(&reserved)), (json!("succeeded"), json!("canceled")));
            assert_eq!(scene.closed_for().await, ["captured_without_order"]);
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn a_run_that_could_not_read_everything_is_no_good_one_and_two_do_not_run_at_once() {
    let scene = Scene::of_books(|_| {}).await;
    scene.bought(&scene.fan().await, &[1]).await;
    let parts = scene.hub.parts();
    scene.provider.rules(json!([{ "match": { "op": "list_refunds" }, "effect": { "status": "503" } }])).await;
    reconcile::run(&parts.payments, &parts.pool, 48).await.expect_err("half of the books prove nothing");
    scene
        .provider
        .rules(json!([{ "match": { "op": "list" }, "effect": { "latency": { "kind": "fixed", "ms": 200 } } }]))
        .await;
    let (first, second) = tokio::join!(
        reconcile::run(&parts.payments, &parts.pool, 48),
        reconcile::run(&parts.payments, &parts.pool, 48)
    );
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1, "one holds the lease");
    let runs: Vec<bool> = sqlx::query_scalar("select ok from reconciliation_run order by id")
        .fetch_all(scene.database.pool())
        .await
        .expect("runs");
    assert_eq!(runs, [false, true]);
    scene.end().await;
}

#[tokio::test]
async fn a_run_that_takes_longer_than_its_lease_stays_the_only_one() {
    let patient = |config: &mut Config| {
        (config.reconcile.lease_s, config.reconcile.page_rows) = (1, 1);
        config.payment.timeout_ms = 10_000;
    };
    let scene = Scene::of_books(patient).await;
    for seat in 1..=3 {
        scene.bought(&scene.fan().await, &[seat]).await;
    }
    let parts = scene.hub.parts();
    let slowly = json!([{ "match": {}, "effect": { "latency": { "kind": "fixed", "ms": 400 } } }]);
    scene.provider.rules(slowly).await;
    let under_way = "select count(*) from reconciliation_run where finished_at is null";
    let first = reconcile::run(&parts.payments, &parts.pool, 48);
    let others = async {
        eventually("the first begins", || async { (scene.count(under_way).await == 1).then_some(()) }).await;
        let begun = std::time::Instant::now();
        let mut tried = 0;
        while scene.count(under_way).await > 0 {
            let second = reconcile::run(&parts.payments, &parts.pool, 48).await;
            assert!(second.is_err(), "two at once, {:?} after the first began", begun.elapsed());
            tried += 1;
        }
        assert!(tried > 0 && begun.elapsed().as_secs() >= 1, "{tried} tries, and it took only {:?}", begun.elapsed());
    };
    let (first, ()) = tokio::join!(first, others);
    first.expect("it ends well");
    assert_eq!(scene.count("select count(*) from reconciliation_run").await, 1);
    // Whoever died is followed, and whoever lost the lease ends.
    scene.run("insert into money_lease values ('reconcile', gen_random_uuid(), db_clock() + interval '1 hour')").await;
    reconcile::run(&parts.payments, &parts.pool, 48).await.expect_err("another one is at it");
    scene.clock.advance(TimeDelta::minutes(61)).await;
    let taken_over = async {
        eventually("it begins", || async { (scene.count(under_way).await == 1).then_some(()) }).await;
        scene.run("update money_lease set holder = gen_random_uuid()").await;
    };
    let (lost, ()) = tokio::join!(reconcile::run(&parts.payments, &parts.pool, 48), taken_over);
    assert!(format!("{:?}", lost.expect_err("it is not alone")).contains("another run has taken over"));
    scene.run("delete from money_lease").await;
    scene.end().await;
}

#[tokio::test]
async fn books_that_nobody_compares_close_the_gate_and_comparing_them_opens_it() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    scene.bought(&fan, &[1]).await;
    scene.clock.advance(TimeDelta::minutes(125)).await;
    scene.until_closed_for(&["reconciliation_stale"]).await;
    let operator = scene.operator().await;
    let opened = operator.post("/api/staff/gate/reconciliation_stale/open", json!({ "note": "no" })).await;
    assert_eq!(opened.code(), "gate_opens_by_itself");
    scene.reconcile().await;
    scene.until_closed_for(&[]).await;
    // Hourly, by itself.
    scene.end().await;
    let scene = Scene::of_books(|config| config.reconcile.interval_s = 3_600).await;
    scene.bought(&scene.fan().await, &[1]).await;
    scene.clock.advance(TimeDelta::minutes(61)).await;
    eventually("a run by itself", || async {
        let runs: i64 = sqlx::query_scalar("select count(*) from reconciliation_run where ok")
            .fetch_one(scene.database.pool())
            .await
            .expect("runs");
        (runs == 1).then_some(())
    })
    .await;
    scene.end().await;
}

#[tokio::test]
async fn doubts_and_late_webhooks_close_the_gate_while_they_last() {
    let scene = Scene::of_books(|config| config.gate.unknown_max = 0).await;
    let fan = scene.fan().await;
    let open = order(&fan, scene.event, &[1]).await;
    scene
        .provider
        .rules(json!([{ "match": { "op": "get" }, "effect": { "status": "503" } },
        { "match": { "op": "confirm" }, "effect": { "network": "timeout_after" } }]))
        .await;
    fan.pay(&open, &key(), CARD).await.ok();
    scene.until_closed_for(&["payments_unknown"]).await;
    scene.provider.rules(json!([])).await;
    until(&fan, &open, &["captured"]).await;
    scene.until_closed_for(&[]).await;

    scene
        .run(
            "insert into webhook_event (event_id, type, livemode, raw, header, received_at, next_try_at)
             values ('evt_late', 'x', false, '{}', '', db_clock() - interval '16 minutes', db_clock() + interval '1 hour')",
        )
        .await;
    scene.until_closed_for(&["webhooks_late"]).await;
    for line in [
        "fullhouse_payment_gate_closed{reason=\"webhooks_late\"} 1",
        "fullhouse_payment_attempts{state=\"captured\"} 1",
        "fullhouse_payment_webhooks_waiting 1",
        "fullhouse_provider_seconds_count{op=\"capture\"} 1",
        "fullhouse_payment_refunds_failed 0",
    ] {
        eventually(line, || async {
            let text = reqwest::get(format!("{}/metrics", scene.hub.url())).await.expect("metrics").text().await;
            text.expect("text").contains(line).then_some(())
        })
        .await;
    }
    scene.run("update webhook_event set next_try_at = db_clock()").await;
    scene.until_closed_for(&[]).await;
    scene.end().await;
}

#[tokio::test]
async fn a_person_pauses_and_opens() {
    let scene = Scene::of_books(|_| {}).await;
    let (fan, operator) = (scene.fan().await, scene.operator().await);
    let open = order(&fan, scene.event, &[1]).await;
    assert_eq!(operator.post("/api/staff/gate/pause", json!({ "note": "the bank calls" })).await.status, 204);
    assert_eq!(fan.pay(&open, &key(), CARD).await.code(), "payment_gate_closed");
    assert_eq!(operator.post("/api/staff/gate/paused/open", json!({ "note": "it was nothing" })).await.status, 204);
    fan.pay(&open, &key(), CARD).await.ok();
    until(&fan, &open, &["captured"]).await;
    scene.end().await;
}

#[tokio::test]
async fn the_command_line_says_and_does_the_same() {
    let scene = Scene::of_books(|_| {}).await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    let config = {
        let mut config = scene.database.config().await;
        scene.provider.configure(&mut config);
        config
    };
    let url = scene.database.url().await;
    let run = async |arguments: &[&str]| -> (i32, String, String) {
        let output = tokio::process::Command::new(binary::path())
            .args(arguments)
            .env("FULLHOUSE__DATABASE__URL", &url)
            .env("FULLHOUSE__PAYMENT__PROVIDER_URL", &config.payment.provider_url)
            .env("FULLHOUSE__PAYMENT__SECRET_KEY", config.payment.secret_key.reveal())
            .env("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", &config.payment.publishable_key)
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    };
    let json = |out: &str| -> Value { serde_json::from_str(out).expect("JSON") };

    let (code, out, _) = run(&["reconcile"]).await;
    assert!(code == 0 && out.contains("1 payments, 0 refunds, 1 transactions") && out.contains("agree"), "{out}");
    scene.charge(&scene.of_ours().await, true).await;
    let (code, out, error) = run(&["reconcile", "--hours", "2", "--json"]).await;
    assert_eq!((code, json(&out)["findings"][0]["class"].clone()), (1, json!("M1")), "{error}");
    let (code, out, _) = run(&["money"]).await;
    assert!(code == 1 && out.contains("The gate is CLOSED") && out.contains("Money without an order: 1"), "{out}");
    assert_eq!(json(&run(&["money", "--json"]).await.1)["gate"][0]["reason"], "captured_without_order");
    let (code, ..) = run(&["gate", "open", "captured_without_order", "--by", "Ada", "--note", "a test"]).await;
    assert_eq!(code, 0);
    let (code, out, _) = run(&["gate", "show"]).await;
    assert!(code == 0 && out.contains("open"), "{out}");
    assert_eq!(run(&["money"]).await.0, 0, "what it was closed for is acknowledged");
    assert_eq!(run(&["gate", "open", "captured_without_order", "--by", "Ada"]).await.0, 1, "it is open");
    assert_eq!(run(&["gate", "pause", "--by", "Ada", "--note", "lunch"]).await.0, 0);
    assert_eq!(run(&["gate", "show"]).await.0, 1);
    assert_eq!(run(&["gate", "open", "paused", "--by", " ", "--note", "x"]).await.0, 2, "who?");
    assert_eq!(run(&["gate", "open", "paused", "--by", "Ada", "--note", ""]).await.0, 2);
    assert_eq!(run(&["gate", "open", "paused", "--by", "Ada"]).await.0, 0);

    let order = paid["code"].as_str().expect("a code");
    let (code, out, error) =
        run(&["refund", order, "--seats", "1", "--seats-become", "on-sale", "--reason", "ill", "--by", "Ada"]).await;
    assert!(code == 0 && out.contains("go back") && out.contains("45.00"), "{out}{error}");
    assert_eq!(run(&["refund", order, "--reason", "ill", "--by", "Ada"]).await.0, 1, "of what?");
    assert_eq!(run(&["refund", order, "--all", "--reason", "", "--by", "Ada"]).await.0, 2);
    let part = ["refund", order, "--amount", "1.00", "--reason", "cold", "--by", "Ada"];
    let (code, out, _) = run(&part).await;
    assert!(code == 0 && out.contains("--key "), "{out}");
    let (code, _, error) = run(&part).await;
    assert!(code == 1 && error.contains("less than a minute ago"), "typed twice: {error}");
    let key = out.split("--key ").nth(1).and_then(|rest| rest.split(')').next()).expect("the key");
    assert_eq!(run(&[&part[..], &["--key", key]].concat()).await.0, 0, "the same refund");
    assert_eq!(run(&[&part[..], &["--again"]].concat()).await.0, 0, "once more");
    let slug: String =
        sqlx::query_scalar("select slug from event").fetch_one(scene.database.pool()).await.expect("one");
    eventually("the first part has arrived", || async {
        (scene.provider.ledger().await.refunded() == 4_700).then_some(())
    })
    .await;
    let (code, out, error) = run(&["event", "cancel", &slug, "--reason", "ill", "--by", "Ada", "--json"]).await;
    assert_eq!((code, json(&out)["orders"][0]["amount_minor"].clone()), (0, json!(4_300)), "{error}");
    eventually("all of it has arrived", || async { (scene.provider.ledger().await.refunded() == 9_000).then_some(()) })
        .await;
    assert_eq!(run(&["event", "cancel", "no-such", "--reason", "x", "--by", "Ada"]).await.0, 1);
    scene.end().await;
}
