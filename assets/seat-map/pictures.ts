// The map's two cached pictures and when each is made anew: the whole plan, small, which fills what
// the sharp one does not cover; and the sharp one around the viewport, made when the camera rests.

import type { Camera, Size } from './camera.ts';
import { Layer, type Scene } from './layer.ts';
import type { Looks } from './looks.ts';

/** The camera must have stood still for so long before a sharp picture is worth its time. */
export const REST_MS = 60;
const BACKDROP_EVERY_MS = 500;
/** The sharp picture reaches this far beyond the viewport, so that a short pan needs no redraw. */
const MARGIN = 0.18;
const PIXELS_MAX = 7_000_000;
const WHOLE_SIDE_PX = 1600;
/** More changes than this since the last frame are cheaper as one redraw. */
const TOUCH_MAX = 8000;

export class Pictures {
  readonly timings = { sharp: 0, touch: 0 };
  private readonly sharp: Layer;
  private readonly whole: Layer;
  private readonly dirty = new Set<number>();
  private stale = true;
  private backdropStale = false;
  private backdropAt = 0;
  private lastCamera: Camera | null = null;
  private lastMoveAt = 0;

  constructor(
    private readonly scene: Scene,
    looks: Looks,
    private readonly wakeIn: (ms: number) => void,
  ) {
    this.sharp = new Layer(scene, looks);
    this.whole = new Layer(scene, looks);
  }

  /** Everything may look different. */
  invalidate(looks?: Looks): void {
    if (looks) this.sharp.looks = this.whole.looks = looks;
    this.stale = true;
  }

  change(seat: number): void {
    this.dirty.add(seat);
    this.backdropStale = true;
  }

  /** Brings the pictures up to date, as far as this frame needs it. */
  refresh(now: number, camera: Camera, size: Size, dpr: number, flying: boolean): void {
    if (this.stale || this.dirty.size > TOUCH_MAX) {
      this.stale = false;
      this.dirty.clear();
      this.redrawWhole();
      this.redrawSharp(camera, size, dpr);
    } else if (this.dirty.size > 0) {
      const begin = performance.now();
      this.whole.touch(this.dirty);
      this.sharp.touch(this.dirty);
      this.dirty.clear();
      this.timings.touch = performance.now() - begin;
    }
    if (this.rests(now, camera, flying) && !this.isSharp(camera, size, dpr)) {
      this.redrawSharp(camera, size, dpr);
    }
    if (this.backdropStale) this.refreshBackdrop(now);
  }

  compose(c: CanvasRenderingContext2D, camera: Camera, size: Size, dpr: number): void {
    if (!this.sharp.covers(camera, size.width, size.height)) this.whole.compose(c, camera, dpr);
    this.sharp.compose(c, camera, dpr);
  }

  private refreshBackdrop(now: number): void {
    const wait = this.backdropAt + BACKDROP_EVERY_MS - now;
    if (wait > 0) return this.wakeIn(wait);
    this.backdropStale = false;
    this.backdropAt = now;
    this.whole.drawBackdrop();
    if (this.sharp.far) this.sharp.drawBackdrop();
  }

  private rests(now: number, camera: Camera, flying: boolean): boolean {
    if (this.lastCamera !== camera) {
      this.lastCamera = camera;
      this.lastMoveAt = now;
      return false;
    }
    return !flying && now - this.lastMoveAt >= REST_MS;
  }

  private isSharp(camera: Camera, size: Size, dpr: number): boolean {
    if (this.sharp.view?.scale !== camera.scale * dpr) return false;
    return this.sharp.covers(camera, size.width, size.height);
  }

  private redrawSharp(camera: Camera, { width, height }: Size, dpr: number): void {
    const begin = performance.now();
    const room = Math.sqrt(PIXELS_MAX / Math.max(1, width * height * dpr ** 2)) - 1;
    const margin = Math.max(0, Math.min(MARGIN, room / 2));
    const step = 1 / (camera.scale * dpr);
    // Whole device pixels, or the picture would be half a pixel off at its own scale.
    const mx = Math.round(width * margin * dpr);
    const my = Math.round(height * margin * dpr);
    const from = { scale: camera.scale, x: camera.x - mx * step, y: camera.y - my * step };
    this.sharp.redraw(from, width + (2 * mx) / dpr, height + (2 * my) / dpr, dpr);
    this.timings.sharp = performance.now() - begin;
  }

  private redrawWhole(): void {
    const { box } = this.scene.plan;
    const w = box.maxX - box.minX;
    const h = box.maxY - box.minY;
    const scale = WHOLE_SIDE_PX / Math.max(w, h);
    this.whole.redraw({ scale, x: box.minX, y: box.minY }, w * scale, h * scale, 1);
  }
}
