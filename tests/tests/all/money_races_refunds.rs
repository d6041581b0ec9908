//! More races of refunds, by their number in the specification: what is said late, refused after a doubt, kept as a 500,
//! or taken after everything was decided.

use chrono::{DateTime, TimeDelta, Utc};
use fullhouse_tests::{eventually, provider::key, race::Race};
use serde_json::json;

use super::money_races::{all_back, refunds};

#[tokio::test]
async fn race_32_a_slow_look_does_not_take_back_that_a_refund_has_failed() {
    let race = Race::with(true, |config| {
        config.payment.timeout_ms = 20_000;
        config.payment.lease_s = 30;
    })
    .await;
    race.pay().await;
    race.until("captured").await;
    // It arrives, and is heard of; whoever asks for it then is told so, and hears it late.
    let slow = json!({ "kind": "fixed", "ms": 3_000 });
    race.provider
        .rules(json!([
            { "match": { "op": "refund" }, "effect": { "outcome": { "kind": "refund_fails_later", "ms": 3_600_000 } } },
            { "match": { "op": "list_refunds", "nth": 1 }, "effect": { "latency": slow } },
        ]))
        .await;
    let till = race.till().await;
    till.refund(&race.order, &key(), all_back()).await.ok();
    race.provider.until_asked("list_refunds").await;
    tokio::time::sleep(std::time::Duration::from_millis(1_700)).await; // by now the provider has read it
    race.provider.advance(TimeDelta::hours(1)).await;
    // The slow one's lease runs out; another asks, and hears at once that it has failed.
    race.clock.advance(TimeDelta::seconds(31)).await;
    eventually("it has failed", || async { (refunds(&race).await == [("failed".to_owned(), 9_000)]).then_some(()) })
        .await;
    eventually("the slow one has heard its answer", || async {
        let answered: i64 =
            sqlx::query_scalar("select count(*) from provider_call where op = 'list_refunds' and state = 'answered'")
                .fetch_one(race.database.pool())
                .await
                .expect("calls");
        (answered >= 2).then_some(())
    })
    .await;
    assert_eq!(refunds(&race).await, [("failed".to_owned(), 9_000)]);
    assert_eq!(till.get("/api/staff/money").await.ok()["refunds_failed"], 1);
    // And the database itself refuses what code might forget.
    let forced = sqlx::query("update refund set state = 'succeeded'")
        .execute(race.database.pool())
        .await
        .expect_err("nobody has looked");
    assert_eq!(fullhouse::db::constraint(&forced), Some("refund_never_goes_back"));
    let failed = till.get("/api/staff/money").await.ok()["refunds"][0]["refund_id"].as_str().unwrap().to_owned();
    race.provider.rules(json!([])).await;
    till.post(&format!("/api/staff/refunds/{failed}/retry"), json!({ "reason": "again" })).await;
    eventually("the second one arrives", || async { (race.provider.ledger().await.refunded() == 9_000).then_some(()) })
        .await;
    race.over().await;
}

#[tokio::test]
async fn race_32_a_refund_has_failed_before_we_hear_that_it_arrived() {
    let race = Race::with(true, |config| config.payment.timeout_ms = 20_000).await;
    race.pay().await;
    race.until("captured").await;
    // The webhook of the failure is here before the answer to what asked for it, which says that all is well.
    let slow = json!({ "kind": "fixed", "ms": 2_000 });
    race.provider
        .first("refund", json!({ "latency": slow, "outcome": { "kind": "refund_fails_later", "ms": 100 } }))
        .await;
    let till = race.till().await;
    till.refund(&race.order, &key(), all_back()).await.ok();
    eventually("people are told", || async {
        (till.get("/api/staff/money").await.ok()["refunds_failed"] == 1).then_some(())
    })
    .await;
    assert_eq!(refunds(&race).await, [("failed".to_owned(), 9_000)]);
    let failed = till.get("/api/staff/money").await.ok()["refunds"][0]["refund_id"].as_str().unwrap().to_owned();
    till.post(&format!("/api/staff/refunds/{failed}/retry"), json!({ "reason": "again" })).await;
    eventually("the second one arrives", || async { (race.provider.ledger().await.refunded() == 9_000).then_some(()) })
        .await;
    race.over().await;
}

#[tokio::test]
async fn race_31_a_refund_that_is_refused_after_a_doubt_is_looked_for_first() {
    // The answer to the first request is lost; the same bytes are refused then, and nobody keeps that.
    for (first, arrived) in [("timeout_after", true), ("timeout_before", false)] {
        let race = Race::with(false, |_| {}).await;
        race.pay().await;
        race.until("captured").await;
        race.provider
            .rules(json!([
                { "match": { "op": "refund", "nth": 1 }, "effect": { "network": first } },
                { "match": { "op": "refund", "nth": 2 }, "effect": { "status": "400" } },
            ]))
            .await;
        let till = race.till().await;
        till.refund(&race.order, &key(), all_back()).await.ok();
        let end = if arrived { "succeeded" } else { "failed" };
        let refused_at = async || -> Option<DateTime<Utc>> {
            sqlx::query_scalar("select max(sent_at) from provider_call where op = 'refund'")
                .fetch_one(race.database.pool())
                .await
                .expect("calls")
        };
        eventually(&format!("it has {end}"), || async {
            race.database_in_time().await;
            let state = refunds(&race).await[0].0.clone();
            assert!(state != "failed" || !arrived, "the provider has it");
            (state == end).then_some(())
        })
        .await;
        let quiet = race.clock.now().await - refused_at().await.expect("it was sent");
        assert!(arrived || quiet >= TimeDelta::seconds(60), "what was sent before might have arrived: {quiet}");
        assert_eq!(race.provider.ledger().await.refunded(), if arrived { 9_000 } else { 0 });
        let list = till.get("/api/staff/money").await.ok();
        assert_eq!(list["refunds_failed"], i64::from(!arrived));
        if !arrived {
            assert_eq!(list["refunds"][0]["failure"], "parameter_invalid");
            let failed = list["refunds"][0]["refund_id"].as_str().unwrap();
            till.post(&format!("/api/staff/refunds/{failed}/retry"), json!({ "reason": "again" })).await;
            eventually("the second one arrives", || async {
                race.database_in_time().await;
                (race.provider.ledger().await.refunded() == 9_000).then_some(())
            })
            .await;
        }
        race.over().await;
    }
}

#[tokio::test]
async fn race_31_a_refund_whose_key_keeps_a_500_is_looked_for_and_goes_on_under_another() {
    for (status, keys) in [("500_stored", 2), ("500_after", 1)] {
        let race = Race::with(false, |_| {}).await;
        race.pay().await;
        race.until("captured").await;
        race.provider.first("refund", json!({ "status": status })).await;
        let began = race.clock.now().await;
        race.till().await.refund(&race.order, &key(), all_back()).await.ok();
        eventually(&format!("it has arrived, {status}"), || async {
            race.database_in_time().await;
            (refunds(&race).await == [("succeeded".to_owned(), 9_000)]).then_some(())
        })
        .await;
        assert_eq!(race.provider.ledger().await.refunded(), 9_000, "{status}");
        let calls = race.calls("refund").await;
        assert_eq!(calls.len(), keys, "{status}: {calls:?}");
        assert!(race.clock.now().await - began < TimeDelta::minutes(10), "{status}: not when the key is forgotten");
        race.over().await;
    }
}

/// Of the specification: in seconds, a fifth more or less. From the fourth on it stays so for a quarter of an hour.
const SCHEDULE_S: [i64; 6] = [2, 5, 10, 30, 30, 30];

/// Requests are lost, of which nobody hears anything: neither the asking nor the looking stands still any longer than that.
#[tokio::test]
async fn race_31_a_refund_whose_calls_are_lost_waits_no_longer_than_the_schedule_says() {
    for (lost, outcome, begins) in [("refund", "approve", 0), ("list_refunds", "refund_pending", 1)] {
        let race = Race::with(false, |config| config.payment.timeout_ms = 200).await;
        race.pay().await;
        race.until("captured").await;
        let first = SCHEDULE_S.len() - begins;
        let outcome = match outcome {
            "refund_pending" => json!({ "kind": outcome, "ms": 1 }),
            _ => json!({ "kind": outcome }),
        };
        race.provider
            .rules(json!([
                { "match": { "op": lost, "first": first }, "effect": { "network": "timeout_before" } },
                { "match": { "op": "refund" }, "effect": { "outcome": outcome } },
            ]))
            .await;
        race.till().await.refund(&race.order, &key(), all_back()).await.ok();
        for (tries, wait) in (1_i32..).zip(SCHEDULE_S) {
            // Nobody has it in hand any more, and this is when it is taken up again.
            let (at, next): (DateTime<Utc>, DateTime<Utc>) =
                eventually(&format!("{lost} was lost, {tries}"), || async {
                    sqlx::query_as(
                        "select updated_at, next_run_at from attempt
                     where leased_until is null and tries = $1 and next_run_at > updated_at",
                    )
                    .bind(tries)
                    .fetch_optional(race.database.pool())
                    .await
                    .expect("the test's database answers")
                })
                .await;
            let waits = (next - at).num_milliseconds();
            assert!((wait * 800..=wait * 1_200).contains(&waits), "{lost}, {tries}: {waits} ms instead of {wait} s");
            race.clock.advance(next - race.clock.now().await).await;
        }
        eventually("it has arrived", || async {
            race.database_in_time().await;
            (refunds(&race).await == [("succeeded".to_owned(), 9_000)]).then_some(())
        })
        .await;
        assert_eq!(race.provider.ledger().await.refunded(), 9_000, "once");
        race.over().await;
    }
}

#[tokio::test]
async fn race_34_money_that_comes_after_the_decision_goes_back_a_few_times_and_then_people_see_to_it() {
    let race = Race::ready().await;
    // The provider says that nothing is reserved any more, and can't be asked to let go of it.
    race.provider
        .rules(json!([
            { "match": { "op": "capture", "first": 1 }, "effect": { "outcome": { "kind": "said_gone" } } },
            { "match": { "op": "cancel" }, "effect": { "status": "503" } },
        ]))
        .await;
    race.pay().await;
    race.until("capture_failed").await;
    race.clock.advance(TimeDelta::minutes(31)).await;
    eventually("the seats go back", || async { (race.now().await["state"] == "cancelled").then_some(()) }).await;
    // The reservation was there all the time, and somebody captures it.
    assert_eq!(race.provider.ledger().await.authorised(), 9_000);
    let intent = race.provider.ledger().await.intents()[0]["id"].as_str().expect("an id").to_owned();
    race.provider.beside(&format!("payment_intents/{intent}/capture"), "").await;
    let closed = json!({ "match": { "op": "refund" }, "effect": { "outcome": { "kind": "refund_fails" } } });
    race.provider.rules(json!([closed])).await;
    let failed = async || refunds(&race).await.iter().filter(|(state, _)| state == "failed").count();
    // Time passes until the hub looks, and no further: the first wait must not be over.
    eventually("the first try fails", || async {
        if refunds(&race).await.is_empty() {
            race.clock.advance(TimeDelta::seconds(3)).await;
        }
        (failed().await == 1).then_some(())
    })
    .await;
    // Webhooks alone begin no other: their time has to come.
    for _ in 0..3 {
        race.provider.replay().await;
        race.provider.until_delivered().await;
    }
    assert_eq!(refunds(&race).await.len(), 1, "each webhook would begin another");
    for (tries, minutes) in [(2, 6), (3, 61)] {
        race.clock.advance(TimeDelta::minutes(minutes)).await;
        eventually("the next try fails too", || async {
            race.database_in_time().await;
            (failed().await >= tries).then_some(())
        })
        .await;
    }
    for _ in 0..3 {
        race.clock.advance(TimeDelta::hours(2)).await;
        race.provider.replay().await;
        race.provider.until_delivered().await;
    }
    assert_eq!(refunds(&race).await.len(), 3, "the rest is for people");
    let till = race.till().await;
    let list = till.get("/api/staff/money").await.ok();
    assert_eq!(list["refunds_failed"], 1, "one thing to see to, not three");
    let for_people = list["gate"].as_array().expect("reasons").iter().any(|reason| reason["by_person"] == true);
    assert!(!for_people, "a card that was closed does not stop the sale: {list}");
    // They give it back by hand: no webhook may give it back once more.
    race.provider.rules(json!([])).await;
    let refund = list["refunds"][0]["refund_id"].as_str().expect("one");
    let by_hand = json!({ "by_hand": true, "reason": "sent by the bank" });
    till.post(&format!("/api/staff/refunds/{refund}/retry"), by_hand).await.ok();
    race.clock.advance(TimeDelta::hours(2)).await;
    race.provider.replay().await;
    race.provider.until_delivered().await;
    race.database_in_time().await;
    assert_eq!(race.provider.ledger().await.refunded(), 0, "it went by the bank");
    assert_eq!(till.get("/api/staff/money").await.ok()["refunds_failed"], 0);
    race.hub.stop().await;
    race.database.finish().await;
}

/// The order of locks that two workers need: one writes an attempt twice in a transaction, another holds the order.
#[tokio::test]
async fn whoever_holds_an_order_does_not_meet_its_attempt_in_a_deadlock() {
    let race = Race::ready().await;
    race.pay().await;
    race.until("captured").await;
    let pool = race.database.pool();
    // True: they meet. `how` is the clerk's lock of the order.
    let meet = async |how: &str| -> bool {
        let (mut clerk, mut worker) = (pool.begin().await.expect("begun"), pool.begin().await.expect("begun"));
        sqlx::query(&format!(r#"select id from "order" {how}"#)).fetch_all(&mut *clerk).await.expect("the order");
        sqlx::query("update attempt set tries = tries").execute(&mut *worker).await.expect("the attempt");
        // … and the clerk wants the attempt, while PostgreSQL asks a second time for the order that the row refers to.
        let wants = tokio::spawn(async move {
            let got = sqlx::query("select id from attempt for no key update").execute(&mut *clerk).await.map(|_| ());
            got.and(clerk.rollback().await)
        });
        eventually("the clerk waits", || async {
            let waiting: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
            )
            .fetch_one(pool)
            .await
            .expect("who waits");
            (waiting > 0).then_some(())
        })
        .await;
        let again = sqlx::query("update attempt set tries = tries").execute(&mut *worker).await.map(|_| ());
        worker.rollback().await.expect("undone");
        let deadlock = |done: Result<(), sqlx::Error>| {
            done.err().and_then(|e| e.as_database_error().and_then(|e| e.code().map(|c| c == "40P01"))) == Some(true)
        };
        deadlock(again) | deadlock(wants.await.expect("no panic"))
    };
    assert!(meet("for update").await, "the fault that the weaker lock is for");
    assert!(!meet("for no key update").await);
    race.over().await;
}
