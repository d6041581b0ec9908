// A customer who walked away leaves nothing behind, and nobody is thrown out of a payment.

import { describe, expect, it } from 'vitest';
import { DONE_S, idle } from './idle.ts';

describe('somebody who does not touch the glass', () => {
  it('is warned, and then their visit ends', () => {
    for (const stage of ['choosing', 'held'] as const) {
      expect(idle(stage, false, 0, 60)).toEqual({ do: 'nothing' });
      expect(idle(stage, false, 44, 60)).toEqual({ do: 'nothing' });
      expect(idle(stage, false, 45, 60)).toEqual({ do: 'warn', seconds: 15 });
      expect(idle(stage, false, 59.2, 60)).toEqual({ do: 'warn', seconds: 1 });
      expect(idle(stage, false, 60, 60)).toEqual({ do: 'end' });
    }
  });

  it('is not thrown out while the bank is asked, however long that takes', () => {
    expect(idle('card', true, 10_000, 60)).toEqual({ do: 'nothing' });
  });

  it('has the reader stopped, and nothing ended before it has answered', () => {
    expect(idle('card', false, 59, 60)).toEqual({ do: 'nothing' });
    expect(idle('card', false, 60, 60)).toEqual({ do: 'stop_reader' });
  });

  it('sees their order for a while, and the next person does not', () => {
    expect(idle('sold', false, DONE_S - 1, 600)).toEqual({ do: 'nothing' });
    expect(idle('sold', false, DONE_S, 600)).toEqual({ do: 'end' });
  });

  it('finds the programme as it is, whenever they come', () => {
    expect(idle('attract', false, 1e9, 20)).toEqual({ do: 'nothing' });
  });

  it('is left half of a short time before the countdown begins', () => {
    expect(idle('choosing', false, 9, 20)).toEqual({ do: 'nothing' });
    expect(idle('choosing', false, 10, 20)).toEqual({ do: 'warn', seconds: 10 });
  });
});
