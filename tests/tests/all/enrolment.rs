//! A machine becomes a terminal with a code, and learns what it is for.

use fullhouse_tests::{
    fan::{Answer, Fan},
    rows::Rows,
    scene::Scene,
    till::Till,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

async fn code(operator: &Fan, name: &str, role: &str) -> Value {
    let body = json!({ "name": name, "role": role, "reason": "the new window" });
    operator.post("/api/staff/enrolments", body).await.ok()["code"].clone()
}

async fn enrol(machine: &Fan, body: Value) -> Answer {
    machine.post("/api/box-office/enrol", body).await
}

#[tokio::test]
async fn a_code_makes_one_terminal_and_is_refused_ever_after() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |_| {}).await;
    let operator = scene.operator().await;
    let machine = Fan::stranger(&scene.hub.url());
    let first = code(&operator, "Window 2", "counter").await;
    let second = code(&operator, "Window 2", "counter").await;
    assert_eq!(enrol(&machine, json!({ "code": first })).await.code(), "enrolment_refused", "another took its place");
    let typed = second.as_str().unwrap().to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
    let made = enrol(&machine, json!({ "code": typed })).await.ok();
    assert_eq!(
        (&made["name"], &made["role"], &made["attended"]),
        (&json!("Window 2"), &json!("counter"), &json!(true))
    );
    let till = Till::with_token(&scene.hub.url(), made["token"].as_str().unwrap());
    let own = till.get("/api/box-office/terminal").await.ok();
    assert_eq!((&own["terminal_id"], &own["attended"]), (&made["terminal_id"], &json!(true)));
    assert_eq!((&own["locked_reason"], &own["next_seq"]), (&Value::Null, &json!(1)));
    let again = enrol(&machine, json!({ "code": second })).await;
    assert_eq!((again.code(), again.status), ("enrolment_refused", StatusCode::UNAUTHORIZED));
    let kiosk = code(&operator, "Foyer", "kiosk").await;
    assert_eq!(enrol(&machine, json!({ "code": kiosk })).await.ok()["attended"], false);

    let name = |name: &str| json!({ "name": name, "role": "kiosk", "reason": "x" });
    assert_eq!(operator.post("/api/staff/enrolments", name("Window 2")).await.code(), "name_taken");
    for wrong in [name(" "), name(&"x".repeat(61)), json!({ "name": "a", "role": "kiosk", "reason": "" })] {
        assert_eq!(operator.post("/api/staff/enrolments", wrong).await.code(), "bad_request");
    }
    assert_eq!(scene.fan().await.post("/api/staff/enrolments", name("a")).await.code(), "forbidden");
    for key in ["short", "with a space in the middle"] {
        assert_eq!(enrol(&machine, json!({ "code": "x", "key": key })).await.code(), "bad_request");
    }
    let logged: Vec<(String, bool)> = sqlx::query_as("select verb, terminal_id is null from audit order by id")
        .fetch_all(scene.database.pool())
        .await
        .unwrap();
    let line = |verb: &str, nobody| (verb.to_owned(), nobody);
    assert_eq!(
        logged,
        [
            line("terminal_enrol", false), // the scene's own, by command
            line("terminal_code", true),
            line("terminal_code", true),
            line("terminal_enrol", false),
            line("terminal_code", true),
            line("terminal_enrol", false)
        ]
    );
    scene.close().await;
}

#[tokio::test]
async fn a_code_grows_old_and_wrong_ones_are_counted() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |config| config.auth.enrol_failures_max = 3).await;
    let operator = scene.operator().await;
    let machine = Fan::stranger(&scene.hub.url());
    let old = code(&operator, "Window 2", "counter").await;
    scene.clock.advance(chrono::TimeDelta::minutes(15)).await;
    assert_eq!(enrol(&machine, json!({ "code": old })).await.code(), "enrolment_refused");
    for wrong in ["00000-00000", "U"] {
        assert_eq!(enrol(&machine, json!({ "code": wrong })).await.code(), "enrolment_refused");
    }
    let good = code(&operator, "Window 2", "counter").await;
    assert_eq!(enrol(&machine, json!({ "code": good })).await.code(), "too_many_requests");
    scene.close().await;
}

#[tokio::test]
async fn a_machine_whose_answer_got_lost_asks_again_and_the_lost_token_dies() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |_| {}).await;
    let operator = scene.operator().await;
    let machine = Fan::stranger(&scene.hub.url());
    let code = code(&operator, "Window 2", "counter").await;
    let with = |key: &str| json!({ "code": code, "key": key });
    let lost = enrol(&machine, with("made-up-by-the-machine")).await.ok();
    let found = enrol(&machine, with("made-up-by-the-machine")).await.ok();
    assert_eq!(lost["terminal_id"], found["terminal_id"]);
    let whoami = |made: &Value| Till::with_token(&scene.hub.url(), made["token"].as_str().unwrap());
    assert_eq!(whoami(&lost).get("/api/box-office/terminal").await.code(), "not_signed_in");
    whoami(&found).get("/api/box-office/terminal").await.ok();
    assert_eq!(enrol(&machine, with("of-another-machine-entirely")).await.code(), "enrolment_refused");
    assert_eq!(enrol(&machine, json!({ "code": code })).await.code(), "enrolment_refused");
    scene.clock.advance(chrono::TimeDelta::minutes(61)).await;
    assert_eq!(enrol(&machine, with("made-up-by-the-machine")).await.code(), "enrolment_refused");
    scene.close().await;
}

#[tokio::test]
async fn a_terminal_is_told_what_it_is_for_and_a_locked_one_why() {
    let scene = Scene::without_webhooks(Rows::new(1, 4), |_| {}).await;
    let operator = scene.operator().await;
    let all = operator.get("/api/staff/terminals").await.ok();
    let path = format!("/api/staff/terminals/{}", all["terminals"][0]["id"].as_str().unwrap());
    let profile = json!({ "events": [scene.event], "languages": ["ja", "en"], "idle_s": 90, "lock_after_s": 300 });
    let set = |profile: &Value| json!({ "profile": profile, "locked": true, "reason": "set up" });
    assert_eq!(operator.post(&path, set(&profile)).await.status, StatusCode::NO_CONTENT);
    let own = scene.till.get("/api/box-office/terminal").await.ok();
    assert_eq!((&own["profile"], &own["locked_reason"]), (&profile, &json!("set up")));
    for (field, wrong) in [
        ("idle_s", json!(19)),
        ("idle_s", json!(601)),
        ("lock_after_s", json!(29)),
        ("lock_after_s", json!(3_601)),
        ("languages", json!(["fr"])),
        ("languages", json!(["en", "en"])),
        ("events", json!([scene.event, scene.event])),
    ] {
        let mut bad = profile.clone();
        bad[field] = wrong;
        assert_eq!(operator.post(&path, set(&bad)).await.code(), "bad_request", "{field}");
    }
    let nowhere = operator.post(&path, set(&json!({ "events": [999_999] }))).await;
    assert_eq!((nowhere.code(), &nowhere.body["event_id"]), ("event_unknown", &json!(999_999)));
    assert_eq!(operator.post(&path, set(&json!({ "colour": "red" }))).await.code(), "json_invalid");
    assert_eq!(scene.till.get("/api/box-office/terminal").await.ok()["profile"], profile, "nothing changed");
    scene.close().await;
}
