// Which tickets of an order were given back. A seat that was exchanged left the order's lines; one whose
// ticket was only issued anew has a newer ticket.

import type { Order } from '../../../protocol/index.ts';

export function givenBack(order: Pick<Order, 'tickets' | 'lines' | 'refunded'>): {
  seats: number[];
  /** How many tickets there were. */
  of: number;
} {
  const seats = [
    ...new Set(order.lines.map((line) => line.seat_no).filter((seat) => seat !== null)),
  ];
  const live = new Set(
    order.tickets.filter((one) => one.state !== 'void').map((one) => one.seat_no),
  );
  const dead = new Set(
    order.tickets.filter((one) => one.state === 'void').map((one) => one.seat_no),
  );
  const back = seats.filter((seat) => dead.has(seat) && !live.has(seat));
  return { seats: order.refunded ? back : [], of: seats.length };
}
