// What is drawn over the seats on every frame, because it must stay sharp while the map moves:
// names of sections with what is free in them, the viewer's own seats, the focused seat.

import { cheapestFree } from './backdrop.ts';
import type { Camera, Size } from './camera.ts';
import { screenOf } from './camera.ts';
import type { Scene } from './layer.ts';
import type { Looks } from './looks.ts';

const OWN_PIN_BELOW = 14;

export interface OverlayTexts {
  /** "63 % free", "sold out", in the viewer's language. */
  free(share: number, free: number): string;
}

/** Names of sections; larger sections first, and no name covers another. */
export function drawSectionNames(
  c: CanvasRenderingContext2D,
  scene: Scene,
  looks: Looks,
  camera: Camera,
  size: Size,
  order: readonly number[],
  texts: OverlayTexts,
): void {
  const { plan, board, shown } = scene;
  const taken: [number, number, number, number][] = [];
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  c.lineJoin = 'round';
  for (const index of order) {
    const section = plan.sections[index];
    const [x, y] = screenOf(camera, section.label[0], section.label[1]);
    if (x < -60 || y < -30 || x > size.width + 60 || y > size.height + 30) continue;
    const wide = (section.box.maxX - section.box.minX) * camera.scale;
    const high = (section.box.maxY - section.box.minY) * camera.scale;
    const extent = Math.min(wide, high * 2.2);
    if (extent < 16 && plan.sections.length > 40) continue;
    const font = Math.max(10.5, Math.min(20, extent * 0.2));
    const two = extent > 46 || plan.sections.length <= 12;
    c.font = `650 ${font}px system-ui, sans-serif`;
    const halfWide = Math.max(c.measureText(section.name).width, two ? font * 3 : 0) / 2 + 3;
    const halfHigh = two ? font * 1.2 : font * 0.6;
    const box: [number, number, number, number] = [
      x - halfWide,
      y - halfHigh,
      x + halfWide,
      y + halfHigh,
    ];
    if (taken.some((t) => box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1]))
      continue;
    taken.push(box);
    const gone = cheapestFree(board, plan, index, shown) < 0;
    c.strokeStyle = looks.palette.ground;
    c.lineWidth = 4;
    c.globalAlpha = gone ? 0.7 : 1;
    c.fillStyle = looks.palette.ink;
    const nameY = two ? y - font * 0.55 : y;
    c.strokeText(section.name, x, nameY);
    c.fillText(section.name, x, nameY);
    if (two) {
      const free = board.freeIn(index);
      const text = texts.free(free / Math.max(1, board.total[index]), free);
      c.font = `500 ${Math.max(10, font * 0.72)}px system-ui, sans-serif`;
      c.fillStyle = gone ? looks.palette.muted : looks.palette.ink;
      c.strokeText(text, x, y + font * 0.6);
      c.fillText(text, x, y + font * 0.6);
    }
    c.globalAlpha = 1;
  }
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
