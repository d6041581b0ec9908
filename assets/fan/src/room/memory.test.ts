import { beforeEach, describe, expect, it, vi } from 'vitest';
import { heldAt, keepHeld, takeHeld } from './memory.ts';

const NOW = Date.parse('2027-03-01T12:00:00Z');
const hold = (minutes: number, seats = [1, 2]) => ({
  pay_until: new Date(NOW + minutes * 60_000).toISOString(),
  seats,
});

beforeEach(() => {
  const kept = new Map<string, string>();
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  });
});

describe('what is held, on pages that show no hall', () => {
  it('is named, and what ends first comes first', () => {
    keepHeld(7, hold(5), { slug: 'late', name: 'Late' });
    keepHeld(3, hold(2, [9]), { slug: 'soon', name: 'Soon' });
    expect(heldAt(NOW).map(({ slug, seats }) => [slug, seats])).toEqual([
      ['soon', 1],
      ['late', 2],
    ]);
  });

  it('keeps its name when the hub says again what is held', () => {
    keepHeld(7, hold(5), { slug: 'late', name: 'Late' });
    keepHeld(7, hold(5, [1, 2, 3]));
    expect(heldAt(NOW)).toMatchObject([{ slug: 'late', name: 'Late', seats: 3 }]);
  });

  it('is over with its time, with the hold, and with the session', () => {
    keepHeld(7, hold(5));
    expect(heldAt(NOW + 6 * 60_000)).toEqual([]);
    keepHeld(7, null);
    expect(heldAt(NOW)).toEqual([]);
    keepHeld(7, hold(5));
    takeHeld(NOW);
    expect(heldAt(NOW)).toEqual([]);
  });
});
