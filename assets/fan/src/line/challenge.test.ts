// The page's solver against the same library's own verification.

import { createChallenge, verifySolution, type HmacAlgorithm } from 'altcha-lib';
import { deriveKey as sha } from 'altcha-lib/algorithms/web/sha';
import { solveChallenge } from 'altcha-lib';
import { describe, expect, it } from 'vitest';
import type { LineChallenge } from '../../../protocol/index.ts';
import { chance, solve, Unsolvable, type Solver, type SolverWord } from './challenge.ts';

const SECRET = 'a secret of the test';
const made = async (keyPrefix = '00') =>
  (await createChallenge({
    algorithm: 'SHA-256',
    cost: 1,
    deriveKey: sha,
    keyPrefix,
    hmacSignatureSecret: SECRET,
    hmacAlgorithm: 'SHA-256' as HmacAlgorithm,
  })) as LineChallenge;

/** A worker that lives in the test. */
function solver(work: (challenge: LineChallenge, say: (word: SolverWord) => void) => void) {
  const made: Solver & { ended: boolean } = {
    ended: false,
    onmessage: null,
    onerror: null,
    postMessage: (challenge) => work(challenge, (data) => made.onmessage?.({ data })),
    terminate: () => (made.ended = true),
  };
  return made;
}

describe('the challenge at the door', () => {
  it('is answered as the hub wants to see it', async () => {
    const challenge = await made();
    const worker = solver(async (given, say) => {
      say({ tried: 10 });
      say({ solution: (await solveChallenge({ challenge: given, deriveKey: sha }))! });
    });
    const shares: number[] = [];
    const answer = await solve(
      challenge,
      (share) => shares.push(share),
      new AbortController().signal,
      () => worker,
    );
    const payload = JSON.parse(atob(answer));
    const judged = await verifySolution({
      ...payload,
      deriveKey: sha,
      hmacSignatureSecret: SECRET,
    });
    expect(judged.verified).toBe(true);
    expect(shares).toHaveLength(1);
    expect(worker.ended).toBe(true);
  });

  it('ends its work at once when somebody thinks better of it', async () => {
    const worker = solver(() => {});
    const stop = new AbortController();
    const answer = solve(
      await made(),
      () => {},
      stop.signal,
      () => worker,
    );
    stop.abort();
    await expect(answer).rejects.toThrow();
    expect(worker.ended).toBe(true);
  });

  it('says so where it can not be solved', async () => {
    const worker = solver((_, say) => say({ failed: 'no such algorithm' }));
    const answer = solve(
      await made(),
      () => {},
      new AbortController().signal,
      () => worker,
    );
    await expect(answer).rejects.toBeInstanceOf(Unsolvable);
  });

  it('shows a progress that rises and does not promise the end', async () => {
    const challenge = await made('0000');
    let last = 0;
    for (const tried of [1, 1_000, 30_000, 65_536, 400_000]) {
      const share = chance(challenge, tried);
      expect(share).toBeGreaterThan(last);
      expect(share).toBeLessThan(1);
      last = share;
    }
    challenge.parameters.data = { tries: 2_000 };
    expect(chance(challenge, 500)).toBe(0.25);
    expect(chance(challenge, 9_000)).toBeLessThan(1);
  });
});
