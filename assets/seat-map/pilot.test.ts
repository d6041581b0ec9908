import { expect, it } from 'vitest';
import { Pilot } from './pilot.ts';
import type { Plan } from './plan.ts';

const plan = {
  radius: 1,
  x: [500],
  y: [500],
  box: { minX: 0, minY: 0, maxX: 1000, maxY: 1000 },
} as unknown as Plan;

function piloted(calm = false) {
  const pilot = new Pilot(
    plan,
    () => calm,
    () => {},
  );
  pilot.resize({ width: 1000, height: 800 });
  return pilot;
}

/** Some frames pass. */
function wait(pilot: Pilot, ms: number) {
  const now = performance.now();
  for (let at = 0; at <= ms; at += 16) pilot.advance(now + at);
}

it('goes on to where it was going when the window changes in the middle of a flight', () => {
  const pilot = piloted();
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

it('glides after a finger that let go, and comes to rest', () => {
  const pilot = piloted();
  pilot.go(pilot.centredOn(500, 500, 8), false);
  const [x] = pilot.pointOf(0);
  pilot.glide(-20, 0);
  expect(pilot.flying).toBe(true);
  wait(pilot, 3000);
  expect(pilot.flying).toBe(false);
  expect(pilot.pointOf(0)[0] - x).toBeLessThan(-250);
  expect(pilot.pointOf(0)[0] - x).toBeGreaterThan(-350);
});

it('does not glide where nothing may move by itself', () => {
  const pilot = piloted(true);
  pilot.glide(-20, 0);
  expect(pilot.flying).toBe(false);
});

it.each([
  ['a flight', true],
  ['a jump', false],
])('forgets a glide for %s that is asked for', (_, animate) => {
  const pilot = piloted();
  pilot.go(pilot.centredOn(500, 500, 8), false);
  pilot.glide(-20, 30);
  pilot.go(pilot.centredOn(200, 300, 8), animate);
  wait(pilot, 3000);
  const [x, y] = pilot.worldAt(500, 400);
  expect([Math.round(x), Math.round(y)]).toEqual([200, 300]);
});

it('stands still while a finger holds it', () => {
  const pilot = piloted();
  pilot.go(pilot.centredOn(500, 500, 8), false);
  pilot.glide(-20, 0);
  pilot.halt();
  const before = pilot.camera;
  wait(pilot, 1000);
  expect(pilot.camera).toEqual(before);
});
