// Money that is due of an order: its card could not be charged after its seats were sold, or an exchange cost more. It is
// paid in cash or at the reader, here or at another counter. The hub decides; here is what it said last.

import type { Attempt, Order } from '../../../../assets/protocol/index.ts';
import { till } from '../lib/till.svelte.ts';

const FOLLOW_EVERY_MS = 700;
/** While nothing happens here: another counter may be paid, or the time be over. */
const LOOK_EVERY_MS = 5_000;
const NOT_PAID = ['declined', 'not_charged', 'failed'];

/** `unpaid`: nothing is at a reader. */
export type DueStage = 'unpaid' | 'card' | 'done';

/** Whether an order waits for money that any counter may take. */
export const isDue = ({ state, credit_minor }: Order) =>
  state === 'payment_due' || (state === 'open' && (credit_minor ?? 0) > 0);

export class Due {
  stage = $state<DueStage>('unpaid');
  order = $state.raw() as Order;
  /** Of the cash that paid. */
  changeMinor = $state(0);
  /** Its seats were sold before: a card that fails changes nothing of that. */
  private readonly sold: boolean;
  /** What was asked for here; an answer to an earlier question is dropped. */
  private asked = 0;
  private followed: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(order: Order) {
    this.sold = order.state === 'payment_due';
    this.learn(order);
    this.follow();
  }

  get attempt(): Attempt | null {
    return this.order.attempt ?? null;
  }

  /** Paid, and the card is being charged: the tickets are valid once it is. */
  get charging(): boolean {
    const { order, stage } = this;
    const pending = order.tickets.some(({ state }) => state === 'pending');
    return stage === 'done' && order.state === 'confirmed' && pending;
  }

  /** The time to pay is over, or somebody gave the seats up. */
  get over(): boolean {
    return this.order.state === 'cancelled';
  }

  /** The customer holds a card to the reader. */
  byCard(reader: string): Promise<void> {
    return this.ask(() => till.hub.payDueByCard(this.order.id, reader));
  }

  cash(receivedMinor: number): Promise<void> {
    return this.ask(async () => {
      const answer = await till.hub.payDue(this.order.id, receivedMinor);
      this.changeMinor = answer.change_minor;
      return answer;
    });
  }

  /** Stops the reader; a card that was faster has paid. */
  stop(): Promise<void> {
    return this.ask(() => till.hub.stopReader(this.order.id));
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.followed);
  }

  private async ask(verb: () => Promise<{ order: Order }>): Promise<void> {
    this.asked++;
    this.learn((await verb()).order);
    this.follow();
  }

  private follow(): void {
    clearTimeout(this.followed);
    if (this.closed || this.over || (this.stage === 'done' && !this.charging)) return;
    const every = this.stage === 'unpaid' ? LOOK_EVERY_MS : FOLLOW_EVERY_MS;
    this.followed = setTimeout(() => void this.look(), every);
  }

  private async look(): Promise<void> {
    const { asked } = this;
    try {
      const { order } = await till.hub.order(this.order.id);
      if (this.asked === asked) this.learn(order);
    } catch {
      // No answer: nobody knows yet. It is asked again, and the screen says so meanwhile.
    }
    this.follow();
  }

  private learn(order: Order): void {
    this.order = order;
    if (this.stage === 'done') return;
    const { state, attempt } = order;
    const live = attempt !== null && !NOT_PAID.includes(attempt.phase);
    if (state === 'confirmed' || (state === 'payment_due' && !this.sold)) this.stage = 'done';
    else this.stage = live && !this.over ? 'card' : 'unpaid';
  }
}
