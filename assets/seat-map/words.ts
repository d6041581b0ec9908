// Short texts as pictures. Outlined text costs much more to draw than a small picture, and a map in
// motion draws a hundred of them a frame; sizes are whole pixels, so that zooming reuses them.

const TEXTS_MAX = 1200;
/** New pictures a frame; until its turn comes, a text borrows its picture of another size. */
const NEW_A_FRAME = 16;

interface Picture {
  canvas: HTMLCanvasElement;
  width: number;
  height: number;
  size: number;
}

export class Words {
  /** By text and look, then by size. */
  private readonly pictures = new Map<string, Map<number, Picture>>();
  private readonly widths = new Map<string, number>();
  private readonly ruler = document.createElement('canvas').getContext('2d')!;
  private budget = NEW_A_FRAME;
  /** Some text is drawn with a borrowed picture: another frame would be better. */
  borrowed = false;

  constructor(private readonly outline: string) {}

  begin(): void {
    this.budget = NEW_A_FRAME;
    this.borrowed = false;
  }

  /** Width in CSS pixels. */
  width(text: string, size: number, weight: number): number {
    const key = `${weight} ${size} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > TEXTS_MAX * 4) this.widths.clear();
      this.ruler.font = font(size, weight);
      this.widths.set(key, (width = this.ruler.measureText(text).width));
    }
    return width;
  }

  /** Draws the text with its middle at (x, y); `c` is scaled to CSS pixels. */
  draw(
    c: CanvasRenderingContext2D,
    text: string,
    x: number,
    y: number,
    size: number,
    weight: number,
    color: string,
    dpr: number,
  ): void {
    const { canvas, width, height, size: drawn } = this.picture(text, size, weight, color, dpr);
    const scale = size / drawn;
    const left = Math.round((x - (width * scale) / 2) * dpr) / dpr;
    const top = Math.round((y - (height * scale) / 2) * dpr) / dpr;
    c.drawImage(canvas, left, top, width * scale, height * scale);
  }

  private picture(text: string, size: number, weight: number, color: string, dpr: number): Picture {
    const key = `${weight} ${dpr} ${color} ${text}`;
    let sizes = this.pictures.get(key);
    if (!sizes) {
      // Old ones are those of other states; starting anew is simpler than counting uses.
      if (this.pictures.size >= TEXTS_MAX) this.pictures.clear();
      this.pictures.set(key, (sizes = new Map()));
    }
    const exact = sizes.get(size);
    if (exact) return exact;
    const [other] = sizes.values();
    if (other && this.budget <= 0) {
      this.borrowed = true;
      return other;
    }
    this.budget--;
    const picture = this.paint(text, size, weight, color, dpr);
    sizes.set(size, picture);
    return picture;
  }

  private paint(text: string, size: number, weight: number, color: string, dpr: number): Picture {
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil((this.width(text, size, weight) + 8) * dpr);
    canvas.height = Math.ceil((size * 1.4 + 6) * dpr);
    const c = canvas.getContext('2d')!;
    c.scale(dpr, dpr);
    const width = canvas.width / dpr;
    const height = canvas.height / dpr;
    c.font = font(size, weight);
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.lineJoin = 'round';
    c.lineWidth = 3.5;
    c.strokeStyle = this.outline;
    c.strokeText(text, width / 2, height / 2);
    c.fillStyle = color;
    c.fillText(text, width / 2, height / 2);
    return { canvas, width, height, size };
  }
}

function font(size: number, weight: number): string {
  return `${weight} ${size}px system-ui, sans-serif`;
}
