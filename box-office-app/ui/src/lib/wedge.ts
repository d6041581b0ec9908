// A scanner that types, in a browser's page: told from a hand by its speed, read by the places of its keys. The desktop
// does this in the core (`scan.rs`), before the page hears of a key; a page can only hold keys back, and type a hand's
// itself a moment later.

/** Keys that are farther apart are a hand's. */
export const GAP_MS = 35;
const LETTERS_MIN = 6;
const LETTERS_MAX = 600;

/** What a scanner that is set to a US keyboard means by a key; shifted behind it. */
const SIGNS: Record<string, [string, string]> = {
  Minus: ['-', '_'],
  Equal: ['=', '+'],
  Slash: ['/', '?'],
  Period: ['.', '>'],
  Comma: [',', '<'],
  Semicolon: [';', ':'],
  Quote: ["'", '"'],
  BracketLeft: ['[', '{'],
  BracketRight: [']', '}'],
  Backslash: ['\\', '|'],
  Backquote: ['`', '~'],
  Space: [' ', ' '],
};
const SHIFTED_DIGITS = ')!@#$%^&*(';

function letter(code: string, shifted: boolean): string | undefined {
  const [, key, digit] = /^(?:Key([A-Z])|(?:Digit|Numpad)(\d))$/.exec(code) ?? [];
  if (key) return key;
  if (digit) return shifted && code.startsWith('Digit') ? SHIFTED_DIGITS[Number(digit)] : digit;
  return SIGNS[code]?.[shifted ? 1 : 0];
}

const isShift = (code: string) => code === 'ShiftLeft' || code === 'ShiftRight';

/** What becomes of a key that went down. */
export interface Verdict<K> {
  /** It goes nowhere, now. */
  held: boolean;
  /** Held before, and a hand's after all: typed before this one, in this order. */
  released: K[];
  scan?: string | null;
}

/** `K` is the caller's, by which it types a key again. */
export class Wedge<K> {
  private burst: { key: K; code: string }[] = [];
  private last = 0;

  constructor(private readonly gapMs = GAP_MS) {}

  down(key: K, code: string, commands: boolean, atMs: number): Verdict<K> {
    const released = atMs - this.last > this.gapMs ? this.end() : [];
    this.last = atMs;
    if (!commands && code === 'Enter' && this.letters() >= LETTERS_MIN) {
      const scan = this.read();
      this.burst = [];
      return { held: true, released, scan };
    }
    const written = isShift(code) || letter(code, false) !== undefined;
    // A space alone presses the button that has the focus.
    if (commands || !written || (code === 'Space' && this.burst.length === 0))
      return { held: false, released: [...released, ...this.end()] };
    this.burst.push({ key, code });
    return { held: true, released };
  }

  /** Nothing came for a while: the keys that were held are a hand's. */
  rest(atMs: number): K[] {
    return atMs - this.last > this.gapMs ? this.end() : [];
  }

  /** How long to wait until `rest`; null: nothing is held. */
  get wait(): number | null {
    return this.burst.length > 0 ? this.gapMs + 1 : null;
  }

  private end(): K[] {
    return this.burst.splice(0).map(({ key }) => key);
  }

  private letters(): number {
    return this.burst.filter(({ code }) => !isShift(code)).length;
  }

  /** A page hears a key with its shift, whoever holds it: the shift before a letter is the letter's. */
  private read(): string | null {
    if (this.burst.length > LETTERS_MAX) return null;
    let text = '';
    let shifted = false;
    for (const { code } of this.burst) {
      if (isShift(code)) {
        shifted = true;
        continue;
      }
      text += letter(code, shifted);
      shifted = false;
    }
    return text;
  }
}
