//! The outline of a section: convex, unless its rows curve so much that others would lie inside.

use crate::catalog::standing::Point;

/// An outline around the seats of a section, a rim wide. `lines` are its rows from front to back, if
/// each is one unbroken line.
pub(super) fn around(points: Vec<Point>, lines: Option<&[Vec<Point>]>, rim: f64) -> Vec<Point> {
    let convex = simplified(convex_hull(convex_hull(points).into_iter().flat_map(|p| circle(p, rim)).collect()), rim);
    let Some(lines) = lines.filter(|lines| lines.iter().all(|l| l.len() > 1)) else { return convex };
    let rows = simplified(along_rows(lines, rim), rim);
    // An outline that crosses itself has too little area to be one.
    let least = lines.iter().map(|l| length(l) * rim).sum::<f64>();
    if area(&convex) > 1.2 * area(&rows) && area(&rows) > least { rows } else { convex }
}

fn circle(p: Point, r: f64) -> impl Iterator<Item = Point> {
    (0..12).map(|i| f64::from(i) / 12.0 * std::f64::consts::TAU).map(move |a| (p.0 + r * a.cos(), p.1 + r * a.sin()))
}

fn length(line: &[Point]) -> f64 {
    line.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum()
}

fn area(outline: &[Point]) -> f64 {
    let Some(o) = outline.first() else { return 0.0 };
    let next = outline.iter().cycle().skip(1);
    outline.iter().zip(next).map(|(a, b)| (a.0 - o.0) * (b.1 - o.1) - (b.0 - o.0) * (a.1 - o.1)).sum::<f64>().abs()
        / 2.0
}

/// Along the first row, down the rows' ends, back along the last row, up their beginnings.
fn along_rows(lines: &[Vec<Point>], rim: f64) -> Vec<Point> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Vec::new() };
    // Which side of the first row is away from the last one.
    let normal = |line: &[Point], i: usize| {
        let (a, b) = (line[i.saturating_sub(1)], line[(i + 1).min(line.len() - 1)]);
        let long = (b.0 - a.0).hypot(b.1 - a.1).max(1e-9);
        ((b.1 - a.1) / long, -(b.0 - a.0) / long)
    };
    let middle = first.len() / 2;
    let (n, m, end) = (normal(first, middle), first[middle], last[last.len() / 2]);
    let side = if (end.0 - m.0) * n.0 + (end.1 - m.1) * n.1 > 0.0 { -1.0 } else { 1.0 };
    let offset = |line: &[Point], side: f64| -> Vec<Point> {
        (0..line.len())
            .map(|i| (normal(line, i), line[i]))
            .map(|(n, p)| (p.0 + n.0 * side * rim, p.1 + n.1 * side * rim))
            .collect()
    };
    let beyond = |a: Point, b: Point| {
        let long = (b.0 - a.0).hypot(b.1 - a.1).max(1e-9);
        (b.0 + (b.0 - a.0) / long * rim, b.1 + (b.1 - a.1) / long * rim)
    };
    let mut outline = offset(first, side);
    outline.extend(lines.iter().map(|l| beyond(l[l.len() - 2], l[l.len() - 1])));
    outline.extend(offset(last, -side).into_iter().rev());
    outline.extend(lines.iter().rev().map(|l| beyond(l[1], l[0])));
    outline
}

/// Without the corners that bend nothing.
fn simplified(mut outline: Vec<Point>, rim: f64) -> Vec<Point> {
    let mut at = 0;
    while outline.len() > 8 && at < outline.len() {
        let n = outline.len();
        let (a, b, c) = (outline[(at + n - 1) % n], outline[at], outline[(at + 1) % n]);
        let base = (c.0 - a.0).hypot(c.1 - a.1).max(1e-9);
        let off = ((c.0 - a.0) * (b.1 - a.1) - (c.1 - a.1) * (b.0 - a.0)).abs() / base;
        if off < rim * 0.06 {
            outline.remove(at);
        } else {
            at += 1;
        }
    }
    outline
}

/// Andrew's monotone chain.
fn convex_hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup();
    if points.len() < 3 {
        return points;
    }
    let mut hull: Vec<Point> = Vec::new();
    let chain = |hull: &mut Vec<Point>, base: usize, p: Point| {
        while hull.len() >= base + 2 {
            let (a, b) = (hull[hull.len() - 2], hull[hull.len() - 1]);
            if (b.0 - a.0) * (p.1 - a.1) - (b.1 - a.1) * (p.0 - a.0) > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(p);
    };
    for p in &points {
        chain(&mut hull, 0, *p);
    }
    let base = hull.len() - 1;
    for p in points.iter().rev().skip(1) {
        chain(&mut hull, base, *p);
    }
    hull.pop();
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_convex_and_a_wide_curve_is_not() {
        let line = |r: f64, full: f64| -> Vec<Point> {
            (0..=60).map(|i| f64::from(i) / 60.0 * full).map(|a| (r * a.cos(), r * a.sin())).collect()
        };
        let block: Vec<Vec<Point>> = (0..20).map(|i| line(1000.0 + f64::from(i) * 16.0, 0.2)).collect();
        let convex = around(block.concat(), Some(&block), 7.0);
        assert_eq!(convex, around(block.concat(), None, 7.0));
        let curve = vec![line(1000.0, 2.0), line(1016.0, 2.0)];
        let outline = around(curve.concat(), Some(&curve), 7.0);
        assert!((area(&outline) / (30.0 * 2030.0) - 1.0).abs() < 0.05, "{}", area(&outline));
    }

    #[test]
    fn a_line_that_goes_back_and_forth_and_a_single_seat_are_convex() {
        let snake: Vec<Point> =
            (0..40).map(|i| (f64::from(if i % 20 < 10 { i % 10 } else { 9 - i % 10 }), f64::from(i / 10))).collect();
        let outline = around(snake.clone(), Some(&[snake]), 0.5);
        assert!(area(&outline) > 27.0);
        assert!(around(vec![(5.0, 5.0)], Some(&[vec![(5.0, 5.0)]]), 1.0).len() >= 8);
    }
}
