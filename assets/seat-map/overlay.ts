// What is drawn over the seats on every frame, because it must stay sharp while the map moves:
// names of sections with what is free in them, the viewer's own seats, the focused seat.

import { cheapestFree } from './backdrop.ts';
import type { Camera, Insets, Size } from './camera.ts';
import { screenOf } from './camera.ts';
import { nameSpots } from './edges.ts';
import type { Scene } from './layer.ts';
import type { Looks } from './looks.ts';
import type { Words } from './words.ts';

const OWN_PIN_BELOW = 14;

export interface OverlayTexts {
  /** "63 % free", "sold out", in the viewer's language. */
  free(share: number, free: number): string;
}

const NAME_MIN = 10;
const NAME_MAX = 19;
const NAME_WEIGHT = 650;
const FREE_WEIGHT = 500;

/** Names of sections; larger sections first, and no name covers another. */
export function drawSectionNames(
  c: CanvasRenderingContext2D,
  scene: Scene,
  looks: Looks,
  words: Words,
  camera: Camera,
  size: Size,
  dpr: number,
  order: readonly number[],
  texts: OverlayTexts,
): void {
  const { plan, board, shown } = scene;
  const few = plan.sections.length <= 40;
  const taken: Rect[] = [];
  const boxes: Rect[] = few
    ? plan.sections.map(({ box }) => [
        ...screenOf(camera, box.minX, box.minY),
        ...screenOf(camera, box.maxX, box.maxY),
      ])
    : [];
  for (const index of order) {
    const section = plan.sections[index];
    const [centre, middle] = screenOf(camera, section.label[0], section.label[1]);
    if (centre < -60 || middle < -30) continue;
    if (centre > size.width + 60 || middle > size.height + 30) continue;
    const side = section.side * camera.scale;
    if (side < 12 && !few) continue;

    let font = Math.round(Math.max(NAME_MIN, Math.min(NAME_MAX, side * 0.26)));
    let wide = words.width(section.name, font, NAME_WEIGHT);
    const room = Math.max(side * 1.3, 40);
    if (wide > room && font > NAME_MIN) {
      font = Math.max(NAME_MIN, Math.floor((font * room) / wide));
      wide = words.width(section.name, font, NAME_WEIGHT);
    }
    const { free, total } = board.within(index, shown);
    // A section without a seat of the price that is looked for has nothing to say about it.
    const two = total > 0 && (side > 46 || plan.sections.length <= 12);
    const text = total > 0 ? texts.free(free / total, free) : '';
    const small = Math.max(NAME_MIN, Math.round(font * 0.76));
    const both = Math.max(wide, words.width(text, small, FREE_WEIGHT));
    // A section too small to bear its name wears it beside it, where no other section is.
    const beside = few && side < 44;
    const others = beside ? taken.concat(boxes.filter((_, other) => other !== index)) : taken;
    const spots = (width: number, high: number): [number, number][] => {
      if (!beside) return [[centre, middle]];
      const [left, top, right, bottom] = boxes[index];
      const inset = width / 2 + 4;
      const x = Math.max(inset, Math.min(size.width - inset, centre));
      return [
        [x, bottom + high],
        [x, top - high],
        [right + inset + 2, middle],
        [left - inset - 2, middle],
      ];
    };
    let placed: ReturnType<typeof place> = null;
    for (const lines of two ? [2, 1] : [1]) {
      const width = lines === 2 ? both : wide;
      for (const [x, y] of spots(width, font * (lines === 2 ? 1.6 : 1))) {
        if (beside && (x < width / 2 || x > size.width - width / 2)) continue;
        placed ??= place(others, x, y, width, font, lines === 2);
      }
    }
    if (!placed) continue;
    taken.push(placed.rect);

    const gone = cheapestFree(board, plan, index, shown) < 0;
    const color = gone ? looks.palette.muted : looks.palette.ink;
    const { x, y } = placed;
    const nameY = placed.two ? y - font * 0.55 : y;
    words.draw(c, section.name, x, nameY, font, NAME_WEIGHT, color, dpr);
    if (placed.two) {
      words.draw(c, text, x, y + font * 0.6, small, FREE_WEIGHT, color, dpr);
    }
  }
}

const EDGE_NAME = 14;
const EDGE_NAMES_MAX = 12;

/** Near the seats: the names of the sections that are seen, at the upper edge of what is seen of each. */
export function drawEdgeNames(
  c: CanvasRenderingContext2D,
  scene: Scene,
  looks: Looks,
  words: Words,
  camera: Camera,
  size: Size,
  dpr: number,
  insets: Insets,
): void {
  const top = insets.top + EDGE_NAME / 2;
  const taken: Rect[] = [];
  const halfOf = (name: string) => words.width(name, EDGE_NAME, NAME_WEIGHT) / 2 + 4;
  const spots = nameSpots(scene.plan.sections, camera, size, top, (one) => halfOf(one.name));
  for (const spot of spots) {
    if (taken.length >= EDGE_NAMES_MAX) break;
    const { name } = scene.plan.sections[spot.section];
    const half = halfOf(name);
    const x = Math.max(half, Math.min(size.width - half, spot.x));
    const placed = place(taken, x, spot.y, half * 2 - 8, EDGE_NAME, false);
    if (!placed) continue;
    taken.push(placed.rect);
    // Over seats that go on above the screen, and beside the names of rows, it needs a ground of its own.
    const [left, upper, right, lower] = placed.rect;
    c.globalAlpha = 0.9;
    c.fillStyle = looks.palette.ground;
    c.beginPath();
    c.roundRect(left, upper, right - left, lower - upper, 8);
    c.fill();
    c.globalAlpha = 1;
    words.draw(c, name, x, spot.y, EDGE_NAME, NAME_WEIGHT, looks.palette.ink, dpr);
  }
}

type Rect = [number, number, number, number];

function place(
  taken: readonly Rect[],
  x: number,
  y: number,
  wide: number,
  font: number,
  two: boolean,
) {
  // The outline of the letters, and a little air.
  const halfWide = wide / 2 + 4;
  const halfHigh = font * (two ? 1.25 : 0.7) + 2;
  const rect: Rect = [x - halfWide, y - halfHigh, x + halfWide, y + halfHigh];
  const covers = taken.some(
    (t) => rect[0] < t[2] && rect[2] > t[0] && rect[1] < t[3] && rect[3] > t[1],
  );
  return covers ? null : { rect, two, x, y };
}

/** Own seats are found again from far away: there, each is a pin; near, it wears a halo. */
export function drawOwn(
  c: CanvasRenderingContext2D,
  scene: Scene,
  looks: Looks,
  camera: Camera,
): void {
  const { plan, board } = scene;
  const diameter = plan.radius * 2 * camera.scale;
  for (const seat of board.ownList()) {
    const [x, y] = screenOf(camera, plan.x[seat], plan.y[seat]);
    c.beginPath();
    if (diameter < OWN_PIN_BELOW) {
      c.arc(x, y, 7, 0, Math.PI * 2);
      c.fillStyle = looks.palette.own;
      c.fill();
      c.lineWidth = 2;
      c.strokeStyle = looks.palette.ground;
      c.stroke();
    } else {
      c.arc(x, y, diameter * 0.62, 0, Math.PI * 2);
      c.lineWidth = Math.max(1.5, diameter * 0.06);
      c.strokeStyle = looks.palette.own;
      c.globalAlpha = 0.55;
      c.stroke();
      c.globalAlpha = 1;
    }
  }
}

export function drawFocus(
  c: CanvasRenderingContext2D,
  scene: Scene,
  looks: Looks,
  camera: Camera,
  seat: number,
): void {
  const [x, y] = screenOf(camera, scene.plan.x[seat], scene.plan.y[seat]);
  const r = Math.max(9, scene.plan.radius * camera.scale * 1.5);
  for (const [color, width] of [
    [looks.palette.ground, 6],
    [looks.palette.focus, 3],
  ] as const) {
    c.beginPath();
    c.arc(x, y, r, 0, Math.PI * 2);
    c.strokeStyle = color;
    c.lineWidth = width;
    c.stroke();
  }
}

/** Seats that somebody should look at: a dashed ring, which no other sign of the map has. */
export function drawMarked(
  c: CanvasRenderingContext2D,
  scene: Scene,
  looks: Looks,
  camera: Camera,
  seats: readonly number[],
): void {
  const r = Math.max(9, scene.plan.radius * camera.scale * 1.45);
  for (const seat of seats) {
    const [x, y] = screenOf(camera, scene.plan.x[seat], scene.plan.y[seat]);
    for (const [color, width, dash] of [
      [looks.palette.ground, 6, []],
      [looks.palette.ink, 2.5, [r * 0.5, r * 0.35]],
    ] as [string, number, number[]][]) {
      c.beginPath();
      c.arc(x, y, r, 0, Math.PI * 2);
      c.setLineDash(dash);
      c.strokeStyle = color;
      c.lineWidth = width;
      c.stroke();
    }
  }
  c.setLineDash([]);
}
