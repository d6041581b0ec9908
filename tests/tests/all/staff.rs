//! Who stands at an attended counter: signing in, what each role may do, and what the log says of it.

use chrono::TimeDelta;
use fullhouse_tests::{
    desk::{Desk, member},
    fan::Fan,
    rows::Rows,
    scene::{Scene, seats},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

async fn scene() -> Scene {
    Scene::without_webhooks(Rows::new(2, 20), |_| {}).await
}

#[tokio::test]
async fn an_attended_counter_does_nothing_until_somebody_signs_in() {
    let scene = scene().await;
    let desk = Desk::open(&scene, "Window 2").await;
    let nobody = desk.without_staff();
    let order =
        scene.till.sell_for_cash(&scene.till.hold(scene.event, &[0]).await.ok(), 10_000).await.ok()["order"].clone();
    let id = order["id"].as_str().unwrap();
    let event = scene.event;
    for (path, body) in [
        ("/api/box-office/holds".to_owned(), json!({ "event_id": event, "seats": [1] })),
        ("/api/box-office/shifts".to_owned(), json!({ "float_minor": 0, "currency": "EUR" })),
        (format!("/api/box-office/events/{event}/block"), json!({ "seats": [1], "reason": "x" })),
        (format!("/api/box-office/orders/{id}/prints"), json!({})),
        (format!("/api/staff/orders/{id}/notes"), json!({ "text": "x" })),
        (format!("/api/staff/orders/{id}/refunds"), seats(&[0], "on_sale")),
    ] {
        let refused = nobody.post(&path, body).await;
        assert_eq!((refused.code(), refused.status), ("staff_required", StatusCode::UNAUTHORIZED), "{path}");
    }
    assert_eq!(nobody.get("/api/staff/orders?q=x").await.code(), "staff_required", "nor are buyers shown to nobody");
    nobody.get("/api/box-office/terminal").await.ok();
    let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
    clerk.hold(event, &[1]).await.ok();
    let elsewhere = Desk::open(&scene, "Window 3").await.with_staff_of(&clerk);
    assert_eq!(elsewhere.hold(event, &[2]).await.code(), "staff_required", "a session is one terminal's");
    assert_eq!(clerk.get("/api/box-office/staff").await.ok()["name"], "Ada");
    scene.close().await;
}

#[tokio::test]
async fn each_role_may_do_what_is_its_and_the_log_names_person_terminal_and_reason() {
    let scene = scene().await;
    let event = scene.event;
    let desk = Desk::open(&scene, "Window 2").await;
    let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
    let supervisor = desk.sign_in(&scene, "Bob", "supervisor").await;
    let manager = desk.sign_in(&scene, "Cleo", "manager").await;
    clerk.post("/api/box-office/shifts", json!({ "float_minor": 10_000, "currency": "EUR" })).await.ok();
    let order = clerk.sell_for_cash(&clerk.hold(event, &[0]).await.ok(), 10_000).await.ok()["order"].clone();
    let refunds = format!("/api/staff/orders/{}/refunds", order["id"].as_str().unwrap());
    let comp = |held: &Value| json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tender": { "kind": "comp", "reason": "press" } });
    let held = clerk.hold(event, &[1]).await.ok();
    let block = format!("/api/box-office/events/{event}/block");
    let revive = format!("/api/box-office/events/{event}/revive");
    let camera = json!({ "seats": [5, 6], "reason": "a camera" });
    for (who, path, body) in [
        (&clerk, refunds.as_str(), seats(&[0], "dead")),
        (&clerk, "/api/box-office/sales", comp(&held)),
        (&clerk, &block, camera.clone()),
        (&supervisor, &revive, json!({ "seats": [0], "reason": "mended" })),
    ] {
        let refused = who.post(path, body).await;
        assert_eq!((refused.code(), refused.status), ("role_too_low", StatusCode::FORBIDDEN), "{path}");
        let told = refused.body["detail"].as_str().unwrap();
        assert!(told.contains("supervisor") || told.contains("manager"), "{told}");
    }
    supervisor.post("/api/box-office/sales", comp(&held)).await.ok();
    assert_eq!(supervisor.post(&block, camera).await.status, StatusCode::NO_CONTENT);
    supervisor.post(&refunds, seats(&[0], "dead")).await.ok();
    assert_eq!(manager.post(&revive, json!({ "seats": [0], "reason": "mended" })).await.status, StatusCode::NO_CONTENT);
    let logged: Vec<(String, String, String)> = sqlx::query_as(
        "select a.verb, s.name, a.reason from audit a join staff s on s.id = a.staff_id join terminal t on t.id = a.terminal_id
         where t.name = 'Window 2' and a.verb not like 'staff%' and a.verb not like 'shift%' order by a.id",
    )
    .fetch_all(scene.database.pool())
    .await
    .unwrap();
    let line = |verb: &str, who: &str, why: &str| (verb.to_owned(), who.to_owned(), why.to_owned());
    assert_eq!(
        logged,
        [
            line("sale_cash", "Ada", "a sale"),
            line("sale_comp", "Bob", "press"),
            line("seat_block", "Bob", "a camera"),
            line("seat_kill", "Bob", "asked for"),
            line("order_refund", "Bob", &format!("{} EUR given back: asked for", order["total_minor"])),
            line("seat_revive", "Cleo", "mended"),
        ]
    );
    assert_eq!(
        scene.count("select count(*) from audit where actor = 'Bob at Window 2' and verb = 'seat_block'").await,
        1
    );
    scene.close().await;
}

#[tokio::test]
async fn five_wrong_tries_lock_a_name_whether_anybody_has_it_or_not() {
    let scene = scene().await;
    let desk = Desk::open(&scene, "Window 2").await;
    let operator = scene.operator().await;
    let ada = member(&operator, "Ada", "clerk").await;
    let nobody = desk.without_staff();
    let try_as = |name: &str, secret: Value| {
        let mut body = secret;
        body["name"] = json!(name);
        let nobody = nobody.clone();
        async move { nobody.post("/api/box-office/sign-in", body).await }
    };
    try_as("ada", json!({ "password": member_password() })).await.ok(); // whatever case it is typed in
    for name in ["Ada", "Nobody"] {
        for _ in 0..5 {
            let wrong = try_as(name, json!({ "pin": "999998" })).await;
            assert_eq!((wrong.code(), wrong.status), ("credentials_wrong", StatusCode::UNAUTHORIZED), "{name}");
        }
        let locked = try_as(name, json!({ "password": member_password() })).await;
        assert_eq!((locked.code(), locked.status), ("staff_locked", StatusCode::LOCKED), "{name}");
        assert!(locked.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 800);
    }
    let listed = operator.get("/api/staff/members").await.ok();
    assert!(listed["members"][0]["locked_until"].is_string());
    scene.clock.advance(TimeDelta::minutes(15)).await;
    try_as("Ada", json!({ "password": member_password() })).await.ok();
    for _ in 0..4 {
        try_as("Ada", json!({ "password": "wrong but long" })).await;
    }
    try_as("Ada", json!({ "pin": "246810" })).await.ok();
    for _ in 0..4 {
        assert_eq!(
            try_as("Ada", json!({ "password": "wrong but long" })).await.code(),
            "credentials_wrong",
            "in a row"
        );
    }
    for both in [json!({}), json!({ "pin": "246810", "password": member_password() })] {
        assert_eq!(try_as("Ada", both).await.code(), "bad_request");
    }
    let unattended = scene.till.post("/api/box-office/sign-in", json!({ "name": "Ada", "pin": "246810" })).await;
    assert_eq!(unattended.code(), "bad_request", "a PIN is good at an attended terminal only");
    assert!(ada["staff_id"].is_string());
    scene.close().await;
}

fn member_password() -> &'static str {
    fullhouse_tests::desk::PASSWORD
}

#[tokio::test]
async fn a_session_ends_with_sign_out_time_lock_and_any_change_of_its_member() {
    let scene = scene().await;
    let operator = scene.operator().await;
    let desk = Desk::open(&scene, "Window 2").await;
    let ada = member(&operator, "Ada", "clerk").await;
    let path = format!("/api/staff/members/{}", ada["staff_id"].as_str().unwrap());
    let change = async |body: Value| operator.post(&path, body).await;
    let mut signed_in = desk.sign_in_as("Ada").await;
    let is_over =
        async |who: &fullhouse_tests::till::Till| who.get("/api/box-office/staff").await.code() == "staff_required";
    assert_eq!(signed_in.post("/api/box-office/sign-out", json!({})).await.status, StatusCode::NO_CONTENT);
    assert!(is_over(&signed_in).await, "signed out");
    for why in [
        json!({ "role": "manager", "reason": "promoted" }),
        json!({ "pin": "135791", "reason": "seen by somebody" }),
        json!({ "pin": "", "reason": "no PIN any more" }),
        json!({ "password": "another long one", "reason": "seen by somebody" }),
        json!({ "password": member_password(), "reason": "back again" }),
    ] {
        signed_in = desk
            .sign_in_with(
                "Ada",
                if why["password"] == member_password() { "another long one" } else { member_password() },
            )
            .await;
        change(why.clone()).await.ok();
        assert!(is_over(&signed_in).await, "{why}");
    }
    signed_in = desk.sign_in_as("Ada").await;
    scene.clock.advance(TimeDelta::hours(12)).await;
    assert!(is_over(&signed_in).await, "twelve hours");
    signed_in = desk.sign_in_as("Ada").await;
    let all = operator.get("/api/staff/terminals").await.ok();
    let window = all["terminals"].as_array().unwrap().iter().find(|t| t["name"] == "Window 2").unwrap().clone();
    let lock = async |locked: bool| {
        let path = format!("/api/staff/terminals/{}", window["id"].as_str().unwrap());
        operator.post(&path, json!({ "locked": locked, "reason": "left alone" })).await
    };
    lock(true).await;
    lock(false).await;
    assert!(is_over(&signed_in).await, "the terminal was locked");
    signed_in = desk.sign_in_as("Ada").await;
    change(json!({ "disabled": true, "reason": "left the house" })).await.ok();
    assert!(is_over(&signed_in).await, "disabled");
    let refused = desk
        .without_staff()
        .post("/api/box-office/sign-in", json!({ "name": "Ada", "password": member_password() }))
        .await;
    assert_eq!(refused.code(), "credentials_wrong");
    assert_eq!(scene.count("select count(*) from audit where verb like 'staff%' and detail like '%another%'").await, 0);
    scene.close().await;
}

#[tokio::test]
async fn members_are_checked_before_anything_is_written() {
    let scene = scene().await;
    let operator = scene.operator().await;
    member(&operator, "Ada", "clerk").await;
    let new = |name: &str, password: &str, pin: &str| json!({ "name": name, "role": "clerk", "password": password, "pin": pin, "reason": "new" });
    for (body, code) in [
        (new("ADA", member_password(), "123456"), "name_taken"),
        (new(" ", member_password(), "123456"), "bad_request"),
        (new("\u{200b}\u{feff}", member_password(), "123456"), "bad_request"),
        (new("Bob", "short", "123456"), "bad_request"),
        (new("Bob", member_password(), "12345"), "bad_request"),
        (new("Bob", member_password(), "111111"), "bad_request"),
        (new("Bob", member_password(), "12345x"), "bad_request"),
    ] {
        assert_eq!(operator.post("/api/staff/members", body.clone()).await.code(), code, "{body}");
    }
    let mut unknown = new("Bob", member_password(), "123456");
    unknown["role"] = json!("owner");
    assert_eq!(operator.post("/api/staff/members", unknown).await.code(), "json_invalid");
    let nobody = format!("/api/staff/members/{}", uuid::Uuid::new_v4());
    assert_eq!(operator.post(&nobody, json!({ "reason": "x" })).await.code(), "staff_unknown");
    let fan: Fan = scene.fan().await;
    assert_eq!(fan.get("/api/staff/members").await.code(), "forbidden");
    assert_eq!(scene.till.get("/api/staff/members").await.code(), "not_signed_in");
    assert_eq!(scene.count("select count(*) from staff").await, 1);
    scene.close().await;
}

#[tokio::test]
async fn the_log_is_read_by_managers_and_operators_by_event_terminal_person_and_time() {
    let scene = scene().await;
    let event = scene.event;
    let desk = Desk::open(&scene, "Window 2").await;
    let clerk = desk.sign_in(&scene, "Ada", "clerk").await;
    let boss = desk.sign_in(&scene, "Bob", "supervisor").await;
    let manager = desk.sign_in(&scene, "Cleo", "manager").await;
    clerk.post("/api/box-office/shifts", json!({ "float_minor": 500, "currency": "EUR" })).await.ok();
    let sold = clerk.sell_for_cash(&clerk.hold(event, &[0]).await.ok(), 10_000).await.ok();
    let reissue = format!("/api/box-office/tickets/{}/reissue", sold["order"]["tickets"][0]["id"].as_str().unwrap());
    clerk.post(&reissue, json!({ "reason": "it got wet" })).await.ok();
    let odd = "<img src=x onerror=alert(1)>";
    for seat in 1..=19 {
        let block = format!("/api/box-office/events/{event}/block");
        boss.post(&block, json!({ "seats": [seat], "reason": odd })).await;
    }
    let log = |query: String| {
        let manager = &manager;
        async move { manager.get(&format!("/api/staff/audit?{query}")).await.ok() }
    };
    let verbs = |log: &Value| -> Vec<String> {
        log["entries"].as_array().unwrap().iter().map(|e| e["verb"].as_str().unwrap().to_owned()).collect()
    };
    for till in [&clerk, &boss] {
        assert_eq!(till.get("/api/staff/audit").await.code(), "role_too_low");
    }
    let of_event = log(format!("event_id={event}")).await;
    assert_eq!(of_event["entries"].as_array().unwrap().len(), 21);
    assert_eq!(verbs(&of_event)[19..], ["order_reissue", "sale_cash"], "the latest first");
    assert_eq!(of_event["entries"][19]["reason"], "it got wet");
    assert_eq!(log(format!("event_id={}", event + 1)).await["entries"], json!([]));
    let sale = log("verb=sale_cash".into()).await["entries"][0].clone();
    assert_eq!(
        (&sale["staff_name"], &sale["terminal_name"], &sale["event_id"], &sale["reason"]),
        (&json!("Ada"), &json!("Window 2"), &json!(event), &json!("a sale"))
    );
    let by_bob = log("person=bOB".into()).await;
    assert!(by_bob["entries"].as_array().unwrap().iter().all(|e| e["staff_name"] == "Bob"));
    assert_eq!(by_bob["entries"][0]["reason"], odd, "what people write is told as it is");
    let terminal = sale["terminal_id"].as_str().unwrap();
    assert!(verbs(&log(format!("terminal_id={terminal}")).await).contains(&"shift_open".to_owned()));
    assert_eq!(log("terminal_id=00000000-0000-0000-0000-000000000000".into()).await["entries"], json!([]));
    let at = sale["at"].as_str().unwrap().replace('+', "%2B");
    assert!(verbs(&log(format!("since={at}")).await).contains(&"sale_cash".to_owned()));
    assert!(!verbs(&log(format!("until={at}")).await).contains(&"sale_cash".to_owned()));
    for bad in ["since=yesterday", "until=-262143-01-01T00:00:00Z", "event_id=x", "terminal_id=x", "nobody=x"] {
        assert_eq!(manager.get(&format!("/api/staff/audit?{bad}")).await.code(), "bad_request", "{bad}");
    }
    scene.close().await;
}

#[tokio::test]
async fn a_long_log_is_read_page_by_page_without_a_gap_or_a_repeat() {
    let scene = scene().await;
    let desk = Desk::open(&scene, "Window 2").await;
    let manager = desk.sign_in(&scene, "Cleo", "manager").await;
    let many = "insert into audit (at, verb, actor, detail, reason)
                select db_clock(), 'order_note', 'somebody', n::text, 'a test' from generate_series(1, 250) n";
    scene.run(many).await;
    let (mut seen, mut before) = (Vec::new(), String::new());
    let mut pages = 0;
    loop {
        let page = manager.get(&format!("/api/staff/audit?verb=order_note{before}")).await.ok();
        let entries = page["entries"].as_array().unwrap();
        seen.extend(entries.iter().map(|e| e["detail"].as_str().unwrap().parse::<i32>().unwrap()));
        pages += 1;
        match page["before"].as_i64() {
            Some(id) => before = format!("&before={id}"),
            None => break,
        }
    }
    assert_eq!((pages, seen), (3, (1..=250).rev().collect()));
    scene.close().await;
}
