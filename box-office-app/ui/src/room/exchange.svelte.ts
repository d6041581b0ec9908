// Other seats for seats of an order: what it comes to, how it is paid, and what came of it. The hub decides; here is
// what it said last. Until the new seats are paid, the old ones are the customer's.

import type {
  Attempt,
  ExchangeOffer,
  ExchangeWish,
  Order,
} from '../../../../assets/protocol/index.ts';
import { allowed } from '../lib/approval.svelte.ts';
import { till } from '../lib/till.svelte.ts';

const FOLLOW_EVERY_MS = 700;
const NOT_PAID = ['declined', 'not_charged', 'failed'];

/** `unpaid`: the new seats are held, and the card was declined, or the reader stopped. */
export type ExchangeStage = 'choosing' | 'card' | 'unpaid' | 'done';

export class Exchange {
  stage = $state<ExchangeStage>('choosing');
  /** The new seats, each for the old one in its place. */
  to = $state.raw<readonly number[]>([]);
  /** What they would come to; null until the hub has said so. */
  offer = $state.raw<ExchangeOffer | null>(null);
  /** The order that has the new seats, or waits to be paid for them. */
  order = $state.raw<Order | null>(null);
  /** Cash that goes back over the counter. */
  backInCash = $state(0);
  private followed: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(
    readonly from: Order,
    readonly seats: number[],
  ) {}

  get attempt(): Attempt | null {
    return this.stage === 'choosing' ? null : (this.order?.attempt ?? null);
  }

  /** The new seats are theirs, and the card is being charged: the tickets are valid once it is. */
  get charging(): boolean {
    const { order } = this;
    const pending = order?.tickets.some(({ state }) => state === 'pending') ?? false;
    return this.stage === 'done' && order?.state === 'confirmed' && pending;
  }

  /** What these seats would come to. An answer for others that were picked before is dropped. */
  async look(picked: readonly number[]): Promise<void> {
    this.to = picked;
    this.offer = null;
    if (picked.length !== this.seats.length) return;
    const offer = await till.hub.exchangeOffer(this.from.id, this.pairs());
    if (this.to === picked) this.offer = offer;
  }

  /** At once: nothing more is paid, or cash. */
  async settle(reason: string, received?: number): Promise<void> {
    const { offer } = this;
    const answer = await this.ask(reason, { received_minor: received });
    const back = offer?.back.filter(({ kind }) => kind === 'cash') ?? [];
    this.backInCash = answer.change_minor + back.reduce((sum, part) => sum + part.amount_minor, 0);
    this.order = answer.order;
    this.stage = 'done';
  }

  /** The customer holds a card to the reader. */
  async byCard(reason: string, reader: string): Promise<void> {
    const { order } = await this.ask(reason, { reader });
    this.atReader(order);
  }

  /** After one that was declined. */
  async anotherCard(reader: string): Promise<void> {
    this.atReader((await till.hub.payDueByCard(this.order!.id, reader)).order);
  }

  /** After a card that was declined. */
  async cash(received: number): Promise<void> {
    const { order, change_minor } = await till.hub.payDue(this.order!.id, received);
    this.backInCash = change_minor;
    this.order = order;
    this.stage = 'done';
  }

  /** Stops the reader; a card that was faster has paid. */
  async stop(): Promise<void> {
    if (this.order) this.learn((await till.hub.stopReader(this.order.id)).order);
  }

  /** The new seats go back, the old ones stay. */
  async leave(): Promise<void> {
    if (this.stage === 'unpaid' && this.order) await till.hub.leaveExchange(this.order.id);
    this.close();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.followed);
  }

  private ask(reason: string, how: Partial<ExchangeWish>) {
    const { from, seats } = this;
    const wish = { seats: this.pairs(), ...how, reason };
    const count = seats.length === 1 ? '1 seat' : `${seats.length} seats`;
    const what = `${count} of order ${from.code} exchanged: ${reason}`;
    return allowed('supervisor', what, (hub) => hub.exchange(from.id, wish));
  }

  private pairs(): ExchangeWish['seats'] {
    return this.seats.map((from, index) => ({ from, to: this.to[index] }));
  }

  private atReader(order: Order): void {
    this.order = order;
    this.stage = 'card';
    this.follow();
  }

  private follow(): void {
    clearTimeout(this.followed);
    if (this.closed || (this.stage !== 'card' && !this.charging)) return;
    this.followed = setTimeout(async () => {
      try {
        if (this.order) this.learn((await till.hub.order(this.order.id)).order);
      } catch {
        // No answer: nobody knows yet. It is asked again, and the screen says so meanwhile.
      }
      this.follow();
    }, FOLLOW_EVERY_MS);
  }

  private learn(order: Order): void {
    if (this.stage !== 'card' && !this.charging) return;
    this.order = order;
    if (this.stage === 'done') return;
    if (order.state === 'confirmed' || order.state === 'payment_due') this.stage = 'done';
    else if (order.state === 'cancelled' || NOT_PAID.includes(order.attempt?.phase ?? ''))
      this.stage = 'unpaid';
  }
}
