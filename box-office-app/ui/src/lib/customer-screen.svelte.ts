// Whether this counter has a screen for its customers: it stays so when the program starts anew.

import { till } from './till.svelte.ts';

const REMEMBERED = 'fullhouse.customer-screen';

let on = $state(localStorage.getItem(REMEMBERED) === 'on');

export const customerScreen = {
  get on(): boolean {
    return on;
  },
  async turn(to: boolean): Promise<void> {
    await till.host.customer.turn(to);
    on = to;
    localStorage.setItem(REMEMBERED, to ? 'on' : 'off');
  },
};
