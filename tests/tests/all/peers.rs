//! Peers that we did not write, against ours: the provider's own SDK and a mock of somebody else's against the
//! simulator, our client against a server of somebody else's. `.ci/setup test` installs them beside what is built.

use std::{path::PathBuf, process::Stdio, time::Duration};

use fullhouse::{
    child::Spec,
    config::{Config, Secret},
    payment::provider::{
        Answer, Back, Call, Client, IntentStatus, NewIntent, Outcome, PaymentIntent, Refund, RefundStatus,
    },
};
use fullhouse_tests::{database::Database, eventually, hub::Hub, provider::Provider, run::workspace};
use serde_json::Value;
use uuid::Uuid;

/// All of a peer's checks together; some of them wait for deliveries.
const PEER_HUNG: Duration = Duration::from_secs(120);
const HOUSE: Uuid = Uuid::from_u128(5);

/// Where `.ci/setup test` has put them: `target/peers`, beside this test's own file.
fn installed(what: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    let path = test.ancestors().nth(3).expect("target/debug/deps/<test>").join("peers").join(what);
    assert!(path.exists(), "{} is missing: `.ci/setup test` installs it", path.display());
    path
}

fn script(name: &str) -> PathBuf {
    workspace().join("tests/peers").join(name)
}

/// Runs a peer to its end. What it says is shown if it is not content.
async fn content(program: PathBuf, script: PathBuf, arguments: &[&str]) {
    let mut command = tokio::process::Command::new(program);
    command.arg(script).args(arguments).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PEER_HUNG, command.output()).await.expect("a peer ends").expect("a peer runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}:\n{said}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    println!("{said}");
}

#[tokio::test]
async fn peers_the_providers_own_sdk_is_content_with_the_simulator_and_with_the_hub() {
    let database = Database::new().await;
    let provider = Provider::start().await;
    let mut config = database.config().await;
    provider.configure(&mut config);
    let (old, new) = ("whsec_of_yesterday", provider.secrets()[0].reveal().to_owned());
    config.payment.webhook_secrets = vec![Secret::new(old), Secret::new(&*new)];
    let hub = Hub::start(config).await;
    let arguments = [provider.url(), provider.control_url(), &hub.url(), old, &new];
    content(installed("venv/bin/python"), script("stripe_sdk.py"), &arguments).await;
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn peers_the_simulator_and_another_mock_agree_on_replay_mismatch_and_refunds_of_too_much() {
    let provider = Provider::start().await;
    let node = PathBuf::from("node");
    let folder = installed("node");
    content(node, script("stateful_mock.mjs"), &[provider.url(), folder.to_str().expect("a plain path")]).await;
}

/// localstripe refuses what it does not know, where the provider takes it. It ignores idempotency keys.
fn without(mut call: Call, unknown: &[&str]) -> Call {
    let body = String::from_utf8(call.body).expect("a form");
    let kept: Vec<&str> = body.split('&').filter(|pair| !unknown.iter().any(|name| pair.starts_with(name))).collect();
    call.body = kept.join("&").into_bytes();
    call
}

struct Stranger {
    client: Client,
    url: String,
    http: reqwest::Client,
    attempt_id: Uuid,
}

impl Stranger {
    async fn create(&self, payment_method: &str) -> PaymentIntent {
        let (attempt_id, order_id) = (self.attempt_id, Uuid::from_u128(7));
        let new = NewIntent {
            installation: HOUSE,
            attempt_id,
            order_id,
            amount_minor: 12_500,
            currency: "EUR",
            payment_method,
        };
        let call = Call::create(new, 0).expect("an amount");
        done(&self.client.send(&without(call, &["confirmation_method"])).await)
    }

    async fn confirm(&self, intent: &PaymentIntent) -> Answer {
        let call = Call::confirm(self.attempt_id, &intent.id, 1, "http://fans.test/orders/1");
        self.client.send(&without(call, &["return_url"])).await
    }

    async fn raw(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let request = self.http.post(format!("{}/v1/{path}", self.url)).bearer_auth("sk_test_fullhouse").form(form);
        request.send().await.expect("it answers").json().await.expect("JSON")
    }

    /// A card by its number, as the provider's form makes one.
    async fn card(&self, number: &str) -> String {
        let form = [
            ("type", "card"),
            ("card[number]", number),
            ("card[exp_month]", "12"),
            ("card[exp_year]", "2099"),
            ("card[cvc]", "123"),
        ];
        let method = self.raw("payment_methods", &form).await;
        method["id"].as_str().unwrap_or_else(|| panic!("no card: {method}")).to_owned()
    }
}

fn done<T: serde::de::DeserializeOwned>(answer: &Answer) -> T {
    answer.object().unwrap_or_else(|| panic!("not done: {answer:?}"))
}

#[tokio::test]
async fn peers_our_client_pays_is_declined_and_meets_a_challenge_at_localstripe() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let python = Spec::new(installed("venv/bin/python")).arg(script("localstripe_here.py")).arg(port.to_string());
    let server = python.output(std::fs::File::options().write(true).open("/dev/null").expect("/dev/null")).spawn();
    let server = server.expect("localstripe starts");
    let url = format!("http://127.0.0.1:{port}");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    eventually("localstripe listens", || async { http.get(&url).send().await.ok().map(drop) }).await;
    let mut config = Config::defaults().payment;
    config.provider_url.clone_from(&url);
    config.secret_key = Secret::new("sk_test_fullhouse");
    config.publishable_key = "pk_test_fullhouse".into();
    let client = Client::new(&config).expect("settings");
    let peer = Stranger { client, url, http, attempt_id: Uuid::new_v4() };

    // Authorised, captured, given back in part.
    let intent = peer.create("pm_card_visa").await;
    assert_eq!((&intent.status, intent.amount), (&IntentStatus::RequiresConfirmation, 12_500));
    assert_eq!(intent.metadata["attempt"], peer.attempt_id.to_string());
    let intent: PaymentIntent = done(&peer.confirm(&intent).await);
    assert_eq!(intent.status, IntentStatus::RequiresCapture);
    let intent: PaymentIntent = done(&peer.client.send(&Call::capture(peer.attempt_id, &intent.id, 0)).await);
    assert_eq!(intent.status, IntentStatus::Succeeded);
    let back = Back {
        installation: HOUSE,
        attempt_id: peer.attempt_id,
        refund_id: Uuid::from_u128(3),
        pi_id: &intent.id,
        amount: Some(("EUR", 2_500)),
    };
    let call = Call::refund(back, 0).expect("an amount");
    let refund: Refund = done(&peer.client.send(&call).await);
    assert_eq!((&refund.status, refund.amount), (&RefundStatus::Succeeded, 2_500));

    // Declined, for good. (This one it takes, and declines to charge.)
    let declined = peer.create(&peer.card("4000000000000341").await).await;
    let answer = peer.confirm(&declined).await;
    assert!(matches!(&answer.outcome, Outcome::Declined(refusal) if refusal.code == "card_declined"), "{answer:?}");
    let seen: PaymentIntent = done(&peer.client.send(&Call::get(&declined.id)).await);
    assert_eq!(seen.status, IntentStatus::RequiresPaymentMethod);
    assert_eq!(seen.last_payment_error.expect("it says why").code, "card_declined");

    // A challenge: met, it authorises; without it the intent is let go.
    for met in [true, false] {
        let asked = peer.create(&peer.card("4000000000003220").await).await;
        let asked: PaymentIntent = done(&peer.confirm(&asked).await);
        assert_eq!(asked.status, IntentStatus::RequiresAction);
        if met {
            let secret = peer.http.get(format!("{}/v1/payment_intents/{}", peer.url, asked.id));
            let secret: Value = secret.bearer_auth("sk_test_fullhouse").send().await.unwrap().json().await.unwrap();
            let secret = secret["client_secret"].as_str().expect("a secret");
            let form = [("client_secret", secret), ("success", "true")];
            peer.raw(&format!("payment_intents/{}/_authenticate", asked.id), &form).await;
            let met: PaymentIntent = done(&peer.client.send(&Call::get(&asked.id)).await);
            assert_eq!(met.status, IntentStatus::RequiresCapture);
        }
        let gone: PaymentIntent = done(&peer.client.send(&Call::cancel(peer.attempt_id, &asked.id, 0)).await);
        assert_eq!(gone.status, IntentStatus::Canceled);
    }
    server.stop().await;
}
