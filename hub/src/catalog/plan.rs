//! A seating plan as its file says it: read from the pretix format, checked, never corrected.
//!
//! Invariants
//! - Every fault is found in one reading, and named with its place; a plan with a fault is no plan.
//! - Nothing is collapsed and nothing is guessed: two guids that look alike stay two, and text is
//!   kept to the letter. What is merely odd (an unknown key, look-alikes) is a warning.
//! - Everything is bounded: see the `*_MAX` below and in [`super::json`].
//!
//! Positions are absolute here: a seat's point is zone + row + seat, an area's is zone + area.

use std::collections::HashMap;

use super::json;

pub mod beside; // the file beside the plan: what the pretix format can't say
mod check; // findings, their places, and reading one field
mod labels; // labels that look alike
mod pretix; // the plan's own file

pub use check::{Fault, File, Warning};

pub const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const SEATS_MAX: usize = 200_000;
pub const ZONES_MAX: usize = 10_000;
pub const ROWS_MAX: usize = 200_000;
pub const AREAS_MAX: usize = 20_000;
pub const POINTS_MAX: usize = 400_000;
/// An event has price levels 0 to 63.
pub const CATEGORIES_MAX: usize = 64;
/// Of a name, label, guid or text.
pub const TEXT_CHARS_MAX: usize = 200;
/// Real plans have reached −1,995,039.
pub const COORDINATE_MAX: f64 = 1e9;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub name: String,
    pub categories: Vec<Category>,
    pub zones: Vec<Zone>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Category {
    /// What seats and prices refer to.
    pub name: String,
    /// `#rrggbb`
    pub color: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    pub name: String,
    pub rows: Vec<Row>,
    pub areas: Vec<Area>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As shown: the row's number, put into `row_label` if there is one. May be blank.
    pub label: String,
    pub seats: Vec<Seat>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// Its identity when the plan is imported again.
    pub guid: String,
    /// As shown: the seat's number, put into the row's `seat_label` if there is one.
    pub label: String,
    /// Index into the plan's categories.
    pub category: usize,
    pub x: f64,
    pub y: f64,
    pub radius: f64,
}

/// Something drawn: a stage, a bar, the outline of a standing area.
#[derive(Debug, Clone, PartialEq)]
pub struct Area {
    pub uuid: Option<String>,
    pub x: f64,
    pub y: f64,
    /// Degrees, clockwise about (x, y).
    pub rotation: f64,
    pub color: Option<String>,
    pub border_color: Option<String>,
    pub shape: Shape,
    pub text: Option<Text>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Corners, relative to the area's point.
    Polygon(Vec<(f64, f64)>),
    /// Width and height; the area's point is the corner at the top left.
    Rectangle(f64, f64),
    /// Radii; the area's point is the middle.
    Ellipse(f64, f64),
    /// Only its text is drawn.
    Text,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    pub text: String,
    /// Relative to the area's point.
    pub x: f64,
    pub y: f64,
    pub size: f64,
    pub color: Option<String>,
}

/// A plan and what was odd about it.
#[derive(Debug)]
pub struct Reading<T> {
    pub value: T,
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// Reads a plan, or says everything that is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Reading<Self>, Vec<Fault>> {
        let tree = parse(bytes, File::Plan)?;
        let mut findings = check::Findings::new(File::Plan);
        let plan = pretix::read(&tree, &mut findings);
        if let Some(plan) = &plan {
            labels::warn(plan, &mut findings);
        }
        findings.settle(plan)
    }

    pub fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.zones.iter().flat_map(|z| &z.rows).flat_map(|r| &r.seats)
    }

    /// Where each guid stands in the order of [`Plan::seats`].
    pub fn seat_index(&self) -> HashMap<&str, usize> {
        self.seats().enumerate().map(|(i, s)| (s.guid.as_str(), i)).collect()
    }
}

fn parse(bytes: &[u8], file: File) -> Result<json::Node<'_>, Vec<Fault>> {
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes; {FILE_BYTES_MAX} are read", bytes.len());
        return Err(vec![Fault { file, place: String::new(), line: 1, code: "file_too_large", message }]);
    }
    json::parse(bytes).map_err(|e| {
        let message = format!("{} (column {})", e.message, e.column);
        vec![Fault { file, place: String::new(), line: e.line, code: e.code, message }]
    })
}

#[cfg(test)]
pub(crate) mod tests;
