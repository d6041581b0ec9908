//! A plan laid out: every place in order, with all that is known of it.
//!
//! **Near the stage** is measured from the layout's focus: what the file beside the plan says; else
//! the middle of the first area whose text names a stage, in one of many languages; else, if the
//! seats surround an empty middle (a stadium), that middle; else the middle of the upper edge, where
//! plans are drawn with their stage.

use std::collections::HashMap;

use super::plan::{Area, Category, Fault, File, Plan, beside::Beside};
use super::standing::{Place, Point, middle, outline, places, turned};
use super::{runs, text::folded};

/// Bits of a seat, as they are stored and drawn.
pub mod flag {
    use fullhouse_protocol::seat::SeatTrait;

    pub const ACCESSIBLE: i16 = 1;
    pub const COMPANION: i16 = 2;
    pub const RESTRICTED_VIEW: i16 = 4;
    pub const STANDING: i16 = 8;
    /// In no later revision of the plan than the one it vanished from.
    pub const RETIRED: i16 = 16;

    /// What whoever sits there is told.
    pub fn traits(flags: i16) -> Vec<SeatTrait> {
        let told = [
            (ACCESSIBLE, SeatTrait::Accessible),
            (COMPANION, SeatTrait::Companion),
            (RESTRICTED_VIEW, SeatTrait::RestrictedView),
        ];
        told.into_iter().filter(|(flag, _)| flags & flag != 0).map(|(_, told)| told).collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub name: String,
    pub categories: Vec<Category>,
    pub sections: Vec<String>,
    pub rows: Vec<Row>,
    /// In the order of the plan, standing places last.
    pub seats: Vec<Seat>,
    pub areas: Vec<Area>,
    pub focus: Point,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub section: usize,
    pub label: String,
    /// The first of its runs.
    pub run: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    pub guid: String,
    pub section: usize,
    pub row: usize,
    pub label: String,
    pub category: usize,
    pub x: f64,
    pub y: f64,
    pub radius: f64,
    pub flags: i16,
    /// Index of the accessible place that it belongs to.
    pub companion_of: Option<usize>,
    pub house: bool,
    /// Seats of one run, by `run_pos`, sit side by side. A line of standing places is one, too.
    pub run: usize,
    pub run_pos: usize,
}

/// Lays a plan out. Faults are about standing areas that have no room, and plans without a place.
pub fn lay_out(plan: Plan, beside: &Beside) -> Result<Layout, Vec<Fault>> {
    let focus = focus(&plan, beside);
    let mut layout = Layout {
        name: plan.name,
        categories: plan.categories,
        sections: Vec::new(),
        rows: Vec::new(),
        seats: Vec::new(),
        areas: Vec::new(),
        focus,
    };
    let mut runs_total = 0;
    let mut outlines: HashMap<(usize, usize), Vec<Point>> = HashMap::new();
    for (z, zone) in plan.zones.into_iter().enumerate() {
        for (a, area) in zone.areas.iter().enumerate() {
            if beside.standing.iter().any(|s| s.area == (z, a)) {
                outlines.insert((z, a), outline(area));
            }
        }
        let runs = runs::of_zone(&zone);
        if zone.rows.iter().any(|r| !r.seats.is_empty()) {
            layout.sections.push(zone.name);
        }
        for (row, runs) in zone.rows.into_iter().zip(runs) {
            if row.seats.is_empty() {
                continue;
            }
            let section = layout.sections.len() - 1;
            layout.rows.push(Row { section, label: row.label, run: runs_total });
            let first = layout.seats.len();
            layout.seats.extend(row.seats.into_iter().map(|s| Seat {
                guid: s.guid,
                section,
                row: layout.rows.len() - 1,
                label: s.label,
                category: s.category,
                x: s.x,
                y: s.y,
                radius: s.radius,
                flags: 0,
                companion_of: None,
                house: false,
                run: 0,
                run_pos: 0,
            }));
            for run in runs {
                for (run_pos, at) in run.into_iter().enumerate() {
                    let seat = &mut layout.seats[first + at];
                    (seat.run, seat.run_pos) = (runs_total, run_pos);
                }
                runs_total += 1;
            }
        }
        layout.areas.extend(zone.areas);
    }
    mark(&mut layout.seats, beside);
    let mut faults = Vec::new();
    for standing in &beside.standing {
        let outline = outlines.get(&standing.area).map(Vec::as_slice).unwrap_or_default();
        let Some(places) = places(outline, standing.capacity, focus) else {
            faults.push(Fault {
                file: File::Beside,
                place: format!("standing[{}].area", standing.at),
                line: 0,
                code: "area_has_no_room",
                message: format!(
                    "this area's shape has no room for {} places, or more than 2,000 corners",
                    standing.capacity
                ),
            });
            continue;
        };
        let (section, row) = (layout.sections.len(), layout.rows.len());
        layout.sections.push(standing.name.clone());
        layout.rows.push(Row { section, label: String::new(), run: runs_total });
        let lines = places.iter().map(|p| p.line + 1).max().unwrap_or(0);
        layout.seats.extend(places.into_iter().enumerate().map(|(n, Place { at: (x, y), line, along })| Seat {
            guid: standing.guid(n + 1),
            section,
            row,
            label: (n + 1).to_string(),
            category: standing.category,
            x,
            y,
            radius: 0.0,
            flags: flag::STANDING,
            companion_of: None,
            house: false,
            run: runs_total + line,
            run_pos: along,
        }));
        runs_total += lines;
    }
    if faults.is_empty() { Ok(layout) } else { Err(faults) }
}

fn mark(seats: &mut [Seat], beside: &Beside) {
    for at in &beside.accessible {
        seats[*at].flags |= flag::ACCESSIBLE;
    }
    for at in &beside.restricted_view {
        seats[*at].flags |= flag::RESTRICTED_VIEW;
    }
    for (at, of) in &beside.companion {
        seats[*at].flags |= flag::COMPANION;
        seats[*at].companion_of = Some(*of);
    }
    for at in &beside.house {
        seats[*at].house = true;
    }
}

/// English, German, French, Italian, Spanish, Portuguese, Dutch, Nordic,
/// Polish, Czech, Russian, Turkish, Japanese, Chinese, Korean.
const STAGES: [&str; 21] = [
    "stage",
    "bühne",
    "buehne",
    "scène",
    "palco",
    "escenario",
    "podium",
    "toneel",
    "scena",
    "podest",
    "jeviště",
    "сцена",
    "sahne",
    "舞台",
    "ステージ",
    "무대",
    "스테이지",
    "screen",
    "leinwand",
    "スクリーン",
    "스크린",
];
const NOT_STAGES: [&str; 2] = ["backstage", "stage door"];

fn focus(plan: &Plan, beside: &Beside) -> Point {
    if let Some(focus) = beside.focus {
        return focus;
    }
    let names_stage = |area: &&Area| {
        area.text.as_ref().is_some_and(|text| {
            let text = folded(&text.text);
            STAGES.iter().any(|s| text.contains(&folded(s))) && !NOT_STAGES.iter().any(|s| text.contains(s))
        })
    };
    if let Some(stage) = plan.zones.iter().flat_map(|z| &z.areas).find(names_stage) {
        let text = stage.text.as_ref().map_or((0.0, 0.0), |t| (t.x, t.y));
        return middle(&outline(stage)).unwrap_or_else(|| turned(stage, text));
    }
    let (mut lo, mut hi) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    for seat in plan.seats() {
        lo = (lo.0.min(seat.x), lo.1.min(seat.y));
        hi = (hi.0.max(seat.x), hi.1.max(seat.y));
    }
    if lo.0 > hi.0 {
        return (0.0, 0.0);
    }
    let centre = ((lo.0 + hi.0) / 2.0, (lo.1 + hi.1) / 2.0);
    let nearest = plan.seats().map(|s| (s.x - centre.0).hypot(s.y - centre.1)).fold(f64::INFINITY, f64::min);
    let surrounded = nearest > 0.1 * (hi.0 - lo.0).hypot(hi.1 - lo.1);
    if surrounded { centre } else { (centre.0, lo.1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::plan::tests::{plan, read_alone, row, seat};
    use serde_json::json;

    fn read(areas: Vec<serde_json::Value>, xs: &[f64]) -> Plan {
        let seats = xs.iter().enumerate().map(|(i, x)| seat(&format!("A-{i}"), *x)).collect();
        read_alone(plan(vec![row("A", seats)], areas).to_string().as_bytes()).unwrap().value
    }

    #[test]
    fn the_stage_is_found_in_many_languages() {
        for (text, found) in [
            ("MAIN STAGE", true),
            ("Bühne", true),
            ("Scène", true),
            ("Escenario", true),
            ("舞台", true),
            ("ステージ", true),
            ("무대", true),
            ("Backstage", false),
            ("Bar", false),
        ] {
            let area = json!({"shape": "rectangle", "position": {"x": 100, "y": 200}, "rectangle": {"width": 40, "height": 20},
                "text": {"text": text, "position": {"x": 0, "y": 0}}});
            let plan = read(vec![area], &[0.0, 20.0]);
            assert_eq!(focus(&plan, &Beside::default()) == (120.0, 210.0), found, "{text}");
        }
    }

    #[test]
    fn without_a_stage_it_is_an_empty_middle_or_the_upper_edge() {
        assert_eq!(focus(&read(vec![], &[0.0, 10.0, 90.0, 100.0]), &Beside::default()), (50.0, 0.0));
        assert_eq!(focus(&read(vec![], &[0.0, 50.0, 100.0]), &Beside::default()), (50.0, 0.0));
        let beside = Beside { focus: Some((7.0, 8.0)), ..Beside::default() };
        assert_eq!(focus(&read(vec![], &[0.0]), &beside), (7.0, 8.0));
    }
}
