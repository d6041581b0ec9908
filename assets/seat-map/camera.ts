// Where the viewer looks. Plain values: a camera never changes, moving makes a new one.
// screen = (world - origin) * scale, in CSS pixels.

import type { Box } from './plan.ts';

export interface Camera {
  scale: number;
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Space that a panel covers; "fit" and "centre" mean the part that is left. */
export interface Insets {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

export const NO_INSETS: Insets = { top: 0, right: 0, bottom: 0, left: 0 };

export function fit(box: Box, size: Size, insets: Insets, scaleMax = Infinity): Camera {
  const width = Math.max(1, size.width - insets.left - insets.right);
  const height = Math.max(1, size.height - insets.top - insets.bottom);
  const scale = Math.min(width / (box.maxX - box.minX), height / (box.maxY - box.minY), scaleMax);
  return {
    scale,
    x: (box.minX + box.maxX) / 2 - (insets.left + width / 2) / scale,
    y: (box.minY + box.maxY) / 2 - (insets.top + height / 2) / scale,
  };
}

export function centred(wx: number, wy: number, scale: number, size: Size, insets: Insets): Camera {
  const cx = insets.left + (size.width - insets.left - insets.right) / 2;
  const cy = insets.top + (size.height - insets.top - insets.bottom) / 2;
  return { scale, x: wx - cx / scale, y: wy - cy / scale };
}

export function pan(camera: Camera, dx: number, dy: number): Camera {
  return { scale: camera.scale, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

/** Zooms so that the point under (sx, sy) stays where it is. */
export function zoomAt(
  camera: Camera,
  factor: number,
  sx: number,
  sy: number,
  min: number,
  max: number,
): Camera {
  const scale = Math.min(max, Math.max(min, camera.scale * factor));
  return {
    scale,
    x: camera.x + sx / camera.scale - sx / scale,
    y: camera.y + sy / camera.scale - sy / scale,
  };
}

/** Keeps at least a part of the plan on the screen. */
export function held(camera: Camera, box: Box, size: Size): Camera {
  const marginX = (size.width * 0.5) / camera.scale;
  const marginY = (size.height * 0.5) / camera.scale;
  return {
    scale: camera.scale,
    x: clamp(camera.x, box.minX - marginX, box.maxX - marginX),
    y: clamp(camera.y, box.minY - marginY, box.maxY - marginY),
  };
}

/** A camera on the way from one to another; zooming is even to the eye, so scale moves by ratio. */
export function between(from: Camera, to: Camera, t: number, size: Size): Camera {
  const scale = from.scale * (to.scale / from.scale) ** t;
  const [fx, fy] = middle(from, size);
  const [tx, ty] = middle(to, size);
  // While zooming in, the middle must move early; the share of the scale already covered says how far.
  const ratio = to.scale / from.scale;
  const s = Math.abs(ratio - 1) < 1e-3 ? t : (1 - ratio ** -t) / (1 - 1 / ratio);
  const mx = fx + (tx - fx) * s;
  const my = fy + (ty - fy) * s;
  return { scale, x: mx - size.width / 2 / scale, y: my - size.height / 2 / scale };
}

export function worldOf(camera: Camera, sx: number, sy: number): [number, number] {
  return [camera.x + sx / camera.scale, camera.y + sy / camera.scale];
}

export function screenOf(camera: Camera, wx: number, wy: number): [number, number] {
  return [(wx - camera.x) * camera.scale, (wy - camera.y) * camera.scale];
}

function middle(camera: Camera, size: Size): [number, number] {
  return worldOf(camera, size.width / 2, size.height / 2);
}

function clamp(value: number, min: number, max: number): number {
  return value < min ? min : value > max ? max : value;
}
