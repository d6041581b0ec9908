// What a browser prints where there is no printer of tickets: the same papers that the core prints, as blocks. Text is
// text: whatever a name contains, it stands on the paper as it is.

import { checkLines } from '../lib/checks.ts';
import {
  DAY_AND_CLOCK,
  money,
  venueTime,
  yourTime,
} from '../../../../assets/fan/src/lib/format.ts';
import { ticketTypeName } from '../../../../assets/fan/src/room/names.ts';
import { lineName, placeName, seatTold } from '../../../../assets/fan/src/room/seats.ts';
import type { Order, ShiftReport } from '../../../../assets/protocol/index.ts';
import type { Paid } from './port.ts';

export type Block =
  | { text: string; large?: true }
  | { left: string; right: string; large?: true }
  | { code: string }
  | { rule: true };

export type Paper = Block[];

/** The valid tickets of an order, a paper each. */
export function tickets(order: Order, wanted: string[]): Paper[] {
  const valid = order.tickets.filter(({ id, code }) => code !== null && wanted.includes(id));
  return valid.map((ticket) => {
    const line = order.lines.find(({ seat_no }) => seat_no === ticket.seat_no);
    return [
      { text: order.event_name, large: true },
      { text: [order.venue, order.city].filter(Boolean).join(', ') },
      { text: venueTime(order.starts_local, DAY_AND_CLOCK) },
      { rule: true },
      { text: placeName(ticket), large: true },
      ...[seatTold(ticket)].filter(Boolean).map((text) => ({ text })),
      {
        left: ticketTypeName(line?.ticket_type ?? ''),
        right: money(line?.amount_minor ?? 0, order.currency),
      },
      { left: 'Order', right: order.code },
      { code: ticket.code! },
    ];
  });
}

export function receipt(order: Order, paid: Paid, till: string): Paper {
  const sum = (minor: number) => money(minor, order.currency);
  const card = order.attempt?.card;
  const inCash = paid.cash_minor - paid.change_minor;
  return [
    { text: [order.venue, order.city].filter(Boolean).join(', '), large: true },
    { rule: true },
    { text: order.event_name },
    { left: 'Order', right: order.code },
    ...order.lines.map((line) => ({
      left: [lineName(line), ticketTypeName(line.ticket_type ?? '')].filter(Boolean).join(', '),
      right: sum(line.amount_minor),
    })),
    { rule: true },
    { left: 'In all', right: sum(order.total_minor), large: true },
    ...(order.tax
      ? [
          {
            text: `Including ${order.tax.name} ${order.tax.percent} %: ${sum(order.tax.amount_minor)}`,
          },
        ]
      : []),
    ...(paid.cash_minor > 0 ? [{ left: 'Cash', right: sum(paid.cash_minor) }] : []),
    ...(paid.change_minor > 0 ? [{ left: 'Change', right: sum(paid.change_minor) }] : []),
    ...(card
      ? [
          {
            left: `${card.brand.toUpperCase()} **** ${card.last4}`,
            right: sum(order.total_minor - inCash),
          },
        ]
      : []),
    { rule: true },
    { left: till, right: yourTime(order.confirmed_at ?? order.created_at, DAY_AND_CLOCK) },
  ];
}

/** A drawer's report: X while its shift is open, Z once it is closed. */
export function report(shift: ShiftReport): Paper {
  const sum = (minor: number) => money(minor || 0, shift.currency); // no minus before nothing
  const when = (at: string) => yourTime(at, DAY_AND_CLOCK);
  const { closed } = shift;
  return [
    { text: closed ? `Z ${closed.z_number}` : 'X', large: true },
    { left: shift.terminal_name, right: shift.business_day },
    { text: `Opened ${when(shift.opened_at)}, ${shift.opened_by}` },
    {
      text: closed
        ? `Closed ${when(closed.closed_at)}, ${closed.closed_by}`
        : `Read ${when(shift.now)}`,
    },
    ...checkLines(shift).map((text) => ({ text })),
    { rule: true },
    ...shift.tenders.map(({ kind, count, amount_minor }) => ({
      left: `${count} × ${kind}`,
      right: sum(amount_minor),
    })),
    { rule: true },
    { left: 'Float', right: sum(shift.float_minor) },
    { left: `${shift.cash_sales.count} × cash sales`, right: sum(shift.cash_sales.amount_minor) },
    { left: `${shift.cash_back.count} × handed back`, right: sum(-shift.cash_back.amount_minor) },
    { left: `${shift.pay_ins.count} × change`, right: sum(shift.pay_ins.amount_minor) },
    { left: `${shift.pay_outs.count} × paid out`, right: sum(-shift.pay_outs.amount_minor) },
    { left: `${shift.drops.count} × into the safe`, right: sum(-shift.drops.amount_minor) },
    { left: 'Expected', right: sum(shift.expected_minor), large: true },
    ...(closed
      ? [
          { rule: true as const },
          ...closed.counted.map(({ value_minor, count }) => ({
            left: `${count} × ${sum(value_minor)}`,
            right: sum(value_minor * count),
          })),
          { left: 'Counted', right: sum(closed.counted_minor), large: true as const },
          { left: 'Variance', right: sum(closed.variance_minor), large: true as const },
          ...(closed.explanation ? [{ text: closed.explanation }] : []),
        ]
      : []),
    ...shift.moves.map(({ kind, amount_minor, reason, by }) => ({
      left: `${kind.replace('_', ' ')}: ${reason} (${by})`,
      right: sum(amount_minor),
    })),
  ];
}

export function testPage(code: string): Paper {
  return [
    { text: 'Test page', large: true },
    { rule: true },
    { text: 'Zoë Müller, Łukasz Žižek, 東京 太郎, 홍길동' },
    { left: '|', right: '|' },
    { code },
  ];
}
