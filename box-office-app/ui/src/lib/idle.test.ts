import { expect, it } from 'vitest';
import { Idle } from './idle.ts';

it('a clock that is set back, or stands in a sleep, keeps nothing open', () => {
  let [steady, wall] = [0, 1_000_000];
  const idle = new Idle(
    () => steady,
    () => wall,
  );
  [steady, wall] = [60_000, 1_060_000 - 3_600_000];
  expect(idle.ms(), 'set back by an hour').toBe(60_000);
  idle.touched();
  expect(idle.ms()).toBe(0);
  wall += 28_800_000;
  expect(idle.ms(), 'asleep for a night').toBe(28_800_000);
});
