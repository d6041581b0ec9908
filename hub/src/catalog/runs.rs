//! Who sits beside whom: from the order and the positions in the plan, never from printed numbers.
//!
//! The seats of a row form a run while each follows the one before it at about the row's pitch and
//! without a sharp turn. So an aisle ends a run, and so does the end of a line in a block that is
//! numbered through without rows, back and forth or from the same side each time. A row whose seats
//! all stand on one point says nothing about aisles: its order is all there is, and it is one run.
//!
//! A row that is listed by number while its odd seats are on one side and its even seats on the
//! other is put into the order in which it stands.

use super::plan::Zone;

/// A distance up to this many pitches is beside; an aisle is at least a seat wide.
const BESIDE_PITCHES: f64 = 1.8;
/// A step that turns by more than this (cosine of 50°) ends the line, in rows of more seats than
/// sit around a table.
const TURN_COS: f64 = 0.64;
const TABLE_SEATS_MAX: usize = 8;

type Point = (f64, f64);

/// The runs of each row of a zone, as indexes into the row's seats. Every seat is in one run.
pub fn of_zone(zone: &Zone) -> Vec<Vec<Vec<usize>>> {
    let rows: Vec<Vec<Point>> =
        zone.rows.iter().map(|r| r.seats.iter().map(|s| (s.x, s.y)).collect::<Vec<_>>()).collect();
    let orders: Vec<Vec<usize>> = rows.iter().map(|points| physical_order(points)).collect();
    let mut steps: Vec<f64> = Vec::new();
    for (points, order) in rows.iter().zip(&orders) {
        steps.extend(order.windows(2).map(|w| distance(points[w[0]], points[w[1]])));
    }
    let zone_pitch = pitch(steps);
    rows.iter().zip(orders).map(|(points, order)| split(points, order, zone_pitch)).collect()
}

fn distance(a: Point, b: Point) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

/// The lower median of the steps that lead somewhere.
fn pitch(mut steps: Vec<f64>) -> Option<f64> {
    steps.retain(|d| *d > 1e-6);
    if steps.is_empty() {
        return None;
    }
    let middle = (steps.len() - 1) / 2;
    Some(*steps.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The order of the plan, unless walking along the row's main direction is much shorter.
fn physical_order(points: &[Point]) -> Vec<usize> {
    let listed: Vec<usize> = (0..points.len()).collect();
    if points.len() < 4 {
        return listed;
    }
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        let (dx, dy) = (x - mx, y - my);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
    let (ux, uy) = (angle.cos(), angle.sin());
    let mut along = listed.clone();
    along.sort_by(|a, b| {
        let at = |i: usize| points[i].0 * ux + points[i].1 * uy;
        at(*a).total_cmp(&at(*b)).then(a.cmp(b))
    });
    let length = |order: &[usize]| -> f64 { order.windows(2).map(|w| distance(points[w[0]], points[w[1]])).sum() };
    if length(&along) < 0.75 * length(&listed) { along } else { listed }
}

fn split(points: &[Point], order: Vec<usize>, zone_pitch: Option<f64>) -> Vec<Vec<usize>> {
    let steps: Vec<f64> = order.windows(2).map(|w| distance(points[w[0]], points[w[1]])).collect();
    // One step says nothing about what is usual: a pair is measured by its zone.
    let row_pitch = if steps.len() > 1 { pitch(steps.clone()) } else { zone_pitch };
    let Some(row_pitch) = row_pitch else {
        return if order.is_empty() { Vec::new() } else { vec![order] };
    };
    let turns_count = order.len() > TABLE_SEATS_MAX;
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut run: Vec<usize> = Vec::new();
    for (i, seat) in order.iter().enumerate() {
        let beside = i == 0
            || (steps[i - 1] <= BESIDE_PITCHES * row_pitch
                && !(turns_count && run.len() > 1 && turns(points, run[run.len() - 2], run[run.len() - 1], *seat)));
        if !beside {
            runs.push(std::mem::take(&mut run));
        }
        run.push(*seat);
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
}

fn turns(points: &[Point], a: usize, b: usize, c: usize) -> bool {
    let (ux, uy) = (points[b].0 - points[a].0, points[b].1 - points[a].1);
    let (vx, vy) = (points[c].0 - points[b].0, points[c].1 - points[b].1);
    let lengths = ux.hypot(uy) * vx.hypot(vy);
    lengths > 1e-9 && (ux * vx + uy * vy) / lengths < TURN_COS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::plan::{Row, Seat};
    use proptest::prelude::*;

    fn zone(rows: &[Vec<Point>]) -> Zone {
        let seat =
            |p: &Point| Seat { guid: String::new(), label: String::new(), category: 0, x: p.0, y: p.1, radius: 10.0 };
        let rows = rows.iter().map(|r| Row { label: String::new(), seats: r.iter().map(seat).collect() }).collect();
        Zone { name: String::new(), rows, areas: Vec::new() }
    }

    fn lengths(points: Vec<Point>) -> Vec<usize> {
        of_zone(&zone(&[points])).remove(0).iter().map(Vec::len).collect()
    }

    #[test]
    fn an_aisle_ends_a_run() {
        let x = [0.0, 20.0, 40.0, 80.0, 100.0, 120.0];
        assert_eq!(lengths(x.iter().map(|x| (*x, 5.0)).collect()), [3, 3]);
        assert_eq!(lengths(x.iter().map(|y| (5.0, *y)).collect()), [3, 3]);
        assert_eq!(lengths(x.iter().rev().map(|x| (*x, 5.0)).collect()), [3, 3]);
    }

    #[test]
    fn seats_without_positions_are_one_run() {
        assert_eq!(lengths(vec![(0.0, 0.0); 7]), [7]);
        assert_eq!(lengths(vec![(3.0, 3.0)]), [1]);
        assert_eq!(lengths(vec![]), [0; 0]);
    }

    #[test]
    fn a_block_numbered_through_breaks_where_its_lines_end() {
        let line = |y: usize, back: bool| (0..18).map(move |i| (if back { 17 - i } else { i }, y));
        let point = |(x, y): (usize, usize)| (x as f64 * 20.0, y as f64 * 30.0);
        let serpentine: Vec<Point> = (0..10).flat_map(|y| line(y, y % 2 == 1)).map(point).collect();
        assert_eq!(lengths(serpentine), [18; 10]);
        let from_the_left: Vec<Point> = (0..10).flat_map(|y| line(y, false)).map(point).collect();
        assert_eq!(lengths(from_the_left), [18; 10]);
        let square: Vec<Point> =
            (0..10).flat_map(|y| line(y, y % 2 == 1)).map(|(x, y)| (x as f64 * 20.0, y as f64 * 20.0)).collect();
        assert_eq!(lengths(square), [18; 10]);
    }

    #[test]
    fn odd_on_one_side_and_even_on_the_other() {
        let points: Vec<Point> =
            (1..=12).map(|n| (if n % 2 == 1 { -10.0 * n as f64 } else { 10.0 * (n - 1) as f64 }, 0.0)).collect();
        let runs = of_zone(&zone(&[points]));
        assert_eq!(runs[0], [[10, 8, 6, 4, 2, 0, 1, 3, 5, 7, 9, 11].to_vec()]);
    }

    #[test]
    fn a_curve_and_a_table_are_one_run_each() {
        let arc = |n: usize, full: f64| {
            (0..n).map(|i| i as f64 / n as f64 * full).map(|a| (50.0 * a.cos(), 50.0 * a.sin())).collect()
        };
        assert_eq!(lengths(arc(30, 2.5)), [30]);
        assert_eq!(lengths(arc(6, std::f64::consts::TAU)), [6]);
    }

    #[test]
    fn a_pair_is_measured_by_its_zone() {
        let row: Vec<Point> = (0..10).map(|i| (i as f64 * 20.0, 0.0)).collect();
        let runs = of_zone(&zone(&[row, vec![(0.0, 30.0), (180.0, 30.0)], vec![(0.0, 60.0), (20.0, 60.0)]]));
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1]);
    }

    proptest! {
        #[test]
        fn every_seat_is_in_one_run(points in proptest::collection::vec((-1e9..1e9, -1e9..1e9), 0..60)) {
            let n = points.len();
            let mut seats: Vec<usize> = of_zone(&zone(&[points])).remove(0).concat();
            seats.sort_unstable();
            prop_assert_eq!(seats, (0..n).collect::<Vec<_>>());
        }
    }
}
