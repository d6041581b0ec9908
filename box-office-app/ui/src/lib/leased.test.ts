// Without a network a clerk sees what is left, and two who come together sit together.

import { describe, expect, it } from 'vitest';
import type { Leased } from '../host/port.ts';
import { rows, together, total, typeOf } from './leased.ts';

const seat = (seat_no: number, row: string, number: string, sold = false) => ({
  ...{ seat_no, section: 'Stalls', row, number, sold },
  prices: [
    ['adult', 4500],
    ['child', 2000],
  ] as [string, number][],
});

const lease = (seats: ReturnType<typeof seat>[]): Leased => ({
  ...{ lease_id: 'l', event_id: 1, event: 'E', currency: 'EUR', seats_max: 4, sells_for_s: 60 },
  seats,
});

describe('what is left of a lease', () => {
  it('stands by rows in the order of its numbers, without what is sold', () => {
    const found = rows(
      lease([seat(9, 'A', '10'), seat(8, 'A', '9'), seat(7, 'A', '8', true), seat(1, 'B', '1')]),
    );
    expect(found.map(({ row, seats }) => [row, seats.map(({ number }) => number)])).toEqual([
      ['A', ['9', '10']],
      ['B', ['1']],
    ]);
  });

  it('gives seats next to each other, and goes to another row for them', () => {
    const some = [seat(1, 'A', '1'), seat(2, 'A', '2', true), seat(3, 'A', '3')];
    const more = [seat(4, 'B', '1'), seat(5, 'B', '2')];
    expect(together(lease([...some, ...more]), 2)).toEqual([4, 5]);
    expect(together(lease(some), 2)).toEqual([1, 3]); // apart is better than none
    expect(together(lease(some), 3)).toEqual([]);
  });

  it('knows seats that have letters for numbers', () => {
    const some = [seat(1, 'A', 'x'), seat(2, 'A', 'y'), seat(4, 'A', 'z')];
    expect(together(lease(some), 2)).toEqual([1, 2]);
  });

  it('costs what it was leased at', () => {
    const some = lease([seat(1, 'A', '1'), seat(2, 'A', '2')]);
    expect(total(some, [1, 2], { 2: 'child' })).toBe(6500);
    expect(total(some, [1, 2], { 2: 'a type of another hall' })).toBe(9000);
    expect(total(some, [3], {})).toBeNull();
    expect(typeOf(seat(1, 'A', '1'), undefined)).toBe('adult');
  });
});
