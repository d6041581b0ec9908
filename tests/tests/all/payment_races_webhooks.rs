//! The races of paying that webhooks run, 04 to 09 of the specification: twice, stale, in no order, too early, about
//! nothing we know, not the provider's, and while the database is away.

use chrono::TimeDelta;
use fullhouse::payment::{installation, signature};
use fullhouse_tests::{
    eventually,
    provider::{CARD, CHALLENGED, until},
    proxy::Proxy,
    race::Race,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// An event as its sender likes it.
fn event(id: &str, kind: &str, intent: &str, status: &str) -> Value {
    json!({ "id": id, "object": "event", "type": kind, "livemode": false,
        "data": { "object": { "object": "payment_intent", "id": intent, "status": status } } })
}

async fn intent(race: &Race) -> String {
    race.provider.ledger().await.intents()[0]["id"].as_str().expect("an id").to_owned()
}

async fn until_applied(race: &Race, events: i64) {
    eventually("the stored events are applied", || async {
        (race.count("select count(*) from webhook_event where outcome = 'applied'").await == events).then_some(())
    })
    .await;
}

#[tokio::test]
async fn race_04_the_same_webhook_twice() {
    let race = Race::with(false, |_| {}).await;
    race.pay_with(CHALLENGED).await;
    until(&race.fan, &race.order, &["action_required"]).await;
    // Nothing but a webhook makes anybody look from now on.
    race.clock.freeze_at(race.clock.now().await).await;
    let looks = async || race.provider.requests("get").await.len();
    let at_rest = async || {
        eventually("the attempt rests", || async {
            let busy = "select count(*) from attempt where leased_until is not null or next_run_at <= db_clock()";
            (race.count(busy).await == 0).then_some(())
        })
        .await;
    };
    at_rest().await;
    let (seen, event) = (looks().await, race.provider.events().await.pop().expect("an event"));
    // Four at once, and once more after it has had its effect: all are taken, one counts.
    let answers = join_all((0..4).map(|_| race.deliver(&event))).await;
    assert_eq!(answers, [200; 4]);
    until_applied(&race, 1).await;
    eventually("it makes a worker look", || async { (looks().await == seen + 1).then_some(()) }).await;
    at_rest().await;
    let books = race.books().await;
    assert_eq!(books["events"].as_array().map(Vec::len), Some(1), "one row");
    assert_eq!(race.deliver(&event).await, 200);
    assert_eq!(race.books().await, books, "no effect");
    // The control: what is not the same event has one.
    let other = json!({ "id": "evt_other", "type": event["type"], "livemode": false, "data": event["data"] });
    assert_eq!(race.deliver(&other).await, 200);
    until_applied(&race, 2).await;
    eventually("it makes a worker look", || async { (looks().await > seen + 1).then_some(()) }).await;
    at_rest().await;
    assert_eq!(looks().await, seen + 2, "and the second of the same event has made nobody look");
    race.over().await;
}

#[tokio::test]
async fn race_05_what_events_say_does_not_count_twins_and_stale_ones_least() {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("confirm", json!({ "network": "timeout_after" })).await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    race.clock.freeze_at(race.clock.now().await).await;
    // They all say something else, the latest is the first: the provider is asked, and its word counts.
    let id = intent(&race).await;
    let lies = [
        event("evt_4", "payment_intent.canceled", &id, "canceled"),
        event("evt_3", "payment_intent.payment_failed", &id, "requires_payment_method"),
        event("evt_2", "payment_intent.payment_failed", &id, "requires_payment_method"),
        event("evt_1", "payment_intent.requires_action", &id, "requires_action"),
    ];
    for lie in &lies {
        assert_eq!(race.deliver(lie).await, 200);
    }
    let paid = until(&race.fan, &race.order, &["captured"]).await;
    assert_eq!(race.looks().await[0], "requires_capture", "the look decided");
    until_applied(&race, 4).await;
    // What is older, and what never was, leads nowhere from here.
    let (asked, intents) = (race.provider.ops().await, race.provider.ledger().await.intents().clone());
    for (n, (kind, status)) in
        [("created", "requires_confirmation"), ("canceled", "canceled"), ("requires_action", "requires_action")]
            .into_iter()
            .enumerate()
    {
        assert_eq!(race.deliver(&event(&format!("evt_late_{n}"), kind, &id, status)).await, 200);
    }
    until_applied(&race, 7).await;
    assert_eq!(race.now().await, paid, "forward only");
    assert_eq!((race.provider.ops().await, race.provider.ledger().await.intents()), (asked, &intents));
    race.over().await;
}

#[tokio::test]
async fn race_05_two_events_for_each_change_shuffled_and_all_of_it_once_more() {
    let race = Race::ready().await;
    let shuffled = json!({ "twin": true, "duplicate": 1, "shuffle_ms": 400 });
    race.provider.rules(json!([{ "effect": { "webhook": shuffled } }])).await;
    race.pay().await;
    race.until("captured").await;
    race.provider.until_delivered().await;
    let happened: Vec<Value> = race.provider.events().await.iter().map(|e| e["id"].clone()).collect();
    let arrived: Vec<Value> = race.provider.requests("webhook").await.iter().map(|d| d["event"].clone()).collect();
    let place = |id: &Value| arrived.iter().position(|a| a == id).expect("it arrived");
    assert!(happened.windows(2).any(|pair| place(&pair[0]) > place(&pair[1])), "the control: in another order");
    assert!(arrived.len() >= 2 * happened.len(), "each twice: {arrived:?}");
    let twins =
        race.count("select count(*) from webhook_event where type = 'payment_intent.amount_capturable_updated'").await;
    assert_eq!(twins, 2, "two events for one change");
    let paid = race.until("captured").await;
    let intents = race.provider.ledger().await.intents().clone();
    race.provider.replay().await;
    race.provider.until_delivered().await;
    assert_eq!((race.until("captured").await, race.provider.ledger().await.intents()), (paid.clone(), &intents));
    assert_eq!(paid["tickets"].as_array().map(Vec::len), Some(2));
    assert_eq!((race.calls("capture").await.len(), race.calls("confirm").await.len()), (1, 1));
    race.over().await;
}

/// Whether the webhook of the authorisation was here before the answer to what authorised.
async fn webhook_was_first(race: &Race) -> bool {
    race.provider.until_delivered().await;
    sqlx::query_scalar(
        "select (select min(received_at) from webhook_event where type = 'payment_intent.amount_capturable_updated')
              < (select min(at) from provider_answer where op = 'confirm')",
    )
    .fetch_one(race.database.pool())
    .await
    .expect("both have come")
}

#[tokio::test]
async fn race_06_the_webhook_is_faster_than_the_answer() {
    for (webhook, first) in [(json!({ "before_response": true }), true), (json!({ "delay_ms": 800 }), false)] {
        let race = Race::with(true, |config| config.payment.timeout_ms = 20_000).await;
        let slow = json!({ "kind": "fixed", "ms": 100 });
        race.provider.rules(json!([{ "effect": { "webhook": webhook, "latency": slow } }])).await;
        race.pay().await;
        race.until("captured").await;
        assert_eq!(webhook_was_first(&race).await, first, "the control: both orders occur, {webhook}");
        assert_eq!((race.calls("confirm").await.len(), race.calls("capture").await.len()), (1, 1));
        assert_eq!(race.provider.ledger().await.confirms(), 1);
        race.over().await;
    }
}

#[tokio::test]
async fn race_06_the_webhooks_worker_and_the_answers_both_resolve_and_the_second_finds_it_done() {
    let race = Race::with(true, |config| config.payment.timeout_ms = 20_000).await;
    let slow = json!({ "kind": "fixed", "ms": 6_000 });
    let first = json!({ "latency": slow, "webhook": { "before_response": true } });
    race.provider.first("confirm", first).await;
    race.pay().await;
    eventually("the webhook is here", || async {
        let here = "select count(*) from webhook_event where type = 'payment_intent.amount_capturable_updated'";
        (race.count(here).await == 1).then_some(())
    })
    .await;
    // The answer is not: whoever waits for it has lost the lease, and another worker follows the webhook.
    race.set("update attempt set leased_until = null").await;
    let paid = race.until("captured").await;
    let waiting = "select count(*) from provider_call where op = 'confirm' and state = 'sent'";
    assert_eq!(race.count(waiting).await, 1, "the control: the answer is still on its way");
    eventually("the answer is here", || async { (race.count(waiting).await == 0).then_some(()) }).await;
    assert_eq!(race.now().await, paid, "it changes nothing");
    assert_eq!((race.calls("confirm").await.len(), race.calls("capture").await.len()), (1, 1));
    assert_eq!(race.provider.ledger().await.confirms(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_07_a_webhook_about_an_intent_whose_id_we_have_not_heard_is_ours_by_its_metadata() {
    let race = Race::ready().await;
    // The create's webhook arrives while its answer is lost: our row has no intent yet.
    race.provider
        .rules(json!([{ "match": { "op": "create", "first": 1 },
            "effect": { "network": "timeout_after", "webhook": { "before_response": true } } }]))
        .await;
    race.pay().await;
    race.until("captured").await;
    eventually("it is applied", || async {
        let applied =
            "select count(*) from webhook_event where type = 'payment_intent.created' and outcome = 'applied'";
        (race.count(applied).await == 1).then_some(())
    })
    .await;
    let came_before: bool = sqlx::query_scalar(
        "select (select received_at from webhook_event where type = 'payment_intent.created')
              < (select min(at) from provider_answer where op = 'create' and ok)",
    )
    .fetch_one(race.database.pool())
    .await
    .expect("both have come");
    assert!(came_before, "nobody had told us its id yet");
    assert_eq!(race.provider.ledger().await.intents().len(), 1, "the same intent, by its key");
    race.over().await;
}

#[tokio::test]
async fn race_07_a_webhook_about_nothing_we_know_is_kept_and_is_ours_later() {
    let race = Race::with(false, |config| config.payment.timeout_ms = 20_000).await;
    race.provider.first("create", json!({ "latency": { "kind": "fixed", "ms": 2_000 } })).await;
    race.pay().await;
    let id = eventually("the provider has the intent", || async {
        let ledger = race.provider.ledger().await;
        ledger.intents().first().map(|intent| intent["id"].as_str().expect("an id").to_owned())
    })
    .await;
    // We have not heard of it yet, and it names nobody.
    assert_eq!(race.deliver(&event("evt_1", "payment_intent.created", &id, "requires_confirmation")).await, 200);
    eventually("it was tried, and waits", || async {
        let waits = "select count(*) from webhook_event where next_try_at > received_at and outcome is null";
        (race.count(waits).await == 1).then_some(())
    })
    .await;
    race.until("captured").await;
    race.clock.advance(TimeDelta::seconds(6)).await;
    until_applied(&race, 1).await;
    race.over().await;
}

#[tokio::test]
async fn race_07_a_payment_that_stays_unknown_is_an_orphan() {
    for capture in [false, true] {
        let race = Race::ready().await;
        let body = format!(
            "amount=700&currency=eur&payment_method={CARD}&capture_method=manual&confirmation_method=manual\
             &metadata[attempt]={}&metadata[installation]={}",
            uuid::Uuid::new_v4(),
            installation::id(race.database.pool()).await.expect("the house")
        );
        let id = race.provider.beside("payment_intents", &body).await["id"].as_str().expect("an id").to_owned();
        race.provider.beside(&format!("payment_intents/{id}/confirm"), "").await;
        if capture {
            race.provider.beside(&format!("payment_intents/{id}/capture"), "").await;
        }
        let events = 2 + i64::from(capture);
        // Those about what was done beside us; what we do about it has events of its own.
        let outcomes = async || -> Vec<Option<String>> {
            sqlx::query_scalar("select outcome from webhook_event order by received_at, event_id limit $1")
                .bind(events)
                .fetch_all(race.database.pool())
                .await
                .expect("events")
        };
        eventually("the events are stored, and wait", || async {
            (outcomes().await.len() as i64 == events).then_some(())
        })
        .await;
        race.clock.advance(TimeDelta::minutes(9)).await;
        assert!(outcomes().await.iter().all(Option::is_none), "for ten minutes");
        race.clock.advance(TimeDelta::minutes(2)).await;
        eventually("it is seen to", || async {
            outcomes().await.iter().all(|o| o.as_deref() == Some("orphan")).then_some(())
        })
        .await;
        let ledger = race.provider.ledger().await;
        let expected = if capture { (700, 700, 0) } else { (0, 0, 0) };
        assert_eq!((ledger.captured(), ledger.refunded(), ledger.authorised()), expected);
        let found: Vec<(String, bool)> = sqlx::query_as("select class, repaired_at is not null from money_finding")
            .fetch_all(race.database.pool())
            .await
            .expect("findings");
        assert_eq!(found, [(if capture { "M1" } else { "M5" }.to_owned(), true)], "and people are told");
        race.over().await;
    }
}

#[tokio::test]
async fn race_08_a_bad_signature_a_stale_one_and_one_of_the_other_mode() {
    let race = Race::with(false, |_| {}).await;
    race.pay().await;
    race.until("captured").await;
    let pokes = async || race.count("select sum(pokes) from attempt").await;
    let (now, before) = (chrono::Utc::now().timestamp(), pokes().await);
    let ours = event("evt_1", "payment_intent.succeeded", &intent(&race).await, "succeeded");
    let live = ours.to_string().replace("false", "true").replace("evt_1", "evt_live");
    let signed = |at: i64, body: &str| signature::sign(race.provider.secrets(), at, body.as_bytes());
    let text = ours.to_string();
    for (header, body) in [
        (format!("t={now},v1={}", "0".repeat(64)), &text),
        (signed(now, &live), &text),
        (signed(now - 301, &text), &text),
        (signed(now + 360, &text), &text),
    ] {
        assert_eq!(race.deliver_as(header.clone(), body.clone()).await, 400, "{header}");
    }
    assert_eq!(race.deliver_as(signed(now, &live), live.clone()).await, 200);
    let stored: Vec<(String, Option<String>)> = sqlx::query_as("select event_id, outcome from webhook_event")
        .fetch_all(race.database.pool())
        .await
        .expect("events");
    assert_eq!(stored, [("evt_live".to_owned(), Some("wrong_mode".to_owned()))], "stored and ignored");
    assert_eq!(pokes().await, before);
    // The control: the same, signed by the provider in time and of our mode, counts.
    assert_eq!(race.deliver(&ours).await, 200);
    until_applied(&race, 1).await;
    assert_eq!(pokes().await, before + 1);
    race.over().await;
}

#[tokio::test]
async fn race_09_the_database_is_down_when_webhooks_arrive() {
    let proxy = Proxy::start().await;
    let race = Race::over_wire(&proxy, |config| config.database.acquire_timeout_ms = 200).await;
    race.pay().await;
    race.until("captured").await;
    race.provider.webhooks_to(&race.hub.url()).await;
    proxy.cut();
    let events = race.provider.replay().await;
    let refused = async || {
        let deliveries = race.provider.requests("webhook").await;
        deliveries.iter().filter(|d| d["status"].as_u64().is_some_and(|status| status >= 500)).count() as u64
    };
    eventually("none is taken", || async { (refused().await >= events).then_some(()) }).await;
    assert_eq!(race.count("select count(*) from webhook_event").await, 0);
    proxy.mend();
    race.provider.until_delivered().await;
    let stored = race.count("select count(distinct event_id) from webhook_event").await;
    assert_eq!(stored as u64, events, "each came again, and nothing is lost");
    race.over().await;
}
