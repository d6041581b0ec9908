// One account's stand in an event's line, as this page lives it. Plain TypeScript: the hub, the clock and
// the page's visibility come in as ports, so that tests bring their own.
//
// Invariants
// - Whoever waits asks nothing for themselves: the shared line is all that is read. One's own entry is
//   read at the start, once after the draw (unless the place follows from what was published), and when called.
// - What is shown of the shared line never goes back: an older revision is not taken.
// - Another device that took the stand over is not fought: this page stops asking until it is told to.

import { ProblemError, type Hub } from '../../../hub-client/index.ts';
import type { Line, LineEntry, Pass, Preferences } from '../../../protocol/index.ts';

export type Stage =
  /** Before anybody can join. */
  | 'soon'
  /** One could join, and has not. */
  | 'join'
  /** Nobody can join any more, and we are not in it. */
  | 'shut'
  /** In the line, without a place yet. */
  | 'waiting'
  /** In the line, with a place. */
  | 'placed'
  /** It is our turn, and we have not come in. */
  | 'called'
  /** With a pass. */
  | 'inside'
  /** Called, and not come within the grace. */
  | 'lapsed'
  /** The time inside is over. */
  | 'turn_over'
  /** Another device has taken our stand over. */
  | 'moved';

export type TurnEnd = 'time' | 'complete' | 'revoked' | 'left';

export interface StandPorts {
  hub: Pick<Hub, 'entry' | 'comeIn' | 'renewPass' | 'wish' | 'leaveLine' | 'goOut'>;
  /** The hub's time. */
  now(): number;
  after(ms: number, run: () => void): () => void;
  random(): number;
  visible(): boolean;
  /** Our place from published data only; null while it does not follow from it. */
  placeFrom(line: Line, entry: LineEntry): Promise<number | null>;
}

export interface StandHeard {
  changed(): void;
  /** It is our turn now (it was not, before). */
  called(): void;
  inside(): void;
  turnOver(end: TurnEnd): void;
  /** Nobody is signed in any more. */
  signedOut(): void;
  refused(error: unknown): void;
}

/** So many people a second may ask for themselves after a draw. */
const ASK_A_SECOND = 4_000;
const ASK_WITHIN_MAX_MS = 120_000;
const COME_WITHIN_MS = 700;
const AGAIN_MS = 1_500;
const AGAIN_MAX_MS = 20_000;
const LOOK_MS = 500;
const LOOK_AGAIN_MS = 4_000;
/** A pass is renewed when this share of its time is left. */
const RENEW_AT_SHARE = 0.4;
const RENEW_AGAIN_MS = 5_000;

export class Stand {
  line: Line | null = null;
  entry: LineEntry | null = null;
  pass: Pass | null = null;
  /** Whether the hub has said if we have an entry. */
  known = false;
  coming = false;
  moved = false;
  ended: { why: TurnEnd; at: number } | null = null;
  /** When the pass came, by the hub's clock. */
  private passAt = 0;
  private seen = false;
  private approaching = false;
  private asked = 0;
  private failures = 0;
  private readonly timers = new Map<string, () => void>();
  private stopped = false;

  constructor(
    private readonly event: number,
    private readonly ports: StandPorts,
    private readonly heard: StandHeard,
  ) {
    this.look();
  }

  stop(): void {
    this.stopped = true;
    for (const cancel of this.timers.values()) cancel();
    this.timers.clear();
  }

  get stage(): Stage {
    const { line, entry } = this;
    if (this.moved) return 'moved';
    if (this.pass) return 'inside';
    if (this.ended) return 'turn_over';
    if (entry) {
      if (entry.state === 'lapsed') return 'lapsed';
      if (entry.place === null || !line) return 'waiting';
      return entry.state !== 'waiting' || entry.place < line.called_through ? 'called' : 'placed';
    }
    if (!line || line.state === 'soon') return 'soon';
    return line.state === 'over' || line.state === 'sold_out' ? 'shut' : 'join';
  }

  /** People before us; null without a place. */
  get ahead(): number | null {
    if (!this.line || !this.entry || this.entry.place === null) return null;
    return Math.max(0, this.entry.place - this.line.called_through);
  }

  /** Names this entry and the draw that its place is from. */
  get name(): string {
    return `${this.entry?.number}.${this.line?.draw.no}`;
  }

  // ---- the shared line ----

  /** The newest state of the line; false if it is older than what is known. */
  take(line: Line): boolean {
    const before = this.line;
    if (before && isOlder(line, before)) return false;
    this.line = line;
    const { entry } = this;
    // A redraw: until it is done, nobody has a place.
    if (before && entry && before.draw.no !== line.draw.no) this.entry = { ...entry, place: null };
    this.follow();
    this.heard.changed();
    return true;
  }

  // ---- ours ----

  /** Who is signed in has changed: nothing that was known is ours. */
  forget(): void {
    this.entry = null;
    this.pass = null;
    this.ended = null;
    this.moved = false;
    this.known = false;
    this.asked++;
    this.heard.changed();
  }

  async read(): Promise<void> {
    const asked = ++this.asked;
    try {
      const entry = await this.ports.hub.entry(this.event);
      if (this.stopped || asked !== this.asked) return;
      this.failures = 0;
      this.stands(entry);
    } catch (error) {
      if (this.stopped || asked !== this.asked) return;
      this.unread(error);
    }
  }

  private unread(error: unknown): void {
    const code = error instanceof ProblemError ? error.code : '';
    switch (code) {
      case 'not_signed_in':
        this.forget();
        this.known = true;
        return this.heard.signedOut();
      case 'entry_none':
        this.entry = null;
        this.pass = null;
        this.known = true;
        break;
      case 'entry_lapsed':
        if (this.entry) this.entry = { ...this.entry, state: 'lapsed' };
        this.known = true;
        break;
      case 'pass_moved':
        return this.movedAway();
      default:
        // No answer: what was known stays, and is asked for again.
        this.schedule('read', this.pause(), () => void this.read());
    }
    this.heard.changed();
  }

  /** The hub's word about our entry; also after joining. */
  stands(entry: LineEntry): void {
    const before = this.entry;
    // What follows from the draw is not unlearnt by an answer from before it.
    if (before?.number === entry.number && entry.place === null && before.place !== null)
      entry = { ...entry, place: before.place };
    if (before && before.number !== entry.number) this.ended = null;
    if (!before) this.ended = null;
    this.entry = entry;
    this.known = true;
    this.moved = Boolean(entry.inside_elsewhere);
    if (this.moved) this.pass = null;
    if (entry.pass) this.hasPass(entry.pass);
    else if (this.pass && entry.state !== 'inside') this.turnOver('revoked');
    this.follow();
    this.heard.changed();
  }

  /** Comes in by itself, unless another device of ours has done so a moment before. */
  private async approach(): Promise<void> {
    this.approaching = true;
    await this.read();
    this.approaching = false;
    if (!this.stopped && this.stage === 'called') await this.comeIn();
  }

  /** Comes in, now that it is our turn. */
  async comeIn(): Promise<void> {
    if (this.coming || this.pass || this.stopped) return;
    this.cancel('come');
    this.coming = true;
    this.heard.changed();
    try {
      const pass = await this.ports.hub.comeIn(this.event);
      if (this.stopped) return;
      this.failures = 0;
      this.moved = false;
      this.hasPass(pass);
      this.heard.inside();
      // Two devices that came in at the same moment: the later one has the turn, and the other is told.
      this.schedule('read', LOOK_AGAIN_MS, () => void this.read());
    } catch (error) {
      if (!this.stopped) this.notIn(error);
    } finally {
      this.coming = false;
      if (!this.stopped) this.heard.changed();
    }
  }

  private notIn(error: unknown): void {
    const code = error instanceof ProblemError ? error.code : '';
    switch (code) {
      case 'entry_lapsed':
        if (this.entry) this.entry = { ...this.entry, state: 'lapsed' };
        return;
      case 'entry_none':
        this.entry = null;
        return;
      case 'pass_moved':
        return this.movedAway();
      case 'not_signed_in':
        return this.heard.signedOut();
      case 'line_paused':
        // The line says so, and says when it goes on.
        return this.schedule('come', AGAIN_MAX_MS, () => this.follow());
      case 'line_not_called':
        return this.schedule('come', this.pause(), () => this.follow());
      default:
        this.heard.refused(error);
        this.schedule('come', this.pause(), () => this.follow());
    }
  }

  /** After a refusal of a hold: the pass is not what we thought. */
  refusedPass(code: string): void {
    if (code === 'pass_moved') this.movedAway();
    else if (code === 'pass_expired' || code === 'pass_over') this.turnOver('time');
    else void this.read();
    this.heard.changed();
  }

  async wish(wishes: Preferences): Promise<void> {
    this.stands(await this.ports.hub.wish(this.event, wishes));
  }

  async leave(): Promise<void> {
    await this.ports.hub.leaveLine(this.event);
    this.forget();
    this.known = true;
    this.heard.changed();
  }

  /** Done in the hall: the place inside is the next one's. What is held stays payable. */
  async goOut(): Promise<void> {
    try {
      await this.ports.hub.goOut(this.event);
    } catch (error) {
      // It had ended already.
      if (!(error instanceof ProblemError) || error.code !== 'pass_over') throw error;
    }
    this.turnOver('left');
  }

  /** The page is shown again. */
  wake(): void {
    this.seen = true;
    this.failures = 0;
    if (this.moved) return;
    if (this.timers.has('come')) this.cancel('come');
    // What was called meanwhile may have lapsed; a pass may have ended or moved.
    if (this.pass || this.stage === 'called') void this.read();
    else this.follow();
  }

  // ---- inside ----

  /** What follows from what is known now. */
  private follow(): void {
    const { line, entry } = this;
    if (!line || !entry || this.moved || this.stopped) return;
    if (entry.place === null) return this.findPlace(line, entry);
    if (this.pass || this.ended || entry.state === 'lapsed') return;
    if (entry.place >= line.called_through && entry.state === 'waiting') return;
    if (entry.state === 'waiting') {
      this.entry = { ...entry, state: 'called' };
      this.heard.called();
    }
    if (line.state === 'paused') return;
    if (this.ports.visible()) {
      if (!this.timers.has('come') && !this.coming && !this.approaching)
        this.schedule('come', this.ports.random() * COME_WITHIN_MS, () => void this.approach());
    } else if (!this.entry?.grace_until && !this.timers.has('read')) {
      // Until when we may come: the deadline that is shown when the page is looked at again.
      this.schedule('read', this.ports.random() * 5_000, () => void this.read());
    }
  }

  private findPlace(line: Line, entry: LineEntry): void {
    const { draw } = line;
    if (line.drawn_count !== null && entry.number >= line.drawn_count) {
      // Came after the draw: the place is the number, and nothing has to be asked.
      this.entry = { ...entry, place: entry.number };
      return this.follow();
    }
    const isDrawn = Boolean(draw.drawn_at ?? draw.secret) || line.state === 'open';
    if (!isDrawn || this.timers.has('place')) return;
    const within = Math.min(ASK_WITHIN_MAX_MS, (drawn(line) / ASK_A_SECOND) * 1000);
    const wait = draw.secret ? 0 : this.ports.random() * within;
    this.schedule('place', wait, () => void this.place(line, entry));
  }

  private async place(line: Line, entry: LineEntry): Promise<void> {
    let place: number | null = null;
    try {
      place = await this.ports.placeFrom(line, entry);
    } catch {
      // Not every browser can: then the hub says it.
    }
    if (this.stopped || this.entry?.number !== entry.number) return;
    if (place === null) {
      await this.read();
      if (this.entry?.place === null) this.schedule('place', this.pause(), () => this.follow());
      return;
    }
    this.entry = { ...this.entry, place };
    this.follow();
    this.heard.changed();
  }

  private hasPass(pass: Pass): void {
    // An answer that was on its way while the pass was renewed.
    if (this.pass && Date.parse(pass.expires_at) < Date.parse(this.pass.expires_at)) return;
    if (Date.parse(pass.expires_at) <= this.ports.now()) return;
    this.pass = pass;
    this.passAt = this.ports.now();
    this.seen = this.ports.visible();
    this.ended = null;
  }

  private movedAway(): void {
    this.pass = null;
    this.moved = true;
    this.cancel('come');
    this.cancel('read');
    this.heard.changed();
  }

  /** The order is complete, or time is over. */
  turnOver(why: TurnEnd): void {
    if (!this.pass && this.ended) return;
    this.pass = null;
    this.entry = null;
    this.ended = { why, at: this.ports.now() };
    this.heard.turnOver(why);
    this.heard.changed();
  }

  /** Deadlines are looked at again and again rather than slept until: timers stop while a phone sleeps. */
  private look(): void {
    this.schedule('look', LOOK_MS, () => this.look());
    const pass = this.pass;
    if (!pass) return;
    const now = this.ports.now();
    if (this.ports.visible()) this.seen = true;
    const ends = Date.parse(pass.expires_at);
    if (now >= ends) return this.turnOver('time');
    const most = Date.parse(pass.renewable_until);
    const due = ends - (ends - this.passAt) * RENEW_AT_SHARE;
    // Nobody has looked at the page since the last time: an abandoned one costs nobody a place inside.
    if (now >= due && ends < most && this.seen && !this.timers.has('renew')) void this.renew(pass);
  }

  private async renew(pass: Pass): Promise<void> {
    this.schedule('renew', RENEW_AGAIN_MS, () => {});
    try {
      const renewed = await this.ports.hub.renewPass(this.event, pass.pass);
      if (!this.stopped && this.pass) this.hasPass(renewed);
    } catch (error) {
      if (this.stopped) return;
      const code = error instanceof ProblemError ? error.code : '';
      if (code === 'pass_moved') this.movedAway();
      else if (code === 'pass_over' || code === 'pass_expired') this.turnOver('time');
      // Else the pass ends when it said that it would.
    }
    this.heard.changed();
  }

  private pause(): number {
    const wait = Math.min(AGAIN_MAX_MS, AGAIN_MS * 2 ** this.failures++);
    return wait * (0.6 + this.ports.random() * 0.8);
  }

  private schedule(name: string, ms: number, run: () => void): void {
    this.cancel(name);
    const cancel = this.ports.after(ms, () => {
      this.timers.delete(name);
      if (!this.stopped) run();
    });
    this.timers.set(name, cancel);
  }

  private cancel(name: string): void {
    this.timers.get(name)?.();
    this.timers.delete(name);
  }
}

/** How many are drawn; none while that is not fixed. */
const drawn = (line: Line) => line.drawn_count ?? 0;

/** All of these only rise. */
export function isOlder(line: Line, than: Line): boolean {
  return (
    (line.revision ?? 0) < (than.revision ?? 0) ||
    line.draw.no < than.draw.no ||
    line.called_through < than.called_through ||
    line.joined < than.joined
  );
}
