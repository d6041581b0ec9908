//! The line of a bowl's rows: an oval of four arcs, and its parallels.
//!
//! `u` runs along the long axis, `v` across. A place on the line is told by the angle of its normal
//! to the u axis and by its distance `d` outside the innermost line. Parallels of an arc are arcs, so
//! aisles are straight and rows curve as they do in a stadium.

use std::f64::consts::{PI, TAU};

#[derive(Debug, Clone, Copy)]
pub struct Oval {
    /// Distance of the ends' centres from the middle, and their radius at d = 0.
    end_centre: f64,
    end_radius: f64,
    /// The same of the sides, whose centres lie beyond the middle.
    side_centre: f64,
    side_radius: f64,
    /// The ends' arcs reach this far from the u axis.
    turn: f64,
}

impl Oval {
    pub fn new(end_centre: f64, end_radius: f64, turn: f64) -> Self {
        let side_centre = end_centre * turn.tan();
        let side_radius = end_radius + end_centre.hypot(side_centre);
        Self { end_centre, end_radius, side_centre, side_radius, turn }
    }

    fn is_end(&self, angle: f64) -> bool {
        let from_axis = (angle.rem_euclid(PI)).min(PI - angle.rem_euclid(PI));
        from_axis < self.turn
    }

    fn radius(&self, angle: f64, d: f64) -> f64 {
        d + if self.is_end(angle) { self.end_radius } else { self.side_radius }
    }

    /// The point (u, v).
    pub fn point(&self, angle: f64, d: f64) -> (f64, f64) {
        let (sin, cos) = angle.sin_cos();
        let r = self.radius(angle, d);
        if self.is_end(angle) {
            (self.end_centre * cos.signum() + r * cos, r * sin)
        } else {
            (r * cos, r * sin - self.side_centre * sin.signum())
        }
    }

    /// Where the arcs meet, after `angle`.
    fn next_joint(&self, angle: f64) -> f64 {
        let base = (angle / PI).floor() * PI;
        [base + self.turn, base + PI - self.turn, base + PI + self.turn]
            .into_iter()
            .find(|joint| *joint > angle + 1e-9)
            .unwrap_or(base + TAU)
    }

    /// The length of the line from one angle on to another.
    pub fn length(&self, from: f64, to: f64, d: f64) -> f64 {
        let (mut at, mut length) = (from, 0.0);
        while at < to - 1e-9 {
            let next = self.next_joint(at).min(to);
            length += (next - at) * self.radius((at + next) / 2.0, d);
            at = next;
        }
        length
    }

    /// The angle that lies `length` along the line from `from`.
    pub fn along(&self, from: f64, mut length: f64, d: f64) -> f64 {
        let mut at = from;
        loop {
            let next = self.next_joint(at);
            let r = self.radius((at + next) / 2.0, d);
            if length <= (next - at) * r {
                return at + length / r;
            }
            length -= (next - at) * r;
            at = next;
        }
    }

    /// Cuts the line between two angles into equally long parts: their limits.
    pub fn cut(&self, from: f64, to: f64, parts: usize, d: f64) -> Vec<f64> {
        let length = self.length(from, to, d);
        (0..=parts).map(|i| self.along(from, length * i as f64 / parts as f64, d)).collect()
    }

    /// The outline of what lies between two angles and two distances.
    pub fn wedge(&self, (from, to): (f64, f64), (inner, outer): (f64, f64)) -> Vec<(f64, f64)> {
        let steps = (((to - from) / 0.06).ceil() as usize).max(1);
        let at = |i: usize| from + (to - from) * i as f64 / steps as f64;
        let out = (0..=steps).map(|i| self.point(at(i), outer));
        out.chain((0..=steps).rev().map(|i| self.point(at(i), inner))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_closes_and_its_parallels_are_longer_by_a_circle() {
        let oval = Oval::new(560.0, 1030.0, 0.84);
        let (inner, outer) = (oval.length(0.0, TAU, 0.0), oval.length(0.0, TAU, 100.0));
        assert!((outer - inner - TAU * 100.0).abs() < 1e-6);
        for angle in (0..628).map(|i| f64::from(i) / 100.0) {
            let (a, b) = (oval.point(angle, 50.0), oval.point(angle + 0.01, 50.0));
            assert!((a.0 - b.0).hypot(a.1 - b.1) < 25.0, "the line jumps at {angle}");
            let back = oval.along(0.0, oval.length(0.0, angle, 50.0), 50.0);
            assert!((back - angle).abs() < 1e-6, "{angle} {back}");
        }
    }
}
