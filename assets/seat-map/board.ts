// The state of every seat as this viewer sees it: what the hub says, and what is their own.
//
// Invariant: `free` and `total` always equal a recount over all seats (tested).

import { SeatFlag, Status } from '../protocol/index.ts';
import type { Plan } from './plan.ts';

/** What a seat looks like: the hub's four statuses, and three that only its owner sees. */
export const Look = {
  available: 0,
  held: 1,
  sold: 2,
  blocked: 3,
  picked: 4,
  mine: 5,
  bought: 6,
} as const;
export type Look = 0 | 1 | 2 | 3 | 4 | 5 | 6;

export const Own = { none: 0, picked: 4, mine: 5, bought: 6 } as const;

export class Board {
  readonly status: Uint8Array;
  readonly own: Uint8Array;
  /** Free seats by section and category: free[section * categories + category]. */
  readonly free: Int32Array;
  readonly total: Int32Array;
  /** Seats by section and category, free or not. */
  private readonly seats: Int32Array;
  freeInAll = 0;
  /** Categories from the cheapest to the dearest; the plan's own order until prices are known. */
  rank: number[];
  private readonly categories: number;
  private ownSeats: number[] = [];

  constructor(readonly plan: Plan) {
    this.categories = Math.max(1, plan.categories.length);
    this.rank = plan.categories.map((_, index) => index);
    // Until the first snapshot nothing is offered: an empty map must never look like a free hall.
    this.status = new Uint8Array(plan.count).fill(Status.blocked);
    this.own = new Uint8Array(plan.count);
    this.free = new Int32Array(plan.sections.length * this.categories);
    this.total = new Int32Array(plan.sections.length);
    this.seats = new Int32Array(this.free.length);
    plan.sections.forEach((section, index) => {
      this.total[index] = section.seats.length;
      for (const seat of section.seats)
        this.seats[index * this.categories + plan.category[seat]] += 1;
    });
  }

  look(seat: number): Look {
    return (this.own[seat] || this.status[seat]) as Look;
  }

  /** Takes a whole snapshot. */
  replace(statuses: Uint8Array): void {
    this.status.fill(Status.blocked);
    this.status.set(statuses.subarray(0, this.plan.count));
    this.recount();
  }

  /** Takes one change; false if nothing changed or the plan has no such seat. */
  set(seat: number, status: number): boolean {
    if (seat >= this.plan.count || this.status[seat] === status) return false;
    if (this.status[seat] === Status.available) this.count(seat, -1);
    this.status[seat] = status;
    if (status === Status.available) this.count(seat, 1);
    return true;
  }

  /** Marks the viewer's own seats; returns the seats whose look may have changed. */
  setOwn(picked: Iterable<number>, mine: Iterable<number>, bought: Iterable<number>): number[] {
    const before = this.ownSeats;
    for (const seat of before) this.own[seat] = Own.none;
    const now: number[] = [];
    const mark = (seats: Iterable<number>, own: number) => {
      for (const seat of seats) {
        if (seat < 0 || seat >= this.plan.count) continue;
        this.own[seat] = own;
        now.push(seat);
      }
    };
    mark(bought, Own.bought);
    mark(picked, Own.picked);
    mark(mine, Own.mine);
    this.ownSeats = now;
    return [...new Set([...before, ...now])];
  }

  ownList(): readonly number[] {
    return this.ownSeats;
  }

  freeIn(section: number): number {
    let sum = 0;
    for (let c = 0; c < this.categories; c++) sum += this.free[section * this.categories + c];
    return sum;
  }

  freeOf(section: number, category: number): number {
    return this.free[section * this.categories + category];
  }

  totalOf(section: number, category: number): number {
    return this.seats[section * this.categories + category];
  }

  /** Of the seats that are looked for in a section: how many are free, and how many there are. */
  within(section: number, shown: (category: number) => boolean): { free: number; total: number } {
    let [free, total] = [0, 0];
    for (let category = 0; category < this.categories; category++) {
      if (!shown(category)) continue;
      free += this.freeOf(section, category);
      total += this.totalOf(section, category);
    }
    return { free, total };
  }

  private recount(): void {
    this.free.fill(0);
    this.freeInAll = 0;
    for (let seat = 0; seat < this.plan.count; seat++) {
      if (this.status[seat] === Status.available) this.count(seat, 1);
    }
  }

  private count(seat: number, by: number): void {
    if (this.plan.flags[seat] & SeatFlag.retired) return;
    const section = this.plan.section[seat];
    if (section < 0 || section >= this.total.length) return;
    this.free[section * this.categories + this.plan.category[seat]] += by;
    this.freeInAll += by;
  }
}
