import { describe, expect, it } from 'vitest';

import { ProblemError } from '../../../../assets/hub-client/index.ts';
import { explain } from './explain.ts';

const refused = (detail?: string) =>
  explain(
    new ProblemError({
      type: 'about:blank',
      code: 'role_too_low',
      title: 'Somebody with more rights has to do this',
      status: 403,
      detail,
    }),
  );

describe('what a till says of a refusal', () => {
  it('names whose it is to do, where the hub says so', () => {
    const whose = 'This shift is Sora’s: they close it, or a manager.';
    expect(refused(whose)).toBe(whose);
    expect(refused()).toMatch(/ask somebody who may do more/);
  });
});
