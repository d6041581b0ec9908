// One customer at this terminal: their seats, as what they are sold, what they cost, how they pay. The hub decides;
// here is what it said last. The next customer is another buyer with another sale.

import type {
  Attempt,
  Best,
  Hold,
  Order,
  TicketChoice,
  TillTender,
} from '../../../../assets/protocol/index.ts';
import { isCode } from '../lib/explain.ts';
import { till } from '../lib/till.svelte.ts';

const FOLLOW_EVERY_MS = 700;

export type Stage = 'choosing' | 'held' | 'card' | 'sold';

export class Sale {
  hold = $state.raw<Hold | null>(null);
  /** The hub's price for what is held. */
  order = $state.raw<Order | null>(null);
  /** Ticket type by seat, where it isn't the first one. */
  types = $state.raw<Record<number, string>>({});
  stage = $state<Stage>('choosing');
  changeMinor = $state(0);
  /** In cash. */
  receivedMinor = $state<number | null>(null);
  /** Beside a card, which pays the rest: in the clerk's hand until the card has paid. */
  cashMinor = $state(0);
  /** Seats that the hub held fewer of than were asked for. */
  missing = $state.raw<number[]>([]);
  /** Seats are asked for: what the map says of them before the answer may be this very hold. */
  taking = false;
  private buyer: string | undefined;
  private followed: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(
    readonly event: number,
    /** The hold or the order changed: draw it, show it. */
    private readonly changed: () => void,
  ) {}

  get seats(): readonly number[] {
    return this.stage === 'sold' ? [] : (this.hold?.seats ?? []);
  }

  get attempt(): Attempt | null {
    return this.order?.attempt ?? null;
  }

  /** Takes seats for this customer: they are theirs alone, until the hold ends. */
  async take(wish: { seats: number[] } | { best: Best }, replace = false): Promise<void> {
    this.taking = true;
    const asked = { event_id: this.event, buyer_id: this.buyer, ...wish, replace };
    const answer = await till.hub.hold(asked).finally(() => (this.taking = false));
    this.buyer = answer.buyer_id;
    this.hold = answer.hold;
    this.missing = answer.not_held ?? [];
    this.stage = 'held';
    this.changed();
    await this.quote();
  }

  async quote(): Promise<void> {
    if (!this.hold || !this.buyer) return;
    this.order = (await till.hub.quote(this.hold.id, this.buyer, this.tickets())).order;
    this.changed();
  }

  async setType(seat: number, type: string): Promise<void> {
    const before = this.types;
    this.types = { ...this.types, [seat]: type };
    try {
      await this.quote();
    } catch (error) {
      this.types = before;
      throw error;
    }
  }

  async release(): Promise<void> {
    if (this.hold && this.buyer) await till.hub.release(this.hold.id, this.buyer);
    this.forget();
  }

  /** Nothing is held any more: the time is over, or it was given back. */
  forget(): void {
    this.hold = null;
    this.order = null;
    this.types = {};
    this.stage = 'choosing';
    this.changed();
  }

  async sell(tender: TillTender): Promise<void> {
    const answer = await till.hub.sell(this.basket(), tender);
    this.order = answer.order;
    this.changeMinor = answer.change_minor;
    this.receivedMinor = tender.kind === 'cash' ? tender.received_minor : null;
    this.done();
  }

  /** The customer holds a card to the reader, perhaps with cash beside it. */
  async sellByCard(reader: string, cashMinor = 0): Promise<void> {
    this.order = (await till.hub.sellByCard(this.basket(), reader, cashMinor)).order;
    this.cashMinor = cashMinor;
    this.stage = 'card';
    this.changed();
    this.follow();
  }

  /** Stops the reader; a card that was faster has paid. */
  async stopCard(): Promise<void> {
    if (this.order) this.learn(await till.hub.stopCard(this.order.id, true));
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.followed);
  }

  private follow(): void {
    clearTimeout(this.followed);
    if (this.closed || this.stage !== 'card') return;
    this.followed = setTimeout(async () => {
      try {
        if (this.order) this.learn(await till.hub.cardSale(this.order.id));
      } catch {
        // No answer: nobody knows yet. It is asked again, and the screen says so meanwhile.
      }
      this.follow();
    }, FOLLOW_EVERY_MS);
  }

  private learn({ order }: { order: Order }): void {
    if (this.stage !== 'card') return;
    this.order = order;
    if (order.state === 'confirmed') return this.done();
    const phase = order.attempt?.phase;
    if (order.state === 'cancelled') this.forget();
    // Another card, or cash: the seats are still held.
    else if (phase === 'declined' || phase === 'not_charged' || phase === 'failed')
      this.stage = 'held';
    this.changed();
  }

  private done(): void {
    this.stage = 'sold';
    this.hold = null;
    this.changed();
  }

  private basket() {
    if (!this.hold || !this.buyer) throw new Error('nothing is held');
    return { hold_id: this.hold.id, buyer_id: this.buyer, tickets: this.tickets() };
  }

  private tickets(): TicketChoice[] {
    return (this.hold?.seats ?? [])
      .filter((seat) => this.types[seat])
      .map((seat) => ({ seat_no: seat, ticket_type: this.types[seat] }));
  }
}

/** The hold that this sale stands on is over. */
export const isOver = (error: unknown) =>
  isCode(error, 'hold_ended', 'hold_unknown', 'order_not_open');
