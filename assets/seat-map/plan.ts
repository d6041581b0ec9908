// The geometry in the shape that drawing needs: typed arrays, bounds, who sits in which section.
//
// Real plans contain coordinates in the millions, every seat at 0,0, and worse. Whatever comes in,
// what leaves here is finite and has an extent above zero, so nothing behind it needs to check.

import { SeatFlag, type Area, type Geometry } from '../protocol/index.ts';
import { finite, polygonOf } from './areas.ts';
import { closeGaps } from './gaps.ts';

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
  /** Where its price levels lie; null if it has one. */
  banding: Banding | null;
}

/** A section of more than one price level, cut across into bands as wide as the levels are large. */
export interface Banding {
  /** Unit vector along which the levels follow each other: mostly from the stage to the back. */
  ux: number;
  uy: number;
  /** Each reaches from where the one before ends to `to`, measured along the vector. */
  bands: { category: number; to: number }[];
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
  /** From a seat to the next one of its row, mostly. */
  pitch: number;
  /** What "everything" means when the map shows everything. */
  box: Box;
}

export function readPlan(drawn: Geometry): Plan {
  const geometry = closeGaps(drawn);
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
  const wanted = finite(seats.radius) || 10;
  const pitch = typicalGap(x, y, row) ?? wanted * 2.5;
  // Seats must not overlap.
  const radius = Math.min(Math.max(wanted, pitch * 0.3), pitch * 0.45);

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
      banding: null,
    };
  });

  const category = Int32Array.from(seats.category);
  const focus: [number, number] = [finite(geometry.focus?.[0]), finite(geometry.focus?.[1])];
  for (const one of sections) one.banding = bandingOf(one, x, y, category, focus);

  const alive = members.flat();
  return {
    count,
    x,
    y,
    section,
    row,
    category,
    flags,
    number: seats.number,
    rows: geometry.rows.map(({ section, label }) => ({ section, label })),
    sections,
    categories: geometry.categories,
    areas: geometry.areas ?? [],
    focus,
    radius,
    pitch,
    box: withStage(boxOf(alive, x, y, radius * 3), geometry),
  };
}

/** How the price levels of a section lie in it, told by where the middles of their seats are. */
function bandingOf(
  { seats, side, box }: PlanSection,
  x: Float64Array,
  y: Float64Array,
  category: Int32Array,
  focus: [number, number],
): Banding | null {
  const levels = new Map<number, { category: number; count: number; x: number; y: number }>();
  for (const seat of seats) {
    const key = category[seat];
    const level = levels.get(key) ?? { category: key, count: 0, x: 0, y: 0 };
    level.count++;
    // Running means: sums of coordinates in the millions would lose what tells them apart.
    level.x += (x[seat] - level.x) / level.count;
    level.y += (y[seat] - level.y) / level.count;
    levels.set(key, level);
  }
  if (levels.size < 2) return null;
  const [one, other] = [...levels.values()].sort((a, b) => b.count - a.count);
  let [ux, uy] = [other.x - one.x, other.y - one.y];
  if (Math.hypot(ux, uy) < side * 0.05) {
    // Mixed all over: then only the shares can be told, from the front to the back.
    [ux, uy] = [(box.minX + box.maxX) / 2 - focus[0], (box.minY + box.maxY) / 2 - focus[1]];
  }
  const long = Math.hypot(ux, uy);
  [ux, uy] = long > 0 ? [ux / long, uy / long] : [0, 1];
  const along = Float64Array.from(seats, (seat) => x[seat] * ux + y[seat] * uy).sort();
  let end = 0;
  const bands = [...levels.values()]
    .sort((a, b) => a.x * ux + a.y * uy - (b.x * ux + b.y * uy))
    .map(({ category, count }) => {
      end += count;
      return { category, to: end < along.length ? (along[end - 1] + along[end]) / 2 : Infinity };
    });
  return { ux, uy, bands };
}

/** The distance to the next seat of the row that is the most usual; none if no row has two places. */
function typicalGap(x: Float64Array, y: Float64Array, row: Int32Array): number | undefined {
  const gaps: number[] = [];
  const step = Math.max(1, Math.floor(x.length / 4000));
  for (let i = 0; i + 1 < x.length; i += step) {
    if (row[i] !== row[i + 1]) continue;
    const gap = Math.hypot(x[i + 1] - x[i], y[i + 1] - y[i]);
    if (gap > 0) gaps.push(gap);
  }
  return gaps.sort((a, b) => a - b)[gaps.length >> 1];
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
