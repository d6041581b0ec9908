// Solves the door's challenge (ALTCHA v2) off the page's thread, and says how far it is.

import { solveChallenge } from 'altcha-lib';
import { deriveKey as sha } from 'altcha-lib/algorithms/web/sha';
import { deriveKey as pbkdf2 } from 'altcha-lib/algorithms/web/pbkdf2';
import type { LineChallenge } from '../../../protocol/index.ts';
import { type SolverWord } from './challenge.ts';

const SAY_EVERY_MS = 120;

onmessage = ({ data }: MessageEvent<LineChallenge>) => void solve(data);

async function solve(challenge: LineChallenge): Promise<void> {
  const say = (word: SolverWord) => postMessage(word);
  const derive = challenge.parameters.algorithm.startsWith('PBKDF2/') ? pbkdf2 : sha;
  let tried = 0;
  let saidAt = performance.now();
  try {
    const solution = await solveChallenge({
      challenge,
      // The page decides when it has been long enough; it ends this worker.
      timeout: 0,
      deriveKey: (...asked) => {
        tried++;
        const now = performance.now();
        if (now - saidAt > SAY_EVERY_MS) {
          saidAt = now;
          say({ tried });
        }
        return derive(...asked);
      },
    });
    say(solution ? { solution } : { failed: 'no solution' });
  } catch (error) {
    say({ failed: error instanceof Error ? error.message : String(error) });
  }
}
