// An exchange that goes on: which seats of which order, until others are picked on the map.

import type { Order } from '../../../../assets/protocol/index.ts';

let of = $state.raw<{ order: Order; seats: number[] } | null>(null);

export const exchange = {
  get of() {
    return of;
  },
  begin(order: Order, seats: number[]) {
    of = { order, seats };
  },
  end() {
    of = null;
  },
};
