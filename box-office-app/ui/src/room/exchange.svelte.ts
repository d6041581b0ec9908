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
import { Due, type DueStage } from './due.svelte.ts';

/** `unpaid`: the new seats are held, and the card was declined, or the reader stopped. */
export type ExchangeStage = 'choosing' | DueStage;

export class Exchange {
  /** The new seats, each for the old one in its place. */
  to = $state.raw<readonly number[]>([]);
  /** What they would come to; null until the hub has said so. */
  offer = $state.raw<ExchangeOffer | null>(null);
  /** What is to be paid for them, or was; null while they are chosen. */
  due = $state.raw<Due | null>(null);
  /** Cash that goes back over the counter at once. */
  private atOnce = $state(0);

  constructor(
    readonly from: Order,
    readonly seats: number[],
  ) {}

  get stage(): ExchangeStage {
    return this.due?.stage ?? 'choosing';
  }

  /** The order that has the new seats, or waits to be paid for them. */
  get order(): Order | null {
    return this.due?.order ?? null;
  }

  get attempt(): Attempt | null {
    return this.due?.attempt ?? null;
  }

  get charging(): boolean {
    return this.due?.charging ?? false;
  }

  /** Cash that goes back over the counter. */
  get backInCash(): number {
    return this.atOnce + (this.due?.changeMinor ?? 0);
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
    this.atOnce = answer.change_minor + back.reduce((sum, part) => sum + part.amount_minor, 0);
    this.due = new Due(answer.order);
  }

  /** The customer holds a card to the reader. */
  async byCard(reason: string, reader: string): Promise<void> {
    this.due = new Due((await this.ask(reason, { reader })).order);
  }

  /** The new seats go back, the old ones stay. */
  async leave(): Promise<void> {
    if (this.stage === 'unpaid' && this.order) await till.hub.leaveExchange(this.order.id);
    this.close();
  }

  close(): void {
    this.due?.close();
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
}
