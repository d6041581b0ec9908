//! What must be true at the end: of the provider's own ledger, of the database, and of both together.

use std::collections::BTreeMap;

use fullhouse::watch;
use serde_json::{Value, json};
use sqlx::FromRow;

use crate::{
    database::Database,
    provider::{Ledger, Provider},
};

/// An order, and the money that we hold for it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
struct Order {
    id: String,
    state: String,
    /// What its lines that are sold still cost.
    lines_minor: i64,
    /// What could not be given back yet, and is on people's list.
    owed_minor: i64,
    /// Taken by card, less what went back to it.
    card_minor: i64,
    /// Taken otherwise, less what went back over the counter, of a card's money too.
    drawer_minor: i64,
    seats_sold: i64,
    valid_tickets: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
struct Attempt {
    id: String,
    state: String,
    /// Captured, less what goes back to the card: what the provider has to keep for it.
    kept_minor: i64,
}

/// Both sides, as they stand.
pub struct Books {
    ledger: Ledger,
    orders: Vec<Order>,
    attempts: BTreeMap<String, Attempt>,
    /// Orders whose seats, and so their money, belong to others now: from, to.
    swaps: Vec<(String, String)>,
    refunds: Vec<(String, String, i64)>,
    seats: Vec<(i32, i16, Option<String>)>,
}

impl Books {
    pub async fn read(database: &Database, provider: &Provider) -> Self {
        let pool = database.pool();
        let orders: Vec<Order> = sqlx::query_as(
            r#"select o.id::text, o.state,
                      coalesce((select sum(amount_minor - refunded_minor) from order_line l
                                where l.order_id = o.id and l.state = 'sold'), 0)::bigint as lines_minor,
                      coalesce((select sum(r.amount_minor) from refund r join tender t on t.id = r.tender_id
                                where t.order_id = o.id and r.state = 'failed' and r.replaced_by is null), 0)::bigint as owed_minor,
                      coalesce((select sum(captured_minor - refunded_minor) from attempt a where a.order_id = o.id), 0)::bigint
                          + by_hand.minor as card_minor,
                      coalesce((select sum(t.amount_minor - t.refunded_minor)
                                from tender t where t.order_id = o.id and t.kind <> 'card'), 0)::bigint
                          - by_hand.minor as drawer_minor,
                      (select count(*) from order_line l where l.order_id = o.id and l.state = 'sold' and l.seat_no is not null) as seats_sold,
                      (select count(*) from ticket t where t.order_id = o.id and t.state = 'valid') as valid_tickets
               from "order" o cross join lateral (
                   select coalesce(sum(r.amount_minor), 0)::bigint as minor from refund r join attempt a on a.id = r.attempt_id
                   where a.order_id = o.id and r.kind <> 'card' and r.state <> 'failed') as by_hand
               order by o.id"#,
        )
        .fetch_all(pool)
        .await
        .expect("orders");
        let attempts: Vec<Attempt> = sqlx::query_as(
            "select a.id::text, a.state, captured_minor - coalesce((
                 select sum(r.amount_minor) from refund r
                 where r.attempt_id = a.id and r.kind = 'card' and r.state <> 'failed'), 0)::bigint as kept_minor
             from attempt a order by a.id",
        )
        .fetch_all(pool)
        .await
        .expect("attempts");
        let swaps = sqlx::query_as(
            "select from_order::text, to_order::text from order_swap where done_at is not null order by id",
        )
        .fetch_all(pool)
        .await
        .expect("swaps");
        let refunds = sqlx::query_as("select id::text, state, amount_minor from refund order by id")
            .fetch_all(pool)
            .await
            .expect("refunds");
        let seats = sqlx::query_as("select seat_no, status, order_id::text from event_seat order by event_id, seat_no")
            .fetch_all(pool)
            .await
            .expect("seats");
        Self {
            ledger: provider.ledger().await,
            orders,
            attempts: attempts.into_iter().map(|a| (a.id.clone(), a)).collect(),
            swaps,
            refunds,
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

    /// Captured less refunded is what confirmed orders were paid by card and what is owed, and nothing is reserved.
    fn sums(&self, broken: &mut Vec<String>) {
        let card: i64 = self.orders.iter().map(|o| o.card_minor).sum();
        let kept = self.ledger.captured() - self.ledger.refunded();
        if kept != card {
            broken.push(format!("the provider keeps {kept}, orders were paid {card} by card"));
        }
        let broken_there = &self.ledger.0["broken"];
        let nothing = json!({ "orders_kept_twice": broken_there["orders_kept_twice"], "refunded_more_than_captured": [],
            "books_do_not_add_up": false });
        if *broken_there != nothing {
            broken.push(format!("the provider's own books: {broken_there}"));
        }
        // Two are kept only of an order one of whose payments could not be given back.
        for twice in broken_there["orders_kept_twice"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !self.orders.iter().any(|o| o.id == twice && o.owed_minor > 0) {
                broken.push(format!("order {twice} was paid twice"));
            }
        }
        if self.ledger.authorised() != 0 {
            broken.push(format!("{} is still reserved", self.ledger.authorised()));
        }
    }

    /// The provider keeps for each attempt what we believe that it does, and has captured one intent of it at most.
    fn each_intent(&self, broken: &mut Vec<String>) {
        let mut keeps: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
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
            if money("authorised") > 0 {
                broken.push(format!("{} is reserved, and its attempt is {}", text("id"), attempt.state));
            }
            // Everything has come to rest: whatever could still be confirmed is let go.
            if text("status").starts_with("requires_") {
                broken.push(format!(
                    "{} is {}, and its attempt {} is {}",
                    text("id"),
                    text("status"),
                    attempt.id,
                    attempt.state
                ));
            }
            let sum = keeps.entry(text("attempt")).or_default();
            *sum = (sum.0 + kept, sum.1 + money("captures"));
        }
        for attempt in self.attempts.values() {
            let (kept, captures) = keeps.get(attempt.id.as_str()).copied().unwrap_or_default();
            if kept != attempt.kept_minor || captures > 1 {
                broken.push(format!("{kept} is kept of {captures} captures for {attempt:?}"));
            }
        }
    }

    /// The money that we hold for an order, and for those that it was exchanged for, is what their sold lines cost, and
    /// what is owed to their buyer; a confirmed order has its seats and tickets (or they are another's now), any other
    /// has none of them.
    fn each_order(&self, broken: &mut Vec<String>) {
        let mut together: BTreeMap<&str, (i64, Vec<&Order>)> = BTreeMap::new();
        for order in &self.orders {
            let sum = together.entry(self.first_of(&order.id)).or_default();
            sum.0 += order.card_minor + order.drawer_minor - order.lines_minor - order.owed_minor;
            sum.1.push(order);
        }
        for (too_much, orders) in together.values().filter(|(too_much, _)| *too_much != 0) {
            broken.push(format!("{too_much} more is held than what these cost and what is owed: {orders:?}"));
        }
        for order in &self.orders {
            let confirmed = order.state == "confirmed";
            let gone = self.swaps.iter().any(|(from, _)| *from == order.id) && order.seats_sold == 0;
            if (confirmed != (order.seats_sold > 0) && !gone) || order.valid_tickets != order.seats_sold {
                broken.push(format!("{order:?}: seats and tickets do not go with its state"));
            }
        }
        let mut owners: BTreeMap<&str, i64> = BTreeMap::new();
        for (_, _, order) in self.seats.iter().filter(|(_, status, _)| *status == 2) {
            *owners.entry(order.as_deref().unwrap_or_default()).or_default() += 1;
        }
        for order in &self.orders {
            if owners.remove(order.id.as_str()).unwrap_or_default() != order.seats_sold {
                broken.push(format!("{order:?} does not have the seats that it was sold"));
            }
        }
        broken.extend(owners.keys().map(|order| format!("seats are sold to order {order:?}, which nobody knows")));
    }

    /// The order that an exchanged one began as.
    fn first_of<'a>(&'a self, order: &'a str) -> &'a str {
        let mut first = order;
        while let Some((from, _)) = self.swaps.iter().find(|(_, to)| to == first) {
            first = from;
        }
        first
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
        compare("refunds", self.refunds == later.refunds);
        compare("seats", self.seats == later.seats);
        for (before, after) in self.ledger.intents().iter().zip(later.ledger.intents()) {
            if before != after {
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

    /// An order that was confirmed and paid by card, and to whose buyer nothing is owed (such a one may have been paid
    /// for twice): for a test that does wrong on purpose.
    pub fn a_paid_order(&self) -> Option<(String, i64)> {
        self.orders
            .iter()
            .find(|o| o.state == "confirmed" && o.card_minor > 0 && o.owed_minor == 0)
            .map(|order| (order.id.clone(), order.card_minor))
    }
}
