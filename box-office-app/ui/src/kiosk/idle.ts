// What a kiosk does about a customer who does not touch it any more. Pure: what stage they are in and for how long
// nothing was touched, and what to do.

import type { Stage } from '../room/sale.svelte.ts';

/** Without a touch, where the terminal's profile says nothing. */
export const IDLE_S = 90;
/** The last seconds, counted down for all to see. */
export const WARNING_S = 15;
/** "Thank you" stays for so long. */
export const DONE_S = 25;

export type Idle =
  | { do: 'nothing' }
  /** Ask whether somebody is there. */
  | { do: 'warn'; seconds: number }
  /** The visit is over: seats go back, everything is cleared. */
  | { do: 'end' }
  /** Nobody holds a card to the reader: it is told to stop, and a card that was faster has paid. */
  | { do: 'stop_reader' };

/** `asking`: the bank is asked, which nobody may walk out of or be thrown out of. */
export function idle(
  stage: Stage | 'attract',
  asking: boolean,
  untouchedS: number,
  idleS = IDLE_S,
): Idle {
  switch (stage) {
    case 'attract':
      return { do: 'nothing' };
    case 'card':
      return !asking && untouchedS >= idleS ? { do: 'stop_reader' } : { do: 'nothing' };
    case 'sold':
      return untouchedS >= DONE_S ? { do: 'end' } : { do: 'nothing' };
    case 'choosing':
    case 'held': {
      if (untouchedS >= idleS) return { do: 'end' };
      const left = Math.ceil(idleS - untouchedS);
      return left <= Math.min(WARNING_S, idleS / 2)
        ? { do: 'warn', seconds: left }
        : { do: 'nothing' };
    }
  }
}
