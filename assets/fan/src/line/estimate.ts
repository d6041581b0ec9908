// How long it may still take, from what the line really did in the last minutes. A range, never a single
// figure; "not moving" where nothing moves; and where it becomes longer than was said, that is said too,
// with the reason.

export interface Moves {
  /** People before us. */
  ahead: number;
  calledLastMinute: number;
  calledLast5Minutes: number;
  /** How long the line has been called at all. */
  openMs: number;
}

export type Wait =
  | { is: 'next' }
  | { is: 'still' }
  /** Whole minutes; `high` null: longer than anybody could honestly say. */
  | { is: 'range'; low: number; high: number | null };

/** A line this slow has minutes in which nobody is called, and moves all the same. */
const SLOW_A_MINUTE = 3;
/** Beyond this the figures of five minutes say nothing. */
const MINUTES_MAX = 6 * 60;
/** The rate of a minute is not the rate of the next. */
const FASTER = 0.85;
const SLOWER = 1.3;

export function expectWait({ ahead, calledLastMinute, calledLast5Minutes, openMs }: Moves): Wait {
  if (ahead <= 0) return { is: 'next' };
  const minutes = Math.min(5, Math.max(1, openMs / 60_000));
  const five = calledLast5Minutes / minutes;
  const slowLine = five < SLOW_A_MINUTE;
  const last = slowLine ? Math.max(five, 0) : calledLastMinute;
  if (last <= 0) return { is: 'still' };
  const fast = Math.max(last, five);
  const slow = Math.min(last, five) || last;
  const low = down((ahead / fast) * FASTER);
  const high = up((ahead / slow) * SLOWER);
  if (low > MINUTES_MAX) return { is: 'range', low: MINUTES_MAX, high: null };
  return { is: 'range', low, high: high > MINUTES_MAX * 2 ? null : Math.max(high, low + 1) };
}

/** Outwards, in steps that claim no more than is known. */
const step = (minutes: number) => (minutes < 15 ? 1 : minutes < 60 ? 5 : 15);
const down = (minutes: number) => Math.floor(minutes / step(minutes)) * step(minutes);
const up = (minutes: number) => Math.ceil(minutes / step(minutes)) * step(minutes);

export interface Told {
  wait: Wait;
  /** It takes longer than was said before: by how much the line moved then and moves now, a minute. */
  longer: { before: number; now: number } | null;
}

const WITHIN_MS = 2 * 60_000;
const WITHIN_SHARE = 0.2;
/** News of a longer wait stays so long. */
const SAID_FOR_MS = 5 * 60_000;

/** Remembers what was promised. */
export class Promised {
  private stand = '';
  private until = Infinity;
  private rate = 0;
  private longer: Told['longer'] = null;
  private saidAt = -Infinity;

  tell(stand: string, moves: Moves, now: number): Told {
    if (stand !== this.stand) {
      this.stand = stand;
      this.until = Infinity;
      this.longer = null;
    }
    const wait = expectWait(moves);
    if (wait.is !== 'range') return { wait, longer: null };
    const rate = Math.max(
      1,
      Math.round(
        Math.min(
          moves.calledLastMinute,
          moves.calledLast5Minutes / Math.min(5, Math.max(1, moves.openMs / 60_000)),
        ),
      ),
    );
    const until = wait.high === null ? Infinity : now + wait.high * 60_000;
    const allowed = this.until + Math.max(WITHIN_MS, (this.until - now) * WITHIN_SHARE);
    if (this.until !== Infinity && until > allowed) {
      this.longer = rate < this.rate ? { before: this.rate, now: rate } : null;
      this.saidAt = now;
      this.until = until;
      this.rate = rate;
    } else if (until < this.until) {
      this.until = until;
      this.rate = rate;
    }
    if (now - this.saidAt > SAID_FOR_MS) this.longer = null;
    return { wait, longer: this.longer };
  }
}
