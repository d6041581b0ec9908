//! A seating plan as its file says it: read from the pretix format, checked, never corrected.
//!
//! Invariants
//! - Every fault is found in one reading, and named with its place; a plan with a fault is no plan.
//! - Nothing is collapsed and nothing is guessed: two guids that look alike stay two, and text is
//!   kept to the letter. What is merely odd (an unknown key, look-alikes) is a warning.
//! - Everything is bounded: see the `*_MAX` below and in [`super::json`].
//!
//! Positions are absolute here: a seat's point is zone + row + seat, an area's is zone + area.

use super::json;

pub mod beside; // the file beside the plan: what the pretix format can't say
mod check; // findings, their places, and reading one field
mod labels; // labels that look alike
mod names; // what the file beside a plan may refer to
mod pretix; // the plan's own file

pub use check::{Fault, File, Warning};
use {beside::Beside, names::Names};

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

/// What two files say, as far as they can be read.
#[derive(Debug, Default)]
pub struct Read {
    /// None if it has a fault.
    pub plan: Option<Plan>,
    /// What of the file beside it has no fault.
    pub beside: Beside,
    pub faults: Vec<Fault>,
    pub warnings: Vec<Warning>,
}

/// Reads a plan and the file beside it, and says everything that is wrong with both: neither hides the other's
/// faults.
pub fn read(plan: &[u8], beside: Option<&[u8]>) -> Read {
    let mut read = Read::default();
    let tree = match parse(plan, File::Plan) {
        Ok(tree) => tree,
        Err(fault) => {
            read.faults.push(fault);
            read_beside(beside, &Names::unknown(), &mut read);
            return read;
        }
    };
    let mut findings = check::Findings::new(File::Plan);
    let plan = pretix::read(&tree, &mut findings);
    if let Some(plan) = &plan {
        labels::warn(plan, &mut findings);
    }
    findings.tell(&mut read);
    let plan = plan.filter(|_| read.faults.is_empty());
    let names = plan.as_ref().map_or_else(|| Names::in_tree(&tree), Names::of);
    read_beside(beside, &names, &mut read);
    read.plan = plan;
    read
}

fn read_beside(beside: Option<&[u8]>, names: &Names<'_>, read: &mut Read) {
    let Some(bytes) = beside else { return };
    match parse(bytes, File::Beside) {
        Err(fault) => read.faults.push(fault),
        Ok(tree) => {
            let mut findings = check::Findings::new(File::Beside);
            read.beside = beside::read(&tree, names, &mut findings).unwrap_or_default();
            findings.tell(read);
        }
    }
}

impl Plan {
    pub fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.zones.iter().flat_map(|z| &z.rows).flat_map(|r| &r.seats)
    }
}

fn parse(bytes: &[u8], file: File) -> Result<json::Node<'_>, Fault> {
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes; {FILE_BYTES_MAX} are read", bytes.len());
        return Err(Fault { file, place: String::new(), line: 1, code: "file_too_large", message });
    }
    json::parse(bytes).map_err(|e| {
        let message = format!("{} (column {})", e.message, e.column);
        Fault { file, place: String::new(), line: e.line, code: e.code, message }
    })
}

#[cfg(test)]
pub(crate) mod tests;
