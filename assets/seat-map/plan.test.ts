// Plans as they come: upside down, on one spot, a million away, with holes and nonsense.

import { describe, expect, it } from 'vitest';
import { SeatFlag, type Geometry } from '../protocol/index.ts';
import { Board, Look } from './board.ts';
import { between, fit, NO_INSETS, screenOf, worldOf, zoomAt } from './camera.ts';
import { Grid } from './grid.ts';
import { ALIKE_BELOW, contrast, distance, rgbOf, shownOn, visibleOn } from './palette.ts';
import { readPlan } from './plan.ts';
import { seatNear, seatTowards } from './steps.ts';

function geometry(points: [number, number][], change: Partial<Geometry['seats']> = {}): Geometry {
  const zeros = points.map(() => 0);
  return {
    v: 1,
    name: 'Test',
    width: 0,
    height: 0,
    focus: [0, 0],
    categories: [
      { name: 'A', color: '#123456' },
      { name: 'B', color: '#fff' },
    ],
    sections: [{ name: 'S', hull: [], label: [0, 0], first: 0, count: points.length }],
    rows: [{ section: 0, label: '1', run: 0 }],
    seats: {
      x: points.map(([x]) => x),
      y: points.map(([, y]) => y),
      section: zeros,
      row: zeros,
      number: points.map((_, i) => String(i + 1)),
      category: zeros,
      flags: zeros,
      run: zeros,
      radius: 10,
      ...change,
    },
    areas: [],
  };
}

const SIZE = { width: 390, height: 600 };
const row = (n: number, step: [number, number], from: [number, number] = [0, 0]) =>
  Array.from({ length: n }, (_, i): [number, number] => [
    from[0] + i * step[0],
    from[1] + i * step[1],
  ]);

const PLANS: Record<string, Geometry> = {
  'every seat on one spot': geometry(row(50, [0, 0])),
  'one seat': geometry([[7, 7]]),
  'no seat': geometry([]),
  'a vertical row': geometry(row(30, [0, 22])),
  'far out': geometry(row(40, [21, 3], [-1_995_039, 8e12])),
  'not numbers': geometry([
    [NaN, 1],
    [Infinity, 2],
    [3, 4],
    [24, 4],
  ] as [number, number][]),
  'only retired seats': geometry(row(4, [20, 0]), { flags: [16, 16, 16, 16] }),
};

describe('a plan', () => {
  for (const [name, one] of Object.entries(PLANS)) {
    it(`can be shown: ${name}`, () => {
      const plan = readPlan(one);
      const camera = fit(plan.box, SIZE, NO_INSETS);
      expect(camera.scale).toBeGreaterThan(0);
      expect([camera.scale, camera.x, camera.y, plan.radius].every(Number.isFinite)).toBe(true);
      const grid = new Grid(plan);
      let seen = 0;
      grid.within(plan.box, () => seen++);
      expect(seen).toBe([...plan.flags].filter((flags) => !(flags & SeatFlag.retired)).length);
      new Board(plan).replace(new Uint8Array(plan.count));
      if (plan.count > 0) expect(seatTowards(plan, 0, 'right')).toBeLessThan(plan.count);
    });
  }

  it('never draws seats over each other, however large the plan says they are', () => {
    expect(readPlan(geometry(row(10, [12, 0]))).radius).toBeLessThanOrEqual(6);
  });
});

describe('finding a seat', () => {
  it('is right wherever one looks', () => {
    const points: [number, number][] = [];
    let seed = 9;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let i = 0; i < 3000; i++) points.push([random() * 5000, random() * 900]);
    const plan = readPlan(geometry(points));
    const grid = new Grid(plan);
    for (let i = 0; i < 200; i++) {
      const [x, y] = [random() * 5200 - 100, random() * 1000 - 50];
      let best = -1;
      let square = 60 ** 2;
      for (let seat = 0; seat < plan.count; seat++) {
        const s = (plan.x[seat] - x) ** 2 + (plan.y[seat] - y) ** 2;
        if (s <= square) [best, square] = [seat, s];
      }
      expect(grid.nearest(x, y, 60)).toBe(best);
    }
  });

  it('walks along rows by position, in rows that stand upright too', () => {
    const rows = row(10, [0, 0]).map((_, i) => Math.floor(i / 5));
    const level = readPlan(
      geometry([...row(5, [20, 0]), ...row(5, [20, 0], [5, 22])], { row: rows }),
    );
    const askew = readPlan(
      geometry([...row(5, [15, -14]), ...row(5, [15, -14], [14, 15])], { row: rows }),
    );
    expect(seatTowards(askew, 1, 'right')).toBe(2);
    expect(seatTowards(askew, 1, 'left')).toBe(0);
    expect([5, 6]).toContain(seatTowards(askew, 1, 'down'));
    expect(seatTowards(level, 1, 'right')).toBe(2);
    expect(seatTowards(level, 1, 'down')).toBe(6);
    const upright = readPlan(geometry(row(5, [0, 20])));
    expect(seatTowards(upright, 1, 'down')).toBe(2);
    expect(seatNear(upright, 0, 75, () => true)).toBe(4);
  });
});

describe('the camera', () => {
  it('keeps the point under the finger while zooming', () => {
    const before = { scale: 0.3, x: -40, y: 900 };
    const after = zoomAt(before, 2.7, 123, 456, 0.01, 100);
    expect(worldOf(after, 123, 456)[0]).toBeCloseTo(worldOf(before, 123, 456)[0], 6);
    expect(screenOf(after, ...worldOf(after, 5, 6))[1]).toBeCloseTo(6, 6);
  });

  it('flies from where it is to where it goes', () => {
    const from = { scale: 0.2, x: 0, y: 0 };
    const to = { scale: 4, x: 700, y: 300 };
    for (const [t, want] of [
      [0, from],
      [1, to],
    ] as const) {
      const at = between(from, to, t, SIZE);
      expect(at.scale).toBeCloseTo(want.scale, 9);
      expect(at.x).toBeCloseTo(want.x, 6);
    }
  });
});

describe('the board', () => {
  it('counts what a recount would count', () => {
    const plan = readPlan(
      geometry(row(40, [20, 0]), { category: row(40, [1, 0]).map(([i]) => i % 2) }),
    );
    const board = new Board(plan);
    board.replace(new Uint8Array(40));
    let seed = 5;
    for (let i = 0; i < 500; i++) {
      seed = (seed * 16807) % 2147483647;
      board.set(seed % 45, (seed >> 8) % 4);
      const free = [...board.status].filter((status) => status === 0).length;
      expect(board.freeInAll).toBe(free);
      expect(board.freeIn(0)).toBe(free);
      expect(board.freeOf(0, 0) + board.freeOf(0, 1)).toBe(free);
    }
  });

  it('shows own seats over what the hub says, and the hub’s again afterwards', () => {
    const board = new Board(readPlan(geometry(row(4, [20, 0]))));
    board.replace(Uint8Array.of(1, 0, 2, 3));
    expect(board.setOwn([1], [0], [2]).sort()).toEqual([0, 1, 2]);
    expect([0, 1, 2, 3].map((seat) => board.look(seat))).toEqual([
      Look.mine,
      Look.picked,
      Look.bought,
      Look.blocked,
    ]);
    board.setOwn([], [], []);
    expect([0, 1, 2, 3].map((seat) => board.look(seat))).toEqual([1, 0, 2, 3]);
  });
});

describe('colours', () => {
  it('can be seen on either ground, whatever the organiser chose', () => {
    for (const ground of ['#14110f', '#f4efe6']) {
      for (const color of ['#000000', '#ffffff', '#ffff00', '#111133', '#nonsense', '#abc']) {
        expect(
          contrast(visibleOn(rgbOf(ground), rgbOf(color)), rgbOf(ground)),
        ).toBeGreaterThanOrEqual(3);
      }
    }
  });
});

describe('price levels on the map', () => {
  const block = geometry(
    [0, 1, 2, 3, 4, 5].flatMap((y) => row(10, [20, 0], [0, y * 20])),
    { category: Array.from({ length: 60 }, (_, seat) => (seat < 20 ? 1 : 0)) },
  );

  it('are bands of a block, as the rows lie and as large as they are', () => {
    const [section] = readPlan(block).sections;
    const { ux, uy, bands } = section.banding!;
    // B in the two front rows, A in the four behind them; the stage is above, so along means down.
    const along = Math.sign(uy);
    expect([Math.round(ux), Math.abs(Math.round(uy))]).toEqual([0, 1]);
    expect(bands.map(({ category }) => category)).toEqual(along > 0 ? [1, 0] : [0, 1]);
    expect(Math.abs(bands[0].to)).toBeCloseTo(30);
    expect(bands[1].to).toBe(Infinity);
    expect(readPlan(geometry(row(9, [20, 0]))).sections[0].banding).toBeNull();
  });

  it('that are mixed all over share the block from the front to the back', () => {
    const mixed = geometry(
      [0, 1, 2, 3].flatMap((y) => row(10, [20, 0], [0, y * 20])),
      {
        category: Array.from(
          { length: 40 },
          (_, seat) => (Math.floor(seat / 2) + Math.floor(seat / 10)) % 2,
        ),
      },
    );
    const { bands } = readPlan(mixed).sections[0].banding!;
    expect(bands).toHaveLength(2);
    expect(Number.isFinite(bands[0].to)).toBe(true);
  });

  it('are counted apart: what is free of a price is a share of the seats of that price', () => {
    const board = new Board(readPlan(block));
    board.replace(new Uint8Array(60));
    expect(board.within(0, () => true)).toEqual({ free: 60, total: 60 });
    expect(board.within(0, (category) => category === 1)).toEqual({ free: 20, total: 20 });
    board.set(0, 2);
    expect(board.within(0, (category) => category === 1)).toEqual({ free: 19, total: 20 });
    expect(board.within(0, () => false)).toEqual({ free: 0, total: 0 });
  });

  it('of one colour are drawn in two', () => {
    for (const ground of ['#14110f', '#f4efe6'].map(rgbOf)) {
      const given = ['#cc3333', '#cc3344', '#cc3333', '#1c7ed6'].map(rgbOf);
      const shown = shownOn(ground, given);
      for (let i = 0; i < shown.length; i++) {
        expect(contrast(shown[i], ground)).toBeGreaterThanOrEqual(3);
        for (let j = 0; j < i; j++)
          expect(distance(shown[i], shown[j])).toBeGreaterThanOrEqual(ALIKE_BELOW);
      }
      expect(shown[0]).toEqual(visibleOn(ground, given[0])); // the first stays as it was chosen
      const far = ['#c2255c', '#66a80f', '#7048e8'].map(rgbOf);
      expect(shownOn(ground, far)).toEqual(far.map((one) => visibleOn(ground, one)));
    }
  });
});

describe('a plan with stands far apart', () => {
  const stands = [...row(40, [20, 0]), ...row(40, [20, 0], [30_000, 500])];

  it('is drawn without the emptiness between them, and nothing else changes', () => {
    const plan = readPlan(geometry(stands));
    const [wide, before] = [plan.box.maxX - plan.box.minX, 30_780];
    expect(wide).toBeLessThan(before / 8);
    for (let seat = 0; seat < 80; seat++) {
      if (seat % 40 > 0) expect(plan.x[seat] - plan.x[seat - 1]).toBeCloseTo(20);
    }
    expect(plan.x[40] - plan.x[39]).toBeGreaterThan(900); // still far from each other
    expect(plan.y[40] - plan.y[39]).toBe(500);
  });

  it('keeps what is drawn between them, and a hall keeps its aisles', () => {
    const track = {
      ...geometry(stands),
      areas: [{ shape: 'rectangle' as const, x: 0, y: 0, w: 30_000, h: 100 }],
    };
    expect(readPlan(track as Geometry).x[40]).toBe(30_000);
    const hall = geometry([...row(20, [20, 0]), ...row(20, [20, 0], [900, 0])]);
    expect(readPlan(hall).x[20]).toBe(900);
  });
});
