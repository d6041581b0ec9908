//! The file beside the plan, `PLAN.seats.json`: what a venue knows and the pretix format can't say.
//!
//! ```json
//! {
//!   "version": 1,
//!   "focus": {"x": 300, "y": 20},
//!   "accessible": ["A-1"],
//!   "companion": {"A-2": "A-1"},
//!   "restricted_view": ["C-14"],
//!   "house": ["B-1", "B-2"],
//!   "standing": [
//!     {"id": "front", "area": "5e0c…", "name": "Front standing", "category": "Standing", "capacity": 500}
//!   ]
//! }
//! ```
//!
//! - `focus` is what "near the stage" is measured from, in the plan's own coordinates.
//! - `companion` says which accessible place each companion's seat belongs to.
//! - `house` seats are blocked when an event is made from the plan.
//! - `standing` gives an area of the plan (by its `uuid`) a capacity. Each place becomes a seat row
//!   of its own, with the guid `<id>/<n>`, so that a place is never a counter that could go below
//!   zero. More capacity later adds places, less retires the last ones.
//!
//! Every key may be left out, but for those of a standing area. The format is ours: an unknown key
//! is refused, because a slip of the pen must not take an accessible place from the map.

use std::collections::HashMap;

use super::check::{Fields, Findings, Place, Unknown::Refuse, list, object, position, shown, text};
use super::{Names, SEATS_MAX};
use crate::catalog::json::{Node, Value};

/// Indexes are into [`super::Plan::seats`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    pub focus: Option<(f64, f64)>,
    pub accessible: Vec<usize>,
    /// Companion's seat, accessible place.
    pub companion: Vec<(usize, usize)>,
    pub restricted_view: Vec<usize>,
    pub house: Vec<usize>,
    pub standing: Vec<Standing>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Where it stands in the file's list.
    pub at: usize,
    pub id: String,
    pub name: String,
    /// Index into the plan's categories.
    pub category: usize,
    pub capacity: usize,
    /// Zone, and area within the zone.
    pub area: (usize, usize),
}

impl Standing {
    /// The guid of the place `n`, counted from 1.
    pub fn guid(&self, n: usize) -> String {
        format!("{}/{n}", self.id)
    }
}

/// Reads the file beside the plan that has these names: what has no fault, and a finding for what has.
pub(super) fn read(node: &Node<'_>, names: &Names<'_>, f: &mut Findings) -> Option<Beside> {
    let root = Place::root();
    let known = ["version", "focus", "accessible", "companion", "restricted_view", "house", "standing"];
    let fields = object(f, node, root, "file beside a plan", &known, Refuse)?;
    if let Some(version) = fields.optional_number(f, "version")
        && version != 1.0
    {
        f.fault(root.key("version"), node.line, "version_unknown", format!("version {version}; this reads version 1"));
    }
    let mut beside = Beside {
        focus: fields.get("focus").and_then(|n| position(f, n, root.key("focus"), Refuse)),
        accessible: guids(f, &fields, "accessible", names),
        restricted_view: guids(f, &fields, "restricted_view", names),
        house: guids(f, &fields, "house", names),
        ..Beside::default()
    };
    if let Some(node) = fields.get("companion") {
        beside.companion = companions(f, node, root.key("companion"), &beside.accessible, names);
    }
    if let Some(node) = fields.get("standing") {
        beside.standing = standing(f, node, root.key("standing"), names);
    }
    Some(beside)
}

fn seat(f: &mut Findings, node: &Node<'_>, place: Place<'_>, guid: &str, names: &Names<'_>) -> Option<usize> {
    let seat = names.seats.get(guid).copied();
    if seat.is_none() && names.whole {
        f.fault(place, node.line, "guid_unknown", format!("the plan has no seat with the guid {}", shown(guid)));
    }
    seat
}

fn guids(f: &mut Findings, fields: &Fields<'_, '_, '_>, key: &str, names: &Names<'_>) -> Vec<usize> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    let place = fields.place.key(key);
    let mut met: HashMap<usize, usize> = HashMap::new();
    for (i, item) in list(f, node, place).unwrap_or_default().iter().enumerate() {
        let place = place.index(i);
        let Some(guid) = text(f, item, place) else { continue };
        let Some(seat) = seat(f, item, place, guid, names) else { continue };
        if let Some(first) = met.insert(seat, i) {
            f.fault(place, item.line, "guid_repeated", format!("{} stands at {key}[{first}] already", shown(guid)));
        }
    }
    let mut found: Vec<usize> = met.into_keys().collect();
    found.sort_unstable();
    found
}

fn companions(
    f: &mut Findings,
    node: &Node<'_>,
    place: Place<'_>,
    accessible: &[usize],
    names: &Names<'_>,
) -> Vec<(usize, usize)> {
    let Value::Object(members) = &node.value else {
        super::check::wrong(f, node, place, "an object of companions' guids");
        return Vec::new();
    };
    let mut met: HashMap<usize, usize> = HashMap::new();
    for (guid, of) in members {
        let place = place.key(guid);
        let companion = seat(f, of, place, guid, names);
        let place_of = text(f, of, place).and_then(|guid| seat(f, of, place, guid, names));
        let (Some(companion), Some(place_of)) = (companion, place_of) else { continue };
        if accessible.binary_search(&place_of).is_err() {
            f.fault(place, of.line, "companion_of_none", "the place that it belongs to is not listed as accessible");
        }
        if accessible.binary_search(&companion).is_ok() {
            f.fault(place, of.line, "companion_accessible", "a seat is either an accessible place or a companion's");
        }
        if met.insert(companion, place_of).is_some() {
            f.fault(place, of.line, "guid_repeated", "this companion's seat is listed twice");
        }
    }
    let mut found: Vec<(usize, usize)> = met.into_iter().collect();
    found.sort_unstable();
    found
}

fn standing(f: &mut Findings, node: &Node<'_>, place: Place<'_>, names: &Names<'_>) -> Vec<Standing> {
    let mut found: Vec<Standing> = Vec::new();
    let mut total = names.seat_count;
    for (i, item) in list(f, node, place).unwrap_or_default().iter().enumerate() {
        let place = place.index(i);
        let known = ["id", "area", "name", "category", "capacity"];
        let Some(fields) = object(f, item, place, "standing area", &known, Refuse) else { continue };
        let id = fields.required_text(f, "id");
        let name = fields.required_text(f, "name");
        if name.is_some_and(|name| name.trim().is_empty()) {
            f.fault(place.key("name"), item.line, "name_empty", "a standing area has a name, which tickets say");
        }
        let uuid = fields.required_text(f, "area");
        let category = fields.required_text(f, "category").and_then(|name| {
            let at = names.categories.iter().position(|c| *c == name);
            if at.is_none() && names.whole {
                let message = format!("the plan has no category {}", shown(name));
                f.fault(place.key("category"), item.line, "category_unknown", message);
            }
            at
        });
        let capacity = fields.required_number(f, "capacity").and_then(|n| {
            let whole = n.fract() == 0.0 && (1.0..=SEATS_MAX as f64).contains(&n);
            if !whole {
                let message = format!("{n} is not a whole number from 1 to {SEATS_MAX}");
                f.fault(place.key("capacity"), item.line, "capacity_invalid", message);
            }
            whole.then_some(n as usize)
        });
        let area = uuid.and_then(|uuid| area(f, place.key("area"), item.line, names, uuid));
        if let Some(id) = id {
            if id.is_empty() || id.starts_with(' ') || id.ends_with(' ') || id.contains('/') || id.len() > 100 {
                let message = "an id has 1 to 100 bytes, no space at either end and no slash";
                f.fault(place.key("id"), item.line, "id_invalid", message);
            } else if found.iter().any(|s| s.id == id) {
                f.fault(place.key("id"), item.line, "id_repeated", format!("the id {} is taken", shown(id)));
            }
        }
        if let (Some(id), Some(name), Some(category), Some(capacity), Some(area)) = (id, name, category, capacity, area)
        {
            let standing = Standing { at: i, id: id.to_owned(), name: name.to_owned(), category, capacity, area };
            total += capacity;
            if total > SEATS_MAX {
                let message = format!("with this area the plan has {total} places; at most {SEATS_MAX} are taken");
                f.fault(place.key("capacity"), item.line, "too_many", message);
                break;
            }
            for n in 1..=capacity {
                let guid = standing.guid(n);
                if names.seats.contains_key(guid.as_str()) {
                    let message = format!("a seat of the plan has the guid {guid:?} of this area's place {n}");
                    f.fault(place.key("id"), item.line, "guid_repeated", message);
                }
            }
            found.push(standing);
        }
    }
    found
}

fn area(f: &mut Findings, place: Place<'_>, line: u32, names: &Names<'_>, uuid: &str) -> Option<(usize, usize)> {
    let mut with_uuid = names.areas.iter().filter(|(known, _)| *known == uuid).map(|(_, at)| *at);
    match (with_uuid.next(), with_uuid.next()) {
        (Some(at), None) => return Some(at),
        (None, _) if names.whole => {
            f.fault(place, line, "area_unknown", format!("the plan has no area with the uuid {}", shown(uuid)));
        }
        (None, _) => {}
        (Some(_), Some(_)) => {
            f.fault(place, line, "area_ambiguous", format!("several areas of the plan have the uuid {}", shown(uuid)));
        }
    }
    None
}
