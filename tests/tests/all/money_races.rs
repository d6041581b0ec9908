//! The races of paying, by their number in the specification: the sale against the sweeper, refunds, orphans,
//! the provider and the clocks. The real client, a real socket, the real machine.

use std::time::Duration;

use chrono::TimeDelta;
use fullhouse_tests::{
    HUNG,
    database::Database,
    eventually, fan,
    hub::Hub,
    provider::{CARD, Provider, key, order, until, until_in_time},
    race::Race,
    rows::Rows,
};
use serde_json::{Value, json};

/// Pays; the bank says yes, and nobody hears it for as long as the hub can ask.
async fn in_doubt(race: &Race) {
    race.provider
        .rules(json!([
            { "match": { "op": "confirm", "first": 1 }, "effect": { "network": "timeout_after" } },
            { "match": { "op": "get" }, "effect": { "network": "timeout_before" } },
        ]))
        .await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    assert_eq!(race.provider.ledger().await.authorised(), 9_000);
}

#[tokio::test]
async fn race_02_the_sweeper_meets_the_sale() {
    // The control: a sale that believes what it read before it waited takes the seats from whoever has them now.
    let race = Race::with(false, |config| config.sweeper.tick_ms = 3_600_000).await;
    let held: i64 = sqlx::query_scalar("select count(*) from hold where state = 'live' and held_until > db_clock()")
        .fetch_one(race.database.pool())
        .await
        .expect("a hold");
    race.clock.advance(TimeDelta::minutes(9)).await;
    let other = fan::many(&race.database, &race.hub.url(), 1).await.remove(0);
    other.hold(race.event, &[1, 2]).await.ok();
    let mut naive = race.database.pool().begin().await.expect("a transaction");
    let taken = sqlx::query(
        "update event_seat set status = 2, hold_id = null, held_until = null, order_id = $1
         where event_id = $2 and seat_no in (1, 2) and $3 = 1",
    )
    .bind(race.order["id"].as_str().unwrap().parse::<uuid::Uuid>().unwrap())
    .bind(race.event)
    .bind(held)
    .execute(&mut *naive)
    .await
    .expect("nothing stops it");
    assert_eq!(taken.rows_affected(), 2, "the fault that the lock and the versions are for");
    naive.rollback().await.expect("undone");
    race.over().await;

    // The sale and the end of the hold: long before it, long after it, and then nearer and nearer to the same moment.
    let (mut too_early, mut too_late) = (Duration::ZERO, None);
    for round in 0..10 {
        let (database, clock) = Database::with_clock().await;
        let event = Rows::new(2, 10).open(database.pool()).await;
        let provider = Provider::start().await;
        let mut config = database.config().await;
        provider.configure(&mut config);
        config.sweeper.tick_ms = 1;
        config.payment.worker_tick_ms = 1;
        config.payment.timeout_ms = 300;
        let first = Hub::start(config.clone()).await;
        let fan = fan::many(&database, &first.url(), 1).await.remove(0);
        let order = order(&fan, event, &[1, 2]).await;
        let race = Race { database, clock, provider, hub: first, event, fan, order };
        in_doubt(&race).await;
        race.hub.stop().await;
        race.provider.rules(json!([])).await;
        let ends: chrono::DateTime<chrono::Utc> =
            sqlx::query_scalar("select held_until from hold").fetch_one(race.database.pool()).await.expect("a hold");
        race.clock.freeze_at(ends - TimeDelta::milliseconds(1)).await;
        let began = std::time::Instant::now();
        let after = match too_late {
            _ if round == 0 => Duration::ZERO,
            None => HUNG,
            Some(too_late) => (too_early + too_late) / 2,
        };
        let over = async {
            tokio::select! {
                () = tokio::time::sleep(after) => {}
                () = sold(&race.database) => {}
            }
            race.clock.advance(TimeDelta::milliseconds(2)).await;
            began.elapsed()
        };
        let (hub, ended_after) = tokio::join!(Hub::start(config), over);
        let fan = race.fan.at(&hub.url());
        let race = Race { hub, fan, ..race };
        let end = until_in_time(&race.clock, &race.fan, &race.order, &["captured", "voided"]).await;
        let seats = race.count("select count(*) from event_seat where status = 2").await;
        let won = end["attempt"]["state"] == "captured";
        let state = end["state"].as_str().expect("a state");
        assert_eq!((seats, state), if won { (2, "confirmed") } else { (0, "cancelled") }, "round {round}");
        match won {
            true => too_late = Some(ended_after.min(too_late.unwrap_or(ended_after))),
            false => too_early = ended_after.max(too_early),
        }
        assert_eq!(too_late.is_some(), round > 0, "the control: the end wins first, then the sale");
        race.over().await;
    }
}

/// Until the seats are sold.
async fn sold(database: &Database) {
    eventually("the seats are sold", || async {
        let sold: i64 = sqlx::query_scalar("select count(*) from event_seat where status = 2")
            .fetch_one(database.pool())
            .await
            .expect("seats");
        (sold == 2).then_some(())
    })
    .await;
}

/// The provider answers nobody until enough calls were in vain: the circuit is open.
async fn provider_is_down() -> Race {
    let race = Race::with(false, |config| {
        config.gate.provider_calls = 6;
        config.payment.timeout_ms = 100;
    })
    .await;
    race.provider.rules(json!([{ "effect": { "status": "503" } }])).await;
    race.pay().await;
    eventually("the gate is closed for the provider", || async {
        race.set("update attempt set next_run_at = db_clock()").await;
        (race.closed_for().await == ["provider_errors"]).then_some(())
    })
    .await;
    race
}

/// It comes back: probes say so, and the gate opens by itself.
async fn provider_is_back(race: &Race) {
    race.provider.rules(json!([])).await;
    eventually("the gate opens by itself", || async { race.closed_for().await.is_empty().then_some(()) }).await;
}

#[tokio::test]
async fn race_24_the_provider_is_down() {
    let race = provider_is_down().await;
    let other = race.other().await;
    let later = order(&other, race.event, &[5]).await;
    assert_eq!(other.pay(&later, &key(), CARD).await.code(), "payment_gate_closed");
    assert_eq!(race.count("select count(*) from attempt").await, 1, "no new attempts");
    provider_is_back(&race).await;
    race.until("captured").await; // what was open is resolved
    other.pay(&later, &key(), CARD).await.ok();
    until_in_time(&race.clock, &other, &later, &["captured"]).await;
    race.over().await;
}

#[tokio::test]
async fn race_24_the_provider_is_down_for_longer_than_holds_last() {
    let race = provider_is_down().await;
    race.clock.advance(TimeDelta::minutes(9)).await;
    let other = race.other().await;
    other.hold(race.event, &[1, 2]).await.ok(); // holds run out
    provider_is_back(&race).await;
    let voided = race.until("voided").await;
    assert_eq!((&voided["state"], &voided["attempt"]["outcome"]), (&json!("cancelled"), &json!("hold_ended")));
    assert_eq!(other.my_hold(race.event).await.ok()["hold"]["seats"], json!([1, 2]));
    race.over().await;
}

pub fn all_back() -> Value {
    json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "asked for" })
}

pub async fn refunds(race: &Race) -> Vec<(String, i64)> {
    sqlx::query_as("select state, amount_minor from refund order by created_at, id")
        .fetch_all(race.database.pool())
        .await
        .expect("refunds")
}

#[tokio::test]
async fn race_31_a_refund_of_staff_is_unknown() {
    for fault in ["timeout_before", "timeout_after", "reset_after"] {
        let race = Race::with(false, |_| {}).await;
        race.pay().await;
        race.until("captured").await;
        race.provider.first("refund", json!({ "network": fault })).await;
        race.till().await.refund(&race.order, &key(), all_back()).await.ok();
        eventually(&format!("it has arrived, once, {fault}"), || async {
            race.database_in_time().await;
            (refunds(&race).await == [("succeeded".to_owned(), 9_000)]).then_some(())
        })
        .await;
        assert_eq!(race.provider.ledger().await.refunded(), 9_000, "{fault}");
        assert_eq!(race.calls("refund").await.len(), 1, "the same key, {fault}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_31_a_key_that_may_be_forgotten_is_not_used_again() {
    // The control: the same key after a day refunds a second time.
    let race = Race::with(false, |_| {}).await;
    race.pay().await;
    race.until("captured").await;
    let intent = race.provider.ledger().await.intents()[0]["id"].as_str().expect("an id").to_owned();
    for (hours, refunded) in [(0, 4_000), (1, 4_000), (24, 8_000)] {
        race.provider.advance(TimeDelta::hours(hours)).await;
        race.provider.call_under("the same", "refunds", format!("payment_intent={intent}&amount=4000")).await;
        assert_eq!(race.provider.ledger().await.refunded(), refunded, "after {hours} hours more");
    }
    race.hub.stop().await;
    race.database.finish().await;

    let race = Race::with(false, |_| {}).await;
    race.pay().await;
    race.until("captured").await;
    let half = json!({ "what": { "kind": "amount", "amount_minor": 4_000 }, "reason": "a cold hall" });
    race.provider.first("refund", json!({ "network": "timeout_after" })).await;
    race.till().await.refund(&race.order, &key(), half).await.ok();
    race.provider.until_asked("refund").await;
    eventually("its answer is lost", || async {
        let unknown: i64 =
            sqlx::query_scalar("select count(*) from provider_call where op = 'refund' and state = 'unknown'")
                .fetch_one(race.database.pool())
                .await
                .expect("calls");
        (unknown == 1).then_some(())
    })
    .await;
    // A day passes before anybody looks again, and the provider forgets the key.
    race.provider.advance(TimeDelta::hours(25)).await;
    race.clock.advance(TimeDelta::hours(25)).await;
    eventually("it is found among the intent's refunds", || async {
        race.database_in_time().await;
        (refunds(&race).await == [("succeeded".to_owned(), 4_000)]).then_some(())
    })
    .await;
    assert_eq!(race.provider.ledger().await.refunded(), 4_000, "once");
    assert_eq!(race.provider.requests("refund").await.len(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_32_a_refund_fails_later() {
    let race = Race::ready().await;
    race.pay().await;
    race.until("captured").await;
    race.provider.first("refund", json!({ "outcome": { "kind": "refund_fails_later", "ms": 3_600_000 } })).await;
    let till = race.till().await;
    till.refund(&race.order, &key(), all_back()).await.ok();
    eventually("it seems to have arrived", || async {
        (refunds(&race).await == [("succeeded".to_owned(), 9_000)]).then_some(())
    })
    .await;
    race.provider.advance(TimeDelta::hours(1)).await;
    eventually("it has failed after all, and is on the list", || async {
        (till.get("/api/staff/money").await.ok()["refunds_failed"] == 1).then_some(())
    })
    .await;
    assert_eq!(refunds(&race).await, [("failed".to_owned(), 9_000)]);
    let failed = till.get("/api/staff/money").await.ok()["refunds"][0]["refund_id"].as_str().unwrap().to_owned();
    let again = till.post(&format!("/api/staff/refunds/{failed}/retry"), json!({ "reason": "a new card" })).await;
    assert_eq!(again.ok()["kind"], "card");
    eventually("the second one arrives", || async {
        (refunds(&race).await == [("failed".to_owned(), 9_000), ("succeeded".to_owned(), 9_000)]).then_some(())
    })
    .await;
    assert_eq!(race.provider.ledger().await.refunded(), 9_000);
    race.over().await;
}

#[tokio::test]
async fn race_33_two_refund_clicks() {
    let race = Race::ready().await;
    race.pay().await;
    race.until("captured").await;
    let till = race.till().await;
    // The control: two clicks that look first and write then give back twice.
    for statement in [
        "create table naive_refund (amount bigint not null)",
        "create table naive_account (captured bigint not null)",
        "insert into naive_account values (9000)",
    ] {
        sqlx::query(statement).execute(race.database.pool()).await.expect("a control");
    }
    let naive = async || {
        let mut tx = race.database.pool().begin().await.expect("a transaction");
        let left: i64 = sqlx::query_scalar(
            "select captured - (select coalesce(sum(amount), 0) from naive_refund)::bigint from naive_account",
        )
        .fetch_one(&mut *tx)
        .await
        .expect("what is left");
        tokio::time::sleep(Duration::from_millis(100)).await;
        sqlx::query("insert into naive_refund values ($1)").bind(left).execute(&mut *tx).await.expect("written");
        tx.commit().await.expect("committed");
    };
    tokio::join!(naive(), naive());
    let twice: i64 = sqlx::query_scalar("select sum(amount)::bigint from naive_refund")
        .fetch_one(race.database.pool())
        .await
        .expect("a sum");
    assert_eq!(twice, 18_000, "the fault that the constraint is for");
    sqlx::query("drop table naive_refund, naive_account").execute(race.database.pool()).await.expect("gone");

    // One button, four clicks: one refund.
    let once = key();
    let part = json!({ "what": { "kind": "amount", "amount_minor": 1_000 }, "reason": "a cold hall" });
    let clicks = (0..4).map(|_| till.refund(&race.order, &once, part.clone()));
    let ids: Vec<Value> = futures_util::future::join_all(clicks)
        .await
        .into_iter()
        .map(|answer| answer.ok()["request_id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    // Two windows, two keys, the whole order: one gives it back, the other learns that it is gone.
    let (first, second) = (key(), key());
    let (first, second) =
        tokio::join!(till.refund(&race.order, &first, all_back()), till.refund(&race.order, &second, all_back()));
    let (won, lost) = if first.status.is_success() { (first, second) } else { (second, first) };
    assert_eq!((won.ok()["amount_minor"].clone(), lost.code()), (json!(8_000), "order_not_paid"));
    eventually("all of it has arrived", || async { (race.provider.ledger().await.refunded() == 9_000).then_some(()) })
        .await;
    // And the database itself refuses what code might forget.
    let forced = sqlx::query(
        "insert into refund (id, attempt_id, tender_id, amount_minor, state, reason, created_at)
         select gen_random_uuid(), id, tender_id, 1, 'pending', 'forced', db_clock() from attempt",
    )
    .execute(race.database.pool())
    .await
    .expect_err("nothing is left");
    assert_eq!(fullhouse::db::constraint(&forced), Some("attempt_refund_within_capture"));
    race.over().await;
}

#[tokio::test]
async fn race_34_somebody_gives_back_and_captures_beside_us() {
    let race = Race::with(false, |config| config.reconcile.interval_s = 1_000_000_000).await;
    race.pay().await;
    race.until("captured").await;
    let ledger = race.provider.ledger().await;
    let intent = ledger.intents()[0]["id"].as_str().expect("an id").to_owned();
    race.provider.beside("refunds", &format!("payment_intent={intent}&amount=2500")).await;
    let parts = race.hub.parts();
    let report = fullhouse::payment::reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books");
    let found: Vec<_> = report.found.iter().map(|(found, outcome)| (found.class.name(), outcome.name())).collect();
    assert_eq!(found, [("M6", "repaired")], "written down");
    assert_eq!(refunds(&race).await, [("succeeded".to_owned(), 2_500)]);
    let till = race.till().await;
    let list = till.get("/api/staff/money").await.ok();
    assert_eq!(
        list["orders_without_money"][0]["why"], "given_back_elsewhere",
        "the seats are sold still: people decide"
    );
    // Giving the rest back adds up with it.
    assert_eq!(till.refund(&race.order, &key(), all_back()).await.ok()["amount_minor"], 6_500);
    eventually("all of it has arrived", || async { (race.provider.ledger().await.refunded() == 9_000).then_some(()) })
        .await;
    race.over().await;

    // Somebody captures part of what we had reserved, before we take it: sold, listed, and the gate is closed.
    let race = Race::with(false, |config| config.reconcile.interval_s = 1_000_000_000).await;
    race.provider.first("capture", json!({ "network": "timeout_before" })).await;
    race.pay().await;
    until(&race.fan, &race.order, &["capture_unknown"]).await;
    let intent = race.provider.ledger().await.intents()[0]["id"].as_str().expect("an id").to_owned();
    race.provider.beside(&format!("payment_intents/{intent}/capture"), "amount_to_capture=1000").await;
    assert_eq!(race.until("captured").await["state"], "confirmed");
    let list = race.till().await.get("/api/staff/money").await.ok();
    let told = (&list["findings"][0]["class"], &list["gate"][0]["reason"], &list["gate"][0]["by_person"]);
    assert_eq!(told, (&json!("M3"), &json!("amount_differs"), &json!(true)), "{list}");
    assert_eq!(race.provider.ledger().await.captured(), 1_000);
    race.hub.stop().await;
    race.database.finish().await;
}

#[tokio::test]
async fn race_37_clocks_that_differ_close_the_gate_and_only_the_databases_decides() {
    let race = Race::ready().await;
    // The provider's clock goes ahead of the others.
    race.provider.advance(TimeDelta::seconds(45)).await;
    let others = fan::many(&race.database, &race.hub.url(), 1).await;
    let later = order(&others[0], race.event, &[5]).await;
    race.pay().await;
    race.until("captured").await;
    eventually("the gate is closed for the clocks", || async {
        (race.closed_for().await == ["clock_skew"]).then_some(())
    })
    .await;
    assert_eq!(others[0].pay(&later, &key(), CARD).await.code(), "payment_gate_closed");
    race.provider.advance(TimeDelta::seconds(-45)).await;
    eventually("the gate opens by itself", || async { race.closed_for().await.is_empty().then_some(()) }).await;
    others[0].pay(&later, &key(), CARD).await.ok();
    until(&others[0], &later, &["captured"]).await;
    race.over().await;

    // The database is nine minutes ahead of the hub: its clock says that the hold is over, and so it is.
    let race = Race::with(false, |_| {}).await;
    race.clock.advance(TimeDelta::minutes(9)).await;
    assert!(matches!(race.fan.pay(&race.order, &key(), CARD).await.code(), "hold_ended" | "order_not_open"));
    race.over().await;

    // The database is an hour behind the hub, by whose clock the hold is long over: it is not.
    let race = Race::with(false, |_| {}).await;
    race.clock.advance(TimeDelta::hours(-1)).await;
    let other = race.other().await;
    let open = order(&other, race.event, &[5]).await;
    assert!(open["held_until"].as_str().expect("a time") < chrono::Utc::now().to_rfc3339().as_str(), "by our clock");
    other.pay(&open, &key(), CARD).await.ok();
    until(&other, &open, &["captured"]).await;
    race.over().await;
}
