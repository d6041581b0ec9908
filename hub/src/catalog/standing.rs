//! Places inside an outline: a standing area's capacity as points on a grid.

use super::plan::{Area, Shape};

pub type Point = (f64, f64);

/// A place of a standing area. Places of one line with following numbers along it are side by side:
/// a runway that cuts through a line makes two of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    pub at: Point,
    pub line: usize,
    pub along: usize,
}

const ELLIPSE_CORNERS: usize = 48;
const GRID_LINES_MAX: f64 = 5_000.0;
const CORNERS_MAX: usize = 2_000;

/// The corners of an area, turned and in place. Empty for a text.
pub fn outline(area: &Area) -> Vec<Point> {
    let corners = match &area.shape {
        Shape::Polygon(points) => points.clone(),
        Shape::Rectangle(w, h) => vec![(0.0, 0.0), (*w, 0.0), (*w, *h), (0.0, *h)],
        Shape::Ellipse(rx, ry) => (0..ELLIPSE_CORNERS)
            .map(|i| i as f64 / ELLIPSE_CORNERS as f64 * std::f64::consts::TAU)
            .map(|a| (rx * a.cos(), ry * a.sin()))
            .collect(),
        Shape::Text => Vec::new(),
    };
    corners.into_iter().map(|p| turned(area, p)).collect()
}

/// A point relative to an area, as an absolute one: turned clockwise about the area's point.
pub fn turned(area: &Area, (x, y): Point) -> Point {
    let (sin, cos) = area.rotation.to_radians().sin_cos();
    (area.x + x * cos - y * sin, area.y + x * sin + y * cos)
}

/// The middle of a polygon by area; of its corners if it has none.
pub fn middle(outline: &[Point]) -> Option<Point> {
    let n = outline.len() as f64;
    let mean = outline.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (mut twice, mut x, mut y) = (0.0, 0.0, 0.0);
    for (a, b) in edges(outline) {
        // About the mean: far from 0,0 the products would swallow the differences.
        let (a, b) = ((a.0 - mean.0, a.1 - mean.1), (b.0 - mean.0, b.1 - mean.1));
        let cross = a.0 * b.1 - b.0 * a.1;
        twice += cross;
        x += (a.0 + b.0) * cross;
        y += (a.1 + b.1) * cross;
    }
    if outline.is_empty() {
        return None;
    }
    let at = (mean.0 + x / (3.0 * twice), mean.1 + y / (3.0 * twice));
    Some(if at.0.is_finite() && at.1.is_finite() { at } else { mean })
}

fn edges(outline: &[Point]) -> impl Iterator<Item = (Point, Point)> {
    outline.iter().copied().zip(outline.iter().copied().cycle().skip(1))
}

/// `capacity` places inside the outline, nearest to `focus` first; none if there is no room for a
/// grid, or if the outline has more than 2,000 corners.
pub fn places(outline: &[Point], capacity: usize, focus: Point) -> Option<Vec<Place>> {
    if outline.len() > CORNERS_MAX {
        return None;
    }
    let (mut lo, mut hi) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    for (x, y) in outline {
        lo = (lo.0.min(*x), lo.1.min(*y));
        hi = (hi.0.max(*x), hi.1.max(*y));
    }
    // As if the outline filled its box, then closer until all find room.
    let mut spacing = ((hi.0 - lo.0) * (hi.1 - lo.1) / capacity as f64).sqrt();
    loop {
        let mut places = grid(outline, (lo.1, hi.1), spacing, capacity)?;
        if places.len() >= capacity {
            let far = |p: &Place| (p.at.0 - focus.0).hypot(p.at.1 - focus.1);
            places.sort_by(|a, b| far(a).total_cmp(&far(b)).then((a.line, a.along).cmp(&(b.line, b.along))));
            places.truncate(capacity);
            return Some(places);
        }
        spacing *= 0.97;
    }
}

/// Places on lines from top to bottom; none if there would be far too many.
fn grid(outline: &[Point], (top, bottom): (f64, f64), spacing: f64, capacity: usize) -> Option<Vec<Place>> {
    let lines = ((bottom - top) / spacing).floor();
    if !lines.is_finite() || lines > GRID_LINES_MAX {
        return None;
    }
    let (mut places, mut line) = (Vec::new(), 0);
    for height in 0..lines as usize {
        let y = top + (bottom - top - (lines - 1.0) * spacing) / 2.0 + height as f64 * spacing;
        let mut cuts: Vec<f64> = edges(outline)
            .filter(|(a, b)| (a.1 <= y) != (b.1 <= y))
            .map(|(a, b)| a.0 + (y - a.1) / (b.1 - a.1) * (b.0 - a.0))
            .collect();
        cuts.sort_by(f64::total_cmp);
        for cut in cuts.chunks_exact(2) {
            let width = cut[1] - cut[0];
            let count = (width / spacing).floor() as usize;
            if places.len() + count > 4 * capacity + 1_000 {
                return None;
            }
            let first = cut[0] + (width - (count as f64 - 1.0) * spacing) / 2.0;
            places.extend((0..count).map(|along| Place { at: (first + along as f64 * spacing, y), line, along }));
            line += 1;
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rectangle(x: f64, y: f64, w: f64, h: f64, rotation: f64) -> Area {
        Area { uuid: None, x, y, rotation, color: None, border_color: None, shape: Shape::Rectangle(w, h), text: None }
    }

    #[test]
    fn a_quarter_turn_is_clockwise() {
        let corners = outline(&rectangle(10.0, 10.0, 4.0, 2.0, 90.0));
        let rounded: Vec<_> = corners.iter().map(|p| (p.0.round(), p.1.round())).collect();
        assert_eq!(rounded, [(10.0, 10.0), (10.0, 14.0), (8.0, 14.0), (8.0, 10.0)]);
    }

    #[test]
    fn a_line_has_no_room() {
        assert_eq!(places(&outline(&rectangle(0.0, 0.0, 100.0, 0.0, 0.0)), 5, (0.0, 0.0)), None);
        assert_eq!(places(&[], 5, (0.0, 0.0)), None);
        assert_eq!(places(&outline(&rectangle(0.0, 0.0, 1e9, 1e-9, 0.0)), 5, (0.0, 0.0)), None);
        let eight = [(0.0, 0.0), (10.0, 10.0), (10.0, 0.0), (0.0, 10.0)];
        assert_eq!(places(&eight, 9, (0.0, 0.0)).map(|p| p.len()), Some(9));
    }

    #[test]
    fn a_runway_parts_who_stands_left_of_it_from_who_stands_right() {
        // 100 wide, with a notch of 40 to 60 from above that ends half-way down.
        let notched = [
            (0.0, 0.0),
            (40.0, 0.0),
            (40.0, 50.0),
            (60.0, 50.0),
            (60.0, 0.0),
            (100.0, 0.0),
            (100.0, 100.0),
            (0.0, 100.0),
        ];
        let places = places(&notched, 300, (50.0, 0.0)).unwrap();
        let mut by_line: Vec<&Place> = places.iter().collect();
        by_line.sort_by_key(|p| (p.line, p.along));
        for pair in by_line.windows(2).filter(|w| w[0].line == w[1].line) {
            assert_eq!(pair[0].along + 1, pair[1].along, "no place within a line is left out");
            assert!((pair[1].at.0 - pair[0].at.0 - 5.5).abs() < 1.0 && pair[0].at.1 == pair[1].at.1, "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn every_place_is_inside(
            w in 1.0..1000.0, h in 1.0..1000.0, rotation in 0.0..360.0, capacity in 1usize..400
        ) {
            let area = rectangle(50.0, -20.0, w, h, rotation);
            let places = places(&outline(&area), capacity, (50.0, -20.0)).unwrap();
            prop_assert_eq!(places.len(), capacity);
            let (sin, cos) = (-rotation).to_radians().sin_cos();
            for Place { at: (x, y), .. } in places {
                let (dx, dy) = (x - 50.0, y + 20.0);
                let (x, y) = (dx * cos - dy * sin, dx * sin + dy * cos);
                prop_assert!(x > -1e-6 && x < w + 1e-6 && y > -1e-6 && y < h + 1e-6, "{x} {y}");
            }
        }
    }
}
