//! Who may act: sign-up, sign-in, sessions, terminals, and requests that come from elsewhere.

use chrono::TimeDelta;
use fullhouse::{
    auth::{self, Auth, NewAccount},
    box_office::terminals,
};
use fullhouse_protocol::terminal::TerminalChange;
use fullhouse_tests::{
    database::Database,
    eventually,
    fan::{Answer, Fan, PASSWORD},
    hub::Hub,
};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

async fn hub() -> (Database, Hub) {
    let database = Database::new().await;
    let hub = Hub::start(database.config().await).await;
    (database, hub)
}

fn cookie_set(answer: &Answer) -> &str {
    answer.headers[header::SET_COOKIE].to_str().unwrap()
}

async fn who(fan: &Fan) -> Value {
    fan.get("/api/session").await.ok()["account"].clone()
}

#[tokio::test]
async fn an_account_signs_up_in_and_out() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    assert_eq!(who(&stranger).await, Value::Null);
    assert_eq!(stranger.get("/api/orders").await.code(), "not_signed_in");

    let body = json!({ "email": " Ana@Example.ORG ", "name": " Ana ", "password": PASSWORD });
    let answer = stranger.post("/api/accounts", body.clone()).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    let cookie = cookie_set(&answer).to_owned();
    for part in ["fh_session=", "; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=2592000"] {
        assert!(cookie.contains(part), "{part} is not in {cookie}");
    }
    assert!(!cookie.contains("Secure"), "there is no TLS here");
    assert_eq!(answer.body["account"]["email"], "ana@example.org");
    assert_eq!(answer.body["account"]["name"], "Ana");
    assert_eq!(answer.body["account"]["role"], "fan");
    assert_eq!(stranger.post("/api/accounts", body).await.code(), "email_taken");

    let ana = Fan::sign_in(&hub.url(), "ANA@example.org", PASSWORD).await;
    assert_eq!(who(&ana).await["email"], "ana@example.org");
    assert!(ana.get("/api/orders").await.ok()["orders"].as_array().unwrap().is_empty());

    let token = ana.cookie().unwrap().trim_start_matches("fh_session=");
    assert_eq!(token.len(), 43, "256 bits");
    let kept: bool = sqlx::query_scalar("select exists (select from session where token_hash = sha256($1::bytea))")
        .bind(token.as_bytes())
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert!(kept, "what is stored is the token's hash");
    let buyers: i64 = sqlx::query_scalar("select count(*) from buyer").fetch_one(database.pool()).await.unwrap();
    assert_eq!(buyers, 1, "an account is one buyer");

    let out = ana.send(ana.request(Method::DELETE, "/api/session")).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT);
    assert!(cookie_set(&out).contains("Max-Age=0"));
    assert_eq!(who(&ana).await, Value::Null, "at once, though it was in memory");
    assert_eq!(ana.get("/api/orders").await.code(), "not_signed_in");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn behind_tls_the_cookie_is_secure() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.http.public_url = "https://hall.example".into();
    let hub = Hub::start(config).await;
    let body = json!({ "email": "a@example.org", "name": "A", "password": PASSWORD });
    let answer = Fan::stranger(&hub.url()).post("/api/accounts", body).await;
    assert!(cookie_set(&answer).ends_with("; Secure"));
    assert!(answer.headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn details_that_are_not_valid_are_named() {
    let (database, hub) = hub().await;
    let stranger = Fan::stranger(&hub.url());
    for (email, name, password, field) in [
        ("nobody", "N", PASSWORD, "email"),
        ("n@example.org", " ", PASSWORD, "name"),
        ("n@example.org", "N", "short", "password"),
    ] {
        let body = json!({ "email": email, "name": name, "password": password });
        let answer = stranger.post("/api/accounts", body).await;
        assert_eq!((answer.code(), &answer.body["field"]), ("account_invalid", &json!(field)));
        assert!(!answer.body.to_string().contains(password), "a password is never said again");
    }
    let role = json!({ "email": "n@example.org", "name": "N", "password": PASSWORD, "role": "operator" });
    assert_eq!(
        stranger.post("/api/accounts", role).await.code(),
        "json_invalid",
        "nobody makes themselves an operator"
    );
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn wrong_tries_are_counted_an_account_and_tell_nothing() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.auth.sign_in_failures_max = 3;
    let hub = Hub::start(config).await;
    let ana = Fan::sign_up(&hub.url()).await;
    let ben = Fan::sign_up(&hub.url()).await;
    let stranger = Fan::stranger(&hub.url());
    let try_as = |email: String, password: &'static str| {
        let stranger = stranger.clone();
        async move { stranger.post("/api/session", json!({ "email": email, "password": password })).await }
    };
    let unknown = try_as("nobody@example.org".into(), "wrong password").await;
    let mut wrong = try_as(ana.email.clone(), "wrong password").await;
    assert_eq!(unknown.body, wrong.body, "an unknown address and a wrong password are told alike");
    for _ in 0..2 {
        assert_eq!(wrong.code(), "credentials_wrong");
        // A success in between does not wash the failures away, nor does it count.
        assert_eq!(try_as(ana.email.clone(), PASSWORD).await.status, StatusCode::OK);
        wrong = try_as(ana.email.to_uppercase(), "wrong password").await;
    }
    let refused = try_as(ana.email.clone(), PASSWORD).await;
    assert_eq!(refused.code(), "too_many_requests", "three were wrong");
    assert_eq!(refused.headers[header::RETRY_AFTER], "60");
    assert_eq!(who(&ana).await["email"], json!(ana.email), "who is signed in stays so");
    Fan::sign_in(&hub.url(), &ben.email, PASSWORD).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_address_is_only_a_last_net() {
    let database = Database::new().await;
    let mut config = database.config().await;
    config.auth.address_tries_max = 2;
    config.http.trusted_proxies = vec!["127.0.0.1".into()];
    let hub = Hub::start(config).await;
    let stranger = Fan::stranger(&hub.url());
    let try_from = |address: &'static str| {
        let body = json!({ "email": "nobody@example.org", "password": "wrong password" });
        let request = stranger.request(Method::POST, "/api/session").header("x-forwarded-for", address).json(&body);
        let stranger = stranger.clone();
        async move { stranger.send(request).await.code().to_owned() }
    };
    assert_eq!(try_from("192.0.2.1").await, "credentials_wrong");
    assert_eq!(try_from("192.0.2.1").await, "credentials_wrong");
    assert_eq!(try_from("192.0.2.1").await, "too_many_requests");
    assert_eq!(try_from("192.0.2.2").await, "credentials_wrong");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_session_ends_by_the_databases_clock() {
    let (database, clock) = Database::with_clock().await;
    let mut config = database.config().await;
    config.auth.session_cache_s = 0;
    let hub = Hub::start(config).await;
    let ana = Fan::sign_up(&hub.url()).await;
    clock.advance(TimeDelta::days(30) - TimeDelta::minutes(1)).await;
    assert_eq!(who(&ana).await["email"], json!(ana.email));
    clock.advance(TimeDelta::minutes(2)).await;
    assert_eq!(who(&ana).await, Value::Null);
    hub.parts().auth.delete_ended().await.unwrap(); // the hub's own task may have been faster
    let sessions: i64 = sqlx::query_scalar("select count(*) from session").fetch_one(database.pool()).await.unwrap();
    assert_eq!(sessions, 0);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn another_node_notices_a_sign_out_within_its_memory() {
    let database = Database::new().await;
    let mut settings = database.config().await.auth;
    settings.session_cache_s = 1;
    let (here, there) = (Auth::new(database.pool().clone(), &settings), Auth::new(database.pool().clone(), &settings));
    let new = NewAccount { email: "a@example.org".into(), name: "A".into(), password: PASSWORD.into() };
    let account = here.sign_up(new, "here").await.unwrap();
    let token = here.open_session(&account).await.unwrap();
    assert!(there.signed_in(token.reveal()).await.unwrap().is_some());
    here.end_session(token.reveal()).await.unwrap();
    assert!(here.signed_in(token.reveal()).await.unwrap().is_none());
    eventually("the other node has forgotten", || async {
        there.signed_in(token.reveal()).await.unwrap().is_none().then_some(())
    })
    .await;
    database.finish().await;
}

#[tokio::test]
async fn signing_in_ends_the_session_that_the_browser_had() {
    let (database, hub) = hub().await;
    let ana = Fan::sign_up(&hub.url()).await;
    let ben = Fan::sign_up(&hub.url()).await;
    // Ben sits down at Ana's browser.
    ana.post("/api/session", json!({ "email": ben.email, "password": PASSWORD })).await.ok();
    assert_eq!(who(&ana).await, Value::Null);
    assert_eq!(who(&ben).await["email"], json!(ben.email));
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn requests_from_elsewhere_change_nothing() {
    let (database, hub) = hub().await;
    let ana = Fan::sign_up(&hub.url()).await;
    let http = reqwest::Client::new();
    let sign_out = |headers: &[(&'static str, &str)]| {
        let mut request = http.delete(format!("{}/api/session", hub.url())).header("cookie", ana.cookie().unwrap());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        async move { Answer::read(request.send().await.unwrap()).await.unwrap() }
    };
    for headers in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
    ] {
        assert_eq!(sign_out(headers).await.code(), "csrf", "{headers:?}");
    }
    assert_eq!(who(&ana).await["email"], json!(ana.email));
    let login = http
        .post(format!("{}/api/session", hub.url()))
        .header("origin", "https://evil.example")
        .json(&json!({ "email": ana.email, "password": PASSWORD }));
    assert_eq!(Answer::read(login.send().await.unwrap()).await.unwrap().code(), "csrf", "nor signs a victim in");
    assert_eq!(sign_out(&[("origin", &hub.url())]).await.status, StatusCode::NO_CONTENT);
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_terminals_token_works_until_it_is_revoked() {
    let (database, hub) = hub().await;
    let (id, token) = auth::enrol(database.pool(), "Till 1", "counter").await.unwrap();
    assert!(auth::enrol(database.pool(), "Till 1", "counter").await.is_err());
    let block = |token: String| {
        let url = format!("{}/api/box-office/events/1/block", hub.url());
        let request = reqwest::Client::new().post(url).bearer_auth(token).json(&json!({ "seats": [1], "reason": "r" }));
        async move { Answer::read(request.send().await.unwrap()).await.unwrap().code().to_owned() }
    };
    assert_eq!(block("made up".into()).await, "not_signed_in");
    assert_eq!(block(token.reveal().to_owned()).await, "event_unknown", "let in");
    let going = TerminalChange { revoke: true, reason: "sold".into(), ..TerminalChange::default() };
    terminals::change(database.pool().clone(), id, going, "a test".into()).await.unwrap();
    assert_eq!(block(token.reveal().to_owned()).await, "not_signed_in");
    // A fan's cookie is no terminal's token.
    let fan = Fan::sign_up(&hub.url()).await;
    assert_eq!(
        fan.post("/api/box-office/events/1/block", json!({ "seats": [1], "reason": "r" })).await.code(),
        "not_signed_in"
    );
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn an_operator_is_made_on_the_command_line_only() {
    let (database, hub) = hub().await;
    let new = || NewAccount { email: "Boss@example.org".into(), name: "Boss".into(), password: PASSWORD.into() };
    auth::add_operator(database.pool(), new(), 10).await.unwrap();
    auth::add_operator(database.pool(), new(), 10).await.unwrap();
    let boss = Fan::sign_in(&hub.url(), "boss@example.org", PASSWORD).await;
    assert_eq!(who(&boss).await["role"], "operator");
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn all_that_is_wrong_with_an_account_is_told_at_once() {
    let database = Database::new().await;
    let hub = Hub::start(database.config().await).await;
    let answer = Fan::stranger(&hub.url())
        .post("/api/accounts", json!({ "email": "nobody", "name": " ", "password": "short" }))
        .await;
    assert_eq!((answer.code(), &answer.body["fields"]), ("account_invalid", &json!(["email", "name", "password"])));
    assert_eq!(answer.body["field"], "email");
    assert!(answer.body["detail"].as_str().unwrap().contains("a password has 10 characters"), "{:?}", answer.body);
    hub.stop().await;
    database.finish().await;
}
