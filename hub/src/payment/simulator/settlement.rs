//! What the list of balance transactions says of the money that moved, and what rules make of it.
//!
//! The truth is in [`World::transactions`]; what is listed may lack a row, repeat it or get it wrong.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    api::{Reply, page},
    params::Params,
    rules::Settlement,
    world::{Millis, World},
};

/// A row of the list, from a moment on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Listed {
    pub from: Millis,
    pub row: Value,
}

impl World {
    /// Money moved: the truth, and what the list is going to say of it.
    pub fn book(&mut self, truth: Value, what: &Settlement) {
        let from = self.now() + what.late_by_ms;
        if !what.drop {
            let row = told(&truth, what);
            for _ in 0..=usize::from(what.duplicate) {
                self.listed.push(Listed { from, row: row.clone() });
            }
        }
        if what.foreign_row {
            let row = self.foreign(&truth);
            self.listed.push(Listed { from, row });
        }
        self.transactions.push(truth);
    }

    /// Money that moved without any of our payments: somebody else's shop on the same account.
    fn foreign(&mut self, beside: &Value) -> Value {
        let (id, source) = (self.id("txn"), self.id("ch"));
        let mut row = beside.clone();
        row["id"] = id.into();
        row["source"] = source.into();
        row["amount"] = json!(4_200);
        row["net"] = json!(4_200 - row["fee"].as_i64().unwrap_or(0));
        row
    }

    /// A world that an older version wrote had the truth only.
    pub fn list_all_if_none(&mut self) {
        if self.listed.is_empty() {
            self.listed = self.transactions.iter().map(|row| Listed { from: 0, row: row.clone() }).collect();
        }
    }
}

fn told(truth: &Value, what: &Settlement) -> Value {
    let mut row = truth.clone();
    if what.amount_delta != 0 {
        for field in ["amount", "net"] {
            row[field] = json!(row[field].as_i64().unwrap_or(0) + what.amount_delta);
        }
    }
    if let Some(currency) = &what.currency {
        row["currency"] = json!(currency.to_ascii_lowercase());
    }
    if what.unknown_type {
        row["type"] = json!("moon_dust_adjustment");
        row["reporting_category"] = json!("other_adjustment");
    }
    row
}

/// The list, a page of it. `expand[]=data.source` shows the charges and refunds themselves.
pub fn list(world: &World, params: &Params, what: &Settlement) -> Reply {
    let (now, kind, source) = (world.now(), params.get("type"), params.get("source"));
    let expand = params.all("expand").any(|path| path == "data.source");
    let rows = world.listed.iter().filter(|l| l.from <= now).map(|l| &l.row);
    let rows = rows.filter(|row| kind.is_none_or(|k| row["type"] == k) && source.is_none_or(|s| row["source"] == s));
    let rows = rows.map(|row| {
        let mut row = row.clone();
        if let Some(source) = row["source"].as_str().filter(|_| expand).and_then(|id| world.source(id)) {
            row["source"] = source;
        }
        (row["created"].as_i64().unwrap_or(0), row)
    });
    page(rows, params, "/v1/balance_transactions", what.page_overlap)
}

impl World {
    /// The charge or refund that money came from.
    pub fn source(&self, id: &str) -> Option<Value> {
        let charge = self.intents.iter().position(|i| i.charge.as_deref() == Some(id));
        charge.and_then(|at| self.charge(at)).or_else(|| self.refunds.iter().find(|r| r.id == id).map(|r| r.render()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(what: &Settlement) -> World {
        let mut world = World::new(1);
        for n in 0..3 {
            let row = json!({"id": format!("txn_{n}"), "type": "charge", "amount": 100, "fee": 3, "net": 97,
                "currency": "eur", "source": format!("ch_{n}"), "created": 1_000 + n});
            world.book(row, if n == 1 { what } else { Settlement::default_ref() });
        }
        world
    }

    impl Settlement {
        fn default_ref() -> &'static Settlement {
            static NONE: std::sync::LazyLock<Settlement> = std::sync::LazyLock::new(Settlement::default);
            &NONE
        }
    }

    fn listed(world: &World, query: &str, what: &Settlement) -> Vec<(String, i64, String, String)> {
        let body = list(world, &Params::parse(query.as_bytes()), what).body;
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let rows = body["data"].as_array().unwrap().iter();
        rows.map(|r| (text(&r["id"]), r["amount"].as_i64().unwrap(), text(&r["currency"]), text(&r["type"]))).collect()
    }

    fn ids(world: &World, query: &str, what: &Settlement) -> Vec<String> {
        listed(world, query, what).into_iter().map(|(id, ..)| id).collect()
    }

    #[test]
    fn the_list_lies_as_told_and_the_truth_stays() {
        let none = Settlement::default();
        let plain = ["txn_2", "txn_1", "txn_0"];
        assert_eq!(ids(&world(&none), "", &none), plain);
        let dropped = world(&Settlement { drop: true, ..none.clone() });
        assert_eq!(ids(&dropped, "", &none), ["txn_2", "txn_0"]);
        assert_eq!(dropped.transactions.len(), 3);
        let twice = world(&Settlement { duplicate: true, ..none.clone() });
        assert_eq!(ids(&twice, "", &none), ["txn_2", "txn_1", "txn_1", "txn_0"]);
        let other =
            world(&Settlement { amount_delta: -1, currency: Some("USD".into()), unknown_type: true, ..none.clone() });
        let row = listed(&other, "", &none).remove(1);
        assert_eq!((row.1, &*row.2, &*row.3), (99, "usd", "moon_dust_adjustment"));
        let foreign = world(&Settlement { foreign_row: true, ..none.clone() });
        assert_eq!((ids(&foreign, "", &none).len(), foreign.transactions.len()), (4, 3));
    }

    #[test]
    fn what_is_late_comes_and_keeps_its_time() {
        let none = Settlement::default();
        let mut late = world(&Settlement { late_by_ms: 60_000, ..none.clone() });
        assert_eq!(ids(&late, "", &none), ["txn_2", "txn_0"]);
        late.ahead_ms += 60_001;
        assert_eq!(ids(&late, "created[gte]=1001", &none), ["txn_2", "txn_1"]);
    }

    #[test]
    fn pages_overlap_if_they_are_to() {
        let none = Settlement::default();
        let world = world(&none);
        assert_eq!(ids(&world, "limit=2", &none), ["txn_2", "txn_1"]);
        assert_eq!(ids(&world, "limit=2&starting_after=txn_1", &none), ["txn_0"]);
        let overlap = Settlement { page_overlap: 1, ..none };
        assert_eq!(ids(&world, "limit=2&starting_after=txn_1", &overlap), ["txn_1", "txn_0"]);
    }
}
