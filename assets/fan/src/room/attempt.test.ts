import { expect, it } from 'vitest';
import type { Order } from '../../../protocol/index.ts';
import { isGoingBack, isMoving } from './attempt.ts';

const order = (changes: object) =>
  ({ state: 'cancelled', attempt: null, refunded: null, ...changes }) as Order;

it('looks again as long as money is on its way back, although nothing moves forward any more', () => {
  for (const [state, again] of [
    ['on_its_way', true],
    ['arrived', false],
    ['failed', false],
  ] as const) {
    const refund = { amount_minor: 100, state };
    const unsold = order({ attempt: { phase: 'failed', refund } });
    expect([isMoving(unsold), isGoingBack(unsold)]).toEqual([false, again]);
    expect(isGoingBack(order({ state: 'confirmed', refunded: refund }))).toBe(again);
  }
  expect(isGoingBack(order({}))).toBe(false);
});
