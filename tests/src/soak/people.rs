//! Whoever comes to a soak. They speak only the wire, and whatever fails they try again or give up, as people do.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

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

/// Orders that were paid, for staff to give back and exchange.
pub type Paid = Arc<Mutex<Vec<Value>>>;

/// Where everybody is.
#[derive(Clone)]
pub struct Place {
    pub doors: Doors,
    pub provider: String,
    pub event: i64,
    /// Another evening, which costs more.
    pub other: i64,
    pub paid: Paid,
    pub stop: CancellationToken,
}

impl Place {
    fn note_paid(&self, order: &Value) {
        self.paid.lock().expect("nobody panics with it").push(order.clone());
    }
}

/// Buys again and again until the end.
pub async fn buy(fan: Fan, place: Place, mut rng: SmallRng) {
    while !place.stop.is_cancelled() {
        pause(&mut rng, 300..1_500).await;
        let Some(door) = a_door(&place.doors, &mut rng) else { continue };
        let _ = buy_once(&fan.at(&door), &place, &mut rng).await;
    }
}

/// One visit; None: something failed, and the buyer begins anew.
async fn buy_once(fan: &Fan, place: &Place, rng: &mut SmallRng) -> Option<()> {
    let Place { doors, provider, event, stop, .. } = place;
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
            "paid" => {
                place.note_paid(&order);
                return Some(());
            }
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
    for _ in 0..rng.random_range(10..40) {
        if stop.is_cancelled() {
            return None;
        }
        pause(rng, 200..800).await;
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
    succeeded(Answer::read(request.send().await.ok()?).await)
}

/// Sells for cash, and by card at the counter's reader, until the end.
pub async fn sell(till: Till, reader: String, place: Place, mut rng: SmallRng) {
    while !place.stop.is_cancelled() {
        pause(&mut rng, 100..700).await;
        let Some(door) = a_door(&place.doors, &mut rng) else { continue };
        let till = till.at(&door);
        let Ok(held) = till.try_hold(place.event, &[rng.random_range(0..800)]).await else { continue };
        if !held.status.is_success() {
            continue;
        }
        if rng.random_bool(0.75) {
            let _ = sell_by_card(&till, &held.body, &reader, &place, &mut rng).await;
        } else if rng.random_bool(0.8)
            && let Ok(sold) = till.try_sell_for_cash(&held.body, 4_500).await
            && sold.status.is_success()
        {
            place.note_paid(&sold.body["order"]);
        }
    }
}

/// What happens at the counter once the reader shows the amount.
#[derive(Debug, Clone, Copy)]
enum AtReader {
    Paid,
    Declined,
    /// The customer has changed their mind, and the clerk stops it.
    Stopped,
    /// So they have, a moment too late.
    PaidAndStopped,
    /// Nobody does anything until the hold runs out.
    Left,
}

impl AtReader {
    fn by_chance(rng: &mut SmallRng) -> Self {
        match rng.random_range(0..20) {
            0..10 => Self::Paid,
            10..13 => Self::Declined,
            13..16 => Self::Stopped,
            16..19 => Self::PaidAndStopped,
            _ => Self::Left,
        }
    }
}

/// A customer with a card, as long as the clerk has patience.
async fn sell_by_card(till: &Till, held: &Value, reader: &str, place: &Place, rng: &mut SmallRng) -> Option<()> {
    let body = json!({ "hold_id": held["hold"]["id"], "buyer_id": held["buyer_id"], "tickets": [], "reader": reader });
    let key = Uuid::new_v4().to_string();
    let mut sold = till.try_post_once("/api/box-office/card-sales", &key, body.clone()).await;
    if sold.is_err() {
        let door = a_door(&place.doors, rng)?;
        sold = till.at(&door).try_post_once("/api/box-office/card-sales", &key, body).await; // the same once more
    }
    let sold = succeeded(sold)?;
    let order = sold["order"].clone();
    let id = order["id"].as_str()?;
    let happens = AtReader::by_chance(rng);
    for _ in 0..rng.random_range(20..60) {
        pause(rng, 150..400).await;
        if place.stop.is_cancelled() {
            return None;
        }
        let till = till.at(&a_door(&place.doors, rng)?);
        let Some(seen) = succeeded(till.try_get(&format!("/api/box-office/card-sales/{id}")).await) else { continue };
        match seen["order"]["attempt"]["phase"].as_str() {
            Some("paid") => {
                place.note_paid(&order);
                return Some(());
            }
            Some("declined" | "not_charged" | "failed") => return None,
            // A try of it may get lost on the way, as anything may: then it happens a moment later.
            Some("action_required") => match happens {
                AtReader::Paid => present(&place.provider, reader, "4242424242424242").await,
                AtReader::Declined => present(&place.provider, reader, "4000000000009995").await,
                AtReader::Stopped => stop(&till, id, rng).await,
                AtReader::PaidAndStopped => {
                    tokio::join!(present(&place.provider, reader, "4242424242424242"), stop(&till, id, rng));
                }
                AtReader::Left => {}
            },
            _ => {}
        }
    }
    None
}

async fn stop(till: &Till, order: &str, rng: &mut SmallRng) {
    let body = json!({ "keep_if_paid": rng.random_bool(0.5) });
    let path = format!("/api/box-office/card-sales/{order}/stop");
    succeeded(till.try_post_once(&path, &Uuid::new_v4().to_string(), body).await);
}

/// Whether it came about is seen at the till.
async fn present(provider: &str, reader: &str, card: &str) {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().expect("a client");
    let url = format!("{provider}/v1/test_helpers/terminal/readers/{reader}/present_payment_method");
    let body = format!("card_present[number]={card}");
    let request = client.post(url).bearer_auth("sk_test_simulator");
    let _ = request.header("content-type", "application/x-www-form-urlencoded").body(body).send().await;
}

/// Gives back, exchanges, and sees to what could not be given back, until the end.
pub async fn give_back(till: Till, place: Place, mut rng: SmallRng) {
    while !place.stop.is_cancelled() {
        pause(&mut rng, 150..700).await;
        let Some(door) = a_door(&place.doors, &mut rng) else { continue };
        let till = till.at(&door);
        if rng.random_bool(0.15) {
            see_to_failed(&till, &mut rng).await;
            continue;
        }
        let order = place.paid.lock().expect("nobody panics with it").choose(&mut rng).cloned();
        let Some(order) = order else { continue };
        let Some(id) = order["id"].as_str() else { continue };
        let seats: Vec<i64> =
            order["lines"].as_array().into_iter().flatten().filter_map(|line| line["seat_no"].as_i64()).collect();
        let Some(&seat) = seats.choose(&mut rng) else { continue };
        let become_ = ["on_sale", "on_sale", "house"][rng.random_range(0..3)];
        let refunds = format!("/api/staff/orders/{id}/refunds");
        let (path, body) = match rng.random_range(0..12) {
            0..3 => (
                refunds,
                json!({ "what": { "kind": "seats", "seats": [seat] }, "seats_become": become_, "reason": "ill" }),
            ),
            3..6 => {
                let what = json!({ "kind": "amount", "amount_minor": rng.random_range(1..2_000) });
                (refunds, json!({ "what": what, "reason": "a cold hall" }))
            }
            6 => (refunds, json!({ "what": { "kind": "all" }, "seats_become": become_, "reason": "ill" })),
            7..10 => {
                let pair = json!({ "from": seat, "to": rng.random_range(0..800) });
                let body = json!({ "seats": [pair], "reason": "a pillar", "received_minor": 10_000 });
                (format!("/api/staff/orders/{id}/exchange"), body)
            }
            // Another evening: for cash now, or by card, which nobody pays.
            way => {
                let pair = json!({ "from": seat, "to": rng.random_range(0..800) });
                let mut body = json!({ "seats": [pair], "event_id": place.other, "reason": "another evening" });
                if way == 10 {
                    body["received_minor"] = json!(10_000)
                } else {
                    body["by_card"] = json!(true)
                }
                (format!("/api/staff/orders/{id}/exchange"), body)
            }
        };
        let key = Uuid::new_v4().to_string();
        for _ in 0..rng.random_range(1..=2) {
            // A double click, at another hub.
            let Some(door) = a_door(&place.doors, &mut rng) else { break };
            let done = succeeded(till.at(&door).try_post_once(&path, &key, body.clone()).await);
            if let Some(order) = done.map(|done| done["order"].clone()).filter(|order| order["state"] == "confirmed") {
                place.note_paid(&order);
            }
        }
    }
}

async fn see_to_failed(till: &Till, rng: &mut SmallRng) -> Option<()> {
    let list = succeeded(till.try_get("/api/staff/money").await)?;
    let failed: Vec<&Value> = list["refunds"].as_array()?.iter().filter(|r| r["state"] == "failed").collect();
    let id = failed.choose(rng)?["refund_id"].as_str()?;
    let body = json!({ "by_hand": rng.random_bool(0.4), "reason": "seen to" });
    succeeded(till.try_post_once(&format!("/api/staff/refunds/{id}/retry"), &Uuid::new_v4().to_string(), body).await);
    Some(())
}

/// The body of a success; a hub that died in the middle is no news.
fn succeeded(answer: reqwest::Result<Answer>) -> Option<Value> {
    let answer = answer.ok()?;
    assert!(answer.status.as_u16() != 500, "a hub lost its head: {}", answer.body);
    answer.status.is_success().then_some(answer.body)
}

async fn pause(rng: &mut SmallRng, ms: std::ops::Range<u64>) {
    tokio::time::sleep(Duration::from_millis(rng.random_range(ms))).await;
}
