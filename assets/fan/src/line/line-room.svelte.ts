// The line before an event as this fan lives it: the shared state, one's own stand, and the way in
// (account, checked address, challenge). The rules are in stand.ts; here they meet the page.

import { browserPorts, LineFeed, ProblemError, type FeedState } from '../../../hub-client/index.ts';
import type { EventPage, Line, LineEntry, Pass, Preferences } from '../../../protocol/index.ts';
import { announce } from '../lib/announce.svelte.ts';
import { hub, session, time } from '../lib/hub.svelte.ts';
import { explain, isCode } from '../lib/problems.ts';
import { t } from '../lib/text.svelte.ts';
import { ring } from './alarm.ts';
import { solve, Unsolvable } from './challenge.ts';
import { Promised, type Told } from './estimate.ts';
import { Falling } from './falling.ts';
import { placeFromPublished } from './own-place.ts';
import { keepReceipt } from './receipts.ts';
import { Stand, type Stage, type TurnEnd } from './stand.ts';

/** What stands between the button and the entry. */
export type Need = 'account' | 'address' | null;

const SILENT_MAX_S = 28;
const SAY_AHEAD_EVERY_MS = 120_000;
const CHALLENGE_CODES = [
  'challenge_expired',
  'challenge_used',
  'challenge_invalid',
  'challenge_foreign',
];

export class LineRoom {
  line = $state.raw<Line>(null!);
  entry = $state.raw<LineEntry | null>(null);
  pass = $state.raw<Pass | null>(null);
  stage = $state<Stage>('soon');
  /** Whether it is known if we are in the line. */
  known = $state(false);
  coming = $state(false);
  ended = $state.raw<{ why: TurnEnd; at: number } | null>(null);
  feedState = $state<FeedState>('connecting');
  private silentS = $state(0);
  /** People before us as it is shown: only falls. */
  ahead = $state<number | null>(null);
  told = $state.raw<Told | null>(null);
  /** While the challenge is worked on: the chance that it is done by now. */
  solving = $state<number | null>(null);
  joining = $state(false);
  need = $state<Need>(null);
  failed = $state<string | null>(null);
  /** In the hall: with a pass, or with a hold that outlived it. Stays until somebody goes back. */
  inHall = $state(false);
  private readonly stand: Stand;
  private readonly feed: LineFeed;
  private readonly falling = new Falling();
  private readonly promised = new Promised();
  private readonly stop = new AbortController();
  private readonly tabs: BroadcastChannel | null;
  private cancelled: AbortController | null = null;
  private whose: unknown = undefined;
  private lookedForHold = false;
  private saidAhead: number | null = null;
  private saidAt = -Infinity;

  constructor(
    readonly page: EventPage,
    line: Line,
  ) {
    const ports = browserPorts();
    const visible = () => document.visibilityState === 'visible';
    this.stand = new Stand(
      this.id,
      {
        hub,
        now: () => hub.clock.now(),
        after: ports.after,
        random: ports.random,
        visible,
        placeFrom: (line, entry) => placeFromPublished(this.id, line, entry),
      },
      {
        changed: () => this.show(),
        called: () => this.isCalled(),
        inside: () => announce(t('line.inside_said'), true),
        turnOver: () => announce(t('line.turn_over_said'), true),
        signedOut: () => session.lost(),
        refused: (error) => (this.failed = explain(error)),
      },
    );
    this.stand.take(line);
    this.feed = new LineFeed(this.id, ports, {
      line: (line) => {
        const before = this.line;
        this.silentS = 0;
        this.stand.take(line);
        this.tellNews(before, this.line);
      },
      state: (state) => {
        this.feedState = state;
        this.silentS = 0;
      },
    });
    this.feed.start();
    // Counted, not measured: a phone that slept has not listened.
    const listening = setInterval(() => this.silentS++, 1_000);
    const unwake = ports.onWake((awake) => awake && this.stand.wake());
    this.stop.signal.addEventListener('abort', () => {
      clearInterval(listening);
      unwake();
    });
    this.tabs =
      'BroadcastChannel' in globalThis ? new BroadcastChannel(`fullhouse.line.${this.id}`) : null;
    // Another tab joined, left, or was moved: one account has one stand.
    if (this.tabs) this.tabs.onmessage = () => void this.stand.read();
  }

  close(): void {
    this.stop.abort();
    this.cancelled?.abort();
    this.feed.stop();
    this.stand.stop();
    this.tabs?.close();
  }

  /** Connected, and yet nothing comes: a line that is alive is told anew every ten seconds. */
  get late(): boolean {
    if (this.line.database_late) return true;
    const connected = this.feedState === 'live' || this.feedState === 'polling';
    return connected && this.line.state !== 'over' && this.silentS > SILENT_MAX_S;
  }

  get id(): number {
    return this.page.event.id;
  }

  /** Who is signed in; told whenever it may have changed. */
  follow(account: unknown): void {
    if (account === this.whose) return;
    const first = this.whose === undefined;
    this.whose = account;
    if (!first) this.stand.forget();
    this.lookedForHold = false;
    if (account) void this.stand.read().then(() => this.lookForHold());
    else {
      this.stand.known = true;
      this.show();
    }
  }

  // ---- joining ----

  /** One press; asks for what is missing first, and goes on when it is there. */
  async join(wishes: Preferences): Promise<void> {
    if (this.joining) return;
    this.failed = null;
    if (!session.account) return void (this.need = 'account');
    if (session.account.email_checked === false) return void (this.need = 'address');
    this.need = null;
    this.joining = true;
    try {
      let entry: LineEntry;
      try {
        entry = await this.knock(wishes);
      } catch (error) {
        // It took too long, or another tab used it: once more, with a new one.
        if (!isCode(error, ...CHALLENGE_CODES)) throw error;
        entry = await this.knock(wishes);
      }
      keepReceipt(this.id, {
        account: session.account.id,
        number: entry.number,
        ticket: entry.ticket,
        at: entry.joined_at ?? new Date(time.now).toISOString(),
        draw: { no: this.line.draw.no, commitment: this.line.draw.commitment },
      });
      this.stand.stands(entry);
      this.tabs?.postMessage('joined');
      announce(t('line.joined_said', { number: entry.number + 1 }));
    } catch (error) {
      this.notJoined(error);
    } finally {
      this.joining = false;
      this.solving = null;
      this.cancelled = null;
    }
  }

  private async knock(wishes: Preferences): Promise<LineEntry> {
    this.cancelled = new AbortController();
    this.solving = 0;
    const challenge = await hub.challenge(this.id);
    const solved = await solve(challenge, (share) => (this.solving = share), this.cancelled.signal);
    this.solving = 1;
    return hub.join(this.id, solved, wishes);
  }

  private notJoined(error: unknown): void {
    if (error instanceof DOMException && error.name === 'AbortError') return;
    if (isCode(error, 'not_signed_in')) {
      session.lost();
      this.need = 'account';
    } else if (isCode(error, 'address_unchecked')) this.need = 'address';
    else if (error instanceof Unsolvable) this.failed = t('line.unsolvable');
    else this.failed = explain(error);
    if (this.failed) announce(this.failed, true);
  }

  /** Not now: the work on the challenge ends. */
  cancelJoin(): void {
    this.cancelled?.abort();
    this.need = null;
  }

  // ---- in the line ----

  async wish(wishes: Preferences): Promise<boolean> {
    try {
      await this.stand.wish(wishes);
      return true;
    } catch (error) {
      this.failed = explain(error);
      return false;
    }
  }

  async leave(): Promise<void> {
    try {
      await this.stand.leave();
      this.tabs?.postMessage('left');
      announce(t('line.left_said'));
    } catch (error) {
      this.failed = explain(error);
    }
  }

  /** By a press: also from a page that was told that another device has the stand. */
  comeIn(): void {
    this.failed = null;
    void this.stand.comeIn();
  }

  /** The hub refused a hold for the pass's sake. True if it was that. */
  refusedPass(error: unknown): boolean {
    if (!(error instanceof ProblemError) || !error.code.startsWith('pass_')) return false;
    this.stand.refusedPass(error.code);
    return true;
  }

  /** Done in the hall before the time is over: the next one comes in. */
  async goOut(): Promise<void> {
    try {
      await this.stand.goOut();
      this.tabs?.postMessage('left');
      // Whoever still holds seats pays for them there.
    } catch (error) {
      this.failed = explain(error);
      announce(this.failed, true);
    }
  }

  /** Out of the hall, to the line: the turn is over. */
  goBack(): void {
    this.inHall = false;
    void this.stand.read();
  }

  // ---- inside ----

  private show(): void {
    const { stand } = this;
    if (!stand.line) return;
    this.line = stand.line;
    this.entry = stand.entry;
    this.pass = stand.pass;
    this.stage = stand.stage;
    this.known = stand.known;
    this.coming = stand.coming;
    this.ended = stand.ended;
    if (this.pass) this.inHall = true;
    this.ahead = stand.ahead === null ? null : this.falling.show(stand.name, stand.ahead);
    this.sayAhead();
    this.told =
      this.ahead === null
        ? null
        : this.promised.tell(
            stand.name,
            {
              ahead: this.ahead,
              calledLastMinute: this.line.called_last_minute,
              calledLast5Minutes: this.line.called_last_5_minutes,
              openMs: hub.clock.now() - Date.parse(this.line.opens_at),
            },
            hub.clock.now(),
          );
  }

  /** Whoever listens to the page hears the number now and then, not with every frame. */
  private sayAhead(): void {
    if (this.ahead === null || this.stage !== 'placed' || this.ahead === this.saidAhead) return;
    const now = hub.clock.now();
    if (now - this.saidAt < SAY_AHEAD_EVERY_MS) return;
    this.saidAt = now;
    this.saidAhead = this.ahead;
    announce(t('line.ahead_said', { count: this.ahead }));
  }

  private isCalled(): void {
    announce(t('line.called_said'), true);
    if (document.visibilityState !== 'visible') ring(t('line.called_title'), this.page.event.name);
  }

  private tellNews(before: Line, now: Line): void {
    if (before.state === now.state) return;
    if (now.state === 'paused') announce(t('line.paused_said'));
    if (now.state === 'sold_out') announce(t('line.sold_out_title'), true);
    if (now.state === 'joining') announce(t('line.join_title'));
  }

  /** The right to pay outlives the pass: whoever still holds seats belongs into the hall. */
  private async lookForHold(): Promise<void> {
    if (this.lookedForHold || this.pass || !session.account) return;
    const { state } = this.line;
    const waits = this.stage === 'waiting' || this.stage === 'placed';
    if (waits || state === 'soon' || state === 'joining' || state === 'closed') return;
    this.lookedForHold = true;
    try {
      if ((await hub.myHold(this.id)).hold) this.inHall = true;
    } catch {
      // Whoever has none sees the line.
    }
  }
}
