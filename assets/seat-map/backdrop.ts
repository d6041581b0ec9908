// What lies under the seats: sections, stage and other areas of the plan.

import type { Area } from '../protocol/index.ts';
import type { Board } from './board.ts';
import type { Looks } from './looks.ts';
import { css, mix, rgbOf } from './palette.ts';
import { polygonOf } from './areas.ts';
import type { Banding, Box, Plan } from './plan.ts';

export interface View {
  /** World to device pixels. */
  scale: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export function drawAreas(c: CanvasRenderingContext2D, plan: Plan, looks: Looks, view: View): void {
  for (const area of plan.areas) drawArea(c, area, looks, view);
}

/** Far away a section is a surface in the colours of its levels, each as wide as it is large and as
 *  full as it is free; near, only a floor. */
export function drawSections(
  c: CanvasRenderingContext2D,
  plan: Plan,
  board: Board,
  looks: Looks,
  view: View,
  as: 'surface' | 'tint' | 'floor',
  shown: (category: number) => boolean,
): void {
  const { palette } = looks;
  c.lineJoin = 'round';
  for (let index = 0; index < plan.sections.length; index++) {
    const section = plan.sections[index];
    if (section.seats.length === 0 || !meets(section.box, view)) continue;
    const category = as === 'floor' ? -1 : cheapestFree(board, plan, index, shown);
    const floor = rgbOf(palette.section);
    const fill = (category: number, free: number, total: number): string => {
      if (category < 0 || free === 0 || !shown(category)) return palette.section;
      // As a surface, a section is the fuller of colour the more of it is free.
      const strength = as === 'surface' ? 0.3 + (0.55 * free) / total : 0.16;
      return css(mix(floor, looks.color(category), strength));
    };
    tracePolygon(c, section.hull, view);
    if (section.banding && category >= 0) {
      c.save();
      c.clip();
      drawBands(c, section.box, section.banding, view, (category) =>
        fill(category, board.freeOf(index, category), board.totalOf(index, category)),
      );
      c.restore();
      tracePolygon(c, section.hull, view);
    } else {
      c.fillStyle = fill(category, board.freeIn(index), section.seats.length);
      c.fill();
    }
    c.strokeStyle =
      category < 0 ? palette.sectionLine : css(mix(floor, looks.color(category), 0.55));
    c.lineWidth = 1;
    c.stroke();
  }
}

/** One band after the other, each painted over the rest of those before it, so that no seam is left. */
function drawBands(
  c: CanvasRenderingContext2D,
  box: Box,
  { ux, uy, bands }: Banding,
  view: View,
  fill: (category: number) => string,
): void {
  const [mx, my] = [(box.minX + box.maxX) / 2, (box.minY + box.maxY) / 2];
  // Larger than the outline, which reaches beyond the seats.
  const reach = Math.hypot(box.maxX - box.minX, box.maxY - box.minY);
  const middle = mx * ux + my * uy;
  let from = middle - reach;
  for (const { category, to } of bands) {
    c.beginPath();
    for (const [along, across] of [
      [from, -reach],
      [from, reach],
      [middle + reach, reach],
      [middle + reach, -reach],
    ]) {
      const x = mx + (along - middle) * ux - across * uy;
      const y = my + (along - middle) * uy + across * ux;
      c.lineTo((x - view.x) * view.scale, (y - view.y) * view.scale);
    }
    c.closePath();
    c.fillStyle = fill(category);
    c.fill();
    from = to;
  }
}

export function cheapestFree(
  board: Board,
  plan: Plan,
  section: number,
  shown: (category: number) => boolean,
): number {
  for (let rank = 0; rank < plan.categories.length; rank++) {
    const category = board.rank[rank];
    if (shown(category) && board.freeOf(section, category) > 0) return category;
  }
  return -1;
}

export function meets(box: Box, view: View): boolean {
  return (
    (box.maxX - view.x) * view.scale >= 0 &&
    (box.maxY - view.y) * view.scale >= 0 &&
    (box.minX - view.x) * view.scale <= view.width &&
    (box.minY - view.y) * view.scale <= view.height
  );
}

function tracePolygon(c: CanvasRenderingContext2D, hull: Float64Array, view: View): void {
  c.beginPath();
  for (let i = 0; i + 1 < hull.length; i += 2) {
    const px = (hull[i] - view.x) * view.scale;
    const py = (hull[i + 1] - view.y) * view.scale;
    if (i === 0) c.moveTo(px, py);
    else c.lineTo(px, py);
  }
  c.closePath();
}

function drawArea(c: CanvasRenderingContext2D, area: Area, looks: Looks, view: View): void {
  const { palette } = looks;
  const s = view.scale;
  c.save();
  c.translate((area.x - view.x) * s, (area.y - view.y) * s);
  if (area.rotation) c.rotate((area.rotation * Math.PI) / 180);
  c.beginPath();
  switch (area.shape) {
    case 'rectangle':
      c.rect(0, 0, (area.w ?? 0) * s, (area.h ?? 0) * s);
      break;
    case 'circle':
      c.arc(0, 0, Math.max(0, (area.r ?? 0) * s), 0, Math.PI * 2);
      break;
    case 'ellipse':
      c.ellipse(
        0,
        0,
        Math.max(0, (area.rx ?? 0) * s),
        Math.max(0, (area.ry ?? 0) * s),
        0,
        0,
        Math.PI * 2,
      );
      break;
    case 'polygon':
      // Points are absolute, so they step out of the translation again.
      for (const [px, py] of polygonOf(area.points)) c.lineTo((px - area.x) * s, (py - area.y) * s);
      c.closePath();
      break;
  }
  if (area.shape !== 'text') {
    // Plans are drawn for white paper; on our ground an area is only a surface.
    c.fillStyle = palette.area;
    c.fill();
    c.strokeStyle = palette.areaLine;
    c.lineWidth = 1;
    c.stroke();
  }
  c.restore();
  if (area.text?.text) {
    const size = Math.min(48, Math.max(0, (area.text.size ?? 16) * s));
    if (size < 6) return;
    c.save();
    c.translate((area.text.x - view.x) * s, (area.text.y - view.y) * s);
    if (area.shape === 'text' && area.rotation) c.rotate((area.rotation * Math.PI) / 180);
    c.font = `600 ${size}px system-ui, sans-serif`;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.fillStyle = palette.muted;
    c.fillText(area.text.text, 0, 0);
    c.restore();
  }
}
