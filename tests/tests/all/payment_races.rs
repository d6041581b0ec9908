//! The races of paying, by their number in the specification. The real client, a real socket, the real machine. Here: time
//! that runs out, answers that are lost, and a bank that says something else. (04 to 09 are with the webhooks, 10 to 13 with
//! the crashes, 18 to 23 with the buyers, 36 with the readers; 02, 24, 31 to 34 and 37 with the money.)

use chrono::TimeDelta;
use fullhouse_tests::{
    eventually,
    provider::{CARD, CHALLENGED, Provider, key, order, until},
    proxy::{Proxy, Side},
    race::{Race, TOTAL, asked_in_between},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[tokio::test]
async fn race_01_authorised_after_the_hold_expired() {
    for resold in [false, true] {
        let race = Race::with(false, |config| config.sweeper.tick_ms = 3_600_000).await;
        race.provider.first("confirm", json!({ "network": "timeout_after" })).await;
        race.pay().await;
        until(&race.fan, &race.order, &["auth_unknown"]).await;
        race.clock.advance(TimeDelta::minutes(9)).await;
        assert_eq!(race.provider.ledger().await.authorised(), TOTAL, "the bank has said yes");
        let other = race.other().await;
        if resold {
            other.hold(race.event, &[1, 2]).await.ok();
        } else {
            // The control: nobody has wanted the seats, and a sale that only believed its hold would get them.
            let mut naive = race.database.pool().begin().await.expect("a transaction");
            let taken = sqlx::query(
                "update event_seat set status = 2, order_id = $1, hold_id = null, held_until = null
                 where hold_id = (select id from hold) and status = 1",
            )
            .bind(race.order["id"].as_str().expect("an id").parse::<Uuid>().expect("an id"))
            .execute(&mut *naive)
            .await
            .expect("nothing stops it");
            assert_eq!(taken.rows_affected(), 2);
            naive.rollback().await.expect("undone");
        }
        let voided = race.until("voided").await;
        let told = (&voided["attempt"]["phase"], &voided["attempt"]["outcome"], &voided["cancel_reason"]);
        assert_eq!(told, (&json!("not_charged"), &json!("hold_ended"), &json!("time_over")), "resold: {resold}");
        assert_eq!((&voided["state"], &voided["tickets"]), (&json!("cancelled"), &json!([])));
        assert_eq!(race.count("select count(*) from event_seat where status = 2").await, 0, "never re-grabbed");
        if !resold {
            other.hold(race.event, &[1, 2]).await.ok(); // anybody's
        }
        assert_eq!(other.my_hold(race.event).await.ok()["hold"]["seats"], json!([1, 2]));
        race.over().await;
    }
}

#[tokio::test]
async fn race_03_the_challenge_is_met_too_late() {
    // Met before anybody looks, or when everything is over.
    for before_the_look in [true, false] {
        let race = Race::with(false, |_| {}).await;
        race.pay_with(CHALLENGED).await;
        let asked = until(&race.fan, &race.order, &["action_required"]).await;
        let approve = async || race.provider.answer_challenge(&asked["attempt"], "approve").await;
        let late = TimeDelta::seconds(425);
        if before_the_look {
            race.clock.freeze_at(race.clock.now().await).await; // nobody looks while nothing is due
            approve().await;
            let ledger = race.provider.ledger().await;
            let met = (&ledger.intents()[0]["status"], ledger.authorised());
            assert_eq!(met, (&json!("requires_confirmation"), 0), "met, and nothing is reserved by that alone");
            race.clock.advance(late).await;
            race.clock.run().await;
        } else {
            race.clock.advance(late).await;
        }
        let voided = race.until("voided").await;
        approve().await;
        assert_eq!(voided["attempt"]["outcome"], "hold_ended");
        assert_eq!(race.calls("confirm").await.len(), 1, "no confirmation with less than a minute left");
        assert_eq!(race.provider.ledger().await.intents()[0]["status"], "canceled");
        race.over().await;
    }

    // The control: an intent that confirms by itself is authorised by the challenge, however late it is met.
    let race = Race::with(false, |_| {}).await;
    let create = format!("amount={TOTAL}&currency=eur&payment_method={CHALLENGED}&capture_method=manual");
    let intent = race.provider.beside("payment_intents", &create).await["id"].as_str().expect("an id").to_owned();
    let asked =
        race.provider.beside(&format!("payment_intents/{intent}/confirm"), "return_url=http://127.0.0.1:1").await;
    let url = &asked["next_action"]["redirect_to_url"]["url"];
    race.provider.answer_challenge(&json!({ "action_url": url }), "approve").await;
    assert_eq!(race.provider.ledger().await.authorised(), TOTAL, "the fault that manual confirmation is for");
    race.provider.beside(&format!("payment_intents/{intent}/cancel"), "").await;
    race.over().await;
}

#[tokio::test]
async fn race_14_no_answer_and_nothing_was_done() {
    for fault in ["timeout_before", "reset_before"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("confirm", json!({ "network": fault })).await;
        race.pay().await;
        race.until("captured").await;
        let calls = race.calls("confirm").await;
        assert_eq!((calls.len(), calls[0].1), (1, 2), "the same key once more: {calls:?}");
        asked_in_between(&race.provider.ops().await, "confirm");
        assert_eq!(race.looks().await, ["requires_confirmation"], "{fault}");
        assert_eq!(race.provider.ledger().await.confirms(), 1);
        race.over().await;
    }
}

#[tokio::test]
async fn race_15_no_answer_and_it_was_done() {
    for fault in ["timeout_after", "reset_after", "half_body", "garbage_2xx"] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("confirm", json!({ "network": fault })).await;
        race.pay().await;
        let unknown = until(&race.fan, &race.order, &["auth_unknown", "captured"]).await;
        assert!(matches!(unknown["attempt"]["phase"].as_str(), Some("asking_bank" | "paid")), "{unknown}");
        race.until("captured").await;
        let calls = race.calls("confirm").await;
        assert_eq!((calls.len(), calls[0].1), (1, 1), "{fault}: not asked for again: {calls:?}");
        assert_eq!(race.looks().await, ["requires_capture"], "{fault}");
        assert_eq!(race.provider.ledger().await.confirms(), 1, "one authorisation");
        race.over().await;
    }
}

#[tokio::test]
async fn race_16_in_use_and_too_many_are_waited_out_under_the_same_key() {
    for (op, status) in [("confirm", "409_in_use"), ("confirm", "429"), ("create", "409_in_use"), ("capture", "429")] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first(op, json!({ "status": status })).await;
        race.pay().await;
        race.provider.until_asked(op).await;
        eventually("it is not known, and waited out", || async {
            let waits = format!(
                "select count(*) from provider_call c join attempt a on a.id = c.attempt_id
                 where c.op = '{op}' and c.state = 'unknown' and a.next_run_at > c.sent_at"
            );
            (race.count(&waits).await == 1).then_some(())
        })
        .await;
        race.until("captured").await;
        let calls = race.calls(op).await;
        assert_eq!((calls.len(), calls[0].1), (1, 2), "{op} {status}: {calls:?}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_17_a_500_that_is_stored_under_the_key() {
    for (op, status) in
        [("confirm", "500_stored"), ("create", "500_stored"), ("capture", "500_stored"), ("capture", "500_after")]
    {
        let race = Race::with(false, |_| {}).await;
        race.provider.first(op, json!({ "status": status })).await;
        race.pay().await;
        race.until("captured").await;
        let calls = race.calls(op).await;
        assert_eq!(calls.len(), if status == "500_after" { 1 } else { 2 }, "{op} {status}: {calls:?}");
        if op == "confirm" {
            let keys: Vec<&str> = calls.iter().filter_map(|(key, _)| key.split_once(':')).map(|(_, n)| n).collect();
            assert_eq!(keys, ["confirm:1", "confirm:2"]);
            asked_in_between(&race.provider.ops().await, "confirm");
            assert!(race.looks().await.iter().all(|status| status == "requires_confirmation"), "still unconfirmed");
            let quiet =
                "select extract(epoch from b.created_at - a.sent_at)::bigint from provider_call a, provider_call b
                 where a.op = 'confirm' and b.op = 'confirm' and a.id < b.id";
            let quiet = race.count(quiet).await;
            assert!(quiet >= 60, "another key after {quiet} s");
        }
        assert_eq!(race.provider.ledger().await.captured(), TOTAL, "once");
        race.over().await;
    }
}

#[tokio::test]
async fn race_25_the_bank_does_not_know_for_long() {
    let race = Race::ready().await;
    race.provider.first("confirm", json!({ "outcome": { "kind": "processing", "ms": 3_600_000 } })).await;
    race.pay().await;
    let unknown = until(&race.fan, &race.order, &["auth_unknown"]).await;
    assert_eq!(unknown["attempt"]["phase"], "asking_bank");
    race.clock.advance(TimeDelta::minutes(9)).await;
    // The seats came back on time, whatever the bank does.
    race.other().await.hold(race.event, &[1, 2]).await.ok();
    assert_eq!(race.fan.pay(&race.order, &key(), CARD).await.code(), "attempt_live");
    race.provider.advance(TimeDelta::hours(1)).await;
    assert_eq!(race.provider.ledger().await.intents()[0]["confirms"], 1, "it has said yes after all");
    let voided = race.until("voided").await;
    assert_eq!(voided["attempt"]["outcome"], "hold_ended");
    assert_eq!(race.count("select count(*) from attempt").await, 1, "no second attempt");
    race.over().await;
}

#[tokio::test]
async fn race_26_another_amount_is_authorised() {
    for delta in [-100, 100] {
        let race = Race::ready().await;
        race.provider.first("confirm", json!({ "outcome": { "kind": "wrong_amount", "delta": delta } })).await;
        race.pay().await;
        let voided = race.until("voided").await;
        assert_eq!((&voided["attempt"]["outcome"], &voided["tickets"]), (&json!("wrong_amount"), &json!([])));
        assert_eq!((race.calls("capture").await.len(), race.provider.ledger().await.authorised()), (0, 0));
        // No new payments, anybody's, until a person has looked.
        let other = race.other().await;
        let theirs = order(&other, race.event, &[5]).await;
        for (fan, order) in [(&race.fan, &race.order), (&other, &theirs)] {
            let refused = fan.pay(order, &key(), CARD).await;
            assert_eq!(refused.code(), "payment_gate_closed");
        }
        let list = race.till().await.get("/api/staff/money").await.ok();
        let closed = (&list["gate"][0]["reason"], &list["gate"][0]["by_person"]);
        assert_eq!(closed, (&json!("wrong_amount"), &json!(true)), "{list}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_27_the_capture_is_unknown() {
    for (fault, sends, look) in [
        ("timeout_before", 2, "requires_capture"),
        ("reset_before", 2, "requires_capture"),
        ("timeout_after", 1, "succeeded"),
        ("reset_after", 1, "succeeded"),
    ] {
        let race = Race::with(false, |_| {}).await;
        race.provider.first("capture", json!({ "network": fault })).await;
        race.pay().await;
        race.until("captured").await;
        let calls = race.calls("capture").await;
        assert_eq!((calls.len(), calls[0].1), (1, sends), "{fault}: {calls:?}");
        assert_eq!(race.looks().await, [look], "{fault}");
        assert_eq!(race.provider.ledger().await.captured(), TOTAL);
        race.over().await;
    }
}

async fn capture_fails() -> Race {
    let race = Race::with(false, |_| {}).await;
    race.provider.first("capture", json!({ "outcome": { "kind": "capture_fails" } })).await;
    race.pay().await;
    race.until("capture_failed").await;
    race
}

#[tokio::test]
async fn race_28_the_capture_fails_for_good() {
    let race = capture_fails().await;
    let due = race.now().await;
    assert_eq!((&due["state"], &due["attempt"]["phase"]), (&json!("payment_due"), &json!("failed")));
    let tickets = due["tickets"].as_array().unwrap();
    assert!(tickets.iter().all(|t| t["state"] == "pending"), "they do not scan");
    assert!(
        tickets.iter().all(|t| t["code"].is_null()),
        "nor are they shown: a door without a network believes a code"
    );
    let paper = format!("/api/orders/{}/tickets.pdf", due["id"].as_str().unwrap());
    let paper = race.fan.request(Method::GET, &paper).send().await.expect("the hub answers");
    assert_eq!(paper.status(), 409);
    let list = race.till().await.get("/api/staff/money").await.ok();
    assert_eq!(list["payment_due"][0]["code"], due["code"], "people are told: {list}");
    // Paid again in time, the same seats are theirs.
    race.pay().await;
    let paid = race.until("captured").await;
    assert_eq!(paid["state"], "confirmed");
    assert!(paid["tickets"].as_array().unwrap().iter().all(|t| t["state"] == "valid" && t["code"].is_string()));
    race.over().await;

    let race = capture_fails().await;
    race.clock.advance(TimeDelta::minutes(29)).await;
    assert_eq!(race.other().await.hold(race.event, &[1]).await.code(), "seats_unavailable", "for half an hour");
    race.clock.advance(TimeDelta::minutes(2)).await;
    eventually("the seats went back", || async {
        let order = race.now().await;
        (order["state"] == "cancelled").then(|| assert_eq!(order["cancel_reason"], "not_paid"))
    })
    .await;
    race.other().await.hold(race.event, &[1, 2]).await.ok();
    race.over().await;
}

/// The buyer cancels while the bank is asked; what happens to the cancellation and after it is the test's.
async fn cancelled_with(rules: &[Value]) -> Race {
    let race = Race::ready().await;
    let slow =
        json!({ "match": { "op": "confirm", "first": 1 }, "effect": { "latency": { "kind": "fixed", "ms": 300 } } });
    race.provider.rules(Value::Array([&[slow], rules].concat())).await;
    race.pay().await;
    race.provider.until_asked("confirm").await;
    race.cancel().await.ok();
    race
}

fn captured_meanwhile() -> Value {
    json!({ "match": { "op": "cancel", "first": 1 }, "effect": { "outcome": { "kind": "captured_meanwhile" } } })
}

#[tokio::test]
async fn race_29_the_cancellation_meets_a_capture() {
    let race = cancelled_with(&[captured_meanwhile()]).await;
    let refunded = race.until("refunded").await;
    assert_eq!((&refunded["attempt"]["outcome"], &refunded["tickets"]), (&json!("refunded"), &json!([])));
    assert_eq!(race.looks().await.last().map(String::as_str), Some("succeeded"), "asked, not guessed");
    let ledger = race.provider.ledger().await;
    assert_eq!((ledger.captured(), ledger.refunded()), (TOTAL, TOTAL));
    assert_eq!(race.calls("refund").await.len(), 1, "once");
    race.over().await;

    // The control: whoever takes a refused cancellation for "there is nothing to let go of" keeps the buyer's money.
    let provider = Provider::start().await;
    let intent = provider.authorise(Uuid::new_v4(), TOTAL, "eur").await;
    provider.rules(json!([captured_meanwhile()])).await;
    let refused = provider.call(&format!("payment_intents/{intent}/cancel"), String::new()).await;
    assert_eq!(refused["error"]["code"], "payment_intent_unexpected_state");
    let ledger = provider.ledger().await;
    assert_eq!((ledger.authorised(), ledger.captured(), ledger.refunded()), (0, TOTAL, 0), "the fault");
}

#[tokio::test]
async fn race_30_the_void_is_unknown() {
    for (fault, sends, look) in [
        ("timeout_before", 2, "requires_capture"),
        ("reset_before", 2, "requires_capture"),
        ("timeout_after", 1, "canceled"),
        ("reset_after", 1, "canceled"),
    ] {
        let race =
            cancelled_with(&[json!({ "match": { "op": "cancel", "first": 1 }, "effect": { "network": fault } })]).await;
        race.until("voided").await;
        let calls = race.calls("cancel").await;
        assert_eq!((calls.len(), calls[0].1), (1, sends), "{fault}: {calls:?}");
        assert!(race.looks().await.contains(&look.to_owned()), "{fault}: {:?}", race.looks().await);
        race.over().await;
    }
}

#[tokio::test]
async fn race_31_the_refund_is_unknown() {
    for (fault, sends) in [("timeout_before", 2), ("timeout_after", 2)] {
        let lost = json!({ "match": { "op": "refund", "first": 1 }, "effect": { "network": fault } });
        let race = cancelled_with(&[captured_meanwhile(), lost]).await;
        race.until("refunded").await;
        assert_eq!(race.provider.ledger().await.refunded(), TOTAL, "once, {fault}");
        let calls = race.calls("refund").await;
        assert_eq!((calls.len(), calls[0].1), (1, sends), "the same key, {fault}: {calls:?}");
        race.over().await;
    }
}

#[tokio::test]
async fn race_35_many_workers_on_one_attempt() {
    for leases_hold in [true, false] {
        let race = Race::with(true, |config| config.payment.timeout_ms = 20_000).await;
        let parts = race.hub.parts();
        let stop = CancellationToken::new();
        let more: Vec<_> =
            (0..4).map(|_| tokio::spawn(parts.payments.clone().run(parts.pool.clone(), stop.clone()))).collect();
        let slow = json!({ "kind": "fixed", "ms": 400 });
        let hints = json!({ "before_response": true, "duplicate": 3 });
        race.provider.rules(json!([{ "effect": { "latency": slow, "webhook": hints } }])).await;
        race.pay().await;
        if leases_hold {
            race.until("captured").await;
        } else {
            // Whoever is at it has lost the lease already, all the time: several are.
            eventually("it is captured", || async {
                sqlx::query(
                    "update attempt set leased_until = null, next_run_at = db_clock() where state <> 'captured'",
                )
                .execute(race.database.pool())
                .await
                .expect("the attempt");
                (race.now().await["attempt"]["state"] == "captured").then_some(())
            })
            .await;
        }
        let calls = [race.calls("create").await, race.calls("confirm").await, race.calls("capture").await];
        let sends: i32 = calls.iter().flatten().map(|(_, sends)| sends).sum();
        assert_eq!(sends == 3, leases_hold, "the control: without leases they meet at the provider: {calls:?}");
        assert!(calls.iter().all(|calls| calls.len() == 1), "one key each: {calls:?}");
        let ledger = race.provider.ledger().await;
        assert_eq!((ledger.confirms(), ledger.captured()), (1, TOTAL), "leases hold: {leases_hold}");
        stop.cancel();
        for worker in more {
            worker.await.expect("a worker ends");
        }
        race.over().await;
    }
}

#[tokio::test]
async fn race_35_a_worker_that_has_lost_its_lease_asks_for_no_second_refund() {
    let proxy = Proxy::start().await;
    let race = Race::over_wire(&proxy, |config| config.payment.timeout_ms = 20_000).await;
    race.pay().await;
    race.until("captured").await;
    let till = race.till().await;
    race.provider.first("refund", json!({ "latency": { "kind": "fixed", "ms": 3_000 } })).await;
    // One worker reads that nobody has asked for the refund yet, and stands still.
    let mut held = proxy.hold_next("SELECT ID, PATH, IDEM_KEY", Side::Answer);
    let part = json!({ "what": { "kind": "amount", "amount_minor": 4_000 }, "reason": "a cold hall" });
    till.refund(&race.order, &key(), part).await.ok();
    held.caught().await;
    // Its lease runs out; another takes the attempt up, on a wire of its own, and asks for the refund.
    let (parts, stop) = (race.hub.parts(), CancellationToken::new());
    let other = tokio::spawn(parts.payments.clone().run(race.database.pool().clone(), stop.clone()));
    race.set("update attempt set leased_until = null, next_run_at = db_clock()").await;
    race.provider.until_asked("refund").await;
    held.let_go();
    let arrived = "select count(*) from refund where state = 'succeeded'";
    eventually("it has arrived", || async { (race.count(arrived).await == 1).then_some(()) }).await;
    let on_its_way = "select count(*) from provider_call where op = 'refund' and state <> 'answered'";
    eventually("nobody asks any more", || async { (race.count(on_its_way).await == 0).then_some(()) }).await;
    assert_eq!(race.calls("refund").await.len(), 1, "one key");
    assert_eq!(race.provider.ledger().await.refunded(), 4_000, "once");
    stop.cancel();
    other.await.expect("a worker ends");
    race.over().await;
}
