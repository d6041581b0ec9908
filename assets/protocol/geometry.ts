// The drawing of a plan revision: immutable under its hash, so a browser keeps it for ever.

export const SeatFlag = {
  accessible: 1,
  companion: 2,
  restrictedView: 4,
  standing: 8,
  retired: 16,
} as const;

export interface Geometry {
  v: 1;
  name: string;
  width: number;
  height: number;
  /** Where the audience looks: the middle of the stage or of the pitch. */
  focus: [number, number];
  categories: { name: string; color: string }[];
  sections: {
    name: string;
    /** x, y, x, y, … */
    hull: number[];
    label: [number, number];
    first: number;
    count: number;
  }[];
  rows: { section: number; label: string; run: number }[];
  seats: {
    x: number[];
    y: number[];
    section: number[];
    row: number[];
    number: string[];
    category: number[];
    flags: number[];
    run: number[];
    radius: number;
  };
  areas: Area[];
}

/** Drawing only: stage, bar, outline of a standing field. Coordinates are absolute. */
export interface Area {
  shape: string;
  x: number;
  y: number;
  rotation?: number;
  color?: string | null;
  border_color?: string | null;
  text?: { text: string; x: number; y: number; color?: string | null; size?: number } | null;
  points?: number[] | [number, number][] | { x: number; y: number }[] | null;
  w?: number | null;
  h?: number | null;
  rx?: number | null;
  ry?: number | null;
  r?: number | null;
}
