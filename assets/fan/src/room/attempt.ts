// What an attempt to pay means for the page. Unknown is shown as unknown, never as failed or paid.

import type { Order } from '../../../protocol/index.ts';
import type { Key } from '../lib/text.svelte.ts';

export type PayStage =
  | 'card'
  | 'working'
  | 'challenge'
  | 'asking_bank'
  | 'late'
  | 'given_back'
  | 'declined'
  | 'not_charged'
  | 'not_served'
  | 'time_over'
  | 'failed'
  | 'paid';

/** Whether money may be moving right now, so that the hub must be asked again. */
export function isMoving(order: Order): boolean {
  const phase = order.attempt?.phase;
  const asked = phase === 'working' || phase === 'asking_bank' || phase === 'action_required';
  // A payment that is due again moves like the first one.
  if (order.state === 'payment_due') return asked;
  return order.state === 'open' && (asked || phase === 'paid');
}

/** Money is on its way back, of seats that could not be sold or that were given back; that may take a second or days. */
export function isGoingBack(order: Order): boolean {
  return [order.attempt?.refund, order.refunded].some((back) => back?.state === 'on_its_way');
}

/** The bank has not said anything yet, and these seats can't be sold to this buyer any more. */
function isLate(order: Order, now: number): boolean {
  const attempt = order.attempt;
  if (attempt?.outcome === 'hold_ended') return true;
  const until = attempt?.seats_until ?? order.held_until;
  return until !== null && now >= Date.parse(until);
}

const DECLINES: Record<string, Key> = {
  insufficient_funds: 'pay.declined_funds',
  card_velocity_exceeded: 'pay.declined_funds',
  withdrawal_count_limit_exceeded: 'pay.declined_funds',
  expired_card: 'pay.declined_expired',
  invalid_expiry_month: 'pay.declined_expired',
  invalid_expiry_year: 'pay.declined_expired',
  incorrect_number: 'pay.declined_details',
  invalid_number: 'pay.declined_details',
  incorrect_cvc: 'pay.declined_details',
  invalid_cvc: 'pay.declined_details',
};

/** Why the bank declined, where that helps the buyer. A card that is lost or stolen is only declined. */
export function declined(attempt: Order['attempt']): Key {
  return DECLINES[attempt?.decline_code ?? ''] ?? 'pay.declined';
}

export function payStage(order: Order, now: number): PayStage {
  // A payment that is due again has its own, later deadline; the hold's times no longer count.
  const until = order.state === 'open' ? order.pay_until : null;
  const over = until !== null && now >= Date.parse(until);
  // Whatever else is true: the bank has paid, and the money goes back.
  if (order.attempt?.refund) return 'given_back';
  switch (order.attempt?.phase) {
    case 'working':
      return isLate(order, now) ? 'late' : 'working';
    case 'action_required':
      return order.attempt.action_url ? 'challenge' : 'working';
    case 'asking_bank':
      return isLate(order, now) ? 'late' : 'asking_bank';
    case 'paid':
      return order.state === 'payment_due' ? 'card' : 'paid';
    case 'not_charged':
      // The provider would not hear us at all: nothing is wrong with the card, and the seats are held still.
      if (order.attempt.outcome === 'not_served' && !over) return 'not_served';
      return 'not_charged';
    case 'declined':
      return over ? 'time_over' : 'declined';
    case 'failed':
      return over ? 'time_over' : 'failed';
    default:
      return over ? 'time_over' : 'card';
  }
}
