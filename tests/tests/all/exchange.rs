//! What staff do with an order besides giving it back: exchange seats, look it up, write beside it.

use std::sync::atomic::{AtomicBool, Ordering};

use fullhouse_tests::{
    eventually,
    fan::{self, Fan},
    provider::key,
    rows::Rows,
    scene::Scene,
};
use serde_json::{Value, json};

/// The second row costs 60.00, the third 30.00, the first 45.00.
async fn scene() -> Scene {
    let scene = Scene::without_webhooks(Rows::new(3, 10), |_| {}).await;
    levels(&scene, scene.event).await;
    scene
}

async fn levels(scene: &Scene, event: i64) {
    for statement in [
        "insert into price_level (event_id, level, name, category, color) values ($1, 1, 'Better', 'Better', '#ffffff'), ($1, 2, 'Worse', 'Worse', '#000000')",
        "insert into price (event_id, level, ticket_type, amount_minor) values ($1, 1, 'adult', 6000), ($1, 2, 'adult', 3000)",
        "update event_seat set level = seat_no / 10 where event_id = $1",
    ] {
        sqlx::query(statement).bind(event).execute(scene.database.pool()).await.expect("levels");
    }
}

async fn exchange(scene: &Scene, order: &Value, key: &str, pairs: &[(i32, i32)], received: Option<i64>) -> fan::Answer {
    let seats: Vec<Value> = pairs.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
    let mut body = json!({ "seats": seats, "reason": "a pillar" });
    if let Some(received) = received {
        body["received_minor"] = json!(received);
    }
    let id = order["id"].as_str().expect("an id");
    scene.till.post_once(&format!("/api/staff/orders/{id}/exchange"), key, body).await
}

#[tokio::test]
async fn an_exchange_costs_the_difference_or_gives_it_back() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    let old: Vec<String> = paid["tickets"].as_array().unwrap().iter().map(|t| t["code"].to_string()).collect();

    // For nothing.
    let once = key();
    let same = exchange(&scene, &paid, &once, &[(1, 5)], None).await.ok();
    assert_eq!((&same["difference_minor"], &same["order"]["total_minor"]), (&json!(0), &json!(9_000)));
    assert_eq!(exchange(&scene, &paid, &once, &[(1, 5)], None).await.ok()["difference_minor"], 0, "the same one");
    assert_eq!(exchange(&scene, &paid, &once, &[(2, 6)], None).await.code(), "idempotency_mismatch");
    let alive = |order: &Value| -> Vec<Value> {
        order["tickets"].as_array().unwrap().iter().filter(|t| t["state"] == "valid").cloned().collect()
    };
    assert_eq!(alive(&same["order"]).iter().map(|t| t["seat_no"].clone()).collect::<Vec<_>>(), [2, 5]);
    assert!(alive(&same["order"]).iter().any(|t| !old.contains(&t["code"].to_string())), "a new code");
    let mails = scene.count("select count(*) from mail where kind = 'reissued'").await;
    assert_eq!(mails, 1, "what was mailed before opens no door: the new tickets follow, once");

    // For more: cash over the counter.
    let refused = exchange(&scene, &paid, &key(), &[(5, 15)], None).await;
    assert_eq!((refused.code(), &refused.body["difference_minor"]), ("tender_invalid", &json!(1_500)));
    let more = exchange(&scene, &paid, &key(), &[(5, 15)], Some(2_000)).await.ok();
    assert_eq!((&more["difference_minor"], &more["change_minor"]), (&json!(1_500), &json!(500)));
    assert_eq!(more["order"]["total_minor"], 10_500);

    // For less: to the card.
    let less = exchange(&scene, &paid, &key(), &[(2, 22)], None).await.ok();
    assert_eq!((&less["difference_minor"], &less["order"]["total_minor"]), (&json!(-1_500), &json!(9_000)));
    eventually("the difference has arrived", || async {
        (scene.provider.ledger().await.refunded() == 1_500).then_some(())
    })
    .await;

    for (pairs, code) in [
        (&[(1, 6)][..], "seat_unknown"),
        (&[(15, 22)][..], "seats_unavailable"),
        (&[(15, 99)][..], "seats_unavailable"),
        (&[(15, 6), (22, 6)][..], "seats_repeated"),
        (&[][..], "seats_empty"),
    ] {
        assert_eq!(exchange(&scene, &paid, &key(), pairs, None).await.code(), code, "{pairs:?}");
    }

    // And then everything goes back: to the card what came from it, the rest from the drawer.
    let all = json!({ "what": { "kind": "all" }, "seats_become": "on_sale", "reason": "ill" });
    let back = scene.till.refund(&paid, &key(), all).await.ok();
    let flows: Vec<(String, i64)> = back["refunds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["kind"].as_str().unwrap().to_owned(), r["amount_minor"].as_i64().unwrap()))
        .collect();
    assert_eq!(flows, [("card".to_owned(), 7_500), ("cash".to_owned(), 1_500)]);
    eventually("all of it has arrived", || async { (scene.provider.ledger().await.refunded() == 9_000).then_some(()) })
        .await;
    scene.close().await;
}

#[tokio::test]
async fn a_seat_of_which_part_was_given_back_is_not_exchanged_and_says_why() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1, 2]).await;
    let part = json!({ "what": { "kind": "amount", "amount_minor": 500 }, "reason": "a cold hall" });
    scene.till.refund(&paid, &key(), part).await.ok();
    let told = exchange(&scene, &paid, &key(), &[(1, 5)], None).await;
    assert_eq!((told.code(), &told.body["seats"]), ("seat_partly_refunded", &json!([1])));
    assert_eq!(exchange(&scene, &paid, &key(), &[(7, 5)], None).await.code(), "seat_unknown", "never theirs");
    assert_eq!((scene.status(1).await, scene.status(5).await), (2, 0));
    scene.until_settled().await;
    scene.close().await;
}

#[tokio::test]
async fn while_seats_are_exchanged_nobody_gets_in_between() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    let stop = AtomicBool::new(false);
    let bots = fan::many(&scene.database, &scene.hub.url(), 2).await;
    // One wants the old seat, the other the new one, all the time.
    let bot = async |bot: &Fan, seat: i32| -> bool {
        while !stop.load(Ordering::Relaxed) {
            if bot.hold(scene.event, &[seat]).await.status.is_success() {
                return true;
            }
        }
        false
    };
    let desk = async {
        // Seat 2 is free until the bot has it: then the exchange is refused, and the old seat stays.
        let answer = exchange(&scene, &paid, &key(), &[(1, 2)], None).await;
        let exchanged = answer.status.is_success();
        let freed = if exchanged { 1 } else { 2 };
        eventually("one of them has its seat", || async { (scene.status(freed).await == 1).then_some(()) }).await;
        stop.store(true, Ordering::Relaxed);
        exchanged
    };
    let (exchanged, old, new) = tokio::join!(desk, bot(&bots[0], 1), bot(&bots[1], 2));
    assert_eq!((old, new), (exchanged, !exchanged), "the old seat is free only with the new one sold");
    let now = fan.order(paid["id"].as_str().unwrap()).await.ok()["order"].clone();
    assert_eq!(now["lines"][0]["seat_no"], if exchanged { 2 } else { 1 });
    scene.close().await;
}

#[tokio::test]
async fn an_order_has_a_log_that_people_write_into() {
    let scene = scene().await;
    let fan = scene.fan().await;
    let paid = scene.bought(&fan, &[1]).await;
    exchange(&scene, &paid, &key(), &[(1, 2)], None).await.ok();
    let path = format!("/api/staff/orders/{}", paid["id"].as_str().expect("an id"));
    assert_eq!(scene.till.post(&format!("{path}/notes"), json!({ "text": "called twice" })).await.status, 204);
    assert_eq!(scene.till.post(&format!("{path}/notes"), json!({ "text": " " })).await.code(), "bad_request");
    let order = scene.till.get(&path).await.ok();
    let log: Vec<(&str, &str)> = order["log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| (n["verb"].as_str().unwrap(), n["text"].as_str().unwrap()))
        .collect();
    assert_eq!(log, [("exchange", "Stalls 1 2 exchanged for Stalls 1 3 (+0): a pillar"), ("note", "called twice")]);
    assert_eq!(order["log"][1]["actor"], "terminal Window 1");
    let nobodys = format!("/api/staff/orders/{}", uuid::Uuid::nil());
    assert_eq!(scene.till.get(&nobodys).await.code(), "order_unknown");
    scene.close().await;
}

#[tokio::test]
async fn an_order_is_found_by_whatever_somebody_has() {
    let scene = scene().await;
    let (fan, other) = (scene.fan().await, scene.fan().await);
    sqlx::query("update account set name = 'Łukasz 100% Žižek' where email = $1")
        .bind(&fan.email)
        .execute(scene.database.pool())
        .await
        .expect("a name");
    let paid = scene.bought(&fan, &[1, 11]).await;
    scene.bought(&other, &[12]).await;
    let code = paid["code"].as_str().expect("a code");
    let ticket = paid["tickets"][0]["code"].as_str().expect("a ticket");
    let find = async |text: &str| -> Vec<Value> {
        let url = reqwest::Url::parse_with_params("http://x/", [("q", text)]).expect("an address");
        let query = url.query().expect("a query");
        let found = scene.till.get(&format!("/api/staff/orders?{query}")).await.ok();
        found["orders"].as_array().expect("orders").iter().map(|o| o["code"].clone()).collect()
    };
    // The other paid with another card; the provider's ids are the first one's.
    scene.run("update attempt set card_last4 = '0005' where created_at = (select max(created_at) from attempt)").await;
    let intent: String = sqlx::query_scalar("select pi_id from attempt order by created_at limit 1")
        .fetch_one(scene.database.pool())
        .await
        .expect("an intent");
    let parts = scene.hub.parts();
    fullhouse::payment::reconcile::run(&parts.payments, &parts.pool, 48).await.expect("the books are read");
    let charge: String = sqlx::query_scalar("select charge_id from provider_intent where pi_id = $1")
        .bind(&intent)
        .fetch_one(scene.database.pool())
        .await
        .expect("a charge");
    scene
        .till
        .refund(&paid, &key(), json!({ "what": { "kind": "amount", "amount_minor": 100 }, "reason": "cold" }))
        .await
        .ok();
    scene.until_settled().await;
    let refund: String =
        sqlx::query_scalar("select provider_id from refund").fetch_one(scene.database.pool()).await.expect("a refund");
    for text in [
        code,
        &code.to_lowercase(),
        ticket,
        &fan.email,
        "žižek",
        "100% Łukasz",
        "Stalls 1 2",
        "stalls 2 2",
        "STALLS, row 2, seat 2",
        "Section Stalls Row 1 Seat 2",
        "Stalls 1列 2番",
        "4242",
        &intent,
        &charge,
        &refund,
    ] {
        assert_eq!(find(text).await, [json!(code)], "{text}");
    }
    let shown = scene.now(&paid).await;
    assert_eq!(shown["attempt"]["card"], json!({ "brand": "visa", "last4": "4242" }));
    for text in
        ["424", "42424242", "_", "%%", "100_", "'", "nobody", "Stalls 9 9", "Stalls 2", "Stalls, row 2", "row seat"]
    {
        assert!(find(text).await.is_empty(), "{text}");
    }
    assert_eq!(scene.till.get("/api/staff/orders").await.code(), "bad_request");
    assert_eq!(fan.get("/api/staff/orders?q=x").await.code(), "forbidden");
    scene.close().await;
}
