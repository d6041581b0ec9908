// What a customer sees of their own sale.

import type { CustomerView } from '../host/port.ts';
import type { Sale } from '../room/sale.svelte.ts';

export function viewOf(event: string, sale: Sale): CustomerView['sale'] {
  const { order, stage } = sale;
  if (stage === 'choosing' || !order) return null;
  const sold = stage === 'sold';
  const phase = sale.attempt?.phase;
  const asked = phase === 'asking_bank' ? 'bank' : 'card';
  return {
    event,
    stage: stage === 'card' ? asked : stage,
    lines: order.lines,
    currency: order.currency,
    total_minor: order.total_minor,
    cash_minor: order.attempt ? sale.cashMinor : 0,
    card: sold
      ? order.state === 'payment_due'
        ? 'due'
        : sale.charging
          ? 'charging'
          : null
      : stage === 'held' && phase === 'declined'
        ? 'declined'
        : null,
    change_minor: sold && sale.receivedMinor !== null ? sale.changeMinor : null,
    free: sold && !order.attempt && sale.receivedMinor === null,
    held_until: sold ? null : (sale.hold?.held_until ?? null),
    order: sold ? order.code : null,
  };
}
