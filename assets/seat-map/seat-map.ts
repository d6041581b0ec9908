// The map itself: one canvas, a camera, two cached layers, and whoever looks at it.
//
// Invariants
// - Nothing is drawn unless something changed; a hidden map costs nothing and is right when shown.
// - While the camera moves only pictures are moved; a sharp one follows when it rests.
// - The map asks (onToggle, onFocus) and is told (setOwn, apply); it never decides about a seat.

import { SeatFlag } from '../protocol/index.ts';
import { Board, Look } from './board.ts';
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
import { Gestures } from './gestures.ts';
import { Grid } from './grid.ts';
import { Layer, SEATS_FROM, type Scene } from './layer.ts';
import { Looks } from './looks.ts';
import { drawFocus, drawOwn, drawSectionNames, type OverlayTexts } from './overlay.ts';
import type { Palette } from './palette.ts';
import type { Box, Plan } from './plan.ts';
import { seatNear, seatTowards, type Direction } from './steps.ts';

const SHARP_AFTER_MS = 90;
const BACKDROP_EVERY_MS = 500;
const ANIMATION_MS = 320;
/** The sharp layer reaches this far beyond the viewport, so that a short pan needs no redraw. */
const MARGIN = 0.18;
const PIXELS_MAX = 7_000_000;
const WHOLE_SIDE_PX = 1600;
/** Seat diameters in CSS pixels: the largest zoom, where a seat is shown, and where it can be hit. */
const DIAMETER_MAX = 58;
const DIAMETER_SHOWN = 30;
const HIT_FROM = { mouse: 7, touch: 13 };
/** More changes than this since the last frame are cheaper as one redraw. */
const TOUCH_MAX = 8000;

export interface SeatMapOptions {
  palette: Palette;
  texts: OverlayTexts;
  reducedMotion?: () => boolean;
  /** A seat was tapped, or Enter was pressed on it. */
  onToggle?: (seat: number) => void;
  /** The keyboard's focus moved; announce it. */
  onFocus?: (seat: number) => void;
  /** The mouse rests on a seat (or on none): the point is within the canvas. */
  onHover?: (seat: number | null, x: number, y: number) => void;
  onSection?: (section: number) => void;
  onView?: (far: boolean) => void;
}

export class SeatMap {
  readonly canvas = document.createElement('canvas');
  readonly plan: Plan;
  camera: Camera = { scale: 1, x: 0, y: 0 };
  /** How long the last frames took to draw, in ms; kept for the bench and for the curious. */
  readonly timings = { paint: 0, sharp: 0, touch: 0 };
  private readonly ctx: CanvasRenderingContext2D;
  private readonly scene: Scene;
  private looks: Looks;
  private readonly sharp: Layer;
  private readonly whole: Layer;
  private readonly gestures: Gestures;
  private readonly nameOrder: number[];
  private readonly observer: ResizeObserver;
  private readonly stop = new AbortController();
  private size: Size = { width: 0, height: 0 };
  private insets: Insets = NO_INSETS;
  private dpr = 1;
  private frame = 0;
  private sharpTimer: ReturnType<typeof setTimeout> | undefined;
  private dirty = new Set<number>();
  private backdropAt = 0;
  private staleBackdrop = false;
  private rebuild = true;
  private placed = false;
  private touched = false;
  private focused = -1;
  private hovered = -1;
  private flight: { from: Camera; to: Camera; start: number } | null = null;
  private wasFar: boolean | null = null;

  constructor(
    private readonly host: HTMLElement,
    /** The seats' state; the owner may show it in other ways too (as a list). */
    readonly board: Board,
    private readonly options: SeatMapOptions,
  ) {
    const { plan } = board;
    this.plan = plan;
    this.looks = new Looks(options.palette, plan.categories);
    this.scene = { plan, board: this.board, grid: new Grid(plan), shown: () => true };
    this.sharp = new Layer(this.scene, this.looks);
    this.whole = new Layer(this.scene, this.looks);
    this.nameOrder = plan.sections
      .map((_, index) => index)
      .filter((index) => plan.sections[index].seats.length > 0)
      .sort((a, b) => plan.sections[b].seats.length - plan.sections[a].seats.length);
    this.ctx = this.canvas.getContext('2d', { alpha: false })!;
    this.canvas.className = 'seat-map';
    this.canvas.tabIndex = 0;
    host.append(this.canvas);
    this.gestures = new Gestures(this.canvas, this.wishes(), () => this.calm());
    const signal = this.stop.signal;
    this.canvas.addEventListener('keydown', (event) => this.key(event), { signal });
    this.canvas.addEventListener('blur', () => this.wake(), { signal });
    this.canvas.addEventListener('focus', () => this.wake(), { signal });
    // A map that starts in a hidden tab or a closed panel has no size; the first real one starts it.
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(host);
    this.measure();
  }

  destroy(): void {
    this.stop.abort();
    this.gestures.destroy();
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.sharpTimer);
    this.canvas.remove();
  }

  // ---- what the owner tells the map ----

  setStatuses(statuses: Uint8Array): void {
    this.board.replace(statuses);
    this.rebuild = true;
    this.wake();
  }

  apply(seats: ArrayLike<number>, statuses: ArrayLike<number>): void {
    for (let i = 0; i < seats.length; i++) {
      if (this.board.set(seats[i], statuses[i])) this.dirty.add(seats[i]);
    }
    if (this.dirty.size === 0) return;
    this.staleBackdrop = true;
    this.wake();
  }

  setOwn(picked: Iterable<number>, mine: Iterable<number>, bought: Iterable<number>): void {
    for (const seat of this.board.setOwn(picked, mine, bought)) this.dirty.add(seat);
    this.wake();
  }

  /** Dims what is not shown; `rank` lists categories from cheap to dear. */
  setFilter(shown: (category: number) => boolean, rank?: number[]): void {
    this.scene.shown = shown;
    if (rank) this.board.rank = rank;
    this.rebuild = true;
    this.wake();
  }

  setPalette(palette: Palette): void {
    this.looks = new Looks(palette, this.plan.categories);
    this.sharp.looks = this.looks;
    this.whole.looks = this.looks;
    this.rebuild = true;
    this.wake();
  }

  setInsets(insets: Insets): void {
    this.insets = insets;
    // Nobody has moved yet: what was fitted before is fitted anew.
    if (this.placed && !this.touched) this.camera = fit(this.plan.box, this.size, insets);
    this.wake();
  }

  // ---- looking around ----

  showAll(animate = true): void {
    this.go(fit(this.plan.box, this.size, this.insets), animate);
    this.touched = false;
  }

  showSection(section: number, animate = true): void {
    const one = this.plan.sections[section];
    if (one) this.go(fit(one.box, this.size, this.insets, this.scaleOf(DIAMETER_SHOWN)), animate);
  }

  showSeats(seats: readonly number[], animate = true): void {
    if (seats.length === 0) return;
    const pad = this.plan.radius * 8;
    const box: Box = { minX: Infinity, minY: Infinity, maxX: -Infinity, maxY: -Infinity };
    for (const seat of seats) {
      box.minX = Math.min(box.minX, this.plan.x[seat] - pad);
      box.minY = Math.min(box.minY, this.plan.y[seat] - pad);
      box.maxX = Math.max(box.maxX, this.plan.x[seat] + pad);
      box.maxY = Math.max(box.maxY, this.plan.y[seat] + pad);
    }
    this.go(fit(box, this.size, this.insets, this.scaleOf(DIAMETER_SHOWN)), animate);
  }

  zoomBy(factor: number): void {
    const { left, right, top, bottom } = this.insets;
    const x = left + (this.size.width - left - right) / 2;
    const y = top + (this.size.height - top - bottom) / 2;
    this.go(this.zoomed(this.flight?.to ?? this.camera, factor, x, y), true);
  }

  /** Where a seat is within the canvas, in CSS pixels. */
  pointOf(seat: number): [number, number] {
    return screenOf(this.camera, this.plan.x[seat], this.plan.y[seat]);
  }

  get diameter(): number {
    return this.plan.radius * 2 * this.camera.scale;
  }

  focusSeat(seat: number): void {
    this.focused = seat;
    const [x, y] = this.pointOf(seat);
    const { left, right, top, bottom } = this.insets;
    const inside =
      x > left + 30 &&
      y > top + 30 &&
      x < this.size.width - right - 30 &&
      y < this.size.height - bottom - 30;
    if (!inside || this.diameter < HIT_FROM.touch) {
      const scale = Math.max(this.camera.scale, this.scaleOf(DIAMETER_SHOWN * 0.8));
      this.go(centred(this.plan.x[seat], this.plan.y[seat], scale, this.size, this.insets), true);
    }
    this.options.onFocus?.(seat);
    this.wake();
  }

  // ---- inside ----

  private wishes() {
    return {
      pan: (dx: number, dy: number) => this.move(pan(this.camera, dx, dy)),
      zoom: (factor: number, x: number, y: number) =>
        this.move(this.zoomed(this.camera, factor, x, y)),
      tap: (x: number, y: number, touch: boolean) => this.tap(x, y, touch),
      doubleTap: (x: number, y: number) => this.go(this.zoomed(this.camera, 2.4, x, y), true),
      hover: (x: number, y: number) => this.hover(x, y),
      leave: () => this.hover(-1e9, -1e9),
    };
  }

  private tap(x: number, y: number, touch: boolean): boolean {
    const near = this.diameter >= (touch ? HIT_FROM.touch : HIT_FROM.mouse);
    if (near) {
      const seat = this.seatAt(x, y, touch);
      if (seat < 0) return false;
      this.focused = seat;
      this.options.onToggle?.(seat);
      return true;
    }
    const [wx, wy] = worldOf(this.camera, x, y);
    if (this.diameter >= SEATS_FROM) {
      this.go(centred(wx, wy, this.scaleOf(DIAMETER_SHOWN), this.size, this.insets), true);
      return true;
    }
    const section = this.sectionAt(wx, wy, 22 / this.camera.scale);
    if (section < 0) return false;
    this.options.onSection?.(section);
    // A large section stays too far away to hit a seat: then go to the place that was tapped.
    const target = fit(
      this.plan.sections[section].box,
      this.size,
      this.insets,
      this.scaleOf(DIAMETER_SHOWN),
    );
    const readable = this.scaleOf(touch ? 15 : 12);
    this.go(
      target.scale >= readable ? target : centred(wx, wy, readable, this.size, this.insets),
      true,
    );
    return true;
  }

  private seatAt(x: number, y: number, touch: boolean): number {
    const [wx, wy] = worldOf(this.camera, x, y);
    const reach = Math.max(this.plan.radius * 1.25, (touch ? 20 : 5) / this.camera.scale);
    return this.scene.grid.nearest(wx, wy, reach);
  }

  private sectionAt(wx: number, wy: number, reach: number): number {
    const seat = this.scene.grid.nearest(wx, wy, Math.max(reach, this.plan.radius * 3));
    if (seat >= 0) return this.plan.section[seat];
    return this.plan.sections.findIndex(
      ({ box, seats }) =>
        seats.length > 0 && wx >= box.minX && wx <= box.maxX && wy >= box.minY && wy <= box.maxY,
    );
  }

  private hover(x: number, y: number): void {
    const seat = this.diameter >= HIT_FROM.mouse ? this.seatAt(x, y, false) : -1;
    const clickable =
      seat >= 0 && [Look.available, Look.picked, Look.mine].includes(this.board.look(seat) as 0);
    this.canvas.style.cursor = seat < 0 ? 'grab' : clickable ? 'pointer' : 'default';
    if (seat === this.hovered) return;
    this.hovered = seat;
    if (seat < 0) this.options.onHover?.(null, 0, 0);
    else this.options.onHover?.(seat, ...this.pointOf(seat));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows: Record<string, Direction> = {
      ArrowLeft: 'left',
      ArrowRight: 'right',
      ArrowUp: 'up',
      ArrowDown: 'down',
    };
    const direction = arrows[event.key];
    if (direction) this.step(direction);
    else if (event.key === '+' || event.key === '=') this.zoomBy(1.6);
    else if (event.key === '-' || event.key === '_') this.zoomBy(1 / 1.6);
    else if (event.key === '0' || event.key === 'Home') this.showAll();
    else if ((event.key === 'Enter' || event.key === ' ') && this.focused >= 0)
      this.options.onToggle?.(this.focused);
    else return;
    event.preventDefault();
  }

  private step(direction: Direction): void {
    if (this.focused < 0 || this.plan.flags[this.focused] & SeatFlag.retired) {
      const [wx, wy] = worldOf(this.camera, this.size.width / 2, this.size.height / 2);
      const first = seatNear(this.plan, wx, wy, (seat) => this.board.look(seat) === Look.available);
      if (first >= 0) this.focusSeat(first);
      return;
    }
    const next = seatTowards(this.plan, this.focused, direction);
    if (next >= 0) this.focusSeat(next);
  }

  private zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
    const min = fit(this.plan.box, this.size, this.insets).scale * 0.7;
    return zoomAt(camera, factor, x, y, min, Math.max(min, this.scaleOf(DIAMETER_MAX)));
  }

  private scaleOf(diameter: number): number {
    return diameter / (this.plan.radius * 2);
  }

  private move(camera: Camera): void {
    this.touched = true;
    this.flight = null;
    this.camera = held(camera, this.plan.box, this.size);
    this.hover(-1e9, -1e9);
    this.settle();
  }

  private go(camera: Camera, animate: boolean): void {
    if (this.size.width === 0) return;
    this.touched = true;
    const to = held(camera, this.plan.box, this.size);
    if (!animate || this.calm()) {
      this.flight = null;
      this.camera = to;
    } else {
      this.flight = { from: this.camera, to, start: performance.now() };
    }
    this.hovered = -1;
    this.options.onHover?.(null, 0, 0);
    this.settle();
  }

  private settle(): void {
    clearTimeout(this.sharpTimer);
    this.sharpTimer = setTimeout(() => this.wake(), SHARP_AFTER_MS);
    this.wake();
  }

  private calm(): boolean {
    return this.options.reducedMotion?.() ?? false;
  }

  private measure(): void {
    const width = this.host.clientWidth;
    const height = this.host.clientHeight;
    const dpr = Math.min(4, Math.max(1, globalThis.devicePixelRatio || 1));
    if (width === 0 || height === 0) return;
    if (width === this.size.width && height === this.size.height && dpr === this.dpr && this.placed)
      return;
    const centre = worldOf(this.camera, this.size.width / 2, this.size.height / 2);
    if (dpr !== this.dpr || !this.placed) this.watchRatio();
    this.dpr = dpr;
    this.size = { width, height };
    this.canvas.width = Math.round(width * dpr);
    this.canvas.height = Math.round(height * dpr);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    if (this.placed && this.touched)
      this.camera = centred(centre[0], centre[1], this.camera.scale, this.size, NO_INSETS);
    else this.camera = fit(this.plan.box, this.size, this.insets);
    this.placed = true;
    this.rebuild = true;
    this.wake();
  }

  /** Moving a window to another screen changes the ratio without changing the size. */
  private watchRatio(): void {
    const query = matchMedia(`(resolution: ${globalThis.devicePixelRatio}dppx)`);
    query.addEventListener('change', () => this.measure(), {
      once: true,
      signal: this.stop.signal,
    });
  }

  private wake(): void {
    this.frame ||= requestAnimationFrame((now) => {
      this.frame = 0;
      this.paint(now);
    });
  }

  private paint(now: number): void {
    if (!this.placed) return;
    const begin = performance.now();
    this.fly(now);
    this.refreshLayers(now);
    const c = this.ctx;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = this.looks.palette.ground;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const { width, height } = this.size;
    if (!this.sharp.covers(this.camera, width, height))
      this.whole.compose(c, this.camera, this.dpr);
    this.sharp.compose(c, this.camera, this.dpr);
    c.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    const far = this.diameter < SEATS_FROM;
    if (far) {
      drawSectionNames(
        c,
        this.scene,
        this.looks,
        this.camera,
        this.size,
        this.nameOrder,
        this.options.texts,
      );
    }
    drawOwn(c, this.scene, this.looks, this.camera);
    if (
      this.focused >= 0 &&
      document.activeElement === this.canvas &&
      this.canvas.matches(':focus-visible')
    ) {
      drawFocus(c, this.scene, this.looks, this.camera, this.focused);
    }
    if (far !== this.wasFar) {
      this.wasFar = far;
      this.options.onView?.(far);
    }
    this.timings.paint = performance.now() - begin;
    if (this.flight) this.wake();
  }

  private fly(now: number): void {
    if (!this.flight) return;
    const t = Math.min(1, Math.max(0, (now - this.flight.start) / ANIMATION_MS));
    const eased = 1 - (1 - t) ** 3;
    this.camera =
      t >= 1 ? this.flight.to : between(this.flight.from, this.flight.to, eased, this.size);
    if (t >= 1) {
      this.flight = null;
      this.settle();
    }
  }

  private refreshLayers(now: number): void {
    const begin = performance.now();
    if (this.rebuild || this.dirty.size > TOUCH_MAX) {
      this.rebuild = false;
      this.dirty.clear();
      this.redrawWhole();
      this.redrawSharp();
    } else if (this.dirty.size > 0) {
      this.whole.touch(this.dirty);
      this.sharp.touch(this.dirty);
      this.dirty.clear();
      this.timings.touch = performance.now() - begin;
    }
    if (this.resting(now) && !this.isSharp()) this.redrawSharp();
    if (this.staleBackdrop && now - this.backdropAt > BACKDROP_EVERY_MS) {
      this.staleBackdrop = false;
      this.backdropAt = now;
      this.whole.drawBackdrop();
      if (this.sharp.far) this.sharp.drawBackdrop();
    }
  }

  private lastMove: Camera | null = null;
  private lastMoveAt = 0;

  /** Whether the camera has stood still long enough for a sharp picture to be worth its time. */
  private resting(now: number): boolean {
    if (this.lastMove !== this.camera) {
      this.lastMove = this.camera;
      this.lastMoveAt = now;
      return false;
    }
    return !this.flight && now - this.lastMoveAt >= SHARP_AFTER_MS * 0.6;
  }

  private isSharp(): boolean {
    const view = this.sharp.view;
    if (!view || view.scale !== this.camera.scale * this.dpr) return false;
    return this.sharp.covers(this.camera, this.size.width, this.size.height);
  }

  private redrawSharp(): void {
    const begin = performance.now();
    const { width, height } = this.size;
    const pixels = width * height * this.dpr ** 2;
    const room = Math.sqrt(PIXELS_MAX / Math.max(1, pixels)) - 1;
    const margin = Math.max(0, Math.min(MARGIN, room / 2));
    const step = 1 / (this.camera.scale * this.dpr);
    // Whole device pixels, or the picture would be half a pixel off at its own scale.
    const mx = Math.round(width * margin * this.dpr);
    const my = Math.round(height * margin * this.dpr);
    const camera = {
      scale: this.camera.scale,
      x: this.camera.x - mx * step,
      y: this.camera.y - my * step,
    };
    this.sharp.redraw(camera, width + (2 * mx) / this.dpr, height + (2 * my) / this.dpr, this.dpr);
    this.timings.sharp = performance.now() - begin;
  }

  private redrawWhole(): void {
    const { box } = this.plan;
    const w = box.maxX - box.minX;
    const h = box.maxY - box.minY;
    const scale = WHOLE_SIDE_PX / Math.max(w, h);
    this.whole.redraw({ scale, x: box.minX, y: box.minY }, w * scale, h * scale, 1);
  }
}
