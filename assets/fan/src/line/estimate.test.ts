import { describe, expect, it } from 'vitest';
import { expectWait, Promised, type Moves } from './estimate.ts';

const moves = (ahead: number, last: number, five: number, openMs = 600_000): Moves => ({
  ahead,
  calledLastMinute: last,
  calledLast5Minutes: five,
  openMs,
});

describe('the wait', () => {
  it('is a range around what the last minutes did, rounded outwards', () => {
    expect(expectWait(moves(3000, 100, 500))).toEqual({ is: 'range', low: 25, high: 40 });
    expect(expectWait(moves(3000, 300, 500))).toEqual({ is: 'range', low: 8, high: 40 });
    const wait = expectWait(moves(90, 100, 500));
    expect(wait).toEqual({ is: 'range', low: 0, high: 2 });
  });

  it('contains the truth while the rate stays between the two that it is made of', () => {
    for (let rate = 20; rate <= 2000; rate += 33) {
      for (const ahead of [1, 7, 60, 999, 40_000]) {
        const wait = expectWait(moves(ahead, rate, rate * 5 * 0.7));
        if (wait.is !== 'range') throw new Error('it moves');
        for (const real of [rate, rate * 0.7, rate * 0.85]) {
          expect(wait.low).toBeLessThanOrEqual(ahead / real);
          if (wait.high !== null) expect(wait.high).toBeGreaterThanOrEqual(ahead / real);
        }
      }
    }
  });

  it('says that nothing moves where nothing moves', () => {
    expect(expectWait(moves(3000, 0, 500))).toEqual({ is: 'still' });
    expect(expectWait(moves(3000, 0, 0))).toEqual({ is: 'still' });
  });

  it('knows that a slow line has empty minutes', () => {
    expect(expectWait(moves(4, 0, 10))).toEqual({ is: 'range', low: 1, high: 3 });
  });

  it('counts a line that has just opened by the time that it has been open', () => {
    expect(expectWait(moves(3000, 100, 100, 60_000))).toEqual(expectWait(moves(3000, 100, 500)));
  });

  it('names no end that nobody knows', () => {
    expect(expectWait(moves(500_000, 50, 250))).toEqual({ is: 'range', low: 360, high: null });
  });
});

describe('what was promised', () => {
  it('is not made longer without the reason', () => {
    const promised = new Promised();
    expect(promised.tell('a', moves(3000, 100, 500), 0).longer).toBeNull();
    expect(promised.tell('a', moves(2900, 100, 500), 60_000).longer).toBeNull();
    const told = promised.tell('a', moves(2880, 20, 420), 120_000);
    expect(told.longer).toEqual({ before: 100, now: 20 });
    // It stays said for a while, and then it is what is known.
    expect(promised.tell('a', moves(2860, 20, 340), 180_000).longer).not.toBeNull();
    expect(promised.tell('a', moves(2700, 20, 100), 900_000).longer).toBeNull();
  });

  it('begins anew with another stand', () => {
    const promised = new Promised();
    promised.tell('a', moves(100, 100, 500), 0);
    expect(promised.tell('b', moves(50_000, 100, 500), 1).longer).toBeNull();
  });
});
