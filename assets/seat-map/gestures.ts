// Fingers, mouse and wheel become wishes: hold, pan, let go in a glide, zoom at a point, tap, hover.
//
// A tap is a press that neither moved nor lasted; it is reported at once, never delayed to see
// whether a second one follows. Two taps on empty floor within 300 ms are a double tap.

const TAP_MOVE_PX = 9;
const TAP_TIME_MS = 500;
const DOUBLE_TAP_MS = 300;
const DOUBLE_TAP_PX = 30;
const GLIDE_AFTER_MS = 60;

export interface Wishes {
  /** A finger is on it: it does not glide on. */
  halt(): void;
  pan(dx: number, dy: number): void;
  /** A finger has let go while it moved, at px/16 ms. */
  glide(x: number, y: number): void;
  zoom(factor: number, x: number, y: number): void;
  /** True if the tap meant something there; if not, it may become half of a double tap. */
  tap(x: number, y: number, touch: boolean): boolean;
  doubleTap(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
}

export class Gestures {
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private start: { x: number; y: number; at: number; moved: boolean } | null = null;
  private lastTap = { x: 0, y: 0, at: -Infinity };
  private speed = { x: 0, y: 0, at: 0 };
  private readonly stop = new AbortController();

  constructor(
    private readonly target: HTMLElement,
    private readonly wishes: Wishes,
  ) {
    const on = <K extends keyof HTMLElementEventMap>(
      type: K,
      handle: (event: HTMLElementEventMap[K]) => void,
    ) => target.addEventListener(type, handle, { signal: this.stop.signal, passive: false });
    on('pointerdown', (event) => this.down(event));
    on('pointermove', (event) => this.move(event));
    on('pointerup', (event) => this.up(event, true));
    on('pointercancel', (event) => this.up(event, false));
    on('pointerleave', () => wishes.leave());
    on('wheel', (event) => this.wheel(event));
    // Safari's own pinch would zoom the page under the map.
    target.addEventListener('gesturestart', (event) => event.preventDefault(), {
      signal: this.stop.signal,
    });
  }

  destroy(): void {
    this.stop.abort();
  }

  get busy(): boolean {
    return this.pointers.size > 0;
  }

  private down(event: PointerEvent): void {
    if (event.pointerType === 'mouse' && event.button !== 0) return;
    this.wishes.halt();
    const point = this.point(event);
    this.pointers.set(event.pointerId, point);
    // A pointer that was made by a test, or that is gone already, can't be captured; that is fine.
    try {
      this.target.setPointerCapture(event.pointerId);
    } catch {
      /* see above */
    }
    if (this.pointers.size === 1) {
      this.start = { ...point, at: event.timeStamp, moved: false };
      this.speed = { x: 0, y: 0, at: event.timeStamp };
    } else if (this.start) {
      this.start.moved = true;
    }
  }

  private move(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    const point = this.point(event);
    if (!before) {
      if (event.pointerType === 'mouse') this.wishes.hover(point.x, point.y);
      return;
    }
    if (this.pointers.size === 1) this.drag(before, point, event.timeStamp);
    else if (this.pointers.size === 2) this.pinch(event.pointerId, before, point);
    this.pointers.set(event.pointerId, point);
  }

  private drag(
    before: { x: number; y: number },
    point: { x: number; y: number },
    now: number,
  ): void {
    const start = this.start;
    if (!start) return;
    if (!start.moved) {
      if (Math.hypot(point.x - start.x, point.y - start.y) < TAP_MOVE_PX) return;
      start.moved = true;
    }
    const dt = Math.max(1, now - this.speed.at);
    const blend = Math.min(1, dt / 40);
    this.speed.x += (((point.x - before.x) / dt) * 16 - this.speed.x) * blend;
    this.speed.y += (((point.y - before.y) / dt) * 16 - this.speed.y) * blend;
    this.speed.at = now;
    this.wishes.pan(point.x - before.x, point.y - before.y);
  }

  private pinch(
    id: number,
    before: { x: number; y: number },
    point: { x: number; y: number },
  ): void {
    const other = [...this.pointers].find(([key]) => key !== id)?.[1];
    if (!other) return;
    const was = Math.hypot(before.x - other.x, before.y - other.y);
    const is = Math.hypot(point.x - other.x, point.y - other.y);
    this.wishes.pan((point.x - before.x) / 2, (point.y - before.y) / 2);
    if (was > 0 && is > 0)
      this.wishes.zoom(is / was, (point.x + other.x) / 2, (point.y + other.y) / 2);
  }

  private up(event: PointerEvent, done: boolean): void {
    if (!this.pointers.delete(event.pointerId)) return;
    const start = this.start;
    if (this.pointers.size > 0 || !start) return;
    this.start = null;
    const point = this.point(event);
    if (!start.moved && done && event.timeStamp - start.at < TAP_TIME_MS) {
      this.tapped(point, event);
    } else if (start.moved && event.timeStamp - this.speed.at < GLIDE_AFTER_MS) {
      this.wishes.glide(this.speed.x, this.speed.y);
    }
  }

  private tapped(point: { x: number; y: number }, event: PointerEvent): void {
    if (this.wishes.tap(point.x, point.y, event.pointerType === 'touch')) {
      this.lastTap.at = -Infinity;
      return;
    }
    const { x, y, at } = this.lastTap;
    const near = Math.hypot(point.x - x, point.y - y) < DOUBLE_TAP_PX;
    if (event.timeStamp - at < DOUBLE_TAP_MS && near) {
      this.lastTap.at = -Infinity;
      this.wishes.doubleTap(point.x, point.y);
    } else {
      this.lastTap = { ...point, at: event.timeStamp };
    }
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const { x, y } = this.point(event);
    // A trackpad pinch arrives as a wheel with ctrl, in much smaller steps.
    const delta = Math.max(-240, Math.min(240, event.deltaY * unit));
    this.wishes.zoom(Math.exp(-delta * (event.ctrlKey ? 0.01 : 0.0022)), x, y);
  }

  private point(event: MouseEvent): { x: number; y: number } {
    const box = this.target.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
}
