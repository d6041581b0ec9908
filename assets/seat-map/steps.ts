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

/**
 * The next seat in that direction, or -1. A row is followed to its end, also where it stands askew:
 * whichever pair of arrows is nearer to its direction walks along it, the other pair across.
 */
export function seatTowards(plan: Plan, from: number, direction: Direction): number {
  const [dx, dy] = VECTORS[direction];
  const beside = [from - 1, from + 1].filter((seat) => isNeighbour(plan, from, seat));
  const axis = beside[0] ?? from;
  const wide = Math.abs(plan.x[axis] - plan.x[from]);
  const high = Math.abs(plan.y[axis] - plan.y[from]);
  const along = beside.length > 0 && (dx !== 0 ? wide >= high : high > wide);
  if (along) {
    const next = beside.find(
      (seat) => (plan.x[seat] - plan.x[from]) * dx + (plan.y[seat] - plan.y[from]) * dy > 0,
    );
    if (next !== undefined) return next;
  }
  const found = nearestWithin(plan, from, dx, dy, beside.length > 0 && !along);
  // Seats on top of each other, or none that way: the plan's order still leads everywhere.
  return found >= 0 ? found : inOrder(plan, from, dx + dy > 0 ? 1 : -1);
}

function isNeighbour(plan: Plan, from: number, seat: number): boolean {
  if (seat < 0 || seat >= plan.count) return false;
  return plan.row[seat] === plan.row[from] && !(plan.flags[seat] & SeatFlag.retired);
}

/** Going sideways counts triple, so that one does not end far up in the next block. */
function nearestWithin(
  plan: Plan,
  from: number,
  dx: number,
  dy: number,
  leaveRow: boolean,
): number {
  let best = -1;
  let bestCost = Infinity;
  for (let seat = 0; seat < plan.count; seat++) {
    if (seat === from || plan.flags[seat] & SeatFlag.retired) continue;
    if (leaveRow && plan.row[seat] === plan.row[from]) continue;
    const vx = plan.x[seat] - plan.x[from];
    const vy = plan.y[seat] - plan.y[from];
    const ahead = vx * dx + vy * dy;
    const aside = Math.abs(vx * dy - vy * dx);
    // Within 60 degrees of the arrow only.
    if (ahead <= 0 || aside > ahead * 1.75) continue;
    const cost = ahead + aside * 3;
    if (cost < bestCost) {
      bestCost = cost;
      best = seat;
    }
  }
  return best;
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
