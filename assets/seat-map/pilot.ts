// Who moves the camera: at once under a finger, gliding after it, in a short flight on request; never off the plan, and
// the last wish is what counts.

import {
  between,
  centred,
  fit,
  held,
  NO_INSETS,
  pan,
  screenOf,
  worldOf,
  zoomAt,
  type Camera,
  type Insets,
  type Size,
} from './camera.ts';
import type { Box, Plan } from './plan.ts';

const FLIGHT_MS = 320;
/** What a glide keeps of its speed in 16 ms, and the speed in px/16 ms below which it is over. */
const GLIDE_KEEPS = 0.94;
const GLIDE_STOP_PX = 0.3;
/** Diameters of a seat in CSS pixels: at the largest zoom, and where a seat is shown to somebody. */
const DIAMETER_MAX = 58;
export const DIAMETER_SHOWN = 30;

export class Pilot {
  camera: Camera = { scale: 1, x: 0, y: 0 };
  size: Size = { width: 0, height: 0 };
  private insets: Insets = NO_INSETS;
  private flight: { from: Camera; to: Camera; start: number } | null = null;
  /** How a finger that has let go threw it, in px/16 ms, and when that was so. */
  private drift: { x: number; y: number; at: number } | null = null;
  /** Until somebody has moved, the whole plan stays fitted, whatever happens to the window. */
  private moved = false;

  constructor(
    private readonly plan: Plan,
    private readonly calm: () => boolean,
    private readonly changed: () => void,
  ) {}

  /** It moves by itself. */
  get flying(): boolean {
    return this.flight !== null || this.drift !== null;
  }

  /** Of a seat, in CSS pixels. */
  get diameter(): number {
    return this.plan.radius * 2 * this.camera.scale;
  }

  scaleOf(diameter: number): number {
    return diameter / (this.plan.radius * 2);
  }

  pointOf(seat: number): [number, number] {
    return screenOf(this.camera, this.plan.x[seat], this.plan.y[seat]);
  }

  worldAt(x: number, y: number): [number, number] {
    return worldOf(this.camera, x, y);
  }

  middle(): [number, number] {
    const { left, right, top, bottom } = this.insets;
    const { width, height } = this.size;
    return [left + (width - left - right) / 2, top + (height - top - bottom) / 2];
  }

  /** Whether a point stands well inside of what is to be seen. */
  inside([x, y]: [number, number], edge: number): boolean {
    const { left, right, top, bottom } = this.insets;
    const { width, height } = this.size;
    return (
      x > left + edge && y > top + edge && x < width - right - edge && y < height - bottom - edge
    );
  }

  resize(size: Size): void {
    const { width, height } = this.size;
    const around = (camera: Camera) =>
      centred(...worldOf(camera, width / 2, height / 2), camera.scale, size, NO_INSETS);
    this.size = size;
    if (!this.moved) {
      this.rest();
      this.camera = this.fitted(this.plan.box);
      return;
    }
    this.camera = around(this.camera);
    const { flight } = this;
    // It goes on to where it was going.
    if (flight) this.flight = { ...flight, from: around(flight.from), to: around(flight.to) };
  }

  setInsets(insets: Insets): void {
    this.insets = insets;
    if (!this.moved && this.size.width > 0) this.camera = this.fitted(this.plan.box);
  }

  fitted(box: Box, diameterMax = Infinity): Camera {
    return fit(box, this.size, this.insets, this.scaleOf(diameterMax));
  }

  centredOn(wx: number, wy: number, scale: number): Camera {
    return centred(wx, wy, scale, this.size, this.insets);
  }

  showAll(animate: boolean): void {
    this.go(this.fitted(this.plan.box), animate);
    this.moved = false;
  }

  pan(dx: number, dy: number): void {
    this.move(pan(this.camera, dx, dy));
  }

  /** Goes on as a finger threw it, in px/16 ms, until that is spent or something else is wanted. */
  glide(x: number, y: number): void {
    if (this.calm()) return;
    this.flight = null;
    this.drift = { x, y, at: performance.now() };
    this.changed();
  }

  /** A finger catches it. A flight goes on: it may be the second of two clicks, the first of which began it. */
  halt(): void {
    this.drift = null;
  }

  zoom(factor: number, x: number, y: number): void {
    this.move(this.zoomed(this.camera, factor, x, y));
  }

  /** Zooms in a flight, from where the last one will end. */
  zoomSoftly(factor: number, x: number, y: number): void {
    this.go(this.zoomed(this.flight?.to ?? this.camera, factor, x, y), true);
  }

  go(camera: Camera, animate: boolean): void {
    if (this.size.width === 0) return;
    this.moved = true;
    const to = held(camera, this.plan.box, this.size);
    this.rest();
    if (animate && !this.calm()) this.flight = { from: this.camera, to, start: performance.now() };
    else this.camera = to;
    this.changed();
  }

  /** The next step of what moves by itself. */
  advance(now: number): void {
    if (this.drift) this.slide(this.drift, now);
    if (!this.flight) return;
    const { from, to, start } = this.flight;
    const t = Math.min(1, Math.max(0, (now - start) / FLIGHT_MS));
    this.camera = t >= 1 ? to : between(from, to, 1 - (1 - t) ** 3, this.size);
    if (t < 1) return;
    this.flight = null;
    this.changed();
  }

  private slide(drift: { x: number; y: number; at: number }, now: number): void {
    const frames = Math.max(0, now - drift.at) / 16;
    const kept = GLIDE_KEEPS ** frames;
    const [x, y] = [drift.x * kept, drift.y * kept];
    this.move(pan(this.camera, x * frames, y * frames));
    if (Math.hypot(x, y) >= GLIDE_STOP_PX) this.drift = { x, y, at: Math.max(now, drift.at) };
  }

  private rest(): void {
    this.flight = null;
    this.drift = null;
  }

  private move(camera: Camera): void {
    this.moved = true;
    this.rest();
    this.camera = held(camera, this.plan.box, this.size);
    this.changed();
  }

  private zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
    const min = this.fitted(this.plan.box).scale * 0.7;
    return zoomAt(camera, factor, x, y, min, Math.max(min, this.scaleOf(DIAMETER_MAX)));
  }
}
