// The geometry in the shape that drawing needs: typed arrays, bounds, who sits in which section.
//
// Real plans contain coordinates in the millions, every seat at 0,0, and worse. Whatever comes in,
// what leaves here is finite and has an extent above zero, so nothing behind it needs to check.

import { SeatFlag, type Area, type Geometry } from '../protocol/index.ts';

export interface Box {
  minX: number;
  minY: number;
  maxX: number;
  maxY: number;
}

export interface PlanSection {
  name: string;
  hull: Float64Array;
  label: [number, number];
  box: Box;
  /** Side of a square of the same area: how much room a name has. */
  side: number;
  /** Seat numbers, in the order of the plan; retired ones are left out. */
  seats: Uint32Array;
}

export interface Plan {
  count: number;
  x: Float64Array;
  y: Float64Array;
  section: Int32Array;
  row: Int32Array;
  category: Int32Array;
  flags: Uint8Array;
  number: string[];
  rows: { section: number; label: string }[];
  sections: PlanSection[];
  categories: { name: string; color: string }[];
  areas: Area[];
  focus: [number, number];
  /** Of a drawn seat; smaller than the plan's where its seats would overlap. */
  radius: number;
  /** What "everything" means when the map shows everything. */
  box: Box;
}

export function readPlan(geometry: Geometry): Plan {
  const { seats } = geometry;
  const count = seats.x.length;
  const x = Float64Array.from(seats.x, finite);
  const y = Float64Array.from(seats.y, finite);
  const flags = Uint8Array.from(seats.flags);
  for (let i = 0; i < count; i++) {
    const drawable = Number.isFinite(seats.x[i]) && Number.isFinite(seats.y[i]);
    if (!drawable) flags[i] |= SeatFlag.retired;
  }
  const section = Int32Array.from(seats.section);
  const row = Int32Array.from(seats.row);
  const radius = drawnRadius(x, y, row, finite(seats.radius) || 10);

  const members = geometry.sections.map(() => [] as number[]);
  for (let i = 0; i < count; i++) {
    if (!(flags[i] & SeatFlag.retired)) members[section[i]]?.push(i);
  }
  const sections = geometry.sections.map((one, index): PlanSection => {
    const seatBox = boxOf(members[index], x, y, radius);
    const given = Float64Array.from(one.hull ?? [], finite);
    const hull = given.length >= 6 ? given : outline(seatBox);
    return {
      name: one.name,
      hull,
      label: [finite(one.label?.[0]), finite(one.label?.[1])],
      box: seatBox,
      side: Math.sqrt(areaOf(hull)),
      seats: Uint32Array.from(members[index]),
    };
  });

  const alive = members.flat();
  return {
    count,
    x,
    y,
    section,
    row,
    category: Int32Array.from(seats.category),
    flags,
    number: seats.number,
    rows: geometry.rows.map(({ section, label }) => ({ section, label })),
    sections,
    categories: geometry.categories,
    areas: geometry.areas ?? [],
    focus: [finite(geometry.focus?.[0]), finite(geometry.focus?.[1])],
    radius,
    box: withStage(boxOf(alive, x, y, radius * 3), geometry),
  };
}

/** The points of a polygon, whichever of the three ways the plan wrote them down. */
export function polygonOf(points: Area['points']): [number, number][] {
  if (!points || points.length === 0) return [];
  const result: [number, number][] = [];
  if (typeof points[0] === 'number') {
    const flat = points as number[];
    for (let i = 0; i + 1 < flat.length; i += 2)
      result.push([finite(flat[i]), finite(flat[i + 1])]);
  } else {
    for (const point of points as ([number, number] | { x: number; y: number })[]) {
      result.push(
        Array.isArray(point)
          ? [finite(point[0]), finite(point[1])]
          : [finite(point.x), finite(point.y)],
      );
    }
  }
  return result;
}

/** Seats must not overlap: the typical distance to the next seat of the row bounds the radius. */
function drawnRadius(x: Float64Array, y: Float64Array, row: Int32Array, wanted: number): number {
  const gaps: number[] = [];
  const step = Math.max(1, Math.floor(x.length / 4000));
  for (let i = 0; i + 1 < x.length; i += step) {
    if (row[i] !== row[i + 1]) continue;
    const gap = Math.hypot(x[i + 1] - x[i], y[i + 1] - y[i]);
    if (gap > 0) gaps.push(gap);
  }
  if (gaps.length === 0) return wanted;
  gaps.sort((a, b) => a - b);
  const typical = gaps[gaps.length >> 1];
  return Math.min(Math.max(wanted, typical * 0.3), typical * 0.45);
}

function boxOf(seats: readonly number[], x: Float64Array, y: Float64Array, pad: number): Box {
  if (seats.length === 0) return { minX: -pad, minY: -pad, maxX: pad, maxY: pad };
  const box: Box = { minX: Infinity, minY: Infinity, maxX: -Infinity, maxY: -Infinity };
  for (const i of seats) {
    box.minX = Math.min(box.minX, x[i]);
    box.minY = Math.min(box.minY, y[i]);
    box.maxX = Math.max(box.maxX, x[i]);
    box.maxY = Math.max(box.maxY, y[i]);
  }
  return { minX: box.minX - pad, minY: box.minY - pad, maxX: box.maxX + pad, maxY: box.maxY + pad };
}

/** The stage belongs in the picture, unless a stray shape would shrink the seats to nothing. */
function withStage(seats: Box, geometry: Geometry): Box {
  const reachX = (seats.maxX - seats.minX) * 0.5;
  const reachY = (seats.maxY - seats.minY) * 0.5;
  const box = { ...seats };
  const include = (px: number, py: number) => {
    if (px < seats.minX - reachX || px > seats.maxX + reachX) return;
    if (py < seats.minY - reachY || py > seats.maxY + reachY) return;
    box.minX = Math.min(box.minX, px);
    box.minY = Math.min(box.minY, py);
    box.maxX = Math.max(box.maxX, px);
    box.maxY = Math.max(box.maxY, py);
  };
  for (const area of geometry.areas ?? []) {
    const ax = finite(area.x);
    const ay = finite(area.y);
    const w = finite(area.w ?? 0);
    const h = finite(area.h ?? 0);
    const rx = finite(area.rx ?? area.r ?? 0);
    const ry = finite(area.ry ?? area.r ?? 0);
    if (area.shape === 'polygon') for (const [px, py] of polygonOf(area.points)) include(px, py);
    else if (w || h) (include(ax, ay), include(ax + w, ay + h));
    else (include(ax - rx, ay - ry), include(ax + rx, ay + ry));
  }
  return box;
}

function areaOf(hull: Float64Array): number {
  let twice = 0;
  for (let i = 0, j = hull.length - 2; i < hull.length; j = i, i += 2) {
    twice += hull[j] * hull[i + 1] - hull[i] * hull[j + 1];
  }
  return Math.abs(twice) / 2;
}

function outline({ minX, minY, maxX, maxY }: Box): Float64Array {
  return Float64Array.of(minX, minY, maxX, minY, maxX, maxY, minX, maxY);
}

function finite(value: number | undefined): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
