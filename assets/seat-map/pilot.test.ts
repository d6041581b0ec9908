import { expect, it } from 'vitest';
import { Pilot } from './pilot.ts';
import type { Plan } from './plan.ts';

const plan = { radius: 1, box: { minX: 0, minY: 0, maxX: 1000, maxY: 1000 } } as Plan;

it('goes on to where it was going when the window changes in the middle of a flight', () => {
  const pilot = new Pilot(
    plan,
    () => false,
    () => {},
  );
  pilot.resize({ width: 1000, height: 800 });
  pilot.go(pilot.centredOn(200, 300, 8), true);
  pilot.resize({ width: 1000, height: 500 });
  expect(pilot.flying).toBe(true);
  pilot.advance(performance.now() + 1000);
  expect(pilot.flying).toBe(false);
  expect(pilot.camera.scale).toBe(8);
  const [x, y] = pilot.worldAt(500, 250);
  expect(x).toBeCloseTo(200);
  expect(y).toBeCloseTo(300);
});
