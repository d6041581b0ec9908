import { describe, expect, it } from 'vitest';
import { Falling } from './falling.ts';

describe('the number of people before us', () => {
  it('only falls, whatever comes in whichever order', () => {
    const falling = new Falling();
    let shown = Infinity;
    let seed = 7;
    for (let i = 0; i < 500; i++) {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      const next = falling.show('1.12', 5000 - i * 3 + (seed % 4000));
      expect(next).toBeLessThanOrEqual(shown);
      shown = next;
    }
  });

  it('is never less than nobody', () => {
    expect(new Falling().show('1.12', -4)).toBe(0);
  });

  it('begins anew with another entry or another draw', () => {
    const falling = new Falling();
    falling.show('1.12', 3);
    expect(falling.show('1.12', 90)).toBe(3);
    expect(falling.show('2.12', 90)).toBe(90);
  });
});
