// The customer who stands here, as the kiosk's machine in the core sees them. The page tells what was touched and draws
// what it is told; it has no clock and no memory of its own.

import type { Best, TicketChoice } from '../../../../assets/protocol/index.ts';
import { explainProblem } from '../../../../assets/fan/src/lib/problems.ts';
import type { KioskScreen, Touched, Visit } from '../host/port.ts';
import { till } from '../lib/till.svelte.ts';
import { k } from './words.ts';

let shown = $state.raw<Visit | null>(null);
let told: Promise<void> = Promise.resolve();

export const visit = {
  /** Null until the machine has said something. */
  get shown(): Visit | null {
    return shown;
  },
  get name(): KioskScreen['name'] | null {
    return shown?.screen.name ?? null;
  },
  follow: () => till.host.kiosk.follow((now) => (shown = now)),
  /** In the order of the touches: a wish that overtakes the beginning of its visit is nobody's. */
  touched(what: Touched): void {
    // What gets lost is touched again, and the machine's own waits go on.
    told = told.then(() => till.host.kiosk.touched(what)).catch(() => {});
  },
  take(wish: { event_id: number; seats?: number[]; best?: Best }): void {
    if (shown?.screen.name === 'failed') visit.touched({ did: 'choose', way: 'best' });
    visit.touched({ did: 'take', wish });
  },
  types: (tickets: TicketChoice[]) => visit.touched({ did: 'types', tickets }),
  /** Why there are no tickets, in the customer's language; empty: nothing is wrong. */
  get wrong(): string {
    const screen = shown?.screen;
    if (screen?.name !== 'failed') return shown?.problem ? explainProblem(shown.problem) : '';
    if (screen.of === 'seats_gone')
      return shown?.problem ? explainProblem(shown.problem) : k('choose.gone');
    if (screen.of === 'hold_over') return k('held.over');
    if (screen.of === 'no_hub') return k('failed.no_hub');
    return k(`pay.${screen.of.unpaid}`);
  },
};
