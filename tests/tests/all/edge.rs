//! What every address does alike: bad bodies, bounds, headers, the page, health, start and stop.

use fullhouse::serve::{Roles, StartOptions, start};
use fullhouse_tests::{
    HUNG,
    database::Database,
    eventually,
    fan::{Answer, Fan},
    hub::Hub,
    nats::Nats,
    rows::Rows,
    run::run,
    stage::Stage,
};
use reqwest::{Method, StatusCode, header};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn hub() -> (Database, Hub) {
    let database = Database::new().await;
    let hub = Hub::start(database.config().await).await;
    (database, hub)
}

#[tokio::test]
async fn what_stands_behind_a_question_mark_and_is_not_asked_for_is_told() {
    let database = Database::new().await;
    let event = Stage::default().open(&database).await;
    let hub = Hub::start(database.config().await).await;
    let fan = Fan::sign_up(&hub.url()).await;
    for route in ["session", "ticket-keys", "orders"] {
        fan.get(&format!("/api/{route}")).await.ok();
    }
    for route in
        ["session", "ticket-keys", "orders", &format!("events/{event}/snapshot"), &format!("events/{event}/frames")]
    {
        let answer = fan.get(&format!("/api/{route}?since=5&x=1")).await;
        assert_eq!((answer.code(), answer.status), ("bad_request", StatusCode::BAD_REQUEST), "{route}");
        assert!(answer.body["detail"].as_str().unwrap().contains("`since`"), "{:?}", answer.body);
    }
    let held = fan.request(Method::POST, &format!("/api/events/{event}/hold?seats=1")).json(&json!({"seats": [1]}));
    assert_eq!(fan.send(held).await.code(), "bad_request");
    assert!(fan.my_hold(event).await.ok()["hold"].is_null(), "nothing was held");
    // An address that an operator gave to the provider may have what the operator likes.
    let hook = fan.request(Method::POST, "/api/webhooks/payments?from=provider").body("{}");
    let answer = fan.send(hook).await;
    assert!(!answer.body["detail"].as_str().unwrap_or_default().contains("unknown field"), "{:?}", answer.body);
    fan.get(&format!("/api/events/{event}?seats=none")).await.ok();
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn bad_bodies_are_told_apart_and_change_nothing() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    let post = |kind: &'static str, body: Vec<u8>| {
        let request = stranger.request(Method::POST, "/api/accounts").header(header::CONTENT_TYPE, kind).body(body);
        let stranger = stranger.clone();
        async move { stranger.send(request).await }
    };
    let large = post("application/json", vec![b' '; 1 << 20]).await;
    assert_eq!((large.code(), large.status), ("body_too_large", StatusCode::PAYLOAD_TOO_LARGE));
    assert_eq!(large.body["limit_bytes"], 65536);
    let largest = post("application/json", vec![b' '; 65536]).await;
    assert_eq!(largest.code(), "json_invalid", "is read");
    for broken in ["", "{", "[]", "null", "{}", r#"{"email":"a@b","name":"A","password":"p"} x"#, "\u{0}"] {
        assert_eq!(post("application/json", broken.into()).await.code(), "json_invalid", "{broken:?}");
    }
    let typed = post("application/json", br#"{"email":"a@b","name":7,"password":"p"}"#.to_vec()).await;
    assert_eq!((typed.code(), &typed.body["at"]), ("json_invalid", &json!("name")), "the place is named");
    let broken = post("application/json", b"not json".to_vec()).await;
    assert_eq!(broken.body["detail"], "The body is not JSON, from line 1, column 2 on.");
    assert!(broken.body["at"].is_null(), "it has no places");
    let lacking = post("application/json", b"{}".to_vec()).await;
    assert!(lacking.body["detail"].as_str().unwrap().contains("missing field"), "{:?}", lacking.body);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
        assert_eq!(post(kind, br#"{"email":"a@b","name":"A","password":"p"}"#.to_vec()).await.code(), "json_invalid");
    }
    let fine = post("Application/JSON; charset=utf-8", br#"{"email":"a@b","name":"A","password":"p"}"#.to_vec()).await;
    assert_eq!(fine.code(), "account_invalid", "is read");
    let accounts: i64 = sqlx::query_scalar("select count(*) from account").fetch_one(database.pool()).await.unwrap();
    assert_eq!(accounts, 0);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_chunked_body_that_does_not_end_is_cut_off() {
    let (database, hub) = hub().await;
    let address = hub.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = "POST /api/accounts HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 65536], b"\r\n"].concat();
    let (mut reader, mut writer) = stream.split();
    let endless = async { while writer.write_all(&chunk).await.is_ok() {} };
    let mut answer = Vec::new();
    // The kernel may throw the answer away with what was not read any more; that it ends is what counts.
    let (_, _) = tokio::time::timeout(HUNG, async { tokio::join!(endless, reader.read_to_end(&mut answer)) })
        .await
        .expect("the hub closes the connection");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn who_dawdles_is_cut_off() {
    let database = Database::new().await;
    let mut config = database.config().await;
    (config.http.idle_timeout_s, config.http.connections_max) = (1, 1);
    let hub = Hub::start(config).await;
    let mut stream = TcpStream::connect(hub.url().trim_start_matches("http://")).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.unwrap();
    let mut left = Vec::new();
    tokio::time::timeout(HUNG, stream.read_to_end(&mut left)).await.expect("the hub closes").unwrap();
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn connections_are_bounded_and_wait_for_one_another() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.http.connections_max = 1;
    let hub = Hub::start(config).await;
    let first = TcpStream::connect(hub.url().trim_start_matches("http://")).await.unwrap();
    let second = tokio::spawn(reqwest::get(format!("{}/healthz", hub.url())));
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(200), async {
            while !second.is_finished() {
                tokio::task::yield_now().await
            }
        })
        .await
        .is_err()
    );
    drop(first);
    assert_eq!(tokio::time::timeout(HUNG, second).await.unwrap().unwrap().unwrap().status(), StatusCode::OK);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn unknown_addresses_methods_and_ids_are_problems() {
    let (database, hub) = hub().await;
    let fan = Fan::sign_up(&hub.url()).await;
    for (path, code) in [
        ("/api", "not_found"),
        ("/api/", "not_found"),
        ("/api/nothing", "not_found"),
        ("/nothing", "not_found"),
        ("/api/events/9/hold", "event_unknown"),
        ("/api/events/not-a-number-here/hold", "event_unknown"),
        ("/api/events/99999999999999999999/hold", "event_unknown"),
        ("/api/orders/1", "order_unknown"),
        ("/api/orders/00000000-0000-0000-0000-000000000000", "order_unknown"),
    ] {
        let answer = fan.get(path).await;
        assert_eq!(answer.code(), code, "{path}");
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(answer.body["type"], format!("urn:fullhouse:problem:{code}"));
        assert_eq!(answer.body["status"], answer.status.as_u16());
    }
    let answer = fan.send(fan.request(Method::PUT, "/api/session")).await;
    assert_eq!(answer.code(), "method_not_allowed");
    assert!(answer.headers.contains_key(header::ALLOW));
    let body = json!({ "seats": [1] });
    let path = "/api/events/1/hold";
    assert_eq!(fan.post(path, body.clone()).await.code(), "idempotency_key_missing");
    assert_eq!(fan.post_once(path, "with a space", body.clone()).await.code(), "idempotency_key_missing");
    assert_eq!(fan.post_once(path, &"k".repeat(256), body.clone()).await.code(), "idempotency_key_missing");
    assert_eq!(fan.post_once(path, "key", body).await.code(), "event_unknown");
    hub.stop().await;
    database.finish().await;
}

/// The description against the hub itself: who has no credentials is refused where it says so and
/// nowhere else, and every answer is one that it names.
#[tokio::test]
async fn the_description_says_who_may_call_and_what_they_are_answered() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    let described = stranger.get("/api/openapi.json").await.ok();
    for (path, item) in described["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let called = [
                ("{id}", "00000000-0000-0000-0000-000000000000"),
                ("{hash}", "none"),
                ("{no}", "1"),
                ("{number}", "0"),
            ]
            .iter()
            .fold(path.clone(), |path, (name, value)| path.replace(name, value));
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            let answer = stranger.send(stranger.request(method.clone(), &called).json(&json!({}))).await;
            let closed = !operation["security"].as_array().unwrap().is_empty();
            assert_eq!(answer.body["code"] == "not_signed_in", closed, "{method} {path}: {:?}", answer.body);
            let named = &operation["responses"][answer.status.as_str()]["description"];
            assert!(named.is_string(), "{method} {path}: {}", answer.status);
            if !answer.status.is_success() {
                assert!(named.as_str().unwrap().contains(answer.code()), "{method} {path}: {:?}", answer.body);
            }
        }
    }
    let fan = Fan::sign_up(&hub.url()).await;
    let nowhere =
        reqwest::Client::new().post(format!("{}/api/events/1/hold", hub.url())).header("cookie", fan.cookie().unwrap());
    let refused = stranger.send(nowhere).await;
    assert_eq!(refused.code(), "csrf");
    assert!(refused.body["detail"].as_str().unwrap().contains("Sec-Fetch-Site"), "{:?}", refused.body);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn every_answer_is_careful() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    let mut ids = Vec::new();
    for path in ["/api/session", "/api/nothing", "/healthz", "/nothing"] {
        let headers = stranger.get(path).await.headers;
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert_eq!(headers[header::REFERRER_POLICY], "same-origin");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("script-src 'self';"), "{policy}");
        ids.push(headers["x-request-id"].clone());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    assert_eq!(stranger.get("/api/session").await.headers[header::CACHE_CONTROL], "no-store");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_page_is_served_for_its_own_paths() {
    let folder = run().await.directory("page");
    std::fs::create_dir(folder.join("assets")).unwrap();
    std::fs::write(folder.join("index.html"), "<!doctype html><title>Fullhouse</title>").unwrap();
    std::fs::write(folder.join("assets/app-1a2b3c.js"), "export {};".repeat(200)).unwrap();
    let database = Database::new().await;
    let mut config = database.config().await;
    config.http.assets_dir = folder.to_str().unwrap().to_owned();
    let hub = Hub::start(config).await;
    let get = |path: &'static str| reqwest::get(format!("{}{path}", hub.url()));
    for path in ["/", "/events/1", "/orders", "/signin"] {
        let page = get(path).await.unwrap();
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-cache");
        assert!(page.text().await.unwrap().contains("<title>Fullhouse"), "{path}");
    }
    let script = get("/assets/app-1a2b3c.js").await.unwrap();
    assert_eq!(script.headers()[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
    assert!(script.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    assert_eq!(get("/assets/none.js").await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(get("/api/events/1/nothing").await.unwrap().headers()[header::CONTENT_TYPE], "application/problem+json");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn health_numbers_and_the_description_are_there() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    assert_eq!(stranger.get("/healthz").await.status, StatusCode::OK);
    eventually("the hub is ready", || async { stranger.get("/readyz").await.status.is_success().then_some(()) }).await;
    stranger.get("/api/session").await.ok();
    eventually("the invariants were checked and the request counted", || async {
        let text = reqwest::get(format!("{}/metrics", hub.url())).await.unwrap().text().await.unwrap();
        let counted =
            text.contains(r#"fullhouse_http_requests_total{method="GET",route="/api/session",status="200"} 1"#);
        let checked = text.contains(r#"fullhouse_invariant_violations{invariant="seat_without_hold"} 0"#);
        (counted && checked && text.contains("fullhouse_desk_batches_total 0") && text.ends_with("# EOF\n"))
            .then_some(())
    })
    .await;
    let described = stranger.get("/api/openapi.json").await.ok();
    assert!(described["paths"]["/api/events/{id}/hold"]["post"].is_object());
    assert!(described["paths"]["/api/session"]["get"]["responses"]["default"].is_object());
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn the_numbers_may_have_an_address_of_their_own() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.http.metrics_listen = "127.0.0.1:0".to_owned();
    let hub = Hub::start(config).await;
    assert_eq!(reqwest::get(format!("{}/metrics", hub.url())).await.unwrap().status(), StatusCode::NOT_FOUND);
    let apart = hub.metrics_url().expect("another address");
    assert!(reqwest::get(&apart).await.unwrap().text().await.unwrap().ends_with("# EOF\n"));
    assert_eq!(reqwest::get(apart.replace("metrics", "api/events")).await.unwrap().status(), StatusCode::NOT_FOUND);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_hub_that_stops_lets_go_of_everything() {
    let (database, hub) = hub().await;
    let url = hub.url();
    let kept_alive = reqwest::Client::new();
    assert_eq!(kept_alive.get(format!("{url}/healthz")).send().await.unwrap().status(), StatusCode::OK);
    tokio::time::timeout(HUNG, hub.stop()).await.expect("an idle connection holds nothing up");
    assert!(kept_alive.get(format!("{url}/healthz")).send().await.is_err());
    eventually("its sessions have ended", || async {
        let sessions: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'fullhouse'",
        )
        .fetch_one(database.pool())
        .await
        .unwrap();
        (sessions == 0).then_some(())
    })
    .await;
    database.finish().await;
}

#[tokio::test]
async fn a_hub_does_not_run_on_without_a_task_that_it_needs() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.sweeper.tick_ms = 0; // the settings' ranges refuse it: here it stands for any fault in a task
    let hub = Hub::start(config).await;
    assert_eq!(tokio::time::timeout(HUNG, hub.failed()).await.expect("it is noticed"), "sweeper");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_hub_refuses_a_clock_a_schema_and_a_neighbour_that_are_not_right() {
    async fn refusal(config: fullhouse::config::Config, options: StartOptions) -> String {
        match start(config, options).await {
            Ok(_) => panic!("it started"),
            Err(error) => format!("{error:#}"),
        }
    }
    let (database, _clock) = Database::with_clock().await;
    let config = database.config().await;
    let reason = refusal(config.clone(), StartOptions::default()).await;
    assert!(reason.contains("db_clock"), "{reason}");

    let hub = Hub::start(config.clone()).await;
    let permitted = StartOptions { allow_test_clock: true, roles: Roles::ALL };
    let reason = refusal(config.clone(), permitted).await;
    assert!(reason.contains("another hub"), "{reason}");
    let nats = Nats::start().await;
    let mut with_nats = config.clone();
    with_nats.nats.url = nats.url();
    let reason = refusal(with_nats, permitted).await;
    assert!(reason.contains("another hub"), "one of the two has no NATS: {reason}");
    hub.stop().await;

    let apart = StartOptions { allow_test_clock: true, roles: Roles { relay: false, ..Roles::ALL } };
    let reason = refusal(config.clone(), apart).await;
    assert!(reason.contains("without NATS"), "{reason}");

    sqlx::query("delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)")
        .execute(database.pool())
        .await
        .unwrap();
    let reason = refusal(config, permitted).await;
    assert!(reason.contains("fullhouse migrate"), "{reason}");
    database.finish().await;
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_busy_and_not_ready() {
    let database = Database::new().await;
    let proxy = fullhouse_tests::proxy::Proxy::start().await;
    let mut config = database.config_through(&proxy);
    config.database.acquire_timeout_ms = 500;
    config.http.request_timeout_s = 3;
    config.http.stop_timeout_s = 1;
    config.auth.session_cache_s = 0;
    let hub = Hub::start(config).await;
    let ana = Fan::sign_up(&hub.url()).await;
    proxy.cut();
    let answer: Answer = ana.get("/api/session").await;
    assert_eq!((answer.code(), answer.status), ("busy", StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(ana.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ana.get("/healthz").await.status, StatusCode::OK);
    proxy.mend();
    eventually("it is ready again", || async { ana.get("/readyz").await.status.is_success().then_some(()) }).await;
    eventually("the session is found again", || async {
        ana.get("/api/session").await.status.is_success().then_some(())
    })
    .await;
    proxy.stall();
    let answer = ana.get("/api/session").await;
    assert_eq!(answer.code(), "busy", "no answer in time");
    proxy.mend();
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_claim_that_broke_is_staked_again() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    let holder = "from pg_locks where locktype = 'advisory' and granted and classid = 1718971500
                  and database = (select oid from pg_database where datname = current_database())";
    let before: i32 = sqlx::query_scalar(&format!("select pid {holder}")).fetch_one(database.pool()).await.unwrap();
    sqlx::query("select pg_terminate_backend($1)").bind(before).execute(database.pool()).await.unwrap();
    eventually("the claim is another connection's", || async {
        let now: Option<i32> =
            sqlx::query_scalar(&format!("select pid {holder}")).fetch_optional(database.pool()).await.unwrap();
        now.filter(|pid| *pid != before)
    })
    .await;
    eventually("the hub is ready again", || async { stranger.get("/readyz").await.status.is_success().then_some(()) })
        .await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn whoever_asks_and_does_not_read_is_cut_off() {
    let database = Database::new().await;
    let event = Rows::new(100, 50).open(database.pool()).await;
    let mut config = database.config().await;
    config.http.idle_timeout_s = 1;
    let hub = Hub::start(config).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut greedy = socket.connect(hub.url().trim_start_matches("http://").parse().unwrap()).await.unwrap();
    // More than the kernel keeps for both of us.
    let ask = format!("GET /api/events/{event} HTTP/1.1\r\nHost: h\r\n\r\n").repeat(40);
    greedy.write_all(ask.as_bytes()).await.unwrap();
    // Its place is the only one.
    let next = tokio::time::timeout(HUNG, Fan::stranger(&hub.url()).get("/api/events")).await;
    next.expect("the place is given to somebody else").ok();
    drop(greedy);
    hub.stop().await;
    database.finish().await;
}
