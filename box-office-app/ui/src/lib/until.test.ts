// Seats wait until a time that the hub takes: from a minute on, and not beyond the event's beginning.

import { describe, expect, it } from 'vitest';
import { cutOffs, proposals, readLocal } from './until.ts';

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 10, 30, 12);

describe('until when seats may wait', () => {
  it('is anything up to the beginning, days before it', () => {
    expect(proposals(NOW, NOW + 72 * HOUR).map(({ name }) => name)).toEqual([
      'half an hour',
      'two hours',
      'a day',
      'an hour before it begins',
      'it begins',
    ]);
  });

  it('is not beyond the beginning', () => {
    for (const before of [3 * HOUR, HOUR, HOUR / 4, 60_000, 0, -HOUR])
      for (const { at } of proposals(NOW, NOW + before)) {
        expect(at).toBeLessThanOrEqual(NOW + before);
        expect(at).toBeGreaterThan(NOW + 60_000);
      }
    expect(proposals(NOW, NOW - HOUR)).toEqual([]);
  });

  it('is read from a field, or refused', () => {
    expect(readLocal('2026-11-30T18:45')).toBe(new Date(2026, 10, 30, 18, 45).getTime());
    for (const text of ['', '18:45', '2026-11-30', '2026-13-40T18:45'])
      expect(readLocal(text)).toBeNull();
  });

  it('of a partner is before the event, and no later than its sale ends', () => {
    const now = Date.parse('2026-11-20T12:00:00Z');
    const names = (begins: string, ends: string) =>
      cutOffs(now, Date.parse(begins), Date.parse(ends)).map(({ name }) => name);
    expect(names('2026-12-20T20:00:00Z', '2026-12-20T19:00:00Z')).toEqual([
      'two weeks before',
      'a week before',
      'two days before',
      'the end of the sale',
    ]);
    expect(names('2026-11-24T20:00:00Z', '2026-11-21T20:00:00Z')).toEqual(['the end of the sale']);
    expect(names('2026-11-20T13:00:00Z', '2026-11-20T12:01:00Z')).toEqual([]);
  });
});
