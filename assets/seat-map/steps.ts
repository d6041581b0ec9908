// Which seat comes next when an arrow key is pressed. By position, never by printed number:
// numbers skip 13, run backwards and count odd seats only.

import { SeatFlag } from '../protocol/index.ts';
import type { Plan } from './plan.ts';

export type Direction = 'left' | 'right' | 'up' | 'down';

const VECTORS: Record<Direction, [number, number]> = {
  left: [-1, 0],
  right: [1, 0],
  up: [0, -1],
  down: [0, 1],
};

/** The nearest seat in that direction, or -1. Going sideways counts triple: rows are kept. */
export function seatTowards(plan: Plan, from: number, direction: Direction): number {
  const [dx, dy] = VECTORS[direction];
  let best = -1;
  let bestCost = Infinity;
  for (let seat = 0; seat < plan.count; seat++) {
    if (seat === from || plan.flags[seat] & SeatFlag.retired) continue;
    const vx = plan.x[seat] - plan.x[from];
    const vy = plan.y[seat] - plan.y[from];
    const along = vx * dx + vy * dy;
    if (along <= 0) continue;
    const aside = Math.abs(vx * dy - vy * dx);
    // Within 60 degrees only, or a step to the right might end far up in the next block.
    if (aside > along * 1.75) continue;
    const cost = along + aside * 3;
    if (cost < bestCost) {
      bestCost = cost;
      best = seat;
    }
  }
  if (best >= 0) return best;
  // Seats on top of each other, or none within the cone: the plan's order still leads everywhere.
  return inOrder(plan, from, direction === 'right' || direction === 'down' ? 1 : -1);
}

function inOrder(plan: Plan, from: number, by: 1 | -1): number {
  for (let seat = from + by; seat >= 0 && seat < plan.count; seat += by) {
    if (!(plan.flags[seat] & SeatFlag.retired)) return seat;
  }
  return -1;
}

/** The seat to begin with: the one nearest to a point of the plan. */
export function seatNear(
  plan: Plan,
  x: number,
  y: number,
  wanted: (seat: number) => boolean,
): number {
  let best = -1;
  let bestSquare = Infinity;
  for (let seat = 0; seat < plan.count; seat++) {
    if (plan.flags[seat] & SeatFlag.retired || !wanted(seat)) continue;
    const square = (plan.x[seat] - x) ** 2 + (plan.y[seat] - y) ** 2;
    if (square < bestSquare) {
      bestSquare = square;
      best = seat;
    }
  }
  return best;
}
