// The challenge at the door: some seconds of a processor's time, so that a thousand accounts cost a
// thousand times that. Its worker is loaded when somebody joins, not before.

import type { LineChallenge } from '../../../protocol/index.ts';

export interface Solution {
  counter: number;
  derivedKey: string;
  time?: number;
}

export type SolverWord = { tried: number } | { solution: Solution } | { failed: string };

/** The solver could not do it here; nobody is to blame for it but the browser. */
export class Unsolvable extends Error {
  override name = 'Unsolvable';
}

export interface Solver {
  onmessage: ((event: { data: SolverWord }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
  postMessage(challenge: LineChallenge): void;
  terminate(): void;
}

/**
 * Solves it, and answers what the hub wants to see. `progress` hears how far it is, which never reaches
 * one before the end. Aborting ends the work at once.
 */
export async function solve(
  challenge: LineChallenge,
  progress: (share: number) => void,
  signal: AbortSignal,
  open: () => Solver = workerSolver,
): Promise<string> {
  signal.throwIfAborted();
  const solver = open();
  try {
    const solution = await new Promise<Solution>((found, failed) => {
      signal.addEventListener('abort', () => failed(signal.reason as Error), { once: true });
      solver.onerror = ({ message }) => failed(new Unsolvable(message));
      solver.onmessage = ({ data }) => {
        if ('tried' in data) progress(chance(challenge, data.tried));
        else if ('solution' in data) found(data.solution);
        else failed(new Unsolvable(data.failed));
      };
      solver.postMessage(challenge);
    });
    const { parameters, signature } = challenge;
    return base64(JSON.stringify({ challenge: { parameters, signature }, solution }));
  } finally {
    solver.terminate();
  }
}

/** How far it is: of the tries that the hub says are enough, or by chance where it leaves that open. */
export function chance({ parameters }: LineChallenge, tried: number): number {
  const most = Number((parameters.data as { tries?: unknown } | undefined)?.tries);
  if (most > 0) return Math.min(0.99, tried / most);
  // A hash of `n` hex digits is met by one try in 16^n; a longer one was set by a number that only the hub knows.
  const digits = parameters.keyPrefix.length;
  const expected = digits <= 8 ? 16 ** digits : 10_000;
  return 1 - Math.exp(-tried / expected);
}

function base64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

function workerSolver(): Solver {
  // Hashing is only offered to pages that came over a safe connection.
  if (!globalThis.crypto?.subtle) throw new Unsolvable('no crypto.subtle');
  return new Worker(new URL('./challenge.worker.ts', import.meta.url), {
    type: 'module',
  }) as unknown as Solver;
}
