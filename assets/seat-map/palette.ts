// Colours of the map. Category colours are the organiser's, so they are moved until they can be
// seen on our ground: contrast of at least 3:1 (WCAG 1.4.11), whatever was chosen.

export interface Palette {
  ground: string;
  /** Fill and line of a section. */
  section: string;
  sectionLine: string;
  area: string;
  areaLine: string;
  ink: string;
  muted: string;
  /** Seats nobody can have. */
  gone: string;
  /** The same, as dots of a far view. */
  goneFar: string;
  own: string;
  ownInk: string;
  focus: string;
}

export const DARK: Palette = {
  ground: '#14110f',
  section: '#1f1b18',
  sectionLine: '#3a332d',
  area: '#28221e',
  areaLine: '#40372f',
  ink: '#f6efe4',
  muted: '#a3988a',
  gone: '#6b6057',
  goneFar: '#3f3832',
  own: '#ffd27a',
  ownInk: '#221703',
  focus: '#ffffff',
};

export const LIGHT: Palette = {
  ground: '#f4efe6',
  section: '#fffdf9',
  sectionLine: '#d9cfbf',
  area: '#e7dece',
  areaLine: '#cfc3af',
  ink: '#1f1a15',
  muted: '#6b6156',
  gone: '#a89c8c',
  goneFar: '#d3c9b9',
  own: '#3d2a06',
  ownInk: '#ffe2a6',
  focus: '#000000',
};

export type Rgb = [number, number, number];

export function rgbOf(color: string): Rgb {
  const hex = /^#?([0-9a-f]{6})$/i.exec(color)?.[1];
  const short = /^#?([0-9a-f]{3})$/i.exec(color)?.[1];
  const digits = hex ?? short?.replace(/./g, '$&$&') ?? '888888';
  const value = parseInt(digits, 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

const linear = (c: number) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);

export function luminance([r, g, b]: Rgb): number {
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

export function contrast(a: Rgb, b: Rgb): number {
  const [hi, lo] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (hi + 0.05) / (lo + 0.05);
}

export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * share)) as Rgb;
}

/** The colour itself, or the nearest one towards white or black that can be seen on the ground. */
export function visibleOn(ground: Rgb, color: Rgb, ratio = 3): Rgb {
  const towards: Rgb = luminance(ground) < 0.18 ? [255, 255, 255] : [0, 0, 0];
  for (let share = 0; share < 1; share += 0.05) {
    const candidate = mix(color, towards, share);
    if (contrast(candidate, ground) >= ratio) return candidate;
  }
  return towards;
}

/** Nearer than this in OKLab, two colours are taken for one on a map; the import warns of the same. */
export const ALIKE_BELOW = 0.08;

/** How far apart people see two colours: OKLab, where 0.02 can just be told side by side. */
export function distance(a: Rgb, b: Rgb): number {
  const [p, q] = [oklab(a), oklab(b)];
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

/** The colours of all levels as the map shows them: seen on the ground, and told from each other. */
export function shownOn(ground: Rgb, colors: readonly Rgb[]): Rgb[] {
  const shown: Rgb[] = [];
  for (const color of colors) shown.push(apartFrom(shown, ground, visibleOn(ground, color)));
  return shown;
}

/** The colour itself, or the nearest lighter or darker one that is like none of the others. */
function apartFrom(others: readonly Rgb[], ground: Rgb, color: Rgb): Rgb {
  const away = (one: Rgb) => Math.min(...others.map((other) => distance(one, other)));
  let best = color;
  for (let share = 0; share < 0.8 && away(best) < ALIKE_BELOW; share += 0.05) {
    for (const end of [
      [255, 255, 255],
      [0, 0, 0],
    ] as Rgb[]) {
      const candidate = mix(color, end, share);
      if (contrast(candidate, ground) >= 3 && away(candidate) > away(best)) best = candidate;
    }
  }
  return best;
}

function oklab([r, g, b]: Rgb): [number, number, number] {
  const [x, y, z] = [linear(r), linear(g), linear(b)];
  const l = Math.cbrt(0.4122214708 * x + 0.5363325363 * y + 0.0514459929 * z);
  const m = Math.cbrt(0.2119034982 * x + 0.6806995451 * y + 0.1073969566 * z);
  const s = Math.cbrt(0.0883024619 * x + 0.2817188376 * y + 0.6299787005 * z);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

/** Ink for a glyph on a filled seat. */
export function inkOn(fill: Rgb): string {
  return luminance(fill) > 0.22 ? '#14110f' : '#ffffff';
}

export function css([r, g, b]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${r} ${g} ${b})` : `rgb(${r} ${g} ${b} / ${alpha})`;
}
