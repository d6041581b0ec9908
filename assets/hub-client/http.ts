// What a fan's page asks the hub.

import {
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
  type ReleaseAnswer,
  type TicketChoice,
} from '../protocol/index.ts';
import { ProblemError, Requests, TRIES } from './requests.ts';

export class Hub extends Requests {
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
}
