//! What the file beside a plan may refer to: guids of seats, names of categories, uuids of areas.
//!
//! A plan with faults has names, too: so the file beside it is checked as far as that goes, and a person
//! mends both at once.

use std::collections::HashMap;

use super::Plan;
use crate::catalog::json::{Node, Value};

#[derive(Debug)]
pub struct Names<'p> {
    /// Where each guid stands in the order of [`Plan::seats`].
    pub seats: HashMap<&'p str, usize>,
    pub categories: Vec<&'p str>,
    /// Each uuid, with its zone and its number in the zone.
    pub areas: Vec<(&'p str, (usize, usize))>,
    /// Seats of the plan, those without a guid too.
    pub seat_count: usize,
    /// Whether these are all: only then is another name one that the plan does not have.
    pub whole: bool,
}

impl<'p> Names<'p> {
    pub fn of(plan: &'p Plan) -> Self {
        let areas = plan.zones.iter().enumerate().flat_map(|(z, zone)| {
            zone.areas.iter().enumerate().filter_map(move |(a, area)| Some((area.uuid.as_deref()?, (z, a))))
        });
        Self {
            seats: plan.seats().enumerate().map(|(i, s)| (s.guid.as_str(), i)).collect(),
            categories: plan.categories.iter().map(|c| c.name.as_str()).collect(),
            areas: areas.collect(),
            seat_count: plan.seats().count(),
            whole: true,
        }
    }

    /// Of a plan that can't be parsed.
    pub fn unknown() -> Self {
        Self { seats: HashMap::new(), categories: Vec::new(), areas: Vec::new(), seat_count: 0, whole: false }
    }

    /// Of a plan that has faults.
    pub fn in_tree(plan: &'p Node<'_>) -> Self {
        let mut names = Self { whole: true, ..Self::unknown() };
        for category in names.items(plan, "categories") {
            let name = names.text(category, "name");
            names.categories.extend(name);
        }
        for (z, zone) in names.items(plan, "zones").iter().enumerate() {
            for row in names.items(zone, "rows") {
                for seat in names.items(row, "seats") {
                    if let Some(guid) = names.text(seat, "seat_guid") {
                        names.seats.entry(guid).or_insert(names.seat_count);
                    }
                    names.seat_count += 1;
                }
            }
            let areas = member(zone, "areas").map_or(&[][..], |areas| names.list(areas));
            for (a, area) in areas.iter().enumerate() {
                if let Some(Value::Text(uuid)) = member(area, "uuid").map(|n| &n.value) {
                    names.areas.push((uuid, (z, a)));
                }
            }
        }
        names
    }

    /// What is not there may have been meant to be.
    fn items<'n, 'a>(&mut self, node: &'n Node<'a>, key: &str) -> &'n [Node<'a>] {
        let Some(list) = member(node, key) else {
            self.whole = false;
            return &[];
        };
        self.list(list)
    }

    fn list<'n, 'a>(&mut self, node: &'n Node<'a>) -> &'n [Node<'a>] {
        let Value::List(items) = &node.value else {
            self.whole = false;
            return &[];
        };
        items
    }

    fn text<'n>(&mut self, node: &'n Node<'_>, key: &str) -> Option<&'n str> {
        let Some(Value::Text(text)) = member(node, key).map(|n| &n.value) else {
            self.whole = false;
            return None;
        };
        Some(text)
    }
}

fn member<'n, 'a>(node: &'n Node<'a>, key: &str) -> Option<&'n Node<'a>> {
    let Value::Object(members) = &node.value else { return None };
    members.iter().find(|(k, _)| k == key).map(|(_, value)| value)
}
