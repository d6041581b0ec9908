//! A made-up stadium of about 62,000 places, set up for a concert: for the demo, for benches, and
//! for whoever wants to try a big house.
//!
//! | what | blocks | places |
//! | --- | --- | --- |
//! | lower ring, Block 101 to 144 | 44 × 32 rows × about 22; those behind the stage are closed | 25,000 |
//! | upper ring, Block 301 to 352 | 52 × 22 rows × about 22; closed behind the stage; two double blocks | 20,000 |
//! | club, Club 201 to 220 | 20 × 12 rows × 20, along the sides | 4,800 |
//! | Box 1 to 100 | 100 × 2 rows × 5 | 1,000 |
//! | Platform A to T | 20 × 10 wheelchair places with 10 companions | 400 |
//! | Skyline | 3 rows of 139 above the stage's far end | 417 |
//! | Golden Circle, Field | two standing areas of 5,000 on the grass | 10,000 |
//!
//! A full bowl has 62,000 seats without its grass; here the blocks behind the stage (some 10,000
//! seats) give way to the two fields. Blocks differ in how they are numbered: from the left or from
//! the right, from 1, 6 or 101, odd or even only, without a 13, with a hole where a stairway comes
//! up; rows are numbers in some and letters in others (no I, no O, AA after Z). The seed decides.

use std::f64::consts::{PI, TAU};

use serde::Serialize;
use serde_json::{Value, json};

use oval::Oval;

mod grass; // what the seats look at
mod oval; // the line of the rows

/// A pretix plan and the file beside it, as bytes.
pub struct Stadium {
    pub plan: Vec<u8>,
    pub beside: Vec<u8>,
    /// What is in it, in a line.
    pub summary: String,
}

/// Half of the angle, seen along the oval, that is closed behind the stage.
const CLOSED: f64 = 0.645;
const STANDING_CAPACITY: usize = 5_000;
const STAGE_FRONT: f64 = 930.0;

const CATEGORIES: [(&str, &str); 9] = [
    ("Golden Circle", "#c2255c"),
    ("Field", "#e8590c"),
    ("Lower Premium", "#f08c00"),
    ("Lower", "#66a80f"),
    ("Club", "#0c8599"),
    ("Box", "#7048e8"),
    ("Upper", "#1c7ed6"),
    ("Upper Value", "#8b5e3c"),
    ("Platform", "#099268"),
];

/// A ring of blocks. Distances are in tenths of a seat's width: 20 are a metre.
struct Ring {
    first_number: u32,
    name: &'static str,
    inner: f64,
    rows: usize,
    depth: f64,
    pitch: f64,
    aisle: f64,
    /// Rows through which a stairway comes up in some blocks.
    stairs: std::ops::Range<usize>,
}

const LOWER: Ring = Ring {
    first_number: 101,
    name: "Block",
    inner: 0.0,
    rows: 32,
    depth: 16.0,
    pitch: 10.0,
    aisle: 24.0,
    stairs: 13..18,
};
const CLUB: Ring = Ring {
    first_number: 201,
    name: "Club",
    inner: 590.0,
    rows: 12,
    depth: 18.0,
    pitch: 16.0,
    aisle: 46.0,
    stairs: 0..0,
};
const UPPER: Ring = Ring {
    first_number: 301,
    name: "Block",
    inner: 920.0,
    rows: 22,
    depth: 16.0,
    pitch: 11.0,
    aisle: 52.0,
    stairs: 4..8,
};
const PLATFORM: f64 = 548.0;
const BOXES: f64 = 834.0;
const SKYLINE: f64 = 1304.0;

#[derive(Serialize)]
struct Zone {
    name: String,
    position: Point,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    areas: Vec<Value>,
}

#[derive(Serialize)]
struct Row {
    row_number: String,
    position: Point,
    seats: Vec<Seat>,
}

#[derive(Serialize)]
struct Seat {
    seat_guid: String,
    seat_number: String,
    position: Point,
    category: &'static str,
    radius: f64,
}

#[derive(Serialize, Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

/// SplitMix64: the same seed makes the same stadium in every version of every library.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// The stadium being built. The stage's end is at the top: u points up, and y down.
struct Builder {
    oval: Oval,
    dice: Dice,
    zones: Vec<Zone>,
    accessible: Vec<String>,
    companion: serde_json::Map<String, Value>,
    restricted_view: Vec<String>,
    house: Vec<String>,
}

const MIDDLE: Point = Point { x: 2800.0, y: 3100.0 };

fn place((u, v): (f64, f64)) -> Point {
    let tenth = |n: f64| (n * 10.0).round() / 10.0;
    Point { x: tenth(MIDDLE.x + v), y: tenth(MIDDLE.y - u) }
}

/// Makes the stadium of a seed.
pub fn generate(seed: u64) -> Stadium {
    let mut b = Builder {
        oval: Oval::new(560.0, 1030.0, 0.84),
        dice: Dice(seed),
        zones: Vec::new(),
        accessible: Vec::new(),
        companion: serde_json::Map::new(),
        restricted_view: Vec::new(),
        house: Vec::new(),
    };
    let closed_lower = b.lower_ring();
    b.platforms();
    b.club_ring();
    b.boxes();
    let closed_upper = b.upper_ring();
    b.skyline();
    let areas = grass::areas(b.oval, closed_lower - 0.01, closed_upper - 0.01);
    b.zones.push(Zone { name: "Grass".into(), position: MIDDLE, rows: Vec::new(), areas });
    b.finish()
}

impl Builder {
    /// Returns the angle up to which it is closed; so does the upper ring.
    fn lower_ring(&mut self) -> f64 {
        let limits = self.oval.cut(0.0, TAU, 44, LOWER.inner + 256.0);
        for (i, limit) in limits.windows(2).enumerate() {
            let middle = (limit[0] + limit[1]) / 2.0;
            if is_closed(middle) {
                continue;
            }
            let category = if middle.cos() > -0.35 { "Lower Premium" } else { "Lower" };
            self.block(&LOWER, i, (limit[0], limit[1]), |_| category);
        }
        closed_until(&limits)
    }

    fn club_ring(&mut self) {
        let mut number = 0;
        for side in [PI / 2.0, 1.5 * PI] {
            let limits = self.oval.cut(side - 0.74, side + 0.74, 10, CLUB.inner + 108.0);
            for limit in limits.windows(2) {
                self.block(&CLUB, number, (limit[0], limit[1]), |_| "Club");
                number += 1;
            }
        }
    }

    fn upper_ring(&mut self) -> f64 {
        let limits = self.oval.cut(0.0, TAU, 52, UPPER.inner + 176.0);
        let mut i = 0;
        while i < 52 {
            // At the far end two pairs of blocks have no aisle between them: rows of up to 57.
            let wide = if i == 23 || i == 27 { 2 } else { 1 };
            let (from, to) = (limits[i], limits[i + wide]);
            if !is_closed((from + to) / 2.0) {
                self.block(&UPPER, i, (from, to), |row| if row < 12 { "Upper" } else { "Upper Value" });
            }
            i += wide;
        }
        closed_until(&limits)
    }

    /// A block between two aisles, its rows one behind the other.
    fn block(&mut self, ring: &Ring, index: usize, (from, to): (f64, f64), category: impl Fn(usize) -> &'static str) {
        let name = ring.first_number + index as u32;
        let numbering = Numbering::of(&mut self.dice);
        let stairs = !ring.stairs.is_empty() && self.dice.roll(2) == 0;
        let letters = self.dice.roll(4) == 0;
        let first_row = if self.dice.roll(9) == 0 { 4 } else { 1 };
        let anchor = place(self.oval.point((from + to) / 2.0, ring.inner));
        let mut rows = Vec::with_capacity(ring.rows);
        for row in 0..ring.rows {
            let d = ring.inner + row as f64 * ring.depth;
            let line = self.oval.length(from, to, d);
            let count = ((line - ring.aisle) / ring.pitch).floor() as usize;
            let first = (line - (count as f64 - 1.0) * ring.pitch) / 2.0;
            let hole = if stairs && ring.stairs.contains(&row) { count / 2 - 3..count / 2 + 3 } else { 0..0 };
            let row_number = if letters { letter(row) } else { (row + first_row).to_string() };
            let mut seats = Vec::with_capacity(count);
            for n in (0..count).filter(|n| !hole.contains(n)) {
                let point = self.oval.point(self.oval.along(from, first + n as f64 * ring.pitch, d), d);
                let seat_number = numbering.number(n, count).to_string();
                let guid = format!("{name}-{row_number}-{seat_number}");
                if point.0 - STAGE_FRONT > 0.35 * point.1.abs() {
                    self.restricted_view.push(guid.clone()); // sees the stage from behind
                }
                if ring.first_number == LOWER.first_number && row == 0 && point.0 > 520.0 {
                    self.house.push(guid.clone()); // the camera's rail
                }
                seats.push(seat(guid, seat_number, point, anchor, category(row)));
            }
            rows.push(Row { row_number, position: Point { x: 0.0, y: 0.0 }, seats });
        }
        self.zones.push(Zone { name: format!("{} {name}", ring.name), position: anchor, rows, areas: Vec::new() });
    }

    /// Wheelchair places and their companions, side by side, behind the lower ring.
    fn platforms(&mut self) {
        let limits = self.oval.cut(CLOSED + 0.04, TAU - CLOSED - 0.04, 20, PLATFORM);
        for (i, limit) in limits.windows(2).enumerate() {
            let name = letter(i);
            let line = self.oval.length(limit[0], limit[1], PLATFORM);
            let anchor = place(self.oval.point((limit[0] + limit[1]) / 2.0, PLATFORM));
            let mut seats = Vec::new();
            for n in 0..20 {
                // A pair is closer than its neighbours, and the platform is one run all the same.
                let along = line / 2.0 + (f64::from(n) - 9.5) * 18.0 + if n % 2 == 0 { 1.5 } else { -1.5 };
                let point = self.oval.point(self.oval.along(limit[0], along, PLATFORM), PLATFORM);
                let number = format!("{}{}", if n % 2 == 0 { "W" } else { "C" }, n / 2 + 1);
                let guid = format!("P{name}-{number}");
                if n % 2 == 0 {
                    self.accessible.push(guid.clone());
                } else {
                    self.companion.insert(guid.clone(), format!("P{name}-W{}", n / 2 + 1).into());
                }
                seats.push(seat(guid, number, point, anchor, "Platform"));
            }
            let row = Row { row_number: " ".into(), position: Point { x: 0.0, y: 0.0 }, seats };
            self.zones.push(Zone {
                name: format!("Platform {name}"),
                position: anchor,
                rows: vec![row],
                areas: Vec::new(),
            });
        }
    }

    fn boxes(&mut self) {
        let limits = self.oval.cut(CLOSED + 0.02, TAU - CLOSED - 0.02, 100, BOXES);
        for (i, limit) in limits.windows(2).enumerate() {
            let anchor = place(self.oval.point((limit[0] + limit[1]) / 2.0, BOXES));
            let rows = (0..2).map(|row| {
                let d = BOXES + f64::from(row) * 18.0;
                let first = self.oval.length(limit[0], limit[1], d) / 2.0 - 2.0 * 14.0;
                let seats = (0..5).map(|n| {
                    let point = self.oval.point(self.oval.along(limit[0], first + f64::from(n) * 14.0, d), d);
                    let number = (row * 5 + n + 1).to_string();
                    seat(format!("X{}-{number}", i + 1), number, point, anchor, "Box")
                });
                let row_number = if row == 0 { "front" } else { "back" };
                Row { row_number: row_number.into(), position: Point { x: 0.0, y: 0.0 }, seats: seats.collect() }
            });
            let zone =
                Zone { name: format!("Box {}", i + 1), position: anchor, rows: rows.collect(), areas: Vec::new() };
            self.zones.push(zone);
        }
    }

    fn skyline(&mut self) {
        let anchor = place(self.oval.point(PI, SKYLINE));
        let rows = (0..3).map(|row| {
            let d = SKYLINE + f64::from(row) * 16.0;
            let half = 69.0 * 11.0;
            let from = PI - 0.6;
            let first = self.oval.length(from, PI, d) - half;
            let seats = (0..139).map(|n| {
                let point = self.oval.point(self.oval.along(from, first + f64::from(n) * 11.0, d), d);
                seat(format!("S{}-{}", row + 1, n + 1), (n + 1).to_string(), point, anchor, "Upper Value")
            });
            Row { row_number: (row + 1).to_string(), position: Point { x: 0.0, y: 0.0 }, seats: seats.collect() }
        });
        self.zones.push(Zone { name: "Skyline".into(), position: anchor, rows: rows.collect(), areas: Vec::new() });
    }

    fn finish(self) -> Stadium {
        let rows = self.zones.iter().flat_map(|z| &z.rows);
        let seats: usize = rows.map(|r| r.seats.len()).sum();
        let categories: Vec<Value> =
            CATEGORIES.iter().map(|(name, color)| json!({"name": name, "color": color})).collect();
        let standing = |id: &str, name: &str, category: &str| json!({"id": id, "area": id, "name": name, "category": category, "capacity": STANDING_CAPACITY});
        let blocks = self.zones.len() - 1;
        let plan = json!({
            "name": "Aurora Bowl, end stage",
            "size": {"width": 2 * MIDDLE.x as u32, "height": 2 * MIDDLE.y as u32},
            "categories": categories,
            "zones": self.zones,
        });
        let front = place((STAGE_FRONT, 0.0));
        let beside = json!({
            "version": 1,
            "focus": {"x": front.x, "y": front.y},
            "accessible": self.accessible,
            "companion": self.companion,
            "restricted_view": self.restricted_view,
            "house": self.house,
            "standing": [standing("golden-circle", "Golden Circle", "Golden Circle"), standing("field", "Field", "Field")],
        });
        let total = seats + 2 * STANDING_CAPACITY;
        Stadium {
            plan: plan.to_string().into_bytes(),
            beside: beside.to_string().into_bytes(),
            summary: format!(
                "{total} places: {seats} seats in {blocks} blocks, two standing areas of {STANDING_CAPACITY}"
            ),
        }
    }
}

fn closed_until(limits: &[f64]) -> f64 {
    limits.windows(2).find(|l| !is_closed((l[0] + l[1]) / 2.0)).map_or(0.0, |l| l[0])
}

fn is_closed(angle: f64) -> bool {
    let angle = angle.rem_euclid(TAU);
    angle.min(TAU - angle) < CLOSED
}

fn seat(guid: String, number: String, point: (f64, f64), anchor: Point, category: &'static str) -> Seat {
    let at = place(point);
    let tenth = |n: f64| (n * 10.0).round() / 10.0;
    let position = Point { x: tenth(at.x - anchor.x), y: tenth(at.y - anchor.y) };
    Seat { seat_guid: guid, seat_number: number, position, category, radius: 4.0 }
}

/// Rows by letters: no I and no O, AA after Z.
fn letter(row: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
    let letter = (LETTERS[row % LETTERS.len()] as char).to_string();
    letter.repeat(row / LETTERS.len() + 1)
}

/// How the seats of a block are numbered; whoever sits beside whom is another matter.
struct Numbering {
    first: usize,
    step: usize,
    from_right: bool,
    no_thirteen: bool,
}

impl Numbering {
    fn of(dice: &mut Dice) -> Self {
        let (first, step) = match dice.roll(10) {
            0 => (1, 2),
            1 => (2, 2),
            2 => (101, 1),
            3 => (6, 1),
            _ => (1, 1),
        };
        Self { first, step, from_right: dice.roll(3) == 0, no_thirteen: step == 1 && dice.roll(5) == 0 }
    }

    fn number(&self, n: usize, count: usize) -> usize {
        let n = if self.from_right { count - 1 - n } else { n };
        let number = self.first + n * self.step;
        number + usize::from(self.no_thirteen && self.first <= 13 && number >= 13)
    }
}

#[cfg(test)]
mod tests;
