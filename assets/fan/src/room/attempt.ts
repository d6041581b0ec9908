// What an attempt to pay means for the page. Unknown is shown as unknown, never as failed or paid.

import type { Order } from '../../../protocol/index.ts';

export type PayStage =
  | 'card'
  | 'working'
  | 'challenge'
  | 'asking_bank'
  | 'declined'
  | 'not_charged'
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

export function payStage(order: Order, now: number): PayStage {
  // A payment that is due again has its own, later deadline; the hold's times no longer count.
  const until = order.state === 'open' ? order.pay_until : null;
  const over = until !== null && now >= Date.parse(until);
  switch (order.attempt?.phase) {
    case 'working':
      return 'working';
    case 'action_required':
      return order.attempt.action_url ? 'challenge' : 'working';
    case 'asking_bank':
      return 'asking_bank';
    case 'paid':
      return order.state === 'payment_due' ? 'card' : 'paid';
    case 'not_charged':
      return 'not_charged';
    case 'declined':
      return over ? 'time_over' : 'declined';
    case 'failed':
      return over ? 'time_over' : 'failed';
    default:
      return over ? 'time_over' : 'card';
  }
}
