// What a browser prints says what was sold and how it was paid, and takes no name for anything but a name.

import { expect, it, vi } from 'vitest';
import type { Order, ShiftReport } from '../../../../assets/protocol/index.ts';
import { receipt, report, tickets, type Paper } from './paper.ts';

// The words are in the browser's language.
vi.hoisted(() => {
  vi.stubGlobal('navigator', { languages: ['en-GB'] });
  vi.stubGlobal('document', { documentElement: {} });
});

const ODD = '<img src=x onerror=alert(1)>';

function order(change: Partial<Order> = {}): Order {
  const seat = { section: 'Stalls', row: '3', number: '12' };
  return {
    id: 'o',
    code: 'K7Q2M',
    event_name: ODD,
    venue: 'Stadthalle',
    city: 'Zürich',
    starts_local: '2026-12-05T19:30:00',
    currency: 'EUR',
    total_minor: 4700,
    lines: [
      { seat_no: 7, ...seat, ticket_type: 'adult', fee_code: null, amount_minor: 4550 },
      { seat_no: null, ticket_type: null, fee_code: 'booking', amount_minor: 150 },
    ],
    tickets: [
      { id: 't', seat_no: 7, ...seat, code: 'ABC', state: 'valid' },
      { id: 'old', seat_no: 7, ...seat, code: null, state: 'void' },
    ],
    attempt: null,
    created_at: '2026-11-30T18:00:00Z',
    confirmed_at: '2026-11-30T18:01:00Z',
    ...change,
  } as Order;
}

const lines = (paper: Paper) =>
  paper.map((block) =>
    'text' in block ? block.text : 'left' in block ? `${block.left}: ${block.right}` : '',
  );

it('a receipt tells cash and change', () => {
  const told = lines(receipt(order(), { cash_minor: 5000, change_minor: 300 }, 'Foyer 2'));
  expect(told).toContain('In all: €47.00');
  expect(told).toContain('Cash: €50.00');
  expect(told).toContain('Change: €3.00');
  expect(told).toContain(ODD);
});

it('a place to stand is called no seat', () => {
  const place = { section: 'Floor', row: '', number: '2', standing: true };
  const [line] = order().lines;
  const standing = order({ lines: [{ ...line, ...place }] });
  const told = lines(receipt(standing, { cash_minor: 0, change_minor: 0 }, 'Foyer 2'));
  expect(told).toContain('Floor, standing place 2, Adult: €45.50');
});

it('a receipt of a card tells the card, and what it paid beside cash', () => {
  const card = { brand: 'visa', last4: '4242' };
  const paid = order({ attempt: { card } as Order['attempt'] });
  expect(lines(receipt(paid, { cash_minor: 0, change_minor: 0 }, 'Foyer 2'))).toContain(
    'VISA **** 4242: €47.00',
  );
  expect(lines(receipt(paid, { cash_minor: 2000, change_minor: 0 }, 'Foyer 2'))).toContain(
    'VISA **** 4242: €27.00',
  );
});

it('only what is to be printed is, and never a ticket that is not valid', () => {
  expect(tickets(order(), ['t', 'old'])).toHaveLength(1);
  expect(tickets(order(), [])).toHaveLength(0);
  expect(tickets(order(), ['t'])[0]).toContainEqual({ code: 'ABC' });
});

it('a Z report has the count and its variance, an X has neither', () => {
  const sum = { count: 1, amount_minor: 4700 };
  const none = { count: 0, amount_minor: 0 };
  const x: ShiftReport = {
    shift_id: 's',
    terminal_name: 'Foyer 2',
    business_day: '2026-11-30',
    currency: 'EUR',
    opened_at: '2026-11-30T17:00:00Z',
    opened_by: 'Ada',
    float_minor: 10000,
    cash_sales: sum,
    cash_back: none,
    pay_ins: none,
    pay_outs: none,
    drops: none,
    expected_minor: 14700,
    tenders: [{ kind: 'cash', count: 1, amount_minor: 4700 }],
    moves: [],
    closed: null,
    now: '2026-11-30T20:00:00Z',
  };
  expect(lines(report(x))).toContain('Expected: €147.00');
  expect(lines(report(x)).join()).not.toContain('Variance');
  const closed = {
    z_number: 41,
    closed_at: '2026-11-30T21:00:00Z',
    closed_by: 'Bob',
    counted: [{ value_minor: 5000, count: 2 }],
    counted_minor: 10000,
    variance_minor: -4700,
    explanation: ODD,
  };
  const told = lines(report({ ...x, closed }));
  expect(told[0]).toBe('Z 41');
  expect(told).toContain('2 × €50.00: €100.00');
  expect(told).toContain('Variance: -€47.00');
  expect(told).toContain(ODD);
});
