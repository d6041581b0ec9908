// One event's hall as it is now, for whichever screen shows it: the board that the feed keeps, and its seats' names.

import { Feed, type FeedState } from '../../../../assets/hub-client/index.ts';
import type { EventPage, Geometry, PriceLevel } from '../../../../assets/protocol/index.ts';
import { Board, readPlan, type SeatMap } from '../../../../assets/seat-map/index.ts';
import { SaleWatch } from '../../../../assets/fan/src/room/sale-watch.ts';
import { Seats } from '../../../../assets/fan/src/room/seats.ts';
import { hostPorts } from '../lib/feed-ports.ts';
import { till } from '../lib/till.svelte.ts';

const TICK_MS = 250;

export abstract class LiveRoom {
  readonly board: Board;
  readonly seats: Seats;
  feedState = $state<FeedState>('connecting');
  /** Grows when seats changed, a few times a second at most: read it to follow the board. */
  tick = $state(0);
  /** Chosen on the map; promises nothing. */
  picked = $state.raw<number[]>([]);
  map: SeatMap | null = null;
  private readonly feed: Feed;
  private watch: SaleWatch | undefined;
  private tickTimer: ReturnType<typeof setTimeout> | undefined;

  protected constructor(
    readonly page: EventPage,
    geometry: Geometry,
  ) {
    this.board = new Board(readPlan(coloured(geometry, page)));
    this.seats = new Seats(this.board.plan, page);
    this.board.rank = this.seats.rank();
    this.feed = new Feed(this.id, hostPorts(), {
      whole: (statuses) => this.whole(statuses),
      changed: (delta) => this.changed(delta.seats, delta.statuses, delta.committedAt),
      state: (state) => (this.feedState = state),
    });
    this.feed.start();
  }

  /** What seats are is asked from now on: once the whole room is there, with what its customer holds. */
  protected follow(): void {
    this.watch = new SaleWatch({
      atStake: () => this.picked.length > 0 || this.mine.length > 0,
      ask: () => this.readTraits(),
    });
  }

  static async read(event: number): Promise<[EventPage, Geometry]> {
    const page = await till.hub.event(event);
    return [page, await till.hub.geometry(page.plan.geometry)];
  }

  /** What seats are for this performance may be said while the hall is open. False without an answer: they stay as they
      were. */
  async readTraits(): Promise<boolean> {
    const page = await till.hub.event(this.id).catch(() => null);
    if (page && this.seats.setTraits(page.seat_traits)) {
      this.map?.repaint();
      this.tick++;
    }
    return page !== null;
  }

  /** What is to be known of a seat, besides its name. Followed by whoever reads it. */
  traits(seat: number): string[] {
    void this.tick;
    return this.seats.traits(seat);
  }

  close(): void {
    this.feed.stop();
    this.watch?.stop();
    clearTimeout(this.tickTimer);
  }

  get id(): number {
    return this.page.event.id;
  }

  get currency(): string {
    return this.page.event.currency;
  }

  get levels(): PriceLevel[] {
    const price = (level: PriceLevel) => level.prices[0]?.amount_minor ?? 0;
    return [...this.page.price_levels].sort((a, b) => price(b) - price(a));
  }

  /** What is held for this customer. */
  abstract get mine(): readonly number[];
  /** A seat was tapped on the map. */
  abstract toggle(seat: number): void;
  /** Seats changed: what was picked may be gone. */
  protected abstract look(): void;

  pick(seats: number[]): void {
    this.picked = seats;
    this.redraw();
  }

  protected redraw(): void {
    if (this.map) this.map.setOwn(this.picked, this.mine, []);
    else this.board.setOwn(this.picked, this.mine, []);
    this.bump();
  }

  private whole(statuses: Uint8Array): void {
    if (this.map) this.map.setStatuses(statuses);
    else this.board.replace(statuses);
    this.look();
    this.bump();
  }

  private changed(seats: Uint32Array, statuses: Uint8Array, madeAt: number): void {
    if (this.map) this.map.apply(seats, statuses, madeAt);
    else for (let i = 0; i < seats.length; i++) this.board.set(seats[i], statuses[i]);
    this.look();
    this.bump();
  }

  private bump(): void {
    this.tickTimer ??= setTimeout(() => {
      this.tickTimer = undefined;
      this.tick++;
    }, TICK_MS);
  }
}

/** The event's colours win over those that the plan was drawn with. */
function coloured(geometry: Geometry, page: EventPage): Geometry {
  const colors = new Map(page.price_levels.map((level) => [level.category, level.color]));
  const categories = geometry.categories.map(({ name, color }) => ({
    name,
    color: colors.get(name) ?? color,
  }));
  return { ...geometry, categories };
}
