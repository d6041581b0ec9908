// Seats of a lease, as a clerk takes them for a customer who stands there. Pure.

import type { Leased, LeasedSeat } from '../host/port.ts';

export interface Row {
  section: string;
  row: string;
  seats: LeasedSeat[];
}

/** What is left to sell, by section and row, each in the order of its numbers. */
export function rows(lease: Leased): Row[] {
  const found: Row[] = [];
  for (const seat of lease.seats) {
    if (seat.sold) continue;
    let row = found.find((one) => one.section === seat.section && one.row === seat.row);
    if (!row) found.push((row = { section: seat.section, row: seat.row, seats: [] }));
    row.seats.push(seat);
  }
  for (const row of found) row.seats.sort(byNumber);
  return found;
}

/** The first so many that are next to each other in a row; in its lack any, those of as few rows as can be. */
export function together(lease: Leased, count: number): number[] {
  const all = rows(lease);
  for (const { seats } of all) {
    for (let from = 0; from + count <= seats.length; from++) {
      const some = seats.slice(from, from + count);
      if (some.every((seat, at) => at === 0 || follows(some[at - 1], seat)))
        return some.map((seat) => seat.seat_no);
    }
  }
  const longest = [...all].sort((a, b) => b.seats.length - a.seats.length);
  const any = longest.flatMap(({ seats }) => seats).slice(0, count);
  return any.length === count ? any.map((seat) => seat.seat_no) : [];
}

/** What these seats cost as what they are sold; null: a price is missing. */
export function total(
  lease: Leased,
  picked: readonly number[],
  types: Readonly<Record<number, string>>,
): number | null {
  let sum = 0;
  for (const number of picked) {
    const seat = lease.seats.find((one) => one.seat_no === number);
    const price = seat && priceOf(seat, types[number]);
    if (price === undefined) return null;
    sum += price;
  }
  return sum;
}

/** Without a type, the first one. */
export function typeOf(seat: LeasedSeat, type: string | undefined): string | undefined {
  return (seat.prices.find(([name]) => name === type) ?? seat.prices[0])?.[0];
}

function priceOf(seat: LeasedSeat, type: string | undefined): number | undefined {
  return seat.prices.find(([name]) => name === typeOf(seat, type))?.[1];
}

const numeric = (seat: LeasedSeat) => Number.parseInt(seat.number, 10);

function byNumber(a: LeasedSeat, b: LeasedSeat): number {
  return numeric(a) - numeric(b) || a.number.localeCompare(b.number);
}

/** Numbers without a gap; where they are none, the plan's own order. */
function follows(a: LeasedSeat, b: LeasedSeat): boolean {
  const gap = numeric(b) - numeric(a);
  return Number.isNaN(gap) ? b.seat_no === a.seat_no + 1 : gap === 1;
}
