//! The truth about money, for tests to read: by intent, by order and in sum, and what must never be so.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::World;

/// What one order was charged and given back.
#[derive(Debug, Default)]
struct OrderMoney {
    /// Intents that were captured and not given back in full.
    kept: u32,
    captures: u32,
    captured: i64,
    refunded: i64,
    authorised: i64,
}

pub fn read(world: &World) -> Value {
    let intents: Vec<Value> = world
        .intents
        .iter()
        .map(|i| {
            json!({
                "id": i.id, "attempt": i.metadata.get("attempt"), "order": i.metadata.get("order"), "status": i.status,
                "currency": i.currency, "amount": i.amount, "authorised": i.amount_capturable,
                "captured": i.amount_received, "refunded": i.refunded, "confirms": i.confirms, "captures": i.captures,
            })
        })
        .collect();
    let mut orders: BTreeMap<&str, OrderMoney> = BTreeMap::new();
    for intent in &world.intents {
        let order = orders.entry(intent.metadata.get("order").map_or("", String::as_str)).or_default();
        order.kept += u32::from(intent.amount_received > intent.refunded);
        order.captures += intent.captures;
        order.captured += intent.amount_received;
        order.refunded += intent.refunded;
        order.authorised += intent.amount_capturable;
    }
    let sum = |of: fn(&OrderMoney) -> i64| orders.values().map(of).sum::<i64>();
    let open: Vec<&str> = world.intents.iter().filter(|i| i.amount_capturable > 0).map(|i| i.id.as_str()).collect();
    // What no run may end with. An intent without an order is somebody else's and is not judged.
    let kept_twice: Vec<&str> =
        orders.iter().filter(|(id, order)| !id.is_empty() && order.kept > 1).map(|(id, _)| *id).collect();
    let gave_too_much: Vec<&str> =
        world.intents.iter().filter(|i| i.refunded > i.amount_received).map(|i| i.id.as_str()).collect();
    let moved: i64 = world.transactions.iter().filter_map(|row| row["amount"].as_i64()).sum();
    let (captured, refunded) = (sum(|o| o.captured), sum(|o| o.refunded));
    json!({
        "seed": world.seed, "now_ms": world.now(), "captured": captured, "refunded": refunded,
        "kept": captured - refunded, "authorised": sum(|o| o.authorised), "open_authorisations": open,
        "intents": intents, "refunds": world.refunds.iter().map(|r| r.render()).collect::<Vec<_>>(),
        "orders": orders.iter().map(|(id, o)| json!({
            "order": id, "captures": o.captures, "captured": o.captured, "refunded": o.refunded,
            "authorised": o.authorised,
        })).collect::<Vec<_>>(),
        "broken": {
            "orders_kept_twice": kept_twice, "refunded_more_than_captured": gave_too_much,
            "books_do_not_add_up": moved != captured - refunded,
        },
    })
}
