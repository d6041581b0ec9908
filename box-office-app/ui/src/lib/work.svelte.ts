// What a screen asks for, one thing at a time: whether it is under way, and what came of it if it was refused.

import { explain, isCode } from './explain.ts';
import { till } from './till.svelte.ts';

/** A refusal that ends a session brings the sign-in back; any other is told. */
export function told(error: unknown): string {
  if (isCode(error, 'staff_required', 'staff_session_over')) till.lost();
  return explain(error);
}

export class Work {
  busy = $state(false);
  message = $state('');

  /** Does it unless something else is under way; a refusal is told, and `refused` may look at it. */
  async do(verb: () => Promise<void>, refused?: (error: unknown) => void): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.message = '';
    try {
      await verb();
    } catch (error) {
      this.message = told(error);
      refused?.(error);
    } finally {
      this.busy = false;
    }
  }
}
