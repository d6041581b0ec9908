//! How terminals are, and what operators do about them: renamed, locked, revoked, each in the audit log.

use chrono::TimeDelta;
use fullhouse_tests::{eventually, fan::Fan, provider::key, rows::Rows, scene::Scene, till::Till};
use reqwest::StatusCode;
use serde_json::{Value, json};

async fn listed(operator: &Fan, name: &str) -> Value {
    let all = operator.get("/api/staff/terminals").await.ok();
    let terminals = all["terminals"].as_array().unwrap();
    terminals.iter().find(|t| t["name"] == name).unwrap_or(&Value::Null).clone()
}

async fn change(operator: &Fan, terminal: &Value, body: Value) -> fullhouse_tests::fan::Answer {
    operator.post(&format!("/api/staff/terminals/{}", terminal["id"].as_str().unwrap()), body).await
}

#[tokio::test]
async fn a_terminal_says_how_it_is_and_operators_see_it() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |_| {}).await;
    let operator = scene.operator().await;
    let kiosk = Till::enrol_as("kiosk", &scene.database, &scene.hub.url(), "Foyer").await;
    let silent = listed(&operator, "Foyer").await;
    assert_eq!(
        (&silent["role"], &silent["health"], &silent["health_at"]),
        (&json!("kiosk"), &Value::Null, &Value::Null)
    );
    let health = json!({ "version": "1.0.0", "paper": "low", "reader": "ok", "detail": "100 tickets left" });
    for (said, paper) in
        [(health.clone(), "low"), (json!({ "version": "1.0.0", "paper": "out", "reader": "ok" }), "out")]
    {
        assert_eq!(kiosk.post("/api/box-office/health", said).await.status, StatusCode::NO_CONTENT);
        let shown = listed(&operator, "Foyer").await;
        assert_eq!((&shown["health"]["paper"], &shown["health"]["version"]), (&json!(paper), &json!("1.0.0")));
        assert!(shown["health_at"].is_string());
    }
    for (field, wrong) in
        [("version", json!("")), ("version", json!("x".repeat(65))), ("detail", json!("x".repeat(301)))]
    {
        let mut said = health.clone();
        said[field] = wrong;
        assert_eq!(kiosk.post("/api/box-office/health", said).await.code(), "bad_request", "{field}");
    }
    let mut unheard = health;
    unheard["paper"] = json!("wet");
    assert_eq!(kiosk.post("/api/box-office/health", unheard).await.code(), "json_invalid");
    let fan = scene.fan().await;
    assert_eq!(fan.get("/api/staff/terminals").await.code(), "forbidden");
    assert_eq!(scene.till.get("/api/staff/terminals").await.code(), "not_signed_in", "a counter is no operator");
    scene.close().await;
}

#[tokio::test]
async fn a_locked_terminal_only_reports_and_a_revoked_one_is_nobody() {
    let scene = Scene::without_webhooks(Rows::new(1, 10), |_| {}).await;
    let operator = scene.operator().await;
    let window = listed(&operator, "Window 1").await;
    let held = scene.till.hold(scene.event, &[0]).await.ok();
    let health = json!({ "version": "1", "paper": "unknown", "reader": "none" });
    let locking = json!({ "locked": true, "reason": "left alone" });
    for _ in 0..2 {
        assert_eq!(change(&operator, &window, locking.clone()).await.status, StatusCode::NO_CONTENT); // again: no change
    }
    let search = "/api/staff/orders?q=nobody";
    let sale = scene.till.sell_for_cash(&held, 4_500).await;
    for refused in [scene.till.hold(scene.event, &[1]).await, sale, scene.till.get(search).await] {
        assert_eq!((refused.code(), refused.status), ("terminal_locked", StatusCode::FORBIDDEN));
        assert_eq!(refused.body["reason"], "left alone");
    }
    assert_eq!(scene.till.post("/api/box-office/health", health.clone()).await.status, StatusCode::NO_CONTENT);
    assert_eq!(listed(&operator, "Window 1").await["locked_reason"], "left alone");
    change(&operator, &window, json!({ "locked": false, "reason": "seen to" })).await;
    scene.till.sell_for_cash(&held, 4_500).await.ok();

    Till::enrol(&scene.database, &scene.hub.url(), "Window 2").await;
    let rename = |name: &str| json!({ "name": name, "locked": true, "reason": "moved" });
    assert_eq!(change(&operator, &window, rename("Window 2")).await.code(), "name_taken");
    assert_eq!(listed(&operator, "Window 1").await["locked_reason"], Value::Null, "all of it, or nothing");
    for wrong in ["", "  ", "\u{200b}\u{200b}", &"x".repeat(61)] {
        assert_eq!(change(&operator, &window, rename(wrong)).await.code(), "bad_request");
    }
    assert_eq!(change(&operator, &window, json!({ "locked": true, "reason": " " })).await.code(), "bad_request");
    let nobody = json!({ "id": uuid::Uuid::new_v4() });
    assert_eq!(change(&operator, &nobody, locking.clone()).await.code(), "terminal_unknown");
    assert_eq!(change(&operator, &json!({ "id": "x" }), locking.clone()).await.code(), "terminal_unknown");
    assert_eq!(change(&scene.fan().await, &window, locking).await.code(), "forbidden");

    let going = json!({ "name": "Side door", "revoke": true, "reason": "sold the machine" });
    for _ in 0..2 {
        assert_eq!(change(&operator, &window, going.clone()).await.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(scene.till.post("/api/box-office/health", health).await.code(), "not_signed_in");
    assert_eq!(listed(&operator, "Side door").await["revoked"], true);

    let said: Vec<(String, String, String, bool)> = sqlx::query_as(
        "select verb, detail, reason, actor like 'operator %' from audit where verb <> 'terminal_enrol' order by id",
    )
    .fetch_all(scene.database.pool())
    .await
    .unwrap();
    let line = |verb: &str, detail: &str, reason: &str| (verb.to_owned(), detail.to_owned(), reason.to_owned(), true);
    assert_eq!(
        said,
        [
            line("terminal_lock", "Window 1", "left alone"),
            line("terminal_unlock", "Window 1", "seen to"),
            line("terminal_rename", "Window 1 is called Side door", "sold the machine"),
            line("terminal_revoke", "Window 1", "sold the machine"),
        ]
    );
    for statement in ["update audit set reason = 'x'", "delete from audit", "truncate audit"] {
        let refused = sqlx::query(statement).execute(scene.database.pool()).await.unwrap_err();
        assert_eq!(fullhouse::db::constraint(&refused), Some("audit_stays"), "{statement}");
    }
    scene.close().await;
}

#[tokio::test]
async fn how_a_card_reader_is_its_provider_says_and_looking_asks_nobody() {
    const READER: &str = "tmr_window_1";
    let scene = Scene::without_webhooks(Rows::new(1, 10), |_| {}).await;
    let operator = scene.operator().await;
    Till::place_reader(&scene.database, "Window 1", READER).await;
    let own = async || scene.till.get("/api/box-office/terminal").await.ok()["reader_states"][0].clone();
    let until = async |state: &str| {
        eventually(&format!("the reader is {state}"), || async {
            let reader = own().await;
            (reader["state"] == state).then_some(reader)
        })
        .await
    };
    assert_eq!(own().await, json!({ "id": READER, "state": "unknown", "at": null }), "nobody has asked yet");

    // Asked once the terminal is heard of.
    let health = json!({ "version": "1", "paper": "ok", "reader": "unknown" });
    scene.till.post("/api/box-office/health", health.clone()).await;
    let online = until("online").await;
    assert!(online["at"].is_string());
    for _ in 0..20 {
        assert_eq!(own().await, online);
        scene.till.post("/api/box-office/health", health.clone()).await;
    }
    assert_eq!(listed(&operator, "Window 1").await["reader_states"], json!([online]), "operators see the same");
    assert_eq!(scene.provider.requests("reader").await.len(), 1, "twenty looks and heartbeats asked nobody");

    // It collects a payment; then somebody pulls its plug.
    let held = scene.till.hold(scene.event, &[1]).await.ok();
    let open = scene.till.sell_by_card(&held, &key(), READER).await.ok()["order"].clone();
    scene.till.until_in_time(&scene.clock, &open, &["action_required"]).await;
    scene.clock.advance(TimeDelta::seconds(31)).await;
    until("busy").await;
    scene.provider.present_card(READER).await;
    scene.till.until_in_time(&scene.clock, &open, &["captured"]).await;
    scene.provider.switch_reader(READER, true).await;
    scene.clock.advance(TimeDelta::seconds(31)).await;
    until("offline").await;

    // Switched off with its terminal: what was said long ago is not known.
    scene.clock.advance(TimeDelta::minutes(6)).await;
    assert_eq!(own().await["state"], "unknown");
    scene.provider.switch_reader(READER, false).await;
    scene.till.post("/api/box-office/health", health).await;
    until("online").await;
    scene.close().await;
}
