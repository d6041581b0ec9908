// How one seat is drawn. Status is never told by colour alone:
//   available  filled            held      half filled, outlined     sold    a small cross
//   blocked    thin outline      picked    ring and check            mine    solid, check, halo
// Accessible seats are square with a wheelchair, companions carry a second person, a restricted
// view has a bar across, standing places are diamonds.
//
// Sprites are drawn once a size and kept in an atlas; the map is then a matter of drawImage.

import { SeatFlag } from '../protocol/index.ts';
import { Look } from './board.ts';
import { css, inkOn, rgbOf, shownOn, type Palette, type Rgb } from './palette.ts';

/** Below this diameter, in CSS pixels, a glyph would be a smudge. */
const GLYPHS_FROM = 9;
const SPRITES_A_LINE = 32;
const SHAPE_FLAGS =
  SeatFlag.accessible | SeatFlag.companion | SeatFlag.restrictedView | SeatFlag.standing;

export class Looks {
  readonly colors: Rgb[];
  private readonly atlas = document.createElement('canvas');
  private readonly ctx: CanvasRenderingContext2D;
  private slots = new Map<number, number>();
  private diameter = 0;
  private tile = 0;
  private dpr = 1;

  constructor(
    readonly palette: Palette,
    categories: readonly { color: string }[],
  ) {
    const ground = rgbOf(palette.ground);
    this.colors = shownOn(
      ground,
      categories.map(({ color }) => rgbOf(color)),
    );
    this.ctx = this.atlas.getContext('2d')!;
  }

  /** Says how large seats are now, in device pixels; sprites of another size are forgotten. */
  resize(diameter: number, dpr: number): void {
    if (diameter === this.diameter && dpr === this.dpr && this.slots.size < 1024) return;
    this.diameter = diameter;
    this.dpr = dpr;
    this.tile = Math.ceil(diameter) + 2;
    this.slots.clear();
    this.atlas.width = this.tile * SPRITES_A_LINE;
    this.atlas.height = this.tile * SPRITES_A_LINE;
  }

  draw(
    on: CanvasRenderingContext2D,
    x: number,
    y: number,
    look: Look,
    category: number,
    flags: number,
    dim: boolean,
  ): void {
    const shape = flags & SHAPE_FLAGS;
    const key = (((category + 1) * 8 + look) * 32 + shape) * 2 + (dim ? 1 : 0);
    let slot = this.slots.get(key);
    if (slot === undefined) {
      slot = this.slots.size % (SPRITES_A_LINE * SPRITES_A_LINE);
      this.slots.set(key, slot);
      this.paint(slot, look, category, shape, dim);
    }
    const t = this.tile;
    const sx = (slot % SPRITES_A_LINE) * t;
    const sy = Math.floor(slot / SPRITES_A_LINE) * t;
    on.drawImage(this.atlas, sx, sy, t, t, Math.round(x - t / 2), Math.round(y - t / 2), t, t);
  }

  /** Takes a seat away, and no pixel of its neighbours: they stand closer than squares would allow. */
  erase(on: CanvasRenderingContext2D, x: number, y: number, flags: number): void {
    const t = this.tile;
    on.save();
    on.globalCompositeOperation = 'destination-out';
    on.translate(Math.round(x - t / 2) + t / 2, Math.round(y - t / 2) + t / 2);
    outline(on, this.diameter / 2 + 1, flags & SHAPE_FLAGS);
    on.fill();
    on.restore();
  }

  /** A dot of the overview: colour if the seat can be had, quiet if not. */
  dot(look: Look, category: number, dim: boolean): Rgb {
    if (look >= Look.picked) return rgbOf(this.palette.own);
    if (look === Look.available && !dim) return this.colors[category] ?? rgbOf(this.palette.muted);
    return rgbOf(this.palette.goneFar);
  }

  color(category: number): Rgb {
    return this.colors[category] ?? rgbOf(this.palette.muted);
  }

  private paint(slot: number, look: Look, category: number, shape: number, dim: boolean): void {
    const c = this.ctx;
    const t = this.tile;
    const left = (slot % SPRITES_A_LINE) * t;
    const top = Math.floor(slot / SPRITES_A_LINE) * t;
    c.save();
    c.clearRect(left, top, t, t);
    c.beginPath();
    c.rect(left, top, t, t);
    c.clip();
    c.translate(left + t / 2, top + t / 2);
    c.globalAlpha = dim ? 0.28 : 1;
    const r = this.diameter / 2;
    const big = this.diameter / this.dpr >= GLYPHS_FROM;
    const fill = this.color(category);
    this.body(c, r, look, fill, shape, big);
    if (big) this.glyph(c, r, look, fill, shape);
    c.restore();
  }

  private body(
    c: CanvasRenderingContext2D,
    r: number,
    look: Look,
    fill: Rgb,
    shape: number,
    big: boolean,
  ): void {
    const { palette } = this;
    const thin = Math.max(1, r * 0.16);
    switch (look) {
      case Look.available:
        outline(c, r, shape);
        c.fillStyle = css(fill);
        c.fill();
        break;
      case Look.held:
        c.save();
        outline(c, r, shape);
        c.clip();
        c.fillStyle = css(fill, 0.5);
        c.fillRect(-r, 0, r * 2, r);
        c.restore();
        outline(c, r - thin / 2, shape);
        stroke(c, css(fill, 0.6), thin);
        break;
      case Look.sold: {
        if (!big) {
          c.fillStyle = palette.gone;
          c.fillRect(-r * 0.4, -r * 0.4, r * 0.8, r * 0.8);
          break;
        }
        const arm = r * 0.32;
        c.beginPath();
        c.moveTo(-arm, -arm);
        c.lineTo(arm, arm);
        c.moveTo(arm, -arm);
        c.lineTo(-arm, arm);
        stroke(c, palette.gone, Math.min(2.2 * this.dpr, Math.max(1, r * 0.16)));
        break;
      }
      case Look.blocked:
        outline(c, r * 0.72, shape);
        stroke(c, palette.gone, Math.max(1, r * 0.1));
        break;
      case Look.picked:
        outline(c, r - thin / 2, shape);
        c.fillStyle = css(rgbOf(palette.own), 0.2);
        c.fill();
        stroke(c, palette.own, Math.max(1.5, r * 0.24));
        if (big) check(c, r * 0.5, palette.own, Math.max(1.5, r * 0.24));
        else dotIn(c, r * 0.45, palette.own);
        break;
      case Look.mine:
      case Look.bought:
        outline(c, r, shape);
        c.fillStyle = palette.own;
        c.fill();
        if (look === Look.bought) {
          outline(c, r * 0.74, shape);
          stroke(c, palette.ownInk, Math.max(1, r * 0.1));
        }
        if (big) check(c, r * 0.5, palette.ownInk, Math.max(1.5, r * 0.24));
        else dotIn(c, r * 0.4, palette.ownInk);
        break;
    }
  }

  private glyph(
    c: CanvasRenderingContext2D,
    r: number,
    look: Look,
    fill: Rgb,
    shape: number,
  ): void {
    if (look >= Look.picked || look === Look.sold) return;
    const ink = look === Look.available ? inkOn(fill) : this.palette.muted;
    if (shape & SeatFlag.accessible) wheelchair(c, r * 0.62, ink);
    else if (shape & SeatFlag.companion) twoPeople(c, r * 0.6, ink);
    if (shape & SeatFlag.restrictedView) {
      c.beginPath();
      c.moveTo(-r * 0.75, r * 0.62);
      c.lineTo(r * 0.75, r * 0.62);
      stroke(c, ink, Math.max(1, r * 0.18));
    }
  }
}

function outline(c: CanvasRenderingContext2D, r: number, shape: number): void {
  c.beginPath();
  if (shape & SeatFlag.standing) {
    c.moveTo(0, -r);
    c.lineTo(r, 0);
    c.lineTo(0, r);
    c.lineTo(-r, 0);
    c.closePath();
  } else if (shape & SeatFlag.accessible) {
    c.roundRect(-r, -r, r * 2, r * 2, r * 0.28);
  } else {
    c.arc(0, 0, Math.max(0, r), 0, Math.PI * 2);
  }
}

function stroke(c: CanvasRenderingContext2D, color: string, width: number): void {
  c.strokeStyle = color;
  c.lineWidth = width;
  c.lineCap = 'round';
  c.lineJoin = 'round';
  c.stroke();
}

function check(c: CanvasRenderingContext2D, s: number, color: string, width: number): void {
  c.beginPath();
  c.moveTo(-s * 0.85, s * 0.05);
  c.lineTo(-s * 0.2, s * 0.7);
  c.lineTo(s * 0.9, -s * 0.65);
  stroke(c, color, width);
}

function dotIn(c: CanvasRenderingContext2D, r: number, color: string): void {
  c.beginPath();
  c.arc(0, 0, r, 0, Math.PI * 2);
  c.fillStyle = color;
  c.fill();
}

/** The dynamic wheelchair sign in six strokes; s is half of its height. */
export function wheelchair(c: CanvasRenderingContext2D, s: number, ink: string): void {
  const w = Math.max(1, s * 0.24);
  c.beginPath();
  c.arc(-s * 0.12, -s * 0.82, s * 0.2, 0, Math.PI * 2);
  c.fillStyle = ink;
  c.fill();
  c.beginPath();
  c.moveTo(-s * 0.15, -s * 0.45);
  c.lineTo(-s * 0.1, s * 0.15);
  c.lineTo(s * 0.42, s * 0.15);
  c.lineTo(s * 0.72, s * 0.85);
  c.moveTo(-s * 0.14, -s * 0.18);
  c.lineTo(s * 0.35, -s * 0.18);
  stroke(c, ink, w);
  c.beginPath();
  c.arc(-s * 0.12, s * 0.4, s * 0.52, Math.PI * 1.15, Math.PI * 0.12, true);
  stroke(c, ink, w);
}

function twoPeople(c: CanvasRenderingContext2D, s: number, ink: string): void {
  c.fillStyle = ink;
  for (const side of [-0.48, 0.48]) {
    c.beginPath();
    c.arc(side * s, -s * 0.45, s * 0.3, 0, Math.PI * 2);
    c.fill();
    c.beginPath();
    c.arc(side * s, s * 0.55, s * 0.44, Math.PI, 0);
    c.fill();
  }
}
