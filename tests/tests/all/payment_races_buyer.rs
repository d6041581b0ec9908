//! The races of paying that buyers run against themselves, 18 to 23 of the specification: clicks, tabs, cards, carts.

use fullhouse_tests::{
    fan::{self, Fan},
    provider::{CARD, CHALLENGED, DECLINED, key, order, until},
    race::{Race, TOTAL},
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

/// The control: two clicks that look first and write then, and no lock to keep them apart. Both see that there is no
/// attempt. What the second is stopped by; these constraints are off.
async fn clicks_that_look_first(race: &Race, keys: [&str; 2], off: &[&str]) -> Option<String> {
    let order: Uuid = race.order["id"].as_str().expect("an id").parse().expect("an id");
    let run = async |sql: &str| {
        sqlx::raw_sql(sql).execute(race.database.pool()).await.expect("it runs");
    };
    let mut back = Vec::new();
    for constraint in off {
        let definition: String = sqlx::query_scalar("select indexdef from pg_indexes where indexname = $1")
            .bind(constraint)
            .fetch_one(race.database.pool())
            .await
            .expect("an index");
        back.push(definition);
        let is_key =
            constraint.strip_suffix("_pkey").map(|table| format!("alter table {table} drop constraint {constraint}"));
        run(&is_key.unwrap_or_else(|| format!("drop index {constraint}"))).await;
    }
    let mut clicks = Vec::new();
    for _ in keys {
        let mut click = race.database.pool().begin().await.expect("a transaction");
        let seen: i64 =
            sqlx::query_scalar("select count(*) from attempt").fetch_one(&mut *click).await.expect("a number");
        assert_eq!(seen, 0);
        clicks.push(click);
    }
    let mut stopped = None;
    for (mut click, key) in clicks.into_iter().zip(keys) {
        let opened = sqlx::query(
            "with t as (
                 insert into tender (id, order_id, kind, amount_minor, created_at)
                 values (gen_random_uuid(), $1, 'card', 9000, db_clock()) returning id
             ), a as (
                 insert into attempt (id, order_id, tender_id, amount_minor, currency, payment_method, state,
                                      hold_expires_at, created_at, updated_at)
                 select gen_random_uuid(), $1, id, 9000, 'EUR', 'pm', 'new', db_clock(), db_clock(), db_clock() from t
                 returning id
             )
             insert into client_request (order_id, key, body_hash, attempt_id, created_at)
             select $1, $2, '', id, db_clock() from a",
        )
        .bind(order)
        .bind(key)
        .execute(&mut *click)
        .await;
        match opened {
            Ok(_) => click.commit().await.expect("committed"),
            Err(error) => stopped = fullhouse::db::constraint(&error).map(str::to_owned),
        }
    }
    run("delete from client_request; delete from attempt; delete from tender").await;
    for definition in back {
        run(&definition).await;
    }
    stopped
}

#[tokio::test]
async fn race_18_a_double_click_is_one_attempt() {
    let race = Race::ready().await;
    let both = ["attempt_one_live", "client_request_pkey"];
    assert_eq!(clicks_that_look_first(&race, ["k", "k"], &both).await, None, "the fault: two attempts for one click");
    assert_eq!(
        clicks_that_look_first(&race, ["k", "k"], &both[..1]).await.as_deref(),
        Some("client_request_pkey"),
        "the database alone would not let it happen"
    );

    let key = key();
    let clicks = (0..4).map(|_| race.fan.pay(&race.order, &key, CARD));
    let ids: Vec<Value> = join_all(clicks)
        .await
        .into_iter()
        .map(|answer| {
            assert_eq!(answer.status, 202);
            answer.body["attempt"]["id"].clone()
        })
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    race.until("captured").await;
    // And long after: the same answer, from a reload.
    let again = race.fan.pay(&race.order, &key, CARD).await;
    assert_eq!((again.status.as_u16(), &again.body["attempt"]["id"]), (202, &ids[0]));
    assert_eq!(race.count("select count(*) from attempt").await, 1);
    assert_eq!(race.provider.ledger().await.confirms(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_19_a_key_is_used_for_another_request() {
    let race = Race::ready().await;
    let key = key();
    race.provider.first("confirm", json!({ "latency": { "kind": "fixed", "ms": 300 } })).await;
    race.fan.pay(&race.order, &key, CARD).await.ok();
    race.provider.until_asked("confirm").await;
    let refused = async || {
        let other = race.fan.pay(&race.order, &key, CHALLENGED).await;
        assert_eq!((other.status.as_u16(), other.code()), (422, "idempotency_mismatch"));
    };
    refused().await; // while the first is under way
    race.until("captured").await;
    refused().await; // and after it
    assert_eq!(race.count("select count(*) from attempt").await, 1);
    assert_eq!(race.provider.ops().await.iter().filter(|op| *op == "create").count(), 1, "nothing is sent");
    assert_eq!(race.provider.ledger().await.confirms(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_20_two_tabs_pay_one_order() {
    let race = Race::ready().await;
    let index = "attempt_one_live";
    assert_eq!(clicks_that_look_first(&race, ["a", "b"], &[index]).await, None, "the fault: two attempts live");
    assert_eq!(clicks_that_look_first(&race, ["a", "b"], &[]).await.as_deref(), Some(index));

    race.provider.rules(json!([{ "effect": { "latency": { "kind": "fixed", "ms": 100 } } }])).await;
    let tabs = (0..6).map(|_| async { race.fan.pay(&race.order, &key(), CARD).await });
    let answers = join_all(tabs).await;
    let won: Vec<&Value> = answers.iter().filter(|a| a.status == 202).map(|a| &a.body["attempt"]["id"]).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    for lost in answers.iter().filter(|a| a.status != 202) {
        let told = (lost.status.as_u16(), lost.code(), &lost.body["attempt_id"]);
        assert_eq!(told, (409, "attempt_live", won[0]), "the live one, to follow");
    }
    race.until("captured").await;
    assert_eq!(race.provider.ledger().await.confirms(), 1);
    race.over().await;
}

#[tokio::test]
async fn race_21_a_new_card_while_the_first_is_in_doubt() {
    // The doubt ends with a decline; or with a refusal, and then the cancellation of the first has to be confirmed.
    let declined = json!([{ "match": { "op": "confirm", "first": 1 },
        "effect": { "network": "timeout_after", "outcome": { "kind": "decline", "code": "do_not_honor" } } }]);
    let refused = json!([
        { "match": { "op": "confirm", "first": 1 }, "effect": { "status": "400" } },
        { "match": { "op": "cancel", "first": 1 }, "effect": { "network": "timeout_before" } },
    ]);
    for (rules, doubt, end) in [(declined, "auth_unknown", "declined"), (refused, "void_unknown", "voided")] {
        let race = Race::with(false, |_| {}).await;
        race.provider.rules(rules).await;
        let first = race.pay().await;
        until(&race.fan, &race.order, &[doubt]).await;
        let new_card = race.fan.pay(&race.order, &key(), CARD).await;
        let told = (new_card.status.as_u16(), new_card.code(), &new_card.body["attempt_id"]);
        assert_eq!(told, (409, "attempt_live", &first["id"]), "{doubt}");
        assert_eq!(race.provider.ledger().await.intents().len(), 1, "{doubt}: nothing was begun");
        race.until(end).await;
        race.pay().await;
        let paid = race.until("captured").await;
        assert_eq!(paid["tickets"].as_array().map(Vec::len), Some(2), "{end}");
        race.over().await;
    }

    // The control: whoever believes that no answer is a decline holds the buyer's money twice.
    let race = Race::with(false, |_| {}).await;
    race.provider.first("confirm", json!({ "network": "timeout_after" })).await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    let second = race.provider.authorise(Uuid::new_v4(), TOTAL, "eur").await;
    assert_eq!(race.provider.ledger().await.authorised(), 2 * TOTAL, "the fault");
    race.provider.beside(&format!("payment_intents/{second}/cancel"), "").await;
    race.until("captured").await;
    race.over().await;
}

/// Whatever a buyer may do with a cart.
async fn changes(fan: &Fan, event: i64) -> Vec<fan::Answer> {
    let hold = fan.my_hold(event).await.ok()["hold"].clone();
    let id = hold["id"].as_str().expect("a hold");
    let dearer = json!({ "tickets": [{ "seat_no": 1, "ticket_type": "child" }] });
    vec![
        fan.hold(event, &[3]).await,
        fan.hold_with(event, json!({ "seats": [1], "replace": true })).await,
        fan.release_seats(id, &[1]).await,
        fan.post(&format!("/api/holds/{id}/checkout"), dearer).await,
        fan.release(id).await,
    ]
}

#[tokio::test]
async fn race_22_the_cart_is_changed_during_an_attempt() {
    let race = Race::with(false, |_| {}).await;
    sqlx::query("insert into price (event_id, level, ticket_type, amount_minor) values ($1, 0, 'child', 1000)")
        .bind(race.event)
        .execute(race.database.pool())
        .await
        .expect("a second price");
    race.provider
        .rules(json!([{ "match": { "op": "confirm", "first": 1 }, "effect": { "network": "timeout_after" } }]))
        .await;
    race.pay().await;
    until(&race.fan, &race.order, &["auth_unknown"]).await;
    let before = (race.now().await["lines"].clone(), race.fan.my_hold(race.event).await.ok()["hold"].clone());
    for change in changes(&race.fan, race.event).await {
        assert_eq!((change.status.as_u16(), change.code()), (409, "hold_frozen"), "{change:?}");
    }
    assert_eq!((race.now().await["lines"].clone(), race.fan.my_hold(race.event).await.ok()["hold"].clone()), before);
    let paid = race.until("captured").await;
    assert_eq!(paid["tickets"].as_array().map(Vec::len), Some(2), "what was paid for");
    assert_eq!(race.provider.ledger().await.captured(), TOTAL);
    race.over().await;

    // The control: after an attempt the same changes are the buyer's to make.
    let race = Race::with(false, |_| {}).await;
    race.pay_with(DECLINED).await;
    until(&race.fan, &race.order, &["declined"]).await;
    let hold = race.fan.my_hold(race.event).await.ok()["hold"]["id"].as_str().expect("a hold").to_owned();
    race.fan.release_seats(&hold, &[1]).await.ok();
    // What is paid then is what is in the cart then.
    assert_eq!(race.fan.pay(&race.order, &key(), CARD).await.code(), "order_not_open");
    let smaller = race.fan.checkout(&hold).await.ok()["order"].clone();
    race.fan.pay(&smaller, &key(), CARD).await.ok();
    until(&race.fan, &smaller, &["captured"]).await;
    assert_eq!(race.provider.ledger().await.captured(), TOTAL / 2);
    race.over().await;
}

#[tokio::test]
async fn race_22_paying_and_changing_the_cart_at_the_same_moment() {
    let race = Race::with(false, |_| {}).await;
    let mut paid_first = 0;
    let fans = fan::many(&race.database, &race.hub.url(), 8).await;
    for (round, fan) in fans.iter().enumerate() {
        let seats = [3 + 2 * round as i32, 4 + 2 * round as i32];
        let open = order(fan, race.event, &seats).await;
        let hold = fan.my_hold(race.event).await.ok()["hold"]["id"].as_str().expect("a hold").to_owned();
        let key = key();
        let (pay, change) = (fan.pay(&open, &key, CARD), fan.release_seats(&hold, &seats[..1]));
        let (paid, changed) = match round {
            // Both orders, and then whichever comes.
            0 => (pay.await, change.await),
            1 => {
                let changed = change.await;
                (pay.await, changed)
            }
            _ if round % 2 == 0 => tokio::join!(pay, change),
            _ => {
                let (changed, paid) = tokio::join!(change, pay);
                (paid, changed)
            }
        };
        if paid.status == 202 {
            paid_first += 1;
            assert_eq!(changed.code(), "hold_frozen", "round {round}");
            let sold = until(fan, &open, &["captured"]).await;
            assert_eq!(sold["tickets"].as_array().map(Vec::len), Some(2), "round {round}");
        } else {
            assert_eq!(paid.code(), "order_not_open", "round {round}");
            changed.ok();
        }
    }
    assert!((1..8).contains(&paid_first), "both orders occur");
    assert_eq!(race.provider.ledger().await.captured(), paid_first * TOTAL);
    race.over().await;
}

#[tokio::test]
async fn race_23_the_customer_cancels_while_the_bank_is_asked() {
    let race = Race::ready().await;
    race.provider.first("confirm", json!({ "latency": { "kind": "fixed", "ms": 400 } })).await;
    race.pay().await;
    race.provider.until_asked("confirm").await;
    race.cancel().await.ok();
    let flagged = race.now().await;
    assert_eq!((&flagged["state"], &flagged["attempt"]["state"]), (&json!("open"), &json!("confirming")), "a flag");
    let voided = race.until("voided").await;
    assert_eq!((&voided["state"], &voided["attempt"]["outcome"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(voided["cancel_reason"], "buyer");
    let ledger = race.provider.ledger().await;
    assert_eq!((ledger.confirms(), ledger.authorised(), ledger.captured()), (1, 0, 0), "authorised, and let go");
    let hold = race.fan.my_hold(race.event).await.ok()["hold"].clone();
    assert_eq!((&hold["seats"], &hold["frozen"]), (&json!([1, 2]), &json!(false)), "the seats are still theirs");
    race.over().await;

    // The control, the other order: who cancels after the sale has bought, and is told so.
    let race = Race::ready().await;
    race.pay().await;
    race.until("captured").await;
    let late = race.cancel().await;
    assert_eq!((late.status.as_u16(), late.code()), (409, "order_not_open"));
    assert_eq!(race.now().await["state"], "confirmed");
    race.over().await;
}
