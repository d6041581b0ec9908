// Which seats are near a point or inside a rectangle: a uniform grid, built once a plan.

import { SeatFlag } from '../protocol/index.ts';
import type { Box, Plan } from './plan.ts';

const CELLS_A_SIDE_MAX = 400;
const SEATS_A_CELL = 6;

export class Grid {
  private readonly columns: number;
  private readonly lines: number;
  private readonly cell: number;
  private readonly start: Uint32Array;
  private readonly seats: Uint32Array;
  private readonly originX: number;
  private readonly originY: number;

  constructor(private readonly plan: Plan) {
    const alive: number[] = [];
    for (let i = 0; i < plan.count; i++) if (!(plan.flags[i] & SeatFlag.retired)) alive.push(i);
    let minX = Infinity;
    let minY = Infinity;
    let maxX = -Infinity;
    let maxY = -Infinity;
    for (const i of alive) {
      minX = Math.min(minX, plan.x[i]);
      minY = Math.min(minY, plan.y[i]);
      maxX = Math.max(maxX, plan.x[i]);
      maxY = Math.max(maxY, plan.y[i]);
    }
    if (alive.length === 0) minX = minY = maxX = maxY = 0;
    const width = Math.max(maxX - minX, plan.radius);
    const height = Math.max(maxY - minY, plan.radius);
    const wanted = Math.sqrt((width * height * SEATS_A_CELL) / Math.max(1, alive.length));
    this.cell = Math.max(wanted, width / CELLS_A_SIDE_MAX, height / CELLS_A_SIDE_MAX, plan.radius);
    this.columns = Math.floor(width / this.cell) + 1;
    this.lines = Math.floor(height / this.cell) + 1;
    this.originX = minX;
    this.originY = minY;

    const cells = this.columns * this.lines;
    this.start = new Uint32Array(cells + 1);
    for (const i of alive) this.start[this.cellOf(plan.x[i], plan.y[i]) + 1]++;
    for (let c = 0; c < cells; c++) this.start[c + 1] += this.start[c];
    const next = this.start.slice();
    this.seats = new Uint32Array(alive.length);
    for (const i of alive) this.seats[next[this.cellOf(plan.x[i], plan.y[i])]++] = i;
  }

  /** Calls `visit` with every seat whose middle lies in the box. */
  within(box: Box, visit: (seat: number) => void): void {
    const { plan, start, seats } = this;
    const c0 = this.column(box.minX);
    const c1 = this.column(box.maxX);
    const l0 = this.line(box.minY);
    const l1 = this.line(box.maxY);
    for (let line = l0; line <= l1; line++) {
      for (let k = start[line * this.columns + c0]; k < start[line * this.columns + c1 + 1]; k++) {
        const seat = seats[k];
        const px = plan.x[seat];
        const py = plan.y[seat];
        if (px >= box.minX && px <= box.maxX && py >= box.minY && py <= box.maxY) visit(seat);
      }
    }
  }

  /** The nearest seat to a point, or -1 if none lies within `reach`. */
  nearest(px: number, py: number, reach: number): number {
    let best = -1;
    let bestSquare = reach * reach;
    this.within(
      { minX: px - reach, minY: py - reach, maxX: px + reach, maxY: py + reach },
      (seat) => {
        const square = (this.plan.x[seat] - px) ** 2 + (this.plan.y[seat] - py) ** 2;
        if (square <= bestSquare) {
          bestSquare = square;
          best = seat;
        }
      },
    );
    return best;
  }

  private cellOf(x: number, y: number): number {
    return this.line(y) * this.columns + this.column(x);
  }

  private column(x: number): number {
    return clamp(Math.floor((x - this.originX) / this.cell), this.columns - 1);
  }

  private line(y: number): number {
    return clamp(Math.floor((y - this.originY) / this.cell), this.lines - 1);
  }
}

function clamp(value: number, max: number): number {
  return value < 0 ? 0 : value > max ? max : value;
}
