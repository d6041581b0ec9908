//! What a map is drawn from: one JSON resource a revision, gzipped, known by its hash.
//!
//! Coordinates are absolute and begin near 0,0: positions and zones of the plan are folded in, and
//! so is what an area's rotation does to polygons and to the place of its text. Rectangles, ellipses
//! and the letters of a text are still turned by `rotation` when they are drawn, each about its own
//! point. Plans in small units (metres) are scaled up, so that a tenth is fine enough for a seat.

use std::{collections::HashMap, io::Write};

use flate2::{Compression, write::GzEncoder};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

mod hull; // the outline of a section

use super::layout::{Layout, Seat, flag};
use super::plan::{Area, Shape};
use super::standing::{Point, outline, turned};

/// Below this pitch a plan is scaled up.
const PITCH_MIN: f64 = 8.0;
const PITCH_SCALED: f64 = 20.0;

/// A seat that an earlier revision had: its number stays taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Retired {
    pub guid: String,
    pub section: String,
    pub row_label: String,
    pub seat_label: String,
    pub category: String,
    /// As drawn in the revision before.
    pub x: f64,
    pub y: f64,
}

/// Who has a seat number: a seat of the layout (by its index), or one that is gone.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    Seat(usize),
    Retired(Retired),
}

/// The geometry resource, and where the seats stand in it.
#[derive(Debug)]
pub struct Drawing {
    pub json: Vec<u8>,
    /// By seat number.
    pub points: Vec<Point>,
    pub focus: Point,
}

/// A number in tenths, written as short as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tenths(f64);

impl Serialize for Tenths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 {
            serializer.serialize_i64(tenths / 10)
        } else {
            serializer.serialize_f64(tenths as f64 / 10.0)
        }
    }
}

#[derive(Serialize)]
struct Geometry<'a> {
    v: u8,
    name: &'a str,
    width: Tenths,
    height: Tenths,
    focus: [Tenths; 2],
    categories: Vec<GeometryCategory<'a>>,
    sections: Vec<GeometrySection<'a>>,
    rows: Vec<GeometryRow<'a>>,
    seats: GeometrySeats<'a>,
    areas: Vec<GeometryArea<'a>>,
}

#[derive(Serialize)]
struct GeometryCategory<'a> {
    name: &'a str,
    color: &'a str,
}

#[derive(Serialize)]
struct GeometrySection<'a> {
    name: &'a str,
    hull: Vec<Tenths>,
    label: [Tenths; 2],
    first: usize,
    count: usize,
}

#[derive(Serialize)]
struct GeometryRow<'a> {
    section: usize,
    label: &'a str,
    run: usize,
}

#[derive(Serialize, Default)]
struct GeometrySeats<'a> {
    x: Vec<Tenths>,
    y: Vec<Tenths>,
    section: Vec<usize>,
    row: Vec<usize>,
    number: Vec<&'a str>,
    category: Vec<usize>,
    flags: Vec<i16>,
    run: Vec<usize>,
    radius: Option<Tenths>,
}

#[derive(Serialize)]
struct GeometryArea<'a> {
    shape: &'static str,
    color: Option<&'a str>,
    border_color: Option<&'a str>,
    rotation: Tenths,
    x: Tenths,
    y: Tenths,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<GeometryText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<Vec<Tenths>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    w: Option<Tenths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    h: Option<Tenths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rx: Option<Tenths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ry: Option<Tenths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<Tenths>,
}

#[derive(Serialize)]
struct GeometryText<'a> {
    text: &'a str,
    x: Tenths,
    y: Tenths,
    color: Option<&'a str>,
    size: Tenths,
}

/// From plan coordinates to drawn ones.
#[derive(Clone, Copy)]
struct Frame {
    origin: Point,
    scale: f64,
    size: Point,
}

impl Frame {
    fn around(layout: &Layout, pitch: f64) -> Self {
        let (mut lo, mut hi) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        let mut include = |(x, y): Point, r: f64| {
            lo = (lo.0.min(x - r), lo.1.min(y - r));
            hi = (hi.0.max(x + r), hi.1.max(y + r));
        };
        for seat in &layout.seats {
            include((seat.x, seat.y), pitch / 2.0);
        }
        for area in &layout.areas {
            outline(area).into_iter().for_each(|p| include(p, 0.0));
            if let Some(text) = &area.text {
                include(turned(area, (text.x, text.y)), text.size.abs().min(pitch * 4.0));
            }
        }
        let scale = if pitch < PITCH_MIN { PITCH_SCALED / pitch } else { 1.0 };
        let margin = (pitch * 2.0).max(0.02 * (hi.0 - lo.0).max(hi.1 - lo.1));
        let origin = (lo.0 - margin, lo.1 - margin);
        Self { origin, scale, size: ((hi.0 + margin - origin.0) * scale, (hi.1 + margin - origin.1) * scale) }
    }

    fn place(&self, (x, y): Point) -> Point {
        let tenth = |v: f64| (v * 10.0).round() / 10.0;
        (tenth((x - self.origin.0) * self.scale), tenth((y - self.origin.1) * self.scale))
    }
}

/// Draws a layout whose seats have the numbers that `slots` gives them.
pub fn draw(layout: &Layout, slots: &[Slot]) -> Drawing {
    let pitch = typical_pitch(layout);
    let frame = Frame::around(layout, pitch);
    let focus = frame.place(layout.focus);
    let mut points: Vec<Point> = Vec::with_capacity(slots.len());
    let mut seats = GeometrySeats::default();
    let section_by_name: HashMap<&str, usize> =
        layout.sections.iter().enumerate().rev().map(|(i, s)| (s.as_str(), i)).collect();
    let mut run_next = runs_of(layout);
    for slot in slots {
        let (point, section, row, number, category, flags, run) = match slot {
            Slot::Seat(at) => {
                let s = &layout.seats[*at];
                (frame.place((s.x, s.y)), s.section, s.row, s.label.as_str(), s.category, s.flags, s.run)
            }
            Slot::Retired(gone) => {
                run_next += 1;
                let section = section_by_name.get(gone.section.as_str()).copied().unwrap_or(0);
                let category = layout.categories.iter().position(|c| c.name == gone.category).unwrap_or(0); // 64 at most
                ((gone.x, gone.y), section, 0, gone.seat_label.as_str(), category, flag::RETIRED, run_next - 1)
            }
        };
        points.push(point);
        seats.x.push(Tenths(point.0));
        seats.y.push(Tenths(point.1));
        seats.section.push(section);
        seats.row.push(row);
        seats.number.push(number);
        seats.category.push(category);
        seats.flags.push(flags);
        seats.run.push(run);
    }
    seats.radius = Some(Tenths(radius(layout, pitch) * frame.scale));
    let geometry = Geometry {
        v: 1,
        name: &layout.name,
        width: Tenths(frame.size.0),
        height: Tenths(frame.size.1),
        focus: [Tenths(focus.0), Tenths(focus.1)],
        categories: layout.categories.iter().map(|c| GeometryCategory { name: &c.name, color: &c.color }).collect(),
        sections: sections(layout, slots, &points, pitch * frame.scale),
        rows: layout.rows.iter().map(|r| GeometryRow { section: r.section, label: &r.label, run: r.run }).collect(),
        seats,
        areas: layout.areas.iter().map(|a| area(a, frame)).collect(),
    };
    let json = serde_json::to_vec(&geometry).expect("numbers and text are always JSON");
    Drawing { json, points, focus }
}

/// How many runs a layout has. Each retired seat gets one of its own after them, in order.
pub fn runs_of(layout: &Layout) -> usize {
    layout.seats.iter().map(|s| s.run + 1).max().unwrap_or(0)
}

/// The median distance of seats that sit beside each other.
fn typical_pitch(layout: &Layout) -> f64 {
    let mut steps: Vec<f64> = layout
        .seats
        .windows(2)
        .filter(|w| w[0].run == w[1].run && w[0].flags & flag::STANDING == 0)
        .map(|w| (w[0].x - w[1].x).hypot(w[0].y - w[1].y))
        .filter(|d| *d > 1e-6)
        .collect();
    if steps.is_empty() {
        return PITCH_SCALED;
    }
    let middle = (steps.len() - 1) / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The plan's median radius, but never so large that neighbours overlap.
fn radius(layout: &Layout, pitch: f64) -> f64 {
    let mut radii: Vec<f64> = layout.seats.iter().map(|s| s.radius).filter(|r| *r > 0.0).collect();
    let widest = pitch * 0.45;
    if radii.is_empty() {
        return widest;
    }
    let middle = (radii.len() - 1) / 2;
    radii.select_nth_unstable_by(middle, f64::total_cmp).1.min(widest)
}

fn sections<'a>(layout: &'a Layout, slots: &[Slot], points: &[Point], pitch: f64) -> Vec<GeometrySection<'a>> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); layout.sections.len()];
    let mut point_of: Vec<Point> = vec![(0.0, 0.0); layout.seats.len()];
    for (seat_no, slot) in slots.iter().enumerate() {
        if let Slot::Seat(at) = slot {
            members[layout.seats[*at].section].push(seat_no);
            point_of[*at] = points[seat_no];
        }
    }
    let mut lines: Vec<Option<Vec<Vec<Point>>>> = vec![Some(Vec::new()); layout.sections.len()];
    let mut at = 0;
    for row in layout.seats.chunk_by(|a, b| a.row == b.row) {
        let line = &point_of[at..at + row.len()];
        let whole = row.iter().all(|s| s.run == row[0].run && s.flags & flag::STANDING == 0);
        match (&mut lines[row[0].section], whole) {
            (Some(lines), true) => lines.push(line.to_vec()),
            (slot, _) => *slot = None,
        }
        at += row.len();
    }
    let mut drawn = Vec::with_capacity(layout.sections.len());
    for ((name, seats), lines) in layout.sections.iter().zip(members).zip(lines) {
        let at: Vec<Point> = seats.iter().map(|s| points[*s]).collect();
        let n = at.len() as f64;
        let label = at.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
        drawn.push(GeometrySection {
            name,
            hull: flat(&hull::around(at, lines.as_deref(), pitch * 0.7)),
            label: [Tenths(label.0), Tenths(label.1)],
            first: seats.first().copied().unwrap_or(0),
            count: seats.len(),
        });
    }
    drawn
}

fn flat(points: &[Point]) -> Vec<Tenths> {
    points.iter().flat_map(|p| [Tenths(p.0), Tenths(p.1)]).collect()
}

fn area(area: &Area, frame: Frame) -> GeometryArea<'_> {
    let (x, y) = frame.place((area.x, area.y));
    let long = |v: f64| Some(Tenths(v * frame.scale));
    let mut drawn = GeometryArea {
        shape: "text",
        color: area.color.as_deref(),
        border_color: area.border_color.as_deref(),
        rotation: Tenths(area.rotation.rem_euclid(360.0)),
        x: Tenths(x),
        y: Tenths(y),
        text: area.text.as_ref().map(|t| {
            let (x, y) = frame.place(turned(area, (t.x, t.y)));
            let size = Tenths(t.size * frame.scale);
            GeometryText { text: &t.text, x: Tenths(x), y: Tenths(y), color: t.color.as_deref(), size }
        }),
        points: None,
        w: None,
        h: None,
        rx: None,
        ry: None,
        r: None,
    };
    match &area.shape {
        Shape::Polygon(_) => {
            drawn.shape = "polygon";
            drawn.rotation = Tenths(0.0); // its points are turned already
            drawn.points = Some(flat(&outline(area).into_iter().map(|p| frame.place(p)).collect::<Vec<_>>()));
        }
        Shape::Rectangle(w, h) => {
            drawn.shape = "rectangle";
            (drawn.w, drawn.h) = (long(*w), long(*h));
        }
        Shape::Ellipse(rx, ry) if rx == ry => {
            drawn.shape = "circle";
            drawn.r = long(*rx);
        }
        Shape::Ellipse(rx, ry) => {
            drawn.shape = "ellipse";
            (drawn.rx, drawn.ry) = (long(*rx), long(*ry));
        }
        Shape::Text => {}
    }
    drawn
}

/// Identity of a revision: what is drawn, whose seats they are, and what else is known of them.
pub fn hash(revision: i32, layout: &Layout, slots: &[Slot], drawing: &Drawing) -> String {
    let mut sha = Sha256::new();
    sha.update(revision.to_le_bytes());
    sha.update(&drawing.json);
    for slot in slots {
        let (guid, rest) = match slot {
            Slot::Seat(at) => (&layout.seats[*at].guid, known_of(&layout.seats[*at])),
            Slot::Retired(gone) => (&gone.guid, [0; 17]),
        };
        sha.update((guid.len() as u64).to_le_bytes());
        sha.update(guid);
        sha.update(rest);
    }
    sha.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

fn known_of(seat: &Seat) -> [u8; 17] {
    let mut known = [1; 17];
    known[0] = 2 + u8::from(seat.house);
    known[1..9].copy_from_slice(&(seat.companion_of.map_or(0, |at| at as u64 + 1)).to_le_bytes());
    known[9..].copy_from_slice(&(seat.run_pos as u64).to_le_bytes());
    known
}

/// For storing and for sending.
pub fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

/// The colour of each category, as a stored (gzipped) geometry has it.
pub fn category_colors(gzipped: &[u8]) -> HashMap<String, String> {
    #[derive(serde::Deserialize)]
    struct Colors {
        categories: Vec<Color>,
    }
    #[derive(serde::Deserialize)]
    struct Color {
        name: String,
        color: String,
    }
    let reader = std::io::BufReader::new(flate2::read::GzDecoder::new(gzipped));
    let colors: Option<Colors> = serde_json::from_reader(reader).ok();
    colors.into_iter().flat_map(|c| c.categories).map(|c| (c.name, c.color)).collect()
}
