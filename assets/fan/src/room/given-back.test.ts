import { describe, expect, it } from 'vitest';
import type { Order, Ticket } from '../../../protocol/index.ts';
import { givenBack } from './given-back.ts';

function ticket(seat_no: number, state: Ticket['state']): Ticket {
  return {
    id: `${seat_no}${state}`,
    seat_no,
    state,
    section: 'A',
    row: '1',
    number: '1',
    code: '',
  };
}

function order(
  seats: number[],
  tickets: Ticket[],
  refunded: Order['refunded'] = { amount_minor: 1078, state: 'on_its_way' },
) {
  const line = { ticket_type: 'adult', fee_code: null, amount_minor: 2000 };
  const fee = { seat_no: null, ticket_type: null, fee_code: 'booking', amount_minor: 250 };
  return { lines: [...seats.map((seat_no) => ({ ...line, seat_no })), fee], tickets, refunded };
}

describe('given back', () => {
  it('are the seats whose ticket is void', () => {
    const some = [ticket(1, 'void'), ticket(2, 'valid'), ticket(3, 'void')];
    expect(givenBack(order([1, 2, 3], some))).toEqual({ seats: [1, 3], of: 3 });
  });

  it('is not what was issued anew, nor what was exchanged', () => {
    const anew = [ticket(1, 'void'), ticket(1, 'valid'), ticket(9, 'void')];
    expect(givenBack(order([1], anew))).toEqual({ seats: [], of: 1 });
  });

  it('is nothing while no money went back', () => {
    expect(givenBack(order([1], [ticket(1, 'void')], null)).seats).toEqual([]);
  });
});
