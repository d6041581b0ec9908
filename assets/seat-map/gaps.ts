// Stands that lie a mile apart on the plan of a race track would be specks at the ends of an empty
// map. Stretches that hold neither a seat nor a drawing, from one side of the plan to the other, are
// drawn shorter; what stands beside what, and the shape of everything that is drawn, stay as they are.

import type { Area, Geometry } from '../protocol/index.ts';
import { polygonOf } from './areas.ts';

/** An empty stretch may be as long as this share of all that is not empty … */
const SHARE = 0.15;
/** … and, so that a small hall keeps its aisles, as long as so many radii of a seat. */
const RADII = 100;

type Span = [number, number];

/** The same plan with its long empty stretches shortened; itself, if it has none. */
export function closeGaps(geometry: Geometry): Geometry {
  const { seats } = geometry;
  const radius = seats.radius > 0 ? seats.radius : 10;
  const areas = (geometry.areas ?? []).map((area) => extent(area));
  const across = shortened(
    spans(seats.x, radius * 3).concat(areas.map(([x]) => x)),
    radius * RADII,
  );
  const down = shortened(
    spans(seats.y, radius * 3).concat(areas.map(([, y]) => y)),
    radius * RADII,
  );
  if (!across && !down) return geometry;
  const mx = across ?? same;
  const my = down ?? same;
  return {
    ...geometry,
    focus: [mx(geometry.focus[0]), my(geometry.focus[1])],
    seats: { ...seats, x: seats.x.map(mx), y: seats.y.map(my) },
    sections: geometry.sections.map((one) => ({
      ...one,
      label: [mx(one.label[0]), my(one.label[1])] as [number, number],
      hull: one.hull.map((value, i) => (i % 2 === 0 ? mx(value) : my(value))),
    })),
    areas: (geometry.areas ?? []).map((area) => ({
      ...area,
      x: mx(area.x),
      y: my(area.y),
      ...(area.points
        ? { points: polygonOf(area.points).map(([x, y]): [number, number] => [mx(x), my(y)]) }
        : {}),
      ...(area.text ? { text: { ...area.text, x: mx(area.text.x), y: my(area.text.y) } } : {}),
    })),
  };
}

const same = (value: number) => value;

function spans(values: readonly number[], pad: number): Span[] {
  return values.filter(Number.isFinite).map((value) => [value - pad, value + pad]);
}

/** Where a drawing reaches on either axis; turned ones reach as far as their corner may swing. */
function extent(area: Area): [Span, Span] {
  const points = polygonOf(area.points);
  if (area.shape === 'polygon' && points.length > 0) {
    const reach: [Span, Span] = [
      [Infinity, -Infinity],
      [Infinity, -Infinity],
    ];
    for (const point of points) {
      point.forEach((value, axis) => {
        reach[axis][0] = Math.min(reach[axis][0], value);
        reach[axis][1] = Math.max(reach[axis][1], value);
      });
    }
    return reach;
  }
  const [w, h] = [area.w ?? 0, area.h ?? 0];
  const swing = area.rotation ? Math.hypot(w, h) : 0;
  const [rx, ry] = [area.rx ?? area.r ?? 0, area.ry ?? area.r ?? 0];
  return [
    [area.x - Math.max(rx, swing), area.x + Math.max(rx, swing, w)],
    [area.y - Math.max(ry, swing), area.y + Math.max(ry, swing, h)],
  ];
}

/** Where each coordinate of an axis goes; null if all may stay. */
function shortened(taken: Span[], least: number): ((value: number) => number) | null {
  const merged: Span[] = [];
  for (const [from, to] of taken.sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  const most = Math.max(least, SHARE * merged.reduce((sum, [from, to]) => sum + to - from, 0));
  const long: { from: number; to: number }[] = [];
  for (let i = 0; i + 1 < merged.length; i++) {
    const [from, to] = [merged[i][1], merged[i + 1][0]];
    if (to - from > most) long.push({ from, to });
  }
  if (long.length === 0) return null;
  return (value) => {
    let cut = 0;
    for (const { from, to } of long) {
      if (value <= from) break;
      cut += Math.min(1, (value - from) / (to - from)) * (to - from - most);
    }
    return value - cut;
  };
}
