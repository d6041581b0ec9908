//! `/_sim`: what a test may set and see. None of it exists at the real provider.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Simulator, ledger, reader, rules::Rule, world::World};

pub fn routes() -> Router<Simulator> {
    Router::new()
        .route("/_sim/reset", post(reset))
        .route("/_sim/clock", post(clock))
        .route("/_sim/rules", post(rules).get(show_rules))
        .route("/_sim/reader", post(reader))
        .route("/_sim/webhook", post(webhook))
        .route("/_sim/webhooks", get(webhooks))
        .route("/_sim/replay", post(replay))
        .route("/_sim/ledger", get(ledger))
        .route("/_sim/requests", get(requests))
}

#[derive(Deserialize)]
struct Reset {
    #[serde(default)]
    seed: u64,
}

async fn reset(State(sim): State<Simulator>, Json(reset): Json<Reset>) -> StatusCode {
    *sim.world() = World { changed: true, ..World::new(reset.seed) };
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Clock {
    /// Unix milliseconds.
    Set(i64),
    /// Milliseconds.
    Advance(i64),
    /// Whether it stands still from now on.
    Freeze(bool),
}

async fn clock(State(sim): State<Simulator>, Json(clock): Json<Clock>) -> Json<Value> {
    let now = {
        let mut world = sim.world();
        match clock {
            Clock::Set(at) => world.set_clock(at),
            Clock::Advance(by) => {
                let at = world.now().saturating_add(by);
                world.set_clock(at);
            }
            Clock::Freeze(still) => world.freeze(still),
        }
        world.changed = true;
        world.settle();
        world.now()
    };
    sim.deliver_outgoing().await;
    Json(json!({"now_ms": now}))
}

/// Replaces all rules.
async fn rules(State(sim): State<Simulator>, Json(rules): Json<Vec<Rule>>) -> StatusCode {
    sim.world().rules = rules;
    StatusCode::NO_CONTENT
}

async fn show_rules(State(sim): State<Simulator>) -> Json<Vec<Rule>> {
    Json(sim.world().rules.clone())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    id: String,
    offline: bool,
}

/// Switches a card reader off, or on.
async fn reader(State(sim): State<Simulator>, Json(switch): Json<Switch>) -> StatusCode {
    let mut world = sim.world();
    world.changed = true;
    if reader::switch(&mut world, &switch.id, switch.offline) { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

#[derive(Deserialize)]
struct Endpoint {
    url: Option<String>,
}

/// Where webhooks go from now on.
async fn webhook(State(sim): State<Simulator>, Json(endpoint): Json<Endpoint>) -> StatusCode {
    sim.set_webhook_url(endpoint.url);
    StatusCode::NO_CONTENT
}

/// What is still to be delivered.
async fn webhooks(State(sim): State<Simulator>) -> Json<Value> {
    let world = sim.world();
    Json(json!({"waiting": world.outgoing.len() + world.delivering.len()}))
}

/// Sends every event once more, in the order in which they happened.
async fn replay(State(sim): State<Simulator>) -> Json<Value> {
    let count = {
        let mut world = sim.world();
        let again: Vec<_> = world.events.iter().map(|e| (e.clone(), Default::default())).collect();
        world.outgoing.extend(again);
        world.outgoing.len()
    };
    sim.deliver_outgoing().await;
    Json(json!({"events": count}))
}

/// The truth: what was authorised, captured and given back, by intent, by order and in sum.
async fn ledger(State(sim): State<Simulator>) -> Json<Value> {
    let mut world = sim.world();
    world.settle();
    Json(ledger::read(&world))
}

async fn requests(State(sim): State<Simulator>) -> Json<Value> {
    Json(sim.world().log.clone().into())
}
