import { describe, expect, it } from 'vitest';
import { askAgainIn } from './sale-watch.ts';

const soonest = (atStake: boolean, failures = 0) => askAgainIn(atStake, failures, () => 0);
const latest = (atStake: boolean, failures = 0) => askAgainIn(atStake, failures, () => 1);

describe('asking whether an event still takes place', () => {
  it('takes some seconds where something is at stake, and not many more where nothing is', () => {
    expect(latest(true)).toBeLessThanOrEqual(5_000);
    expect(latest(false)).toBeLessThanOrEqual(12_500);
    expect(soonest(true)).toBeGreaterThanOrEqual(3_000);
    expect(soonest(false)).toBeGreaterThanOrEqual(7_500);
  });

  it('is spread, so that those who came together do not ask together', () => {
    expect(latest(false) - soonest(false)).toBeGreaterThanOrEqual(5_000);
  });

  it('becomes seldom while nobody answers, but never stops', () => {
    for (let failures = 1; failures < 4; failures++)
      expect(soonest(true, failures)).toBeGreaterThan(soonest(true, failures - 1));
    expect(latest(true, 20)).toBeLessThanOrEqual(75_000);
  });
});
