// What plans draw besides seats, as the rest of the map reads it: finite points, whatever came in.

import type { Area } from '../protocol/index.ts';

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

export function finite(value: number | undefined): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
