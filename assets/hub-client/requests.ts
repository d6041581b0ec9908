// How the hub is asked. Three ends, told apart by type, because money and seats depend on it:
// an answer, a definite refusal (ProblemError), or no knowledge (UnknownOutcome).

import { isProblem, type Problem } from '../protocol/index.ts';
import type { ServerClock } from './clock.ts';
import type { KeyRing } from './keys.ts';

const TIMEOUT_MS = 15_000;
/** Of a write that may be repeated. */
export const TRIES = 4;
const PAUSE_MS = 400;

/** The hub refused, and says why. */
export class ProblemError extends Error {
  override name = 'ProblemError';
  constructor(readonly problem: Problem) {
    super(problem.title);
  }
  get code(): string {
    return this.problem.code;
  }
}

/** Nobody knows whether the hub did it: the network failed or the hub broke down. */
export class UnknownOutcome extends Error {
  override name = 'UnknownOutcome';
}

interface Options {
  body?: unknown;
  key?: string;
  pass?: string;
  tries?: number;
}

/** Whoever asks: a fan's page, a till. */
export abstract class Requests {
  constructor(
    private readonly fetch: typeof globalThis.fetch,
    readonly clock: ServerClock,
    private readonly keys: KeyRing,
    private readonly sleep: (ms: number) => Promise<void> = (ms) =>
      new Promise((done) => setTimeout(done, ms)),
    private readonly random: () => number = Math.random,
  ) {}

  protected get<T>(address: string): Promise<T> {
    return this.send<T>('GET', address, { tries: 3 });
  }

  /** A write under an idempotency key, which stays the same until the outcome is known. */
  protected async once<T>(
    intent: string,
    address: string,
    body: unknown,
    pass?: string,
  ): Promise<T> {
    const key = this.keys.take(intent, JSON.stringify(body));
    try {
      const answer = await this.send<T>('POST', address, { body, key, pass, tries: TRIES });
      this.keys.settle(intent);
      return answer;
    } catch (error) {
      // Refusals are not stored by the hub, so the next try may use a new key; the unknown may not.
      // "Busy" says only that the hub did not wait for the outcome.
      if (error instanceof ProblemError && error.code !== 'busy') this.keys.settle(intent);
      throw error;
    }
  }

  protected async send<T>(method: string, address: string, options: Options): Promise<T> {
    const tries = options.tries ?? 1;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.attempt<T>(method, address, options);
      } catch (error) {
        const wait = this.pauseAfter(error, attempt);
        if (attempt >= tries || wait === null) throw error;
        await this.sleep(wait);
      }
    }
  }

  /** How long to wait before the same request again, or null if it must not be repeated. */
  private pauseAfter(error: unknown, attempt: number): number | null {
    const spread = PAUSE_MS * 2 ** attempt * (0.5 + this.random() / 2);
    if (error instanceof UnknownOutcome) return spread;
    if (error instanceof ProblemError && error.code === 'busy') {
      return Math.max(spread, (error.problem.retry_after_s ?? 0) * 1000);
    }
    return null;
  }

  private async attempt<T>(method: string, address: string, options: Options): Promise<T> {
    const headers: Record<string, string> = { accept: 'application/json' };
    if (options.key) headers['idempotency-key'] = options.key;
    if (options.pass) headers['fullhouse-pass'] = options.pass;
    const init: RequestInit = {
      method,
      headers,
      credentials: 'same-origin',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    };
    if (options.body !== undefined) {
      headers['content-type'] = 'application/json';
      init.body = JSON.stringify(options.body);
    }
    const sentAt = Date.now();
    let response: Response;
    let body: unknown;
    try {
      response = await this.fetch(address, init);
      body = response.status === 204 ? undefined : await response.json();
    } catch (error) {
      throw new UnknownOutcome('no answer from the hub', { cause: error });
    }
    this.noteClock(body, sentAt, response);
    if (response.ok) return body as T;
    if (!isProblem(body)) throw new UnknownOutcome(`the hub answered ${response.status}`);
    const after = Number(response.headers.get('retry-after'));
    throw new ProblemError(after > 0 ? { ...body, retry_after_s: after } : body);
  }

  private noteClock(body: unknown, sentAt: number, response: Response): void {
    // An answer out of a cache carries the time at which it was made, not the time it is.
    if (Number(response.headers.get('age')) > 0) return;
    const now = (body as { now?: unknown } | undefined)?.now;
    if (typeof now === 'string') this.clock.sample(now, sentAt, Date.now());
  }
}
