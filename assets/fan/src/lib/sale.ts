// The honest state of a sale, from the hub's state, its clock, and what is really left.

import {
  SeatFlag,
  Status,
  type EventPage,
  type EventSummary,
  type Sale,
} from '../../../protocol/index.ts';
import type { Board } from '../../../seat-map/index.ts';
import type { Key } from './text.svelte.ts';

export type SaleState = Sale | 'low' | 'opening';

const LOW_SHARE = 0.08;

export const SALE_TEXTS: Record<SaleState, Key> = {
  upcoming: 'sale.upcoming',
  opening: 'sale.opening',
  on_sale: 'sale.on_sale',
  low: 'sale.low',
  paused: 'sale.paused',
  closed: 'sale.closed',
  sold_out: 'sale.sold_out',
  cancelled: 'sale.cancelled',
};

export function saleState(
  event: EventSummary,
  now: number,
  free = event.seats_available,
): SaleState {
  if (event.sale === 'upcoming')
    return now >= Date.parse(event.on_sale_at) ? 'opening' : 'upcoming';
  if (
    event.sale === 'on_sale' &&
    event.off_sale_at !== null &&
    now >= Date.parse(event.off_sale_at)
  )
    return 'closed';
  if (event.sale === 'on_sale' && free > 0 && free < event.seats_total * LOW_SHARE) return 'low';
  return event.sale;
}

/** Whether all that is free are places to stand, in a hall that has seats as well. */
export function standingOnly({ status, plan }: Board): boolean {
  let seats = false;
  for (let seat = 0; seat < plan.count; seat++) {
    if (plan.flags[seat] & (SeatFlag.standing | SeatFlag.retired)) continue;
    if (status[seat] === Status.available) return false;
    seats = true;
  }
  return seats;
}

export function canBuy(state: SaleState): boolean {
  return state === 'on_sale' || state === 'low' || state === 'opening';
}

/** What the fees of an order for so many seats come to. */
export function feesOf(fees: EventPage['fees'], seats: number): number {
  return fees.reduce((sum, fee) => sum + fee.amount_minor * (fee.basis === 'seat' ? seats : 1), 0);
}
