// Requests to the hub. Three ends, told apart by type, because money and seats depend on it:
// an answer, a definite refusal (ProblemError), or no knowledge (UnknownOutcome).

import {
  isProblem,
  type Account,
  type EventList,
  type EventPage,
  type Geometry,
  type HoldAnswer,
  type HoldRequest,
  type HoldState,
  type Line,
  type LineChallenge,
  type LineDraw,
  type LineEntry,
  type Order,
  type Attempt,
  type CancellationOffer,
  type Pass,
  type PaymentConfig,
  type Preferences,
  type Problem,
  type ReleaseAnswer,
  type TicketChoice,
} from '../protocol/index.ts';
import type { ServerClock } from './clock.ts';
import type { KeyRing } from './keys.ts';

const TIMEOUT_MS = 15_000;
const TRIES = 4;
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

export class Hub {
  constructor(
    private readonly fetch: typeof globalThis.fetch,
    readonly clock: ServerClock,
    private readonly keys: KeyRing,
    private readonly sleep: (ms: number) => Promise<void> = (ms) =>
      new Promise((done) => setTimeout(done, ms)),
    private readonly random: () => number = Math.random,
  ) {}

  // ---- what can be asked ----

  events = (filter: Record<string, string>) => {
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
    return this.get<EventList>(`/api/events${query.size > 0 ? `?${query}` : ''}`);
  };
  event = (id: string | number) =>
    this.get<EventPage>(`/api/events/${encodeURIComponent(id)}?seats=none`);
  geometry = (address: string) => this.get<Geometry>(address);

  session = () => this.get<{ account: Account | null }>('/api/session');
  signIn = (email: string, password: string) =>
    this.send<{ account: Account }>('POST', '/api/session', { body: { email, password } });
  signUp = (email: string, name: string, password: string, language: string) =>
    this.send<{ account: Account }>('POST', '/api/accounts', {
      body: { email, name, password, language },
    });
  /** Of tickets and mail. */
  setLanguage = (language: string) =>
    this.send<void>('PUT', '/api/account/language', { body: { language } });
  signOut = () => this.send<void>('DELETE', '/api/session', {});

  myHold = (event: number) => this.get<HoldState>(`/api/events/${event}/hold`);
  /** With the pass of somebody who was called, where the event has a line. */
  hold = (event: number, request: HoldRequest, pass?: string) =>
    this.once<HoldAnswer>(`hold.${event}`, `/api/events/${event}/hold`, request, pass);
  release = (hold: string, seats: number[]) =>
    this.send<ReleaseAnswer>('POST', `/api/holds/${hold}/release`, {
      body: { seats },
      tries: TRIES,
    });
  releaseAll = (hold: string) =>
    this.send<ReleaseAnswer>('DELETE', `/api/holds/${hold}`, { tries: TRIES });
  checkout = (hold: string, tickets: TicketChoice[]) =>
    this.send<{ order: Order }>('POST', `/api/holds/${hold}/checkout`, {
      body: { tickets },
      tries: TRIES,
    });

  orders = () => this.get<{ orders: Order[] }>('/api/orders');
  order = (id: string) =>
    this.get<{ order: Order; now: string }>(`/api/orders/${encodeURIComponent(id)}`);
  pay = (order: Order, paymentMethod: string) =>
    this.once<{ attempt: Attempt }>(`pay.${order.id}`, `/api/orders/${order.id}/pay`, {
      payment_method: paymentMethod,
      amount_minor: order.total_minor - (order.credit_minor ?? 0),
      currency: order.currency,
    });
  resume = (order: string) =>
    this.send<{ attempt: Attempt }>('POST', `/api/orders/${order}/resume`, { tries: TRIES });
  /** An order that costs nothing; asked again, it answers the same. */
  claim = (order: string) =>
    this.send<{ order: Order }>('POST', `/api/orders/${order}/claim`, { tries: TRIES });

  cancel = (order: string) =>
    this.send<{ order: Order }>('POST', `/api/orders/${order}/cancel`, { tries: TRIES });
  /** What comes back of these seats, if they are given back now. */
  cancellation = (order: string, seats: number[]) =>
    this.get<CancellationOffer>(`/api/orders/${order}/cancellation?seats=${seats.join(',')}`);
  giveBack = (order: string, seats: number[], backMinor: number) =>
    this.once<{ order: Order }>(`give_back.${order}`, `/api/orders/${order}/cancellation`, {
      seats,
      back_minor: backMinor,
    });
  paymentConfig = () => this.get<PaymentConfig>('/api/payment/config');

  // ---- the line before an event ----

  line = (event: number) => this.get<Line>(`/api/events/${event}/queue`);
  challenge = (event: number) => this.get<LineChallenge>(`/api/events/${event}/queue/challenge`);
  /** One entry an account: asked again it answers the same, so it may be repeated. */
  join = (event: number, solved: string, wishes: Preferences) =>
    this.send<LineEntry>('POST', `/api/events/${event}/queue/entry`, {
      body: { challenge: solved, ...wishes },
      tries: TRIES,
    });
  /** Having none is no fault that a browser's console should tell of. */
  entry = async (event: number): Promise<LineEntry> => {
    const entry = await this.get<LineEntry | undefined>(
      `/api/events/${event}/queue/entry?or_none=true`,
    );
    if (entry) return entry;
    throw new ProblemError({
      type: 'urn:fullhouse:problem:entry_none',
      code: 'entry_none',
      title: 'You do not stand in this line',
      status: 404,
    });
  };
  wish = (event: number, wishes: Preferences) =>
    this.send<LineEntry>('PATCH', `/api/events/${event}/queue/entry`, {
      body: wishes,
      tries: TRIES,
    });
  leaveLine = (event: number) =>
    this.send<void>('DELETE', `/api/events/${event}/queue/entry`, { tries: TRIES });
  comeIn = (event: number) =>
    this.send<Pass>('POST', `/api/events/${event}/queue/enter`, { tries: TRIES });
  renewPass = (event: number, pass: string) =>
    this.send<Pass>('POST', `/api/events/${event}/queue/pass/renew`, { pass, tries: TRIES });
  draws = (event: number) => this.get<{ draws: LineDraw[] }>(`/api/events/${event}/queue/draws`);

  /** Sends the mail that shows whose address it is; the demo answers with its link. */
  checkAddress = () =>
    this.send<{ sent_to: string; link?: string }>('POST', '/api/account/address-check', {});
  confirmAddress = (code: string) =>
    this.send<{ account: Account }>('POST', '/api/account/address-check/confirm', {
      body: { code },
      tries: TRIES,
    });

  /** Goes out; the place inside is the next one's. Nobody inside any more is as good. */
  goOut = (event: number) =>
    this.send<void>('DELETE', `/api/events/${event}/queue/pass`, { tries: TRIES });

  /** What has no name of its own here: an operator's page knows what it asks. Reads are repeated, writes are not. */
  ask = <T>(method: 'GET' | 'PATCH' | 'POST', address: string, body?: unknown) =>
    this.send<T>(method, address, { body, tries: method === 'GET' ? TRIES : 1 });

  // ---- how it is asked ----

  private get<T>(address: string): Promise<T> {
    return this.send<T>('GET', address, { tries: 3 });
  }

  /** A write under an idempotency key, which stays the same until the outcome is known. */
  private async once<T>(intent: string, address: string, body: unknown, pass?: string): Promise<T> {
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

  private async send<T>(method: string, address: string, options: Options): Promise<T> {
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
