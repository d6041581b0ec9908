import { describe, expect, it } from 'vitest';
import { clip, nameSpots } from './edges.ts';
import type { PlanSection } from './plan.ts';

function section(name: string, hull: number[]): PlanSection {
  const xs = hull.filter((_, i) => i % 2 === 0);
  const ys = hull.filter((_, i) => i % 2 === 1);
  const box = {
    minX: Math.min(...xs),
    minY: Math.min(...ys),
    maxX: Math.max(...xs),
    maxY: Math.max(...ys),
  };
  const seats = Uint32Array.of(0);
  return { name, hull: Float64Array.from(hull), label: [0, 0], box, side: 1, seats, banding: null };
}

const square = (x: number, y: number, side: number) => [
  ...[x, y],
  ...[x + side, y],
  ...[x + side, y + side],
  ...[x, y + side],
];
const SCREEN = { width: 400, height: 300 };

describe('the name of a section that is seen', () => {
  it('stands over it, where its upper edge is seen', () => {
    const spots = nameSpots(
      [section('A', square(100, 100, 100))],
      { scale: 1, x: 0, y: 0 },
      SCREEN,
      20,
      () => 20,
    );
    expect(spots).toMatchObject([{ section: 0, x: 150, y: 91 }]);
  });

  it('stands at the top of the view, over what is seen of it, where it goes on above', () => {
    const spots = nameSpots(
      [section('A', square(0, 0, 1000))],
      { scale: 1, x: 800, y: 500 },
      SCREEN,
      20,
      () => 20,
    );
    expect(spots).toMatchObject([{ section: 0, x: 100, y: 20 }]);
  });

  it('is left out where next to nothing of it is seen, and the larger ones come first', () => {
    const sections = [
      section('far', square(5000, 0, 100)),
      section('corner', square(-90, -90, 100)),
      section('small', square(0, 100, 60)),
      section('large', square(200, 50, 190)),
    ];
    const spots = nameSpots(sections, { scale: 1, x: 0, y: 0 }, SCREEN, 0, () => 0);
    expect(spots.map((one) => sections[one.section].name)).toEqual(['large', 'small']);
  });

  it('follows the bend of a block', () => {
    const bow = [0, 100, 100, 40, 200, 100, 200, 160, 100, 100, 0, 160];
    const [spot] = nameSpots([section('A', bow)], { scale: 1, x: 0, y: 0 }, SCREEN, 0, () => 0);
    expect([spot.x, spot.y]).toEqual([100, 31]);
  });
});

describe('the name of a slanted section', () => {
  it('stands above all that lies under it', () => {
    const slanted = [0, 200, 200, 100, 200, 250, 0, 250];
    const [spot] = nameSpots(
      [section('A', slanted)],
      { scale: 1, x: 0, y: 0 },
      SCREEN,
      0,
      () => 40,
    );
    expect([spot.x, spot.y]).toEqual([100, 121]);
  });
});

describe('a polygon within a rectangle', () => {
  it('is what both have', () => {
    expect(clip(square(-10, -10, 20), 0, 0, 100, 100)).toHaveLength(8);
    expect(clip(square(200, 200, 20), 0, 0, 100, 100)).toEqual([]);
  });
});
