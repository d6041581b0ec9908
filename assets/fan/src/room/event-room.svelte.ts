// One event as this fan lives it: its seats, what they picked, what they hold.
//
// - Picking is local and promises nothing; one atomic request takes all picked seats, or says which
//   were lost. There is no "check first".
// - The hold is the hub's: it is read again whenever it may have changed elsewhere (another tab,
//   Back, another device), so one's own hold never stands in one's way.

import { browserPorts, Feed, ProblemError, type FeedState } from '../../../hub-client/index.ts';
import {
  Status,
  type Best,
  type EndedHold,
  type EventPage,
  type Hold,
  type HoldRequest,
  type Limit,
  type PriceLevel,
  type RefundTerms,
} from '../../../protocol/index.ts';
import { Board, Look, readPlan, type SeatMap } from '../../../seat-map/index.ts';
import { announce, hush } from '../lib/announce.svelte.ts';
import { hub, session } from '../lib/hub.svelte.ts';
import { explain, isCode } from '../lib/problems.ts';
import { feesOf } from '../lib/sale.ts';
import { t, text } from '../lib/text.svelte.ts';
import { HoldClock } from './hold-clock.ts';
import { forget, keepHeld, otherTabs, recall, remember } from './memory.ts';
import { SaleWatch } from './sale-watch.ts';
import { Seats } from './seats.ts';

export type Notice =
  | { kind: 'text'; text: string }
  | { kind: 'lost'; lost: number[]; wanted: number[]; offers: number[][] }
  | { kind: 'partly'; missing: number[] }
  | { kind: 'give_back'; seat: number }
  /** These would be left alone; the map marks them. */
  | { kind: 'single'; seats: number[] }
  | { kind: 'bought'; order: string };

const TICK_MS = 250;
/** The room's frames tell at once that own seats changed; this is for what no frame tells. */
const HOLD_EVERY_MS = 8_000;

/** Where there is a line before the hall: what lets its fan take seats. */
export interface Gate {
  readonly pass: { pass: string } | null;
  /** True if it was the pass that was refused. */
  refusedPass(error: unknown): boolean;
}

export class EventRoom {
  readonly board: Board;
  readonly seats: Seats;
  /** Its sale may open, pause and end while the page is open. */
  page: EventPage = $state.raw(null!);
  hold = $state.raw<Hold | null>(null);
  limit = $state.raw<Limit | null>(null);
  picked = $state.raw<number[]>([]);
  bought = $state.raw<number[]>([]);
  /** The orders that they were bought in. */
  boughtIn = $state.raw<string[]>([]);
  /** Ticket type by seat, where it isn't the first one. */
  types = $state<Record<number, string>>({});
  feedState = $state<FeedState>('connecting');
  /** Grows when seats changed, a few times a second at most: read it to follow the board. */
  tick = $state(0);
  busy = $state(false);
  notice = $state.raw<Notice | null>(null);
  /** Which has been told already. */
  private lostToCallOff = false;
  /** The level that is looked for, or null. */
  filter = $state<number | null>(null);
  /** What waits until somebody has signed in. */
  waiting = $state.raw<(() => Promise<void>) | null>(null);
  map: SeatMap | null = null;
  /** Which order each bought seat is in. */
  private readonly boughtWith = new Map<number, string>();
  private readonly feed: Feed;
  private readonly clock: HoldClock;
  private readonly tabs: { tell(): void; close(): void };
  private readonly stop = new AbortController();
  private tickTimer: ReturnType<typeof setTimeout> | undefined;
  private rereadTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly watch: ReturnType<typeof setInterval>;
  private readonly sale: SaleWatch;
  /** Counts what this window asked of the hub: an answer from before the last one is old. */
  private verbs = 0;

  /** `lined`: the house has put a line before the event since the page was read, and we are not in it. */
  static async open(page: EventPage, gate: Gate | null, lined: () => void): Promise<EventRoom> {
    const geometry = await hub.geometry(page.plan.geometry);
    return new EventRoom(page, new Board(readPlan(coloured(geometry, page))), gate, lined);
  }

  private constructor(
    page: EventPage,
    board: Board,
    private readonly gate: Gate | null,
    private readonly lined: () => void,
  ) {
    this.page = page;
    this.board = board;
    this.seats = new Seats(board.plan, page);
    this.board.rank = this.seats.rank();
    this.picked = this.off ? [] : recall(this.id).filter((seat) => this.seats.level(seat));
    this.clock = new HoldClock({
      minutesLeft: (minutes) =>
        announce(
          t(this.free ? 'announce.minutes_left_free' : 'announce.minutes_left', {
            count: minutes,
          }),
          minutes <= 1,
        ),
      payTimeOver: () =>
        announce(t(this.free ? 'hold.time_over_free' : 'announce.pay_time_over'), true),
      ended: () => void this.readHold(),
    });
    this.tabs = otherTabs(this.id, () => void this.readHold());
    this.feed = new Feed(this.id, browserPorts(), {
      whole: (statuses) => this.whole(statuses),
      changed: (delta) => this.changed(delta.seats, delta.statuses, delta.committedAt),
      state: (state) => (this.feedState = state),
    });
    this.feed.start();
    const visible = () => document.visibilityState === 'visible';
    const { signal } = this.stop;
    const look = () => {
      if (!visible()) return;
      void this.readHold();
      void this.readSale();
    };
    document.addEventListener('visibilitychange', look, { signal });
    addEventListener('focus', look, { signal });
    this.watch = setInterval(() => this.hold && visible() && void this.readHold(), HOLD_EVERY_MS);
    this.sale = new SaleWatch({
      atStake: () => this.picked.length > 0 || this.hold !== null,
      ask: () => this.readSale(),
    });
    addEventListener('pageshow', (event) => event.persisted && void this.readHold(), {
      signal: this.stop.signal,
    });
  }

  close(): void {
    hush();
    this.stop.abort();
    this.feed.stop();
    this.clock.stop();
    this.tabs.close();
    clearTimeout(this.tickTimer);
    clearTimeout(this.rereadTimer);
    clearInterval(this.watch);
    this.sale.stop();
  }

  get id(): number {
    return this.page.event.id;
  }

  get mine(): readonly number[] {
    return this.hold?.seats ?? [];
  }

  /** How many more this fan may pick. */
  get left(): number {
    const most = this.page.event.seat_limit;
    const left = this.limit?.left ?? most - this.mine.length;
    return Math.max(0, left - this.picked.length);
  }

  /** Price levels as they are offered everywhere on the page: the dearest first. */
  get levels(): PriceLevel[] {
    const price = (level: PriceLevel) => level.prices[0]?.amount_minor ?? 0;
    return [...this.page.price_levels].sort((a, b) => price(b) - price(a));
  }

  /** The fees of an order of so many seats. */
  feesOf(seats: number): number {
    return feesOf(this.page.fees, seats);
  }

  /** What a buyer may give back; nothing where the house says nothing of it. */
  get refundTerms(): RefundTerms | null {
    return this.page.event.refund_terms ?? null;
  }

  /** What the held seats come to, fees included; the hub prices them again. */
  get total(): number {
    return this.mine.reduce(
      (sum, seat) => sum + (this.seats.price(seat, this.typeOf(seat)) ?? 0),
      this.feesOf(this.mine.length),
    );
  }

  /** Nothing is paid for what is held: nobody should read of payments. */
  get free(): boolean {
    return this.hold !== null && this.total === 0;
  }

  /** Free seats of a price level, in the whole house. */
  freeOf(level: number): number {
    const { categories, sections } = this.board.plan;
    let free = 0;
    categories.forEach((_, category) => {
      if (this.seats.levelOf(category)?.level !== level) return;
      for (let section = 0; section < sections.length; section++) {
        free += this.board.freeOf(section, category);
      }
    });
    return free;
  }

  get epoch(): number {
    return this.feed.room.epoch;
  }

  get frame(): number {
    return this.feed.room.frame;
  }

  // ---- picking ----

  /** One tap on a seat, on the map or in the list. */
  toggle(seat: number): void {
    const look = this.board.look(seat);
    if (look === Look.picked) {
      this.pick(this.picked.filter((one) => one !== seat));
      return announce(t('announce.unpicked', { seat: this.seats.name(seat) }));
    }
    // One slip of a finger must not give away what others are waiting for.
    if (look === Look.mine) return this.ask({ kind: 'give_back', seat });
    if (look !== Look.available)
      return announce(`${this.seats.name(seat)}: ${t(LOOK_TEXTS[look])}`);
    if (!this.seats.level(seat)) return this.say(t('seat.not_for_sale'));
    if (this.hold?.frozen) return this.say(t('problem.hold_frozen'));
    if (this.left <= 0) {
      const { held = 0, bought = 0, seat_limit = this.page.event.seat_limit } = this.limit ?? {};
      return this.say(t('problem.limit_reached', { limit: seat_limit, held, bought, left: 0 }));
    }
    this.notice = null;
    this.pick([...this.picked, seat]);
    announce(t('announce.picked', { seat: this.seats.name(seat) }));
  }

  pick(seats: number[]): void {
    this.picked = seats;
    // Other seats are meant now, so that others are left alone.
    if (this.notice?.kind === 'single') this.notice = null;
    this.sale.hurry();
    if (seats.length > 0) remember(this.id, seats);
    else forget(this.id);
    this.redrawOwn();
  }

  // ---- holding ----

  async holdPicked(): Promise<void> {
    if (this.picked.length > 0)
      await this.take({ seats: [...this.picked].sort((a, b) => a - b) }, this.picked);
  }

  async holdBest(best: Best): Promise<void> {
    this.pick([]);
    await this.take({ best }, []);
  }

  /** One of the alternatives: what is left of the wish, and the offered seats for the lost ones. */
  async holdOffer(offer: number[]): Promise<void> {
    if (this.notice?.kind !== 'lost') return;
    const { wanted, lost } = this.notice;
    const kept = wanted.filter((seat) => !lost.includes(seat));
    const seats = offer.length + kept.length <= wanted.length ? [...kept, ...offer] : offer;
    this.pick(seats);
    await this.holdPicked();
  }

  private take(request: HoldRequest, wanted: readonly number[]): Promise<void> {
    return this.doing(
      async () => {
        try {
          const answer = await hub.hold(this.id, request, this.gate?.pass?.pass);
          this.notice = answer.not_held?.length
            ? { kind: 'partly', missing: answer.not_held }
            : null;
          this.pick([]);
          this.holds(answer.hold);
          announce(t('announce.held', { count: answer.hold.seats.length }));
          this.map?.showSeats(answer.hold.seats);
          this.tabs.tell();
        } catch (error) {
          if (isCode(error, 'seats_unavailable'))
            return this.lost((error as ProblemError).problem, wanted);
          this.gate?.refusedPass(error);
          throw error;
        }
      },
      () => this.take(request, wanted),
    );
  }

  private lost(problem: { lost?: number[]; offers?: number[][] }, wanted: readonly number[]): void {
    const lost = problem.lost ?? [];
    this.pick(this.picked.filter((seat) => !lost.includes(seat)));
    this.notice = { kind: 'lost', lost, wanted: [...wanted], offers: problem.offers ?? [] };
    announce(t('announce.lost', { seats: this.seats.nameAll(lost).join('; ') }), true);
    if (lost.length > 0) this.map?.showSeats([...lost, ...(problem.offers?.[0] ?? [])]);
  }

  release(seats: number[]): Promise<void> {
    const hold = this.hold;
    if (!hold) return Promise.resolve();
    const all = seats.length >= hold.seats.length;
    return this.doing(async () => {
      const answer = all ? await hub.releaseAll(hold.id) : await hub.release(hold.id, seats);
      this.notice = null;
      this.holds(answer.hold);
      announce(t('announce.released', { count: seats.length }));
      this.tabs.tell();
    });
  }

  /** Turns the hold into an order; the hub prices it. */
  async checkout(): Promise<string | null> {
    const hold = this.hold;
    let order: string | null = null;
    if (!hold) return null;
    await this.doing(async () => {
      await session.speak(text.language);
      const tickets = hold.seats.map((seat) => ({ seat_no: seat, ticket_type: this.typeOf(seat) }));
      order = (await hub.checkout(hold.id, tickets)).order.id;
    });
    return order;
  }

  typeOf(seat: number): string {
    return this.types[seat] ?? this.seats.level(seat)?.prices[0]?.ticket_type ?? '';
  }

  /** Asks the hub what we hold, here or in another tab or on another device. */
  async readHold(): Promise<void> {
    if (!session.account) return this.holds(null);
    const asked = this.verbs;
    try {
      const { hold, limit, ended } = await hub.myHold(this.id);
      // Something was asked for meanwhile, and its answer counts; then look again.
      if (this.busy || asked !== this.verbs) return this.rereadSoon();
      const before = this.hold;
      this.limit = limit;
      this.holds(hold, limit);
      if (before) this.tellLoss(before, hold, ended);
    } catch (error) {
      // Not signed in: then there is nothing of ours. No answer: keep what we knew.
      if (isCode(error, 'not_signed_in')) this.holds(null);
    }
  }

  /** Seats of ours are gone without this window's doing: says why, in a sentence. */
  private tellLoss(before: Hold, now: Hold | null, ended: EndedHold | null | undefined): void {
    const gone = before.seats.filter((seat) => !now?.seats.includes(seat));
    if (gone.length === 0) return;
    void Promise.all([this.readSale(), this.readBought()]);
    const why = ended?.hold_id === before.id ? ended.why : 'released';
    if (why === 'bought' && ended?.order_id) {
      this.notice = { kind: 'bought', order: ended.order_id };
      announce(t('notice.bought'), true);
    } else if (why === 'called_off') {
      this.lostToCallOff = true;
      this.sayLoss(t('notice.called_off'));
    } else if (why === 'expired') this.sayLoss(t('notice.hold_ended'));
    else this.sayLoss(t('notice.given_back_elsewhere', { count: gone.length }));
  }

  private sayLoss(message: string): void {
    this.notice = { kind: 'text', text: message };
    announce(message, true);
  }

  /** False if there was no answer; what we knew stays, and the hub decides anyway. */
  async readSale(): Promise<boolean> {
    const before = this.off;
    try {
      this.page = await hub.event(this.id);
    } catch {
      return false;
    }
    if (this.seats.setTraits(this.page.seat_traits)) this.map?.repaint();
    if (this.off && !before) this.calledOff();
    this.lookForLine();
    return true;
  }

  /** Whoever holds seats already pays for them here; everybody else has to go through the line. */
  private lookForLine(): void {
    if (this.page.event.has_line && !this.gate && !this.hold && !this.busy) this.lined();
  }

  /** Whether the event was called off. */
  get off(): boolean {
    return this.page.event.sale === 'cancelled';
  }

  /** Before the eyes of whoever was choosing. What was held or bought has its own words. */
  private calledOff(): void {
    const picked = this.picked.length > 0;
    if (picked) this.pick([]);
    if (this.hold) void this.readHold();
    else if (picked) this.sayLoss(t('notice.called_off_picked'));
    else if (!this.lostToCallOff) announce(t('notice.called_off_picked'), true);
    if (this.bought.length > 0) void this.readBought();
  }

  async readBought(): Promise<void> {
    if (!session.account) return;
    try {
      const { orders } = await hub.orders();
      this.boughtWith.clear();
      for (const order of orders) {
        if (order.event_id !== this.id || order.state !== 'confirmed') continue;
        // A ticket that is void was exchanged or given back.
        for (const ticket of order.tickets)
          if (ticket.state !== 'void') this.boughtWith.set(ticket.seat_no, order.id);
      }
      this.bought = [...this.boughtWith.keys()];
      this.boughtIn = [...new Set(this.boughtWith.values())];
      this.redrawOwn();
    } catch {
      // Marks on the map only; the orders page says more.
    }
  }

  // ---- inside ----

  private holds(hold: Hold | null, limit?: Limit): void {
    this.hold = hold;
    this.clock.follow(hold);
    if (hold || session.account) keepHeld(this.id, hold, this.page.event);
    if (!limit && this.limit) {
      const held = hold?.seats.length ?? 0;
      this.limit = { ...this.limit, held, left: this.limit.seat_limit - this.limit.bought - held };
    }
    if (hold) this.pick(this.picked.filter((seat) => !hold.seats.includes(seat)));
    else this.redrawOwn();
  }

  private async doing(verb: () => Promise<void>, again?: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.verbs++;
    try {
      await verb();
    } catch (error) {
      if (isCode(error, 'not_signed_in')) {
        session.lost();
        this.waiting = again ?? (async () => this.readHold());
        return;
      }
      const singles = error instanceof ProblemError ? error.problem.singles : undefined;
      if (isCode(error, 'leaves_single_seat') && singles?.length) this.single(singles);
      else this.say(explain(error));
      const { code } = error instanceof ProblemError ? error : { code: '' };
      if (code.startsWith('sale_') || code === 'event_cancelled' || code === 'pass_missing')
        void this.readSale();
      // Whatever was refused, what we hold may be other than we thought.
      void this.readHold();
    } finally {
      this.busy = false;
    }
  }

  private ask(question: Notice & { kind: 'give_back' }): void {
    this.notice = question;
    announce(t('notice.give_back', { seat: this.seats.name(question.seat) }));
  }

  private single(seats: number[]): void {
    this.notice = { kind: 'single', seats };
    announce(t('notice.single', { seats: this.seats.nameAll(seats).join('; ') }), true);
    this.map?.showSeats([...seats, ...this.picked]);
  }

  private say(message: string): void {
    this.notice = { kind: 'text', text: message };
    announce(message);
  }

  private whole(statuses: Uint8Array): void {
    if (this.map) this.map.setStatuses(statuses);
    else this.board.replace(statuses);
    this.checkPicked();
    this.bump();
  }

  private changed(seats: Uint32Array, statuses: Uint8Array, madeAt: number): void {
    if (this.map) this.map.apply(seats, statuses, madeAt);
    else for (let i = 0; i < seats.length; i++) this.board.set(seats[i], statuses[i]);
    if (this.picked.length > 0) this.checkPicked();
    // Ours turned free or sold without our doing: another tab or device, or time ran out.
    const mine = this.mine;
    if (
      mine.length > 0 &&
      seats.some((seat, i) => statuses[i] !== Status.held && mine.includes(seat))
    ) {
      this.rereadSoon();
    }
    this.bump();
  }

  /** Picked seats that somebody else took: say so now, not when the button is pressed. */
  private checkPicked(): void {
    if (this.busy) return;
    const gone = this.picked.filter((seat) => this.board.status[seat] !== Status.available);
    if (gone.length === 0) return;
    this.pick(this.picked.filter((seat) => !gone.includes(seat)));
    const message = t('announce.taken', { seats: this.seats.nameAll(gone).join('; ') });
    this.notice = { kind: 'text', text: message };
    announce(message, true);
  }

  private rereadSoon(): void {
    this.rereadTimer ??= setTimeout(() => {
      this.rereadTimer = undefined;
      void this.readHold();
    }, 700);
  }

  private redrawOwn(): void {
    if (this.map) this.map.setOwn(this.picked, this.mine, this.bought);
    else this.board.setOwn(this.picked, this.mine, this.bought);
    this.bump();
  }

  private bump(): void {
    this.tickTimer ??= setTimeout(() => {
      this.tickTimer = undefined;
      this.tick++;
    }, TICK_MS);
  }
}

export const LOOK_TEXTS = [
  'status.available',
  'status.held',
  'status.sold',
  'status.blocked',
  'status.picked',
  'status.mine',
  'status.bought',
] as const;

/** The event's colours win over those that the plan was drawn with. */
function coloured<G extends { categories: { name: string; color: string }[] }>(
  geometry: G,
  page: EventPage,
): G {
  const colors = new Map(page.price_levels.map((level) => [level.category, level.color]));
  const categories = geometry.categories.map(({ name, color }) => ({
    name,
    color: colors.get(name) ?? color,
  }));
  return { ...geometry, categories };
}
