//! What a hub says of itself, at its most talkative, holds no secret: neither its log nor its numbers.

use chrono::Utc;
use fullhouse::{config::Secret, payment::signature};
use fullhouse_tests::{
    binary::Binary,
    database::Database,
    fan::Fan,
    provider::{CARD, CHALLENGED, DECLINED, Provider, key, order, until},
    rows::Rows,
    till::Till,
};
use reqwest::Method;
use serde_json::{Value, json};

const PASSWORD: &str = "quetzal orbit marmalade";
const WRONG_PASSWORD: &str = "basalt turnip lighthouse";
const NAME: &str = "Wilhelmina Featherstonehaugh";
const STAFF_PASSWORD: &str = "granite pelican umbrella";
const PIN: &str = "71940283";
const WRONG_PIN: &str = "39517264";
/// Somebody writes it where a secret has no place, and where a person's note has one.
const PLANTED: &str = "whsec_planted_by_the_test";
const PLANTED_PIN: &str = "50628173";

/// A name for each secret, and the secret.
type Secrets = Vec<(&'static str, String)>;

/// Those of them that a text holds.
fn found(text: &str, secrets: &Secrets) -> Vec<String> {
    let held = |secret: &&(&str, String)| {
        if secret.1.bytes().all(|b| b.is_ascii_digit()) {
            return holds_number(text, &secret.1);
        }
        let escaped = secret.1.replace(' ', "%20");
        text.contains(&secret.1) || text.contains(&escaped) || text.contains(&secret.1.replace(' ', "+"))
    };
    secrets.iter().filter(held).map(|(name, secret)| format!("{name}: {secret}")).collect()
}

/// A text holds this number, by itself: not as a part of another one, such as the fraction of a second.
fn holds_number(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + number.len()..].chars().next();
        before.is_none_or(|c| !c.is_ascii_digit() && c != '.') && after.is_none_or(|c| !c.is_ascii_digit())
    })
}

async fn webhook(hub: &Binary, secret: &str, body: &str) -> u16 {
    let header = signature::sign(&[Secret::new(secret)], Utc::now().timestamp(), body.as_bytes());
    let url = format!("{}/api/webhooks/payments", hub.url());
    let request = reqwest::Client::new().post(url).header("stripe-signature", header).body(body.to_owned());
    request.send().await.expect("the hub answers").status().as_u16()
}

fn session_of(fan: &Fan) -> String {
    fan.cookie().and_then(|cookie| cookie.strip_prefix("fh_session=")).expect("a session").to_owned()
}

async fn buys(fan: &Fan, event: i64, seats: &[i32], card: &str, end: &str) -> Value {
    let open = order(fan, event, seats).await;
    fan.pay(&open, &key(), card).await.ok();
    until(fan, &open, &[end]).await
}

fn codes(order: &Value) -> Secrets {
    let tickets = order["tickets"].as_array().expect("tickets");
    tickets.iter().filter_map(|t| t["code"].as_str()).map(|code| ("a ticket's code", code.to_owned())).collect()
}

/// A machine becomes a terminal, and people sign in at it, rightly and wrongly. What of that nobody may read.
async fn at_an_attended_counter(hub: &Binary, operator: &Fan, event: i64) -> Secrets {
    let asked = json!({ "name": "Window 2", "role": "counter", "reason": "a test" });
    let code = operator.post("/api/staff/enrolments", asked).await.ok()["code"].as_str().expect("a code").to_owned();
    let machine = Fan::stranger(hub.url());
    let machine_key = key();
    for body in [
        json!({ "code": code.replace(|c: char| c.is_ascii_digit(), "Z"), "key": machine_key }),
        json!({ "code": [code] }),
        json!({ "code": code, "key": machine_key }),
    ] {
        machine.post("/api/box-office/enrol", body).await;
    }
    // Asked once more: the token that may have got lost is another one from now on.
    let made = machine.post("/api/box-office/enrol", json!({ "code": code, "key": machine_key })).await.ok();
    let token = made["token"].as_str().expect("a token").to_owned();
    let member = json!({ "name": "Ada", "role": "clerk", "password": STAFF_PASSWORD, "pin": PIN, "reason": "a test" });
    let id = operator.post("/api/staff/members", member).await.ok()["staff_id"].clone();
    let changed = format!("/api/staff/members/{}", id.as_str().expect("an id"));
    operator.post(&changed, json!({ "pin": PIN, "reason": "she forgot it" })).await.ok();
    let till = Till::with_token(hub.url(), &token);
    for body in [
        json!({ "name": "Ada", "pin": WRONG_PIN }),
        json!({ "name": "Ada", "pin": [WRONG_PIN] }),
        json!({ "name": "Ada", "password": WRONG_PASSWORD }),
    ] {
        till.post("/api/box-office/sign-in", body).await.code();
    }
    let with_password = json!({ "name": "Ada", "password": STAFF_PASSWORD });
    let first = till.post("/api/box-office/sign-in", with_password).await.ok()["token"].clone();
    let second = till.post("/api/box-office/sign-in", json!({ "name": "Ada", "pin": PIN })).await.ok()["token"].clone();
    let session = second.as_str().expect("a session").to_owned();
    let clerk = till.attended_by(&session);
    clerk.hold(event, &[16]).await.ok();
    clerk.post("/api/box-office/sign-out", json!({})).await;
    assert_eq!(clerk.hold(event, &[16]).await.code(), "staff_required");
    vec![
        ("an enrolment's code", code.clone()),
        ("an enrolment's code, as typed", code.replace('-', "")),
        ("the key of a machine", machine_key),
        ("an enrolled terminal's token", token),
        ("a password of the staff", STAFF_PASSWORD.to_owned()),
        ("a PIN", PIN.to_owned()),
        ("a wrong PIN", WRONG_PIN.to_owned()),
        ("a staff session", first.as_str().expect("a session").to_owned()),
        ("another staff session", session),
    ]
}

#[tokio::test]
async fn a_talkative_hub_tells_no_secret() {
    let database = Database::new().await;
    let event = Rows::new(2, 10).open(database.pool()).await;
    let provider = Provider::start().await;
    let mut config = database.config().await;
    provider.configure(&mut config);
    let webhook_secrets: Vec<&str> = provider.secrets().iter().map(Secret::reveal).collect();
    let hub = Binary::serve(
        &config,
        &[
            ("RUST_LOG", "trace"),
            ("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", config.payment.publishable_key.as_str()),
            ("FULLHOUSE__PAYMENT__WEBHOOK_SECRETS", webhook_secrets.join(",").as_str()),
        ],
    )
    .await;
    provider.webhooks_to(hub.url()).await;
    let mut secrets: Secrets = vec![
        ("the provider's key", config.payment.secret_key.reveal().to_owned()),
        ("a password", PASSWORD.to_owned()),
        ("a password that is wrong", WRONG_PASSWORD.to_owned()),
        ("a buyer's name", NAME.to_owned()),
    ];
    secrets.extend(webhook_secrets.iter().map(|secret| ("a webhook's secret", (*secret).to_owned())));

    // Signing up and in; a wrong password, and one where it has no place.
    let stranger = Fan::stranger(hub.url());
    let account = json!({ "email": stranger.email, "name": NAME, "password": PASSWORD });
    stranger.post("/api/accounts", account).await.ok();
    let fan = Fan::sign_in(hub.url(), &stranger.email, PASSWORD).await;
    secrets.push(("an address", fan.email.clone()));
    secrets.push(("a session", session_of(&fan)));
    for body in [
        json!({ "email": fan.email, "password": WRONG_PASSWORD }),
        json!({ "email": fan.email, "password": [WRONG_PASSWORD] }),
        json!({ "email": fan.email, WRONG_PASSWORD: 1 }),
    ] {
        stranger.post("/api/session", body).await.code();
    }

    // Purchases: by the book, in doubt, declined, with a challenge, refused to us; and bodies that can't be read.
    for (seat, effect) in [(1, json!({})), (2, json!({ "network": "reset_after" }))] {
        provider.first("confirm", effect).await;
        secrets.extend(codes(&buys(&fan, event, &[seat], CARD, "captured").await));
    }
    buys(&fan, event, &[0], DECLINED, "declined").await;
    let challenged = buys(&fan, event, &[0], CHALLENGED, "action_required").await;
    provider.answer_challenge(&challenged["attempt"], "approve").await;
    secrets.extend(codes(&until(&fan, &challenged, &["captured"]).await));
    provider.first("create", json!({ "status": "401" })).await;
    let other = Fan::sign_up(hub.url()).await;
    let unserved = buys(&other, event, &[19], CARD, "voided").await;
    let pay = format!("/api/orders/{}/pay", unserved["id"].as_str().expect("an id"));
    let unreadable = json!({ "payment_method": CARD, "amount_minor": WRONG_PASSWORD, "currency": "EUR" });
    assert_eq!(other.post_once(&pay, &key(), unreadable).await.code(), "json_invalid");

    // What only the provider and a browser know of an intent.
    for intent in provider.ledger().await.intents() {
        let intent = provider.get(&format!("payment_intents/{}", intent["id"].as_str().expect("an id"))).await;
        secrets.push(("an intent's secret", intent["client_secret"].as_str().expect("its secret").to_owned()));
    }
    provider.until_delivered().await;
    let body = json!({ "id": "evt_1", "type": "payment_intent.succeeded", "livemode": false,
        "data": { "object": { "object": "payment_intent", "id": "pi_1", "client_secret": secrets.last().expect("one").1 } } });
    for (secret, status) in [(PLANTED, 400), (webhook_secrets[0], 200)] {
        assert_eq!(webhook(&hub, secret, &body.to_string()).await, status);
    }
    assert_eq!(webhook(&hub, webhook_secrets[0], &format!("[{body}")).await, 400);

    // At the counter: its token, a sale for cash, a ticket on paper, money that goes back.
    let (_, token) = fullhouse::auth::enrol(database.pool(), "Window 1", "counter").await.expect("enrolled");
    let till = Till::with_token(hub.url(), token.reveal());
    secrets.push(("a terminal's token", token.reveal().to_owned()));
    let held = till.hold(event, &[17, 18]).await.ok();
    let sold = till.sell_for_cash(&held, 9_000).await.ok()["order"].clone();
    secrets.extend(codes(&sold));
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    till.refund(&challenged, &key(), all.clone()).await.ok();
    till.refund(&sold, &key(), all).await.ok();
    let paper = format!("/api/orders/{}/tickets.pdf", challenged["id"].as_str().expect("an id"));
    let _ = fan.request(Method::GET, &paper).send().await.expect("the hub answers");

    sqlx::query("update account set role = 'operator' where email = $1")
        .bind(&fan.email)
        .execute(database.pool())
        .await
        .expect("an operator");
    let operator = Fan::sign_in(hub.url(), &fan.email, PASSWORD).await;
    secrets.push(("an operator's session", session_of(&operator)));
    secrets.extend(at_an_attended_counter(&hub, &operator, event).await);

    let numbers =
        reqwest::get(format!("{}/metrics", hub.url())).await.expect("they are there").text().await.expect("text");
    // The control: what somebody wrote into a note of their own is found by the same search.
    operator.post("/api/staff/gate/pause", json!({ "note": format!("{PLANTED} {PLANTED_PIN}") })).await.ok();
    let log = hub.log();
    hub.stop().await;
    assert!(log.contains(" TRACE ") && log.contains("an attempt moved on"), "as talkative as can be");
    assert!(numbers.contains("fullhouse_"), "{numbers}");
    let planted: Secrets = [PLANTED, PLANTED_PIN].map(|secret| ("planted", secret.to_owned())).into();
    assert_eq!(found(&log, &planted).len(), 2, "the control: they are found");
    assert!(secrets.len() > 24, "{}", secrets.len());
    assert_eq!(found(&log, &secrets), [""; 0], "in the log");
    assert_eq!(found(&numbers, &secrets), [""; 0], "in the numbers");
    provider.ledger().await.agrees_with(&database).await;
    database.finish().await;
}
