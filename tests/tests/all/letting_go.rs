//! What the provider still has of a payment that is decided is let go, whatever that takes: refusals, answers that were
//! lost or untrue, hubs that die between two calls.

use chrono::TimeDelta;
use fullhouse_tests::{
    binary::Binary,
    database::Database,
    eventually,
    fan::{self, Fan},
    provider::{CARD, DECLINED, Provider, key, order},
    race::Race,
    rows::Rows,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The only intent, as the provider has it.
async fn status(race: &Race) -> Value {
    race.provider.ledger().await.intents()[0]["status"].clone()
}

async fn operator(race: &Race) -> Fan {
    let operator = fan::many(&race.database, &race.hub.url(), 1).await.remove(0);
    sqlx::query("update account set role = 'operator' where email = $1")
        .bind(&operator.email)
        .execute(race.database.pool())
        .await
        .expect("an operator");
    operator
}

async fn doubts(operator: &Fan) -> Value {
    operator.get("/api/staff/money").await.ok()["doubts"].clone()
}

#[tokio::test]
async fn a_declined_payment_that_is_not_let_go_is_asked_for_until_it_is_and_people_see_it() {
    let race = Race::with(false, |_| {}).await;
    let refuses = json!([{ "match": { "op": "cancel" }, "effect": { "outcome": { "kind": "cancel_fails" } } }]);
    race.provider.rules(refuses).await;
    race.fan.pay(&race.order, &key(), DECLINED).await.ok();
    race.until("declined").await;
    eventually("it is refused again and again", || async {
        race.database_in_time().await;
        (race.provider.requests("cancel").await.len() >= 8).then_some(())
    })
    .await;
    let calls = race.calls("cancel").await;
    assert!(calls.iter().all(|(_, sends)| *sends <= 1), "a refusal is kept under its key: {calls:?}");
    assert_eq!(status(&race).await, "requires_payment_method");
    let operator = operator(&race).await;
    let listed = doubts(&operator).await;
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["state"]), (Some(1), &json!("declined")));

    race.provider.rules(json!([])).await;
    eventually("it is let go", || async {
        race.database_in_time().await;
        (status(&race).await == "canceled").then_some(())
    })
    .await;
    eventually("nothing is in doubt", || async { (doubts(&operator).await == json!([])).then_some(()) }).await;
    race.over().await;
}

/// An intent of which no answer and no webhook has told; the buyer has been told that nothing was charged.
async fn begun_and_unknown(webhooks: bool) -> Race {
    let race = Race::with(false, |config| config.reconcile.interval_s = 1_000_000_000).await;
    if webhooks {
        race.provider.webhooks_to(&race.hub.url()).await;
    }
    race.provider.rules(json!([{ "match": { "op": "create" }, "effect": { "network": "timeout_after" } }])).await;
    race.pay().await;
    race.provider.until_asked("create").await;
    let id = race.order["id"].as_str().expect("an id");
    race.fan.post(&format!("/api/orders/{id}/cancel"), Value::Null).await.ok();
    race.until("voided").await;
    assert_eq!(status(&race).await, "requires_confirmation");
    race
}

#[tokio::test]
async fn what_was_begun_and_never_heard_of_is_let_go_when_the_books_are_compared() {
    let race = begun_and_unknown(false).await;
    race.clock.advance(TimeDelta::minutes(11)).await;
    let parts = race.hub.parts();
    let report = fullhouse::payment::reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books");
    assert!(report.found.is_empty(), "it held nothing, and concerns nobody: {:?}", report.found);
    assert_eq!(status(&race).await, "canceled");
    race.over().await;
}

#[tokio::test]
async fn what_was_begun_is_let_go_when_a_webhook_tells_of_it_after_all() {
    let race = begun_and_unknown(true).await;
    race.provider.until_delivered().await;
    race.clock.advance(TimeDelta::minutes(11)).await;
    eventually("it is let go", || async { (status(&race).await == "canceled").then_some(()) }).await;
    let findings: i64 = sqlx::query_scalar("select count(*) from money_finding")
        .fetch_one(race.database.pool())
        .await
        .expect("the test's database answers");
    assert_eq!(findings, 0, "it held nothing, and concerns nobody");
    race.over().await;
}

/// A buyer who pays again as soon as they are told that nothing was charged.
struct Again {
    name: &'static str,
    rules: Value,
    /// At the nth request of a kind the hub is killed, and another started.
    deaths: Vec<(&'static str, usize)>,
}

impl Again {
    async fn hub(database: &Database, provider: &Provider) -> Binary {
        let mut config = database.config().await;
        provider.configure(&mut config);
        let secrets = provider.secrets()[0].reveal();
        let more = [
            ("FULLHOUSE__PAYMENT__PUBLISHABLE_KEY", config.payment.publishable_key.as_str()),
            ("FULLHOUSE__PAYMENT__WEBHOOK_SECRETS", secrets),
            ("FULLHOUSE__PAYMENT__LEASE_S", "2"),
            ("FULLHOUSE__PAYMENT__PAY_MARGIN_S", "3"),
            ("FULLHOUSE__PAYMENT__TIMEOUT_MS", "700"),
            ("FULLHOUSE__PAYMENT__WORKER_TICK_MS", "50"),
        ];
        let hub = Binary::serve(&config, &more).await;
        provider.webhooks_to(hub.url()).await;
        hub
    }

    async fn run(self) {
        let Self { name, rules, deaths } = self;
        let database = Database::new().await;
        let event = Rows { hold_ttl_s: 120, ..Rows::new(1, 4) }.open(database.pool()).await;
        let provider = Provider::process().await;
        let mut hub = Self::hub(&database, &provider).await;
        let mut fan = fan::many(&database, hub.url(), 1).await.remove(0);
        let order = order(&fan, event, &[0, 1]).await;
        provider.rules(rules).await;
        let (mut deaths, mut died) = (deaths.into_iter().peekable(), Vec::new());
        let mut tried = 0;
        for _ in 0..600 {
            if let Some((op, n)) = deaths.peek().copied()
                && provider.requests(op).await.len() >= n
            {
                hub.kill().await;
                died.extend(deaths.next());
                hub = Self::hub(&database, &provider).await;
                fan = fan.at(hub.url());
            }
            let id = order["id"].as_str().expect("an id");
            let seen = fan.get(&format!("/api/orders/{id}")).await.ok()["order"].clone();
            match seen["attempt"]["phase"].as_str() {
                Some("paid") if deaths.peek().is_none() => break,
                None | Some("declined" | "not_charged" | "failed") => {
                    fan.pay(&order, &key(), CARD).await;
                    tried += 1;
                }
                _ => {}
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        provider.rules(json!([])).await;
        eventually(&format!("{name}: nothing is left to be done"), || async {
            let open: i64 = sqlx::query_scalar("select count(*) from attempt where next_run_at is not null")
                .fetch_one(database.pool())
                .await
                .expect("the test's database answers");
            (open == 0).then_some(())
        })
        .await;
        let ledger = provider.ledger().await;
        let statuses: Vec<&str> = ledger.intents().iter().filter_map(|i| i["status"].as_str()).collect();
        eprintln!("{name}: tried {tried} times, died at {died:?}, intents {statuses:?}");
        assert!(deaths.peek().is_none(), "{name}: the hub died only at {died:?}");
        assert!(statuses.iter().all(|s| matches!(*s, "succeeded" | "canceled")), "{name}: {ledger:?}");
        assert_eq!((ledger.captured(), ledger.refunded(), ledger.authorised()), (9_000, 0, 0), "{name}: {ledger:?}");
        ledger.agrees_with(&database).await;
        hub.stop().await;
        database.finish().await;
    }
}

/// Hub and provider are processes of their own. The provider says that the first confirmation was cancelled, and has its
/// money reserved; or says it of the intent as well, so that the buyer is told that nothing was charged, and pays again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_is_said_to_be_cancelled_leaves_nothing_reserved_whenever_the_hub_dies() {
    let said = |op: &str, first: u32| json!({ "match": { "op": op, "first": first }, "effect": { "echo": { "status": "canceled" } } });
    let slow = json!({ "effect": { "latency": { "kind": "fixed", "ms": 150 } } });
    let of_confirm = || json!([said("confirm", 1), slow.clone()]);
    let of_both = || json!([said("confirm", 1), said("get", 1), slow.clone()]);
    let deaf =
        json!([said("confirm", 1), said("get", 1), { "effect": { "webhook": { "delay_ms": 3_000 } } }, slow.clone()]);
    let refused = json!([
        said("confirm", 1), said("get", 1), slow.clone(),
        { "match": { "op": "cancel", "first": 2 }, "effect": { "outcome": { "kind": "cancel_fails" } } },
    ]);
    let mut all = JoinSet::new();
    for again in [
        Again { name: "believed by nobody", rules: of_confirm(), deaths: vec![] },
        Again { name: "killed at the confirmation", rules: of_confirm(), deaths: vec![("confirm", 1)] },
        Again { name: "killed at the look", rules: of_confirm(), deaths: vec![("get", 1)] },
        Again {
            name: "killed at each",
            rules: of_both(),
            deaths: vec![("create", 1), ("confirm", 1), ("get", 1), ("capture", 1)],
        },
        Again { name: "believed, and paid again", rules: of_both(), deaths: vec![] },
        Again { name: "killed while it is paid again", rules: of_both(), deaths: vec![("confirm", 2)] },
        Again { name: "killed while it is let go", rules: of_both(), deaths: vec![("cancel", 1)] },
        Again { name: "told late, after it was paid again", rules: deaf, deaths: vec![("capture", 1)] },
        Again { name: "not let go at once", rules: refused, deaths: vec![("cancel", 1), ("cancel", 2)] },
    ] {
        all.spawn(again.run());
    }
    while let Some(ended) = all.join_next().await {
        ended.expect("it holds");
    }
}
