// What the counter's screens show, for whichever of them sends to another one: a scan opens its order, an exchange goes
// on at the map.

import type { CustomerHold, Order } from '../../../../assets/protocol/index.ts';
import { Exchange } from '../room/exchange.svelte.ts';

export type Tab = 'sell' | 'orders' | 'shift' | 'waiting' | 'log';

let tab = $state<Tab>('sell');
let wanted = $state.raw<{ words: string } | { order: string } | null>(null);
let exchange = $state.raw<Exchange | null>(null);
let selling = $state.raw<CustomerHold | null>(null);
let dueAtReader = $state(false);

export const desk = {
  get tab(): Tab {
    return tab;
  },
  go(to: Tab) {
    tab = to;
  },
  /** What the orders' screen is to look for; it takes it. */
  get wanted() {
    return wanted;
  },
  find(words: string) {
    wanted = { words };
    tab = 'orders';
  },
  show(order: string) {
    wanted = { order };
    tab = 'orders';
  },
  found() {
    wanted = null;
  },
  /** Seats of an order, until others are picked for them on the map. */
  get exchange() {
    return exchange;
  },
  /** Its new seats wait to be paid: nothing else is begun beside it. */
  get exchangePays(): boolean {
    return exchange !== null && ['card', 'unpaid'].includes(exchange.stage);
  },
  beginExchange(order: Order, seats: number[]) {
    exchange?.close();
    exchange = new Exchange(order, seats);
    tab = 'sell';
  },
  endExchange() {
    exchange = null;
  },
  /** Whether a card is held to the reader for what an order owes. */
  get dueAtReader(): boolean {
    return dueAtReader;
  },
  set dueAtReader(now: boolean) {
    dueAtReader = now;
  },
  /** Seats that were put aside, whose customer has come. */
  get selling() {
    return selling;
  },
  sell(hold: CustomerHold) {
    selling = hold;
    tab = 'sell';
  },
  sold() {
    selling = null;
  },
};
