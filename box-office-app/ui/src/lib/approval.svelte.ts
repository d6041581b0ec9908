// What takes a higher role than that of whoever stands here: somebody who has it comes, signs in for the one request,
// and is gone again. The books name them; the session of the clerk goes on.

import type { StaffRole } from '../../../../assets/protocol/index.ts';
import type { TillHub } from '../../../../assets/hub-client/index.ts';
import { NotApproved } from './explain.ts';
import { RANK, till } from './till.svelte.ts';

interface Asked {
  role: StaffRole;
  /** What is to be done, as a sentence. */
  what: string;
  approve(name: string, secret: string): Promise<void>;
  refuse(): void;
}

let asked = $state.raw<Asked | null>(null);

export const approval = {
  get asked(): Asked | null {
    return asked;
  },
};

/** Does what takes a role: at once if whoever stands here has it, else as soon as somebody has approved it. */
export async function allowed<T>(
  role: StaffRole,
  what: string,
  verb: (hub: TillHub) => Promise<T>,
): Promise<T> {
  if (till.may(role)) return verb(till.hub);
  return new Promise<T>((done, failed) => {
    asked = {
      role,
      what,
      // A wrong PIN, or too low a role, is told where it is typed; what the hub says of the request itself ends it.
      async approve(name, secret) {
        const approver = await till.approver(name, secret);
        if (RANK[approver.who.role] < RANK[role]) {
          void approver.end();
          throw new NotApproved(
            `${approver.who.name} is a ${approver.who.role}. It takes a ${role}.`,
          );
        }
        asked = null;
        try {
          done(await verb(approver.hub));
        } catch (error) {
          failed(error);
        } finally {
          void approver.end();
        }
      },
      refuse() {
        asked = null;
        failed(new NotApproved('Nothing was done: nobody approved it.'));
      },
    };
  });
}
