//! What must be true at the end: of the provider's own ledger, of the database, and of both together.

use std::collections::{BTreeMap, BTreeSet};

use fullhouse::watch;
use serde_json::{Value, json};
use sqlx::FromRow;

use crate::{
    database::Database,
    provider::{Ledger, Provider},
};

/// An order that a card pays for, or was to.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
struct Order {
    id: String,
    state: String,
    /// What its card's tender is.
    card_minor: i64,
    seats_sold: i64,
    valid_tickets: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
struct Attempt {
    id: String,
    state: String,
    /// What could not be given back, and is on a person's list.
    failed_minor: i64,
}

/// Both sides, as they stand.
pub struct Books {
    ledger: Ledger,
    orders: Vec<Order>,
    attempts: BTreeMap<String, Attempt>,
    seats: Vec<(i32, i16, Option<String>)>,
}

impl Books {
    pub async fn read(database: &Database, provider: &Provider) -> Self {
        let pool = database.pool();
        let orders: Vec<Order> = sqlx::query_as(
            r#"select o.id::text, o.state,
                      coalesce((select sum(amount_minor) from tender t where t.order_id = o.id and t.kind = 'card'), 0)::bigint as card_minor,
                      (select count(*) from order_line l where l.order_id = o.id and l.state = 'sold' and l.seat_no is not null) as seats_sold,
                      (select count(*) from ticket t where t.order_id = o.id and t.state = 'valid') as valid_tickets
               from "order" o order by o.id"#,
        )
        .fetch_all(pool)
        .await
        .expect("orders");
        let attempts: Vec<Attempt> = sqlx::query_as(
            "select a.id::text, a.state,
                    coalesce((select sum(amount_minor) from refund r where r.attempt_id = a.id and r.state = 'failed'), 0)::bigint as failed_minor
             from attempt a order by a.id",
        )
        .fetch_all(pool)
        .await
        .expect("attempts");
        let seats = sqlx::query_as("select seat_no, status, order_id::text from event_seat order by event_id, seat_no")
            .fetch_all(pool)
            .await
            .expect("seats");
        Self {
            ledger: provider.ledger().await,
            orders,
            attempts: attempts.into_iter().map(|a| (a.id.clone(), a)).collect(),
            seats,
        }
    }

    /// Everything that must not be so.
    pub async fn broken(&self, database: &Database) -> Vec<String> {
        let mut broken = Vec::new();
        self.sums(&mut broken);
        self.each_intent(&mut broken);
        self.each_order(&mut broken);
        let violations = watch::check(database.pool()).await.expect("the test's database answers");
        broken.extend(violations.iter().map(|v| format!("{}: {}", v.invariant, v.what)));
        broken
    }

    /// Captured less refunded is what confirmed orders were paid by card, and nothing is reserved.
    fn sums(&self, broken: &mut Vec<String>) {
        let confirmed: i64 = self.orders.iter().filter(|o| o.state == "confirmed").map(|o| o.card_minor).sum();
        let failed: i64 = self.attempts.values().map(|a| a.failed_minor).sum();
        let kept = self.ledger.captured() - self.ledger.refunded();
        if kept != confirmed + failed {
            broken
                .push(format!("the provider keeps {kept}, confirmed orders are {confirmed}, failed refunds {failed}"));
        }
        let broken_there = &self.ledger.0["broken"];
        let nothing =
            json!({ "orders_kept_twice": [], "refunded_more_than_captured": [], "books_do_not_add_up": false });
        if *broken_there != nothing {
            broken.push(format!("the provider's own books: {broken_there}"));
        }
        if self.ledger.authorised() != 0 {
            broken.push(format!("{} is still reserved", self.ledger.authorised()));
        }
    }

    fn each_intent(&self, broken: &mut Vec<String>) {
        let mut keeps = BTreeSet::new();
        for intent in self.ledger.intents() {
            let text = |name: &str| intent[name].as_str().unwrap_or_default();
            let money = |name: &str| intent[name].as_i64().unwrap_or_default();
            let kept = money("captured") - money("refunded");
            let Some(attempt) = self.attempts.get(text("attempt")) else {
                if kept != 0 || money("authorised") != 0 {
                    broken.push(format!("nobody knows {}, which holds money", text("id")));
                }
                continue;
            };
            let should_keep = attempt.state == "captured" || attempt.failed_minor > 0;
            if kept > 0 {
                keeps.insert(text("attempt"));
            }
            if kept < 0 || (kept > 0 && !should_keep) {
                broken.push(format!("{} keeps {kept}, and its attempt is {}", text("id"), attempt.state));
            }
            if money("captures") > 1 {
                broken.push(format!("{} was captured {} times", text("id"), intent["captures"]));
            }
            if money("authorised") > 0 {
                broken.push(format!("{} is reserved, and its attempt is {}", text("id"), attempt.state));
            }
        }
        // Of an attempt's intents (a create whose answer was kept as a 500 leaves one behind) one has the money.
        let captured = self.attempts.values().filter(|a| a.state == "captured" && !keeps.contains(a.id.as_str()));
        broken.extend(captured.map(|a| format!("attempt {} is captured, and no money is kept for it", a.id)));
    }

    /// A confirmed order has its money once, its seats and its tickets; any other has none of them.
    fn each_order(&self, broken: &mut Vec<String>) {
        let mut kept: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for intent in self.ledger.intents() {
            let money = |name: &str| intent[name].as_i64().unwrap_or_default();
            let failed = intent["attempt"].as_str().and_then(|id| self.attempts.get(id)).map_or(0, |a| a.failed_minor);
            let left = money("captured") - money("refunded") - failed;
            if left > 0 {
                kept.entry(intent["order"].as_str().unwrap_or_default()).or_default().push(left);
            }
        }
        for order in &self.orders {
            let money = kept.remove(order.id.as_str()).unwrap_or_default();
            let confirmed = order.state == "confirmed";
            let due = if confirmed && order.card_minor > 0 { vec![order.card_minor] } else { Vec::new() };
            if money != due {
                broken.push(format!(
                    "order {} is {}, costs {due:?}, and {money:?} is kept for it",
                    order.id, order.state
                ));
            }
            if confirmed != (order.seats_sold > 0) || order.valid_tickets != order.seats_sold {
                broken.push(format!("order {order:?}: seats and tickets do not go with its state"));
            }
        }
        for (order, money) in kept {
            broken.push(format!("{money:?} is kept for order {order:?}, which nobody knows"));
        }
        let mut owners: BTreeMap<&str, i64> = BTreeMap::new();
        for (_, _, order) in self.seats.iter().filter(|(_, status, _)| *status == 2) {
            *owners.entry(order.as_deref().unwrap_or_default()).or_default() += 1;
        }
        for order in &self.orders {
            if owners.remove(order.id.as_str()).unwrap_or_default() != order.seats_sold {
                broken.push(format!("order {order:?} does not have the seats that it was sold"));
            }
        }
        broken.extend(owners.keys().map(|order| format!("seats are sold to order {order:?}, which nobody knows")));
    }

    /// What is different later, and must not be.
    pub fn differences(&self, later: &Books) -> Vec<String> {
        let mut different = Vec::new();
        let mut compare = |what: &str, same: bool| {
            if !same {
                different.push(format!("webhooks that came once more changed {what}"));
            }
        };
        compare("orders", self.orders == later.orders);
        compare("attempts", self.attempts == later.attempts);
        compare("seats", self.seats == later.seats);
        // An intent that was never confirmed may be heard of only now, if its first delivery was dropped: it is
        // cancelled then, and holds no money before or after.
        let let_go = |before: &Value, after: &Value| {
            before["confirms"] == 0 && after["status"] == "canceled" && after["confirms"] == 0 && after["captured"] == 0
        };
        for (before, after) in self.ledger.intents().iter().zip(later.ledger.intents()) {
            if before != after && !let_go(before, after) {
                different.push(format!("webhooks that came once more changed {before} to {after}"));
            }
        }
        if self.ledger.intents().len() != later.ledger.intents().len()
            || self.ledger.0["refunds"] != later.ledger.0["refunds"]
        {
            different.push("webhooks that came once more made intents or refunds".to_owned());
        }
        different
    }

    /// An order that was confirmed and paid by card: for a test that does wrong on purpose.
    pub fn a_paid_order(&self) -> Option<(String, i64)> {
        self.orders
            .iter()
            .find(|o| o.state == "confirmed" && o.card_minor > 0)
            .map(|order| (order.id.clone(), order.card_minor))
    }
}
