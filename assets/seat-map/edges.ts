// Near the seats, the name of a section that is seen in part: at the upper edge of what is seen of it.

import type { Camera, Size } from './camera.ts';
import type { PlanSection } from './plan.ts';

export interface Spot {
  section: number;
  /** The middle of the name's line, in CSS pixels. */
  x: number;
  y: number;
  /** Of the section, in square pixels of the screen. */
  seen: number;
}

/** A smaller piece of a section at the screen's edge needs no name. */
const SEEN_MIN = 1_800;
/** Above the section's outline, where it has a gap to its neighbour. */
const ABOVE = 9;

/** Where the names of the sections that are seen go, the larger ones first; `half` is half of a name's width. */
export function nameSpots(
  sections: readonly PlanSection[],
  camera: Camera,
  size: Size,
  top: number,
  half: (section: PlanSection) => number,
): Spot[] {
  const spots: Spot[] = [];
  const { scale } = camera;
  const left = camera.x;
  const right = camera.x + size.width / scale;
  const upper = camera.y + top / scale;
  const lower = camera.y + size.height / scale;
  for (let section = 0; section < sections.length; section++) {
    const { box, hull, seats } = sections[section];
    if (seats.length === 0) continue;
    if (box.maxX < left || box.minX > right || box.maxY < upper || box.minY > lower) continue;
    const piece = clip(hull, left, upper, right, lower);
    const seen = area(piece) * scale * scale;
    if (seen < SEEN_MIN) continue;
    const edge = upperEdge(piece, half(sections[section]) / scale);
    if (!edge) continue;
    const y = (edge[1] - camera.y) * scale;
    spots.push({ section, x: (edge[0] - camera.x) * scale, y: Math.max(top, y - ABOVE), seen });
  }
  return spots.sort((a, b) => b.seen - a.seen);
}

/** A polygon's part within a rectangle, cut by one side after the other (Sutherland and Hodgman). */
export function clip(
  hull: ArrayLike<number>,
  left: number,
  upper: number,
  right: number,
  lower: number,
): number[] {
  let points = Array.from(hull);
  const sides: [axis: 0 | 1, at: number, keepAbove: boolean][] = [
    [0, left, true],
    [0, right, false],
    [1, upper, true],
    [1, lower, false],
  ];
  for (const [axis, at, above] of sides) {
    const within = (value: number) => (above ? value >= at : value <= at);
    const next: number[] = [];
    for (let i = 0; i < points.length; i += 2) {
      const j = (i + 2) % points.length;
      const [from, to] = [points[i + axis], points[j + axis]];
      if (within(from)) next.push(points[i], points[i + 1]);
      if (within(from) === within(to)) continue;
      const share = (at - from) / (to - from);
      const x = points[i] + share * (points[j] - points[i]);
      const y = points[i + 1] + share * (points[j + 1] - points[i + 1]);
      next.push(axis === 0 ? at : x, axis === 1 ? at : y);
    }
    points = next;
  }
  return points;
}

function area(points: readonly number[]): number {
  let twice = 0;
  for (let i = 0; i < points.length; i += 2) {
    const j = (i + 2) % points.length;
    twice += points[i] * points[j + 1] - points[j] * points[i + 1];
  }
  return Math.abs(twice) / 2;
}

/** The middle of a polygon's width, and the highest that it reaches there: of a bent block it is on the
 *  bend, and of a slanted one above all that lies under the name. */
function upperEdge(points: readonly number[], half: number): [number, number] | null {
  let [from, to] = [Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    from = Math.min(from, points[i]);
    to = Math.max(to, points[i]);
  }
  const x = (from + to) / 2;
  const [x0, x1] = [Math.max(from, x - half), Math.min(to, x + half)];
  let y = Infinity;
  for (let i = 0; i < points.length; i += 2) {
    const j = (i + 2) % points.length;
    const [ax, ay, bx, by] = [points[i], points[i + 1], points[j], points[j + 1]];
    if (ax >= x0 && ax <= x1) y = Math.min(y, ay);
    for (const at of [x0, x1]) {
      if (ax === bx || Math.min(ax, bx) > at || Math.max(ax, bx) < at) continue;
      y = Math.min(y, ay + ((at - ax) / (bx - ax)) * (by - ay));
    }
  }
  return y === Infinity ? null : [x, y];
}
