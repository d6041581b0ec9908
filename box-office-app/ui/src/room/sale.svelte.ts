// One customer at this terminal: their seats, as what they are sold, what they cost, how they pay. The hub decides;
// here is what it said last. The next customer is another buyer with another sale.

import type {
  Attempt,
  Best,
  CustomerHold,
  Order,
  PriceOverride,
  TicketChoice,
  TillTender,
} from '../../../../assets/protocol/index.ts';
import { allowed } from '../lib/approval.svelte.ts';
import { isCode } from '../lib/explain.ts';
import { till } from '../lib/till.svelte.ts';

const FOLLOW_EVERY_MS = 700;

export type Stage = 'choosing' | 'held' | 'card' | 'sold';

/** What is taken for this customer, until then. */
interface Taken {
  id: string;
  seats: number[];
  held_until: string;
  /** No payment starts after it. */
  pay_until: string;
}

export class Sale {
  hold = $state.raw<Taken | null>(null);
  /** It was put aside for them before: not sold, it goes on waiting. */
  aside = $state.raw<CustomerHold | null>(null);
  /** The hub's price for what is held. */
  order = $state.raw<Order | null>(null);
  /** Ticket type by seat, where it isn't the first one. */
  types = $state.raw<Record<number, string>>({});
  /** Prices that are not the list's, and why. */
  prices = $state.raw<PriceOverride[]>([]);
  stage = $state<Stage>('choosing');
  changeMinor = $state(0);
  /** A voucher paid. */
  voucher = $state(false);
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

  /** Sold, and the card is being charged: its tickets are valid once it is. */
  get charging(): boolean {
    const { order } = this;
    return this.stage === 'sold' && order?.state === 'confirmed' && order.tickets.some(isPending);
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

  /** Somebody has come for what was put aside. */
  async takeAside(aside: CustomerHold): Promise<void> {
    this.aside = aside;
    this.buyer = aside.buyer_id;
    this.hold = {
      id: aside.hold_id,
      seats: aside.seats,
      held_until: aside.until,
      pay_until: aside.until,
    };
    this.stage = 'held';
    this.changed();
    await this.quote();
  }

  async quote(hub = till.hub): Promise<void> {
    if (!this.hold || !this.buyer) return;
    const { hold_id, buyer_id, tickets, prices } = this.basket();
    this.order = (await hub.quote(hold_id, buyer_id, tickets, prices)).order;
    this.changed();
  }

  /** Another price for some seats, or the list's again; a supervisor's to say. */
  async setPrice(seats: number[], amountMinor: number, reason: string): Promise<void> {
    const before = this.prices;
    const others = before.filter(({ seat_no }) => !seats.includes(seat_no));
    const own = (seat_no: number) => ({ seat_no, amount_minor: amountMinor, reason });
    this.prices = [...others, ...seats.map(own)];
    try {
      await allowed('supervisor', `Another price for ${seats.length} seats: ${reason}`, (hub) =>
        this.quote(hub),
      );
    } catch (error) {
      this.prices = before;
      throw error;
    }
  }

  /** The list's prices again. */
  async listPrice(seats: number[]): Promise<void> {
    this.prices = this.prices.filter(({ seat_no }) => !seats.includes(seat_no));
    await this.quote();
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
    if (this.hold && this.buyer && !this.aside) await till.hub.release(this.hold.id, this.buyer);
    this.forget();
  }

  /** Nothing is held any more: the time is over, or it was given back. */
  forget(): void {
    this.hold = null;
    this.order = null;
    this.aside = null;
    this.types = {};
    this.prices = [];
    this.stage = 'choosing';
    this.changed();
  }

  async sell(tender: TillTender): Promise<void> {
    const basket = this.basket();
    const answer =
      tender.kind === 'comp'
        ? await allowed('supervisor', `Seats free of charge: ${tender.reason}`, (hub) =>
            hub.sell(basket, tender),
          )
        : await till.hub.sell(basket, tender);
    this.order = answer.order;
    this.changeMinor = answer.change_minor;
    this.voucher = tender.kind === 'voucher';
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
    if (this.closed || (this.stage !== 'card' && !this.charging)) return;
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
    if (this.stage !== 'card' && !this.charging) return;
    this.order = order;
    if (this.stage === 'sold') return;
    // Due: its seats are sold, and its card could not be charged, all of it between two looks.
    if (order.state === 'confirmed' || order.state === 'payment_due') return this.done();
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
    const { id, seats } = this.hold;
    const prices = this.prices.filter(({ seat_no }) => seats.includes(seat_no));
    return { hold_id: id, buyer_id: this.buyer, tickets: this.tickets(), prices };
  }

  private tickets(): TicketChoice[] {
    return (this.hold?.seats ?? [])
      .filter((seat) => this.types[seat])
      .map((seat) => ({ seat_no: seat, ticket_type: this.types[seat] }));
  }
}

const isPending = ({ state }: { state: string }) => state === 'pending';

/** The hold that this sale stands on is over. */
export const isOver = (error: unknown) =>
  isCode(error, 'hold_ended', 'hold_unknown', 'order_not_open');
