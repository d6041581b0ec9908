//! Labels that look alike. They stay different, and draw a warning: a fan with a ticket for row А
//! (Cyrillic) stands in front of row A (Latin).

use std::collections::{HashMap, hash_map::Entry};

use super::{Plan, check::Findings};
use crate::catalog::text::skeleton;

pub(super) fn warn(plan: &Plan, f: &mut Findings) {
    let mut guids: HashMap<String, &str> = HashMap::new();
    // A seat as it is printed: section, row, number. Sections and rows are told apart through it too.
    let mut printed: HashMap<String, [&str; 3]> = HashMap::new();
    let mut key = String::new();
    for (z, zone) in plan.zones.iter().enumerate() {
        for (r, row) in zone.rows.iter().enumerate() {
            let prefix = format!("{}\0{}\0", skeleton(&zone.name), skeleton(&row.label));
            for (s, seat) in row.seats.iter().enumerate() {
                let place = || format!("zones[{z}].rows[{r}].seats[{s}]");
                match guids.entry(skeleton(&seat.guid)) {
                    Entry::Vacant(free) => drop(free.insert(&seat.guid)),
                    Entry::Occupied(first) => {
                        let message =
                            format!("the guids {:?} and {:?} look alike; they stay two seats", first.get(), seat.guid);
                        f.warn(&place(), 0, "guid_looks_alike", "", message);
                    }
                }
                key.clear();
                key.push_str(&prefix);
                key.push_str(&skeleton(&seat.label));
                let label = [zone.name.as_str(), row.label.as_str(), seat.label.as_str()];
                match printed.get(key.as_str()) {
                    None => drop(printed.insert(key.clone(), label)),
                    Some(first) if *first == label => {
                        let message = format!("two seats are printed as {label:?}");
                        f.warn(&place(), 0, "label_repeated", &zone.name, message);
                    }
                    Some(first) => {
                        let message = format!("{first:?} and {label:?} look alike; they stay different");
                        f.warn(&place(), 0, "label_looks_alike", &prefix, message);
                    }
                }
            }
        }
    }
}
