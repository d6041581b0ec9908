//! What is odd about a plan's labels, positions and colours. A fan with a ticket for row А (Cyrillic)
//! stands in front of row A (Latin); two seats in one place can't be told apart on the map, nor two
//! prices of one colour. All of it draws a warning and stays as it is. Seats that are printed alike are a fault: see `pretix.rs`.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use super::{Plan, check::Findings};
use crate::catalog::{
    color,
    text::{skeleton, visible},
};

pub(super) fn warn(plan: &Plan, f: &mut Findings) {
    looks_alike(plan, f);
    numberless(plan, f);
    rows(plan, f);
    positions(plan, f);
    colors(plan, f);
}

/// Each pair of categories that a map could not tell apart; the fan's map moves one of them.
fn colors(plan: &Plan, f: &mut Findings) {
    for (i, one) in plan.categories.iter().enumerate() {
        for other in &plan.categories[..i] {
            let Some(apart) = color::distance(&other.color, &one.color).filter(|d| *d < color::ALIKE_BELOW) else {
                continue;
            };
            let message = format!(
                "the colours of {:?} ({}) and {:?} ({}) look alike: {apart:.3} apart in OKLab, below {}",
                other.name,
                other.color,
                one.name,
                one.color,
                color::ALIKE_BELOW
            );
            let subject = format!("{}\0{}", other.name, one.name);
            f.warn(&format!("categories[{i}].color"), 0, "color_looks_alike", &subject, message);
        }
    }
}

fn looks_alike(plan: &Plan, f: &mut Findings) {
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
                    Some(first) if *first == label => {} // places without a number
                    Some(first) => {
                        let message = format!("{first:?} and {label:?} look alike; they stay different");
                        f.warn(&place(), 0, "label_looks_alike", &prefix, message);
                    }
                }
            }
        }
    }
}

/// Seats without a number, where a row has several: their tickets read the same.
fn numberless(plan: &Plan, f: &mut Findings) {
    for (z, zone) in plan.zones.iter().enumerate() {
        for (r, row) in zone.rows.iter().enumerate() {
            let count = row.seats.iter().filter(|seat| visible(&seat.label).is_empty()).count();
            if count > 1 {
                let message = format!(
                    "{count} seats in row {:?} of {:?} have no number: their tickets can't be told apart",
                    row.label, zone.name
                );
                f.warn(&format!("zones[{z}].rows[{r}]"), 0, "numbers_blank", &zone.name, message);
            }
        }
    }
}

/// Rows that share a name, or have none beside others: fans ask for them by it.
fn rows(plan: &Plan, f: &mut Findings) {
    let mut named: HashSet<(&str, &str)> = HashSet::new();
    for (z, zone) in plan.zones.iter().enumerate() {
        let rows: Vec<_> = zone.rows.iter().enumerate().filter(|(_, row)| !row.seats.is_empty()).collect();
        for &(r, row) in &rows {
            let place = format!("zones[{z}].rows[{r}].row_number");
            if row.label.trim().is_empty() {
                if rows.len() == 1 {
                    continue; // the zone's name is its name
                }
                f.warn(&place, 0, "row_blank", &zone.name, format!("a row of {:?} has no name", zone.name));
            } else if !named.insert((zone.name.as_str(), row.label.as_str())) {
                let message = format!("{:?} has the row {:?} twice", zone.name, row.label);
                f.warn(&place, 0, "row_repeated", &zone.name, message);
            }
        }
    }
}

fn positions(plan: &Plan, f: &mut Findings) {
    let mut taken: HashMap<(u64, u64), &str> = HashMap::new();
    for (z, zone) in plan.zones.iter().enumerate() {
        for (r, row) in zone.rows.iter().enumerate() {
            for (s, seat) in row.seats.iter().enumerate() {
                // Adding 0 makes one of the two zeros.
                match taken.entry(((seat.x + 0.0).to_bits(), (seat.y + 0.0).to_bits())) {
                    Entry::Vacant(free) => drop(free.insert(&seat.guid)),
                    Entry::Occupied(first) => {
                        let place = format!("zones[{z}].rows[{r}].seats[{s}].position");
                        let message =
                            format!("{:?} is where {:?} is, at {}, {}", seat.guid, first.get(), seat.x, seat.y);
                        f.warn(&place, 0, "position_repeated", "", message);
                    }
                }
            }
        }
    }
}
