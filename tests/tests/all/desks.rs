//! The desks of a hub and what they take up: connections, memory, readings of a hall.

use std::{sync::atomic::Ordering, time::Duration};

use chrono::TimeDelta;
use fullhouse::hold::Request;
use fullhouse_tests::{database::Database, eventually, fan, hub::Hub, rows::Rows};
use serde_json::json;

#[tokio::test]
async fn busy_desks_leave_connections_to_others() {
    let database = Database::new().await;
    let mut events = Vec::new();
    for _ in 0..6 {
        events.push(Rows::new(1, 10).open(database.pool()).await);
    }
    let mut config = database.config().await;
    config.database.connections_max = 4;
    config.database.acquire_timeout_ms = 500; // below the second for which a desk keeps its connection
    let hub = Hub::start(config).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    for seat in 0..3 {
        for event in &events {
            fan.hold(*event, &[seat]).await.ok();
        }
    }
    hub.stop().await;
    database.finish().await;
}

#[tokio::test]
async fn a_desk_that_nobody_asks_closes_and_opens_again() {
    let database = Database::new().await;
    let event = Rows::new(1, 10).open(database.pool()).await;
    let mut config = database.config().await;
    config.desk.idle_close_s = 0;
    let hub = Hub::start(config).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    for seat in 0..5 {
        fan.hold(event, &[seat]).await.ok();
        eventually("the desk has closed", || async { (hub.parts().desks.open_desks() == 0).then_some(()) }).await;
    }
    hub.stop().await;
    database.finish().await;
}

/// Whoever comes while a desk closes finds the next one.
#[tokio::test]
async fn no_request_is_lost_while_desks_close() {
    let database = Database::new().await;
    let event = Rows::new(10, 10).open(database.pool()).await;
    let mut config = database.config().await;
    config.desk.idle_close_s = 0;
    let hub = Hub::start(config).await;
    let desks = hub.parts().desks.clone();
    desks.ask(event, Request::Expire(Vec::new())).await.unwrap();
    let asked = (0..200u64).map(|n| {
        let desks = desks.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(n * 50)).await; // spread, so that some meet it closing
            desks.ask(event, Request::Expire(Vec::new())).await
        })
    });
    for answer in futures_util::future::join_all(asked).await {
        answer.unwrap().unwrap();
    }
    hub.stop().await;
    database.finish().await;
}

/// A house without a seat for a wish is told so after one reading, not after five.
#[tokio::test]
async fn a_sold_out_house_is_not_decided_over_and_over() {
    let database = Database::new().await;
    let event = Rows::new(1, 6).open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fans = fan::many(&database, &hub.url(), 2).await;
    fans[0].hold(event, &[0, 1, 2, 3, 4, 5]).await.ok();
    let batches = || hub.parts().desks.counts().batches.load(Ordering::Relaxed);
    let before = batches();
    assert_eq!(fans[1].best(event, 2).await.code(), "none_together");
    assert!(batches() - before <= 2, "{} batches for one wish", batches() - before);
    // What comes free is found all the same.
    let hold = fans[0].my_hold(event).await.ok()["hold"]["id"].as_str().unwrap().to_owned();
    fans[0].release_seats(&hold, &[2, 3]).await.ok();
    assert_eq!(fans[1].best(event, 2).await.ok()["hold"]["seats"], json!([2, 3]));
    hub.stop().await;
    database.finish().await;
}

/// A hold that lives for longer than the hour of the budget still spends it.
#[tokio::test]
async fn a_long_hold_spends_its_budget_too() {
    let (database, clock) = Database::with_clock().await;
    let hall = Rows { hold_ttl_s: 3 * 3600, churn_seats_max: 8, ..Rows::new(2, 10) };
    let event = hall.open(database.pool()).await;
    let hub = Hub::start(database.config().await).await;
    let fan = &fan::many(&database, &hub.url(), 1).await[0];
    fan.hold(event, &[0, 1, 2, 3, 4, 5]).await.ok();
    clock.advance(TimeDelta::minutes(61)).await;
    let moved = fan.hold_with(event, json!({ "seats": [10, 11, 12, 13, 14, 15], "replace": true })).await;
    assert_eq!(moved.code(), "churn_spent");
    hub.stop().await;
    database.finish().await;
}
