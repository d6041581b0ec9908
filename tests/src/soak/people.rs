//! Whoever comes to a soak. They speak only the wire, and whatever fails they try again or give up, as people do.

use std::time::Duration;

use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Doors, a_door};
use crate::{
    fan::{Answer, Fan},
    provider::{CARD, CHALLENGED, DECLINED},
    till::Till,
};

const CARDS: [&str; 9] = [CARD, CARD, CARD, CARD, CARD, DECLINED, CHALLENGED, CHALLENGED, "pm_sim_lostAnswer"];

/// Buys again and again until `stop`.
pub async fn buy(fan: Fan, doors: Doors, provider: String, event: i64, mut rng: SmallRng, stop: CancellationToken) {
    while !stop.is_cancelled() {
        pause(&mut rng, 50..400).await;
        let Some(door) = a_door(&doors, &mut rng) else { continue };
        let _ = buy_once(&fan.at(&door), &doors, &provider, event, &mut rng, &stop).await;
    }
}

/// One visit; None: something failed, and the buyer begins anew.
async fn buy_once(
    fan: &Fan,
    doors: &Doors,
    provider: &str,
    event: i64,
    rng: &mut SmallRng,
    stop: &CancellationToken,
) -> Option<()> {
    let first = rng.random_range(0..798);
    let seats: Vec<i32> = (first..first + rng.random_range(1..=2)).collect();
    let body = json!({ "seats": seats, "replace": true });
    let hold = send(fan, &format!("/api/events/{event}/hold"), body).await?;
    let hold_id = hold["hold"]["id"].as_str()?;
    let order = send(fan, &format!("/api/holds/{hold_id}/checkout"), json!({ "tickets": [] })).await?["order"].clone();
    let id = order["id"].as_str()?;
    for _ in 0..3 {
        let fan = fan.at(&a_door(doors, rng)?);
        let card = CARDS.choose(rng)?;
        let key = Uuid::new_v4().to_string();
        let paid = pay(&fan, &order, &key, card).await;
        if rng.random_bool(0.2) {
            pay(&fan.at(&a_door(doors, rng)?), &order, &key, card).await; // a double click
        }
        if rng.random_bool(0.1) {
            pay(&fan.at(&a_door(doors, rng)?), &order, &Uuid::new_v4().to_string(), CARD).await; // another tab
        }
        if rng.random_bool(0.05) {
            send(&fan, &format!("/api/orders/{id}/cancel"), Value::Null).await;
        }
        if paid.is_none() {
            pause(rng, 100..500).await;
        }
        match follow(doors, &fan, id, provider, rng, stop).await?.as_str() {
            "declined" | "failed" => {} // another card
            _ => return Some(()),
        }
    }
    Some(())
}

/// Watches an order until its attempt is decided, or patience ends. Answers the bank's challenge, or doesn't.
async fn follow(
    doors: &Doors,
    fan: &Fan,
    order: &str,
    provider: &str,
    rng: &mut SmallRng,
    stop: &CancellationToken,
) -> Option<String> {
    let mut answered = false;
    for _ in 0..rng.random_range(10..60) {
        if stop.is_cancelled() {
            return None;
        }
        pause(rng, 60..300).await;
        let fan = fan.at(&a_door(doors, rng)?);
        let Some(answer) = get(&fan, &format!("/api/orders/{order}")).await else { continue };
        let attempt = &answer["order"]["attempt"];
        match attempt["phase"].as_str() {
            Some("action_required") if !answered => {
                answered = rng.random_bool(0.7);
                if answered {
                    meet_challenge(provider, attempt, rng).await;
                    send(&fan, &format!("/api/orders/{order}/resume"), Value::Null).await;
                }
            }
            Some(phase @ ("declined" | "paid" | "not_charged" | "failed")) => return Some(phase.to_owned()),
            _ => {}
        }
    }
    None
}

async fn meet_challenge(provider: &str, attempt: &Value, rng: &mut SmallRng) -> Option<()> {
    let url: reqwest::Url = attempt["action_url"].as_str()?.parse().ok()?;
    let secret = url.query_pairs().find(|(k, _)| k == "secret")?.1.into_owned();
    let answer = if rng.random_bool(0.8) { "approve" } else { "fail" };
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().ok()?;
    let address = format!("{provider}{}?{}", url.path(), url.query().unwrap_or_default());
    client.post(address).body(format!("answer={answer}&secret={secret}")).send().await.ok()?;
    Some(())
}

async fn pay(fan: &Fan, order: &Value, key: &str, card: &str) -> Option<Value> {
    let id = order["id"].as_str()?;
    let body = json!({ "payment_method": card, "amount_minor": order["total_minor"], "currency": order["currency"] });
    let request = fan.request(Method::POST, &format!("/api/orders/{id}/pay")).header("idempotency-key", key);
    answer(request.json(&body)).await
}

async fn send(fan: &Fan, path: &str, body: Value) -> Option<Value> {
    let request = fan.request(Method::POST, path).header("idempotency-key", Uuid::new_v4().to_string());
    answer(if body.is_null() { request } else { request.json(&body) }).await
}

async fn get(fan: &Fan, path: &str) -> Option<Value> {
    answer(fan.request(Method::GET, path)).await
}

/// The body of a success. A hub that died in the middle is no news to anybody here.
async fn answer(request: reqwest::RequestBuilder) -> Option<Value> {
    let answer = Answer::read(request.send().await.ok()?).await.ok()?;
    assert!(answer.status.as_u16() != 500, "a hub lost its head: {}", answer.body);
    answer.status.is_success().then_some(answer.body)
}

/// Sells for cash until `stop`.
pub async fn sell(till: Till, doors: Doors, event: i64, mut rng: SmallRng, stop: CancellationToken) {
    while !stop.is_cancelled() {
        pause(&mut rng, 200..1_500).await;
        let Some(door) = a_door(&doors, &mut rng) else { continue };
        let till = till.at(&door);
        let Ok(held) = till.try_hold(event, &[rng.random_range(0..800)]).await else { continue };
        if held.status.is_success() && rng.random_bool(0.8) {
            let _ = till.try_sell_for_cash(&held.body, 4_500).await;
        }
    }
}

async fn pause(rng: &mut SmallRng, ms: std::ops::Range<u64>) {
    tokio::time::sleep(Duration::from_millis(rng.random_range(ms))).await;
}
