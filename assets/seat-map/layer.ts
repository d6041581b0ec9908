// A cached picture of a part of the plan: backdrop and seats, drawn once, then only touched.
//
// Moving the map draws this picture with an offset; a changed seat is erased and drawn anew in it;
// a sharp picture is made when a gesture has ended. Two such layers exist: the whole plan, small,
// which fills what the sharp one does not cover yet, and the sharp one around the viewport.

import { SeatFlag } from '../protocol/index.ts';
import { drawAreas, drawSections, type View } from './backdrop.ts';
import type { Board } from './board.ts';
import type { Camera } from './camera.ts';
import type { Grid } from './grid.ts';
import { inkOn } from './palette.ts';
import { Look } from './board.ts';
import type { Looks } from './looks.ts';
import type { Plan } from './plan.ts';

/** Seat diameters in CSS pixels from which seats, row labels and numbers are drawn. */
export const SEATS_FROM = 5;
const LABELS_FROM = 10;
const NUMBERS_FROM = 20;
/** Dots finer than this, in CSS pixels, are dust: the section's own colour tells more. */
const DOTS_FROM = 1.5;

export interface Scene {
  plan: Plan;
  board: Board;
  grid: Grid;
  /** Seats of a category that is filtered out are dimmed. */
  shown: (category: number) => boolean;
}

export class Layer {
  readonly backdrop = document.createElement('canvas');
  readonly seats = document.createElement('canvas');
  /** World to device pixels; null until the first picture. */
  view: View | null = null;
  dpr = 1;
  far = true;
  private readonly under: CanvasRenderingContext2D;
  private readonly over: CanvasRenderingContext2D;
  private dotSize = 1;

  constructor(
    private readonly scene: Scene,
    public looks: Looks,
  ) {
    this.under = this.backdrop.getContext('2d', { alpha: false })!;
    this.over = this.seats.getContext('2d')!;
  }

  /** Draws everything within the camera's rectangle, in device pixels. */
  redraw(camera: Camera, width: number, height: number, dpr: number): void {
    const w = Math.max(1, Math.round(width * dpr));
    const h = Math.max(1, Math.round(height * dpr));
    for (const canvas of [this.backdrop, this.seats]) {
      if (canvas.width !== w) canvas.width = w;
      if (canvas.height !== h) canvas.height = h;
    }
    const view: View = { scale: camera.scale * dpr, x: camera.x, y: camera.y, width: w, height: h };
    this.view = view;
    this.dpr = dpr;
    const diameter = this.scene.plan.radius * 2 * view.scale;
    this.far = diameter / dpr < SEATS_FROM;
    this.dotSize = Math.max(1, Math.round(diameter * 0.85));
    this.drawBackdrop();
    this.over.clearRect(0, 0, w, h);
    if (this.dusty) return;
    if (this.far) this.drawDots(view);
    else this.drawSeats(view, diameter);
  }

  private get dusty(): boolean {
    return this.far && this.dotSize / this.dpr < DOTS_FROM;
  }

  /** The colours of the sections follow what is free; cheap, so it is done now and then. */
  drawBackdrop(): void {
    if (!this.view) return;
    const { plan, board, shown } = this.scene;
    this.under.fillStyle = this.looks.palette.ground;
    this.under.fillRect(0, 0, this.view.width, this.view.height);
    drawAreas(this.under, plan, this.looks, this.view);
    drawSections(
      this.under,
      plan,
      board,
      this.looks,
      this.view,
      this.far ? (this.dusty ? 'surface' : 'tint') : 'floor',
      shown,
    );
  }

  /** Draws the given seats anew, the others stay. */
  touch(seats: Iterable<number>): void {
    const view = this.view;
    if (!view || this.dusty) return;
    const { plan } = this.scene;
    const size = this.dotSize;
    if (!this.far) this.looks.resize(plan.radius * 2 * view.scale, this.dpr);
    for (const seat of seats) {
      if (plan.flags[seat] & SeatFlag.retired) continue;
      const x = (plan.x[seat] - view.x) * view.scale;
      const y = (plan.y[seat] - view.y) * view.scale;
      if (x < -size || y < -size || x > view.width + size || y > view.height + size) continue;
      if (this.far) {
        const [r, g, b] = this.dotColor(seat);
        this.over.fillStyle = `rgb(${r} ${g} ${b})`;
        this.over.fillRect(Math.round(x - size / 2), Math.round(y - size / 2), size, size);
      } else {
        this.looks.erase(this.over, x, y, plan.flags[seat]);
        this.drawSeat(seat, x, y);
      }
    }
  }

  private dotColor(seat: number) {
    const { plan, board, shown } = this.scene;
    const category = plan.category[seat];
    return this.looks.dot(board.look(seat), category, !shown(category));
  }

  /** Tens of thousands of dots are set as pixels: a millisecond, where fillRect takes fifty. */
  private drawDots(view: View): void {
    const { plan, grid } = this.scene;
    const { width, height } = view;
    const size = this.dotSize;
    const image = this.over.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    grid.within(this.worldBox(view, size), (seat) => {
      const [r, g, b] = this.dotColor(seat);
      const value = (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
      const x0 = Math.round((plan.x[seat] - view.x) * view.scale - size / 2);
      const y0 = Math.round((plan.y[seat] - view.y) * view.scale - size / 2);
      for (let y = Math.max(0, y0); y < Math.min(height, y0 + size); y++) {
        for (let x = Math.max(0, x0); x < Math.min(width, x0 + size); x++) {
          pixels[y * width + x] = value;
        }
      }
    });
    this.over.putImageData(image, 0, 0);
  }

  private drawSeats(view: View, diameter: number): void {
    const { plan, grid } = this.scene;
    this.looks.resize(diameter, this.dpr);
    this.dotSize = diameter;
    const labels = diameter / this.dpr >= LABELS_FROM;
    grid.within(this.worldBox(view, diameter * 2), (seat) => {
      const x = (plan.x[seat] - view.x) * view.scale;
      const y = (plan.y[seat] - view.y) * view.scale;
      this.drawSeat(seat, x, y);
      if (labels) this.drawRowLabel(seat, x, y, diameter);
    });
  }

  private drawSeat(seat: number, x: number, y: number): void {
    const { plan, board, shown } = this.scene;
    const look = board.look(seat);
    const category = plan.category[seat];
    const flags = plan.flags[seat];
    const dim = look === Look.available && !shown(category);
    this.looks.draw(this.over, x, y, look, category, flags, dim);
    const css = (plan.radius * 2 * this.view!.scale) / this.dpr;
    if (css < NUMBERS_FROM || look !== Look.available) return;
    if (flags & (SeatFlag.accessible | SeatFlag.companion)) return;
    // By its length, and never squeezed by the canvas: that would shape each number anew.
    const text = plan.number[seat];
    const size = Math.min(css * 0.42, 18, (css * 1.35) / Math.max(1, text.length));
    this.over.font = `600 ${Math.round(size * this.dpr)}px system-ui, sans-serif`;
    this.over.textAlign = 'center';
    this.over.textBaseline = 'middle';
    this.over.fillStyle = dim ? this.looks.palette.muted : inkOn(this.looks.color(category));
    this.over.fillText(text, x, y);
  }

  /** The row's name stands beside its first and its last seat. */
  private drawRowLabel(seat: number, x: number, y: number, diameter: number): void {
    const { plan } = this.scene;
    const row = plan.row[seat];
    const label = plan.rows[row]?.label.trim();
    if (!label) return;
    const first = plan.row[seat - 1] !== row;
    const last = plan.row[seat + 1] !== row;
    if (first === last) return;
    const inner = first ? seat + 1 : seat - 1;
    const dx = plan.x[seat] - plan.x[inner];
    const dy = plan.y[seat] - plan.y[inner];
    const length = Math.hypot(dx, dy);
    if (length === 0) return;
    const css = diameter / this.dpr;
    const size = Math.min(css * 0.6, 15) * this.dpr;
    this.over.font = `600 ${size}px system-ui, sans-serif`;
    this.over.textAlign = 'center';
    this.over.textBaseline = 'middle';
    this.over.fillStyle = this.looks.palette.muted;
    // Beyond the section's outline, which stands 0.7 of a seat's place around the seats.
    const beyond = plan.pitch * this.view!.scale * 0.72 + size * (0.35 + 0.3 * label.length);
    const away = Math.max(diameter * 1.05, beyond);
    const [lx, ly] = [x + (dx / length) * away, y + (dy / length) * away];
    // Where an outline does not follow the ends of the rows, it is broken for the letter.
    this.over.lineWidth = 4 * this.dpr;
    this.over.lineJoin = 'round';
    this.over.strokeStyle = this.looks.palette.ground;
    this.over.strokeText(label, lx, ly);
    this.over.fillText(label, lx, ly);
  }

  private worldBox(view: View, pad: number) {
    return {
      minX: view.x - pad / view.scale,
      minY: view.y - pad / view.scale,
      maxX: view.x + (view.width + pad) / view.scale,
      maxY: view.y + (view.height + pad) / view.scale,
    };
  }

  /** Draws this picture where the camera wants it. */
  compose(on: CanvasRenderingContext2D, camera: Camera, dpr: number): void {
    const view = this.view;
    if (!view) return;
    const scale = camera.scale * dpr;
    const zoom = scale / view.scale;
    let x = (view.x - camera.x) * scale;
    let y = (view.y - camera.y) * scale;
    let w = view.width * zoom;
    let h = view.height * zoom;
    if (Math.abs(zoom - 1) < 1e-6) {
      // At its own scale the picture stays on whole pixels, so panning never blurs it.
      x = Math.round(x);
      y = Math.round(y);
      w = view.width;
      h = view.height;
    }
    if (x > on.canvas.width || y > on.canvas.height || x + w < 0 || y + h < 0) return;
    // Far zooms make the picture enormous: hand over only the part that is seen.
    const sx0 = Math.max(0, -x / zoom);
    const sy0 = Math.max(0, -y / zoom);
    const sx1 = Math.min(view.width, (on.canvas.width - x) / zoom);
    const sy1 = Math.min(view.height, (on.canvas.height - y) / zoom);
    const sw = sx1 - sx0;
    const sh = sy1 - sy0;
    if (sw <= 0 || sh <= 0) return;
    on.imageSmoothingEnabled = zoom < 3;
    for (const canvas of [this.backdrop, this.seats]) {
      on.drawImage(canvas, sx0, sy0, sw, sh, x + sx0 * zoom, y + sy0 * zoom, sw * zoom, sh * zoom);
    }
  }

  /** Whether the picture fills the screen at this camera. */
  covers(camera: Camera, width: number, height: number): boolean {
    const view = this.view;
    if (!view) return false;
    return (
      camera.x >= view.x &&
      camera.y >= view.y &&
      camera.x + width / camera.scale <= view.x + view.width / view.scale &&
      camera.y + height / camera.scale <= view.y + view.height / view.scale
    );
  }
}
