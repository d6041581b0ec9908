// The map itself: one canvas, a camera, two cached layers, and whoever looks at it.
//
// Invariants
// - Nothing is drawn unless something changed; a hidden map costs nothing and is right when shown.
// - While the camera moves only pictures are moved; a sharp one follows when it rests.
// - The map asks (onToggle, onFocus) and is told (setOwn, apply); it never decides about a seat.

import { SeatFlag } from '../protocol/index.ts';
import { Board, Look } from './board.ts';
import { NO_INSETS, type Insets } from './camera.ts';
import { Gestures, type Wishes } from './gestures.ts';
import { Grid } from './grid.ts';
import { SEATS_FROM, type Scene } from './layer.ts';
import { Looks } from './looks.ts';
import {
  drawEdgeNames,
  drawFocus,
  drawMarked,
  drawOwn,
  drawSectionNames,
  type OverlayTexts,
} from './overlay.ts';
import type { Palette } from './palette.ts';
import { Pictures, REST_MS } from './pictures.ts';
import { DIAMETER_SHOWN, Pilot } from './pilot.ts';
import type { Box, Plan } from './plan.ts';
import { Words } from './words.ts';
import { seatNear, seatTowards, type Direction } from './steps.ts';

/** Seat diameters in CSS pixels from which a seat can be hit. */
const HIT_FROM = { mouse: 7, touch: 13 };

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

/** The mark that a drawing with changes leaves; its detail is when the oldest of them was committed, in ms since 1970. */
const SEATS_DRAWN = 'seats drawn';

export class SeatMap {
  readonly canvas = document.createElement('canvas');
  readonly plan: Plan;
  private readonly ctx: CanvasRenderingContext2D;
  private readonly scene: Scene;
  private looks: Looks;
  private words: Words;
  private readonly pictures: Pictures;
  private paintTime = 0;
  private readonly pilot: Pilot;
  private readonly gestures: Gestures;
  private readonly nameOrder: number[];
  private readonly observer: ResizeObserver;
  private readonly stop = new AbortController();
  private dpr = 1;
  private frame = 0;
  private restTimer: ReturnType<typeof setTimeout> | undefined;
  private lateTimer: ReturnType<typeof setTimeout> | undefined;
  private placed = false;
  private insets: Insets = NO_INSETS;
  private marked: readonly number[] = [];
  private focused = -1;
  private hovered = -1;
  private wasFar: boolean | null = null;
  /** When the oldest change was committed that is not drawn yet; 0 for none. */
  private madeAt = 0;

  constructor(
    private readonly host: HTMLElement,
    /** The seats' state; the owner may show it in other ways too (as a list). */
    readonly board: Board,
    private readonly options: SeatMapOptions,
  ) {
    const { plan } = board;
    this.plan = plan;
    this.looks = new Looks(options.palette, plan.categories);
    this.words = new Words(options.palette.ground);
    this.scene = { plan, board: this.board, grid: new Grid(plan), shown: () => true };
    this.pictures = new Pictures(this.scene, this.looks, (ms) => {
      clearTimeout(this.lateTimer);
      this.lateTimer = setTimeout(() => this.wake(), ms);
    });
    this.nameOrder = plan.sections
      .map((_, index) => index)
      .filter((index) => plan.sections[index].seats.length > 0)
      .sort((a, b) => plan.sections[b].seats.length - plan.sections[a].seats.length);
    this.ctx = this.canvas.getContext('2d', { alpha: false })!;
    this.canvas.className = 'seat-map';
    this.canvas.tabIndex = 0;
    host.append(this.canvas);
    this.pilot = new Pilot(
      plan,
      () => this.calm(),
      () => this.moved(),
    );
    this.gestures = new Gestures(this.canvas, this.wishes());
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
    clearTimeout(this.restTimer);
    clearTimeout(this.lateTimer);
    this.canvas.remove();
  }

  /** How long the last drawing took, in ms; for the bench and for the curious. */
  get timings(): { paint: number; sharp: number; touch: number } {
    return { paint: this.paintTime, ...this.pictures.timings };
  }

  // ---- what the owner tells the map ----

  setStatuses(statuses: Uint8Array): void {
    this.board.replace(statuses);
    this.pictures.invalidate();
    this.wake();
  }

  /** `madeAt` is when the oldest of these changes was committed; drawing it leaves the mark `SEATS_DRAWN`. */
  apply(seats: ArrayLike<number>, statuses: ArrayLike<number>, madeAt = 0): void {
    if (madeAt > 0) this.madeAt = this.madeAt > 0 ? Math.min(this.madeAt, madeAt) : madeAt;
    for (let i = 0; i < seats.length; i++) {
      if (this.board.set(seats[i], statuses[i])) this.pictures.change(seats[i]);
    }
    this.wake();
  }

  setOwn(picked: Iterable<number>, mine: Iterable<number>, bought: Iterable<number>): void {
    for (const seat of this.board.setOwn(picked, mine, bought)) this.pictures.change(seat);
    this.wake();
  }

  /** What the plan says of seats has changed. */
  repaint(): void {
    this.pictures.invalidate();
    this.wake();
  }

  /** Seats that somebody should look at, until others are named. */
  setMarked(seats: readonly number[]): void {
    if (seats.length === 0 && this.marked.length === 0) return;
    this.marked = seats;
    this.wake();
  }

  /** Dims what is not shown; `rank` lists categories from cheap to dear. */
  setFilter(shown: (category: number) => boolean, rank?: number[]): void {
    this.scene.shown = shown;
    if (rank) this.board.rank = rank;
    this.pictures.invalidate();
    this.wake();
  }

  setPalette(palette: Palette): void {
    this.looks = new Looks(palette, this.plan.categories);
    this.words = new Words(palette.ground);
    this.pictures.invalidate(this.looks);
    this.wake();
  }

  setInsets(insets: Insets): void {
    this.insets = insets;
    this.pilot.setInsets(insets);
    this.wake();
  }

  // ---- looking around ----

  showAll(animate = true): void {
    this.pilot.showAll(animate);
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
    const { pilot } = this;
    // What can be seen and hit already stays where it is: a map that jumps has to be read anew.
    const seen = (seat: number) => pilot.inside(pilot.pointOf(seat), 44);
    if (!pilot.flying && pilot.diameter >= HIT_FROM.touch && seats.every(seen)) return;
    const shown = pilot.fitted(box, DIAMETER_SHOWN);
    // In a small hall everything is nearer than that.
    if (pilot.fitted(this.plan.box).scale >= shown.scale) pilot.showAll(animate);
    else pilot.go(shown, animate);
  }

  zoomBy(factor: number): void {
    this.pilot.zoomSoftly(factor, ...this.pilot.middle());
  }

  /** Where a seat is within the canvas, in CSS pixels. */
  pointOf(seat: number): [number, number] {
    return this.pilot.pointOf(seat);
  }

  focusSeat(seat: number): void {
    this.focused = seat;
    const { pilot, plan } = this;
    if (!pilot.inside(pilot.pointOf(seat), 30) || pilot.diameter < HIT_FROM.touch) {
      const scale = Math.max(pilot.camera.scale, pilot.scaleOf(DIAMETER_SHOWN * 0.8));
      pilot.go(pilot.centredOn(plan.x[seat], plan.y[seat], scale), true);
    }
    this.options.onFocus?.(seat);
    this.wake();
  }

  // ---- inside ----

  private wishes(): Wishes {
    const { pilot } = this;
    return {
      halt: () => pilot.halt(),
      pan: (dx, dy) => pilot.pan(dx, dy),
      glide: (x, y) => pilot.glide(x, y),
      zoom: (factor, x, y) => pilot.zoom(factor, x, y),
      tap: (x, y, touch) => this.tap(x, y, touch),
      doubleTap: (x, y) => pilot.zoomSoftly(2.4, x, y),
      hover: (x, y) => this.hover(this.hit(x, y, false)),
      leave: () => this.hover(-1),
    };
  }

  /** The seat at a point, or -1; none while seats are too small to be meant. */
  private hit(x: number, y: number, touch: boolean): number {
    if (this.pilot.diameter < (touch ? HIT_FROM.touch : HIT_FROM.mouse)) return -1;
    const [wx, wy] = this.pilot.worldAt(x, y);
    const reach = Math.max(this.plan.radius * 1.25, (touch ? 20 : 5) / this.pilot.camera.scale);
    return this.scene.grid.nearest(wx, wy, reach);
  }

  private tap(x: number, y: number, touch: boolean): boolean {
    const { pilot } = this;
    if (pilot.diameter >= (touch ? HIT_FROM.touch : HIT_FROM.mouse)) {
      const seat = this.hit(x, y, touch);
      if (seat < 0) return false;
      this.focused = seat;
      this.options.onToggle?.(seat);
      return true;
    }
    const [wx, wy] = pilot.worldAt(x, y);
    if (pilot.diameter >= SEATS_FROM) {
      pilot.go(pilot.centredOn(wx, wy, pilot.scaleOf(DIAMETER_SHOWN)), true);
      return true;
    }
    const section = this.sectionAt(wx, wy, 22 / pilot.camera.scale);
    if (section < 0) return false;
    this.options.onSection?.(section);
    // A large section stays too far away to hit a seat: then go to its seat that is nearest to the
    // place that was tapped, which may be a stage or a hole in its middle.
    const target = pilot.fitted(this.plan.sections[section].box, DIAMETER_SHOWN);
    const readable = pilot.scaleOf(touch ? 15 : 12);
    const seat = this.nearestOf(section, wx, wy);
    const near = pilot.centredOn(this.plan.x[seat], this.plan.y[seat], readable);
    pilot.go(target.scale >= readable ? target : near, true);
    return true;
  }

  /** A section that can be tapped has seats. */
  private nearestOf(section: number, wx: number, wy: number): number {
    const { x, y } = this.plan;
    let [nearest, distance] = [-1, Infinity];
    for (const seat of this.plan.sections[section].seats) {
      const squared = (x[seat] - wx) ** 2 + (y[seat] - wy) ** 2;
      if (squared < distance) [nearest, distance] = [seat, squared];
    }
    return nearest;
  }

  private sectionAt(wx: number, wy: number, reach: number): number {
    const seat = this.scene.grid.nearest(wx, wy, Math.max(reach, this.plan.radius * 3));
    if (seat >= 0) return this.plan.section[seat];
    return this.plan.sections.findIndex(
      ({ box, seats }) =>
        seats.length > 0 && wx >= box.minX && wx <= box.maxX && wy >= box.minY && wy <= box.maxY,
    );
  }

  private hover(seat: number): void {
    const look = seat < 0 ? -1 : this.board.look(seat);
    const clickable = look === Look.available || look === Look.picked || look === Look.mine;
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
      const [wx, wy] = this.pilot.worldAt(...this.pilot.middle());
      const first = seatNear(this.plan, wx, wy, (seat) => this.board.look(seat) === Look.available);
      if (first >= 0) this.focusSeat(first);
      return;
    }
    const next = seatTowards(this.plan, this.focused, direction);
    if (next >= 0) this.focusSeat(next);
  }

  /** The camera moves: the sharp picture can wait, a tooltip would lie. */
  private moved(): void {
    this.hover(-1);
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => this.wake(), REST_MS + 30);
    this.wake();
  }

  private calm(): boolean {
    return this.options.reducedMotion?.() ?? false;
  }

  private measure(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    const dpr = Math.min(4, Math.max(1, globalThis.devicePixelRatio || 1));
    if (width === 0 || height === 0) return;
    const { size } = this.pilot;
    if (width === size.width && height === size.height && dpr === this.dpr && this.placed) return;
    if (dpr !== this.dpr || !this.placed) this.watchRatio();
    this.dpr = dpr;
    this.canvas.width = Math.round(width * dpr);
    this.canvas.height = Math.round(height * dpr);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.pilot.resize({ width, height });
    this.placed = true;
    this.pictures.invalidate();
    this.moved(); // a sharp picture follows, as after a gesture
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
    const { ctx: c, pilot, dpr } = this;
    pilot.advance(now);
    const { camera, size } = pilot;
    this.pictures.refresh(now, camera, size, dpr, pilot.flying);
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = this.looks.palette.ground;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.pictures.compose(c, camera, size, dpr);
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    const far = pilot.diameter < SEATS_FROM;
    this.words.begin();
    if (far) {
      const { scene, looks, words, nameOrder, options } = this;
      drawSectionNames(c, scene, looks, words, camera, size, dpr, nameOrder, options.texts);
    } else drawEdgeNames(c, this.scene, this.looks, this.words, camera, size, dpr, this.insets);
    drawOwn(c, this.scene, this.looks, camera);
    if (this.marked.length > 0) drawMarked(c, this.scene, this.looks, camera, this.marked);
    if (this.focused >= 0 && this.canvas.matches(':focus-visible')) {
      drawFocus(c, this.scene, this.looks, camera, this.focused);
    }
    if (far !== this.wasFar) {
      this.wasFar = far;
      this.options.onView?.(far);
    }
    if (this.madeAt > 0) {
      performance.clearMarks(SEATS_DRAWN); // whoever observes it has it; the page keeps one
      performance.mark(SEATS_DRAWN, { detail: this.madeAt });
      this.madeAt = 0;
    }
    this.paintTime = performance.now() - begin;
    if (pilot.flying || this.words.borrowed) this.wake();
  }
}
