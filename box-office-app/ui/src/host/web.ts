// A page in a browser: for tests of the screens, and for whoever works on them. It keeps the tokens itself, in the
// tab's memory for a session; the desktop never does. A kiosk's machine and a till's journal are the desktop's own, behind
// `/desk` (`tests/src/bin/page-host.rs`).

import { browserPorts, ProblemError, UnknownOutcome } from '../../../../assets/hub-client/index.ts';
import {
  isProblem,
  type StaffAtTerminal,
  type TerminalSelf,
} from '../../../../assets/protocol/index.ts';
import { dialogPrinter } from './web-printer.ts';
import { followScanner } from './web-scanner.ts';
import type { About, Credentials, CustomerView, Enrolment, Host } from './port.ts';

const TERMINAL = 'fullhouse.till.terminal';
const STAFF = 'fullhouse.till.staff';
const BEAT_EVERY_MS = 600;
const BEAT_WITHIN_MS = 1_000;
const FOLLOW_AGAIN_MS = 200;

/** What this terminal is called. */
let named = '';

const kept = (name: string) => sessionStorage.getItem(name);

const fetchAs =
  (person: () => string | null): typeof globalThis.fetch =>
  (input, init = {}) => {
    const headers = new Headers(init.headers);
    const [terminal, staff] = [kept(TERMINAL), person()];
    if (terminal) headers.set('authorization', `Bearer ${terminal}`);
    if (staff) headers.set('fullhouse-staff', staff);
    return fetch(input, { ...init, headers });
  };

const fetchWithTokens = fetchAs(() => kept(STAFF));

async function ask<T>(path: string, body?: unknown, fetch = fetchWithTokens): Promise<T> {
  let response: Response;
  let answer: unknown;
  try {
    response = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    answer = response.status === 204 ? undefined : await response.json();
  } catch (error) {
    throw new UnknownOutcome('no answer from the hub', { cause: error });
  }
  if (response.ok) return answer as T;
  if (!isProblem(answer)) throw new UnknownOutcome(`the hub answered ${response.status}`);
  throw new ProblemError(answer);
}

/** What the core behind the page tells, line by line, for as long as the page is there. */
async function follow<T>(path: string, tell: (value: T) => void): Promise<void> {
  for (;;) {
    try {
      const response = await fetchWithTokens(path);
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ''; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (text + value).split('\n\n');
        text = lines.pop()!;
        for (const line of lines)
          if (line.startsWith('data: ')) tell(JSON.parse(line.slice('data: '.length)));
      }
    } catch {
      // It is asked again.
    }
    await new Promise((done) => setTimeout(done, FOLLOW_AGAIN_MS));
  }
}

function enrolment(
  self: Pick<TerminalSelf, 'terminal_id' | 'name' | 'role' | 'attended'>,
): Enrolment {
  const { terminal_id, name, role, attended } = self;
  named = name;
  return { terminal_id, name, role, attended, hub: location.origin, has_exit_pin: true };
}

async function about(): Promise<About> {
  const terminal = kept(TERMINAL)
    ? enrolment(await ask<TerminalSelf>('/api/box-office/terminal'))
    : null;
  return {
    version: 'page',
    terminal,
    proposed: { hub: location.origin, code: null },
    signed_in: kept(STAFF) !== null,
    on_paper: false,
  };
}

/** Between the clerk's page and the customer's; null asks for what is shown. */
const customers = new BroadcastChannel('fullhouse.customer');
let said: CustomerView | null = null;
let screen: Window | null = null;
customers.onmessage = ({ data }) => data === null && said && customers.postMessage(said);

const signedIn = (name: string, credentials: Credentials) =>
  ask<StaffAtTerminal & { token: string }>('/api/box-office/sign-in', { name, ...credentials });

export const webHost: Host = {
  about,
  async enrol(_hub, code) {
    const answer = await ask<TerminalSelf & { token: string }>('/api/box-office/enrol', { code });
    sessionStorage.setItem(TERMINAL, answer.token);
    return enrolment(answer);
  },
  begin: async () => location.reload(),
  async enrolAnew() {
    sessionStorage.removeItem(TERMINAL);
    location.reload();
  },
  fetch: fetchWithTokens,
  openSocket: (address, handlers) => browserPorts().openSocket(address, handlers),
  followReach(tell) {
    const beat = async () => {
      try {
        const answer = await fetch('/healthz', { signal: AbortSignal.timeout(BEAT_WITHIN_MS) });
        tell(answer.ok);
      } catch {
        tell(false);
      }
      setTimeout(beat, BEAT_EVERY_MS);
    };
    void beat();
  },
  async signIn(name, credentials) {
    sessionStorage.removeItem(STAFF);
    const { token, ...who } = await signedIn(name, credentials);
    sessionStorage.setItem(STAFF, token);
    return who;
  },
  async signOut() {
    try {
      await ask('/api/box-office/sign-out', {});
    } catch {
      // A session that the hub keeps ends by its time.
    }
    sessionStorage.removeItem(STAFF);
  },
  async approve(name, credentials) {
    const { token, ...who } = await signedIn(name, credentials);
    const fetch = fetchAs(() => token);
    return {
      who,
      fetch,
      end: () => ask<void>('/api/box-office/sign-out', {}, fetch).catch(() => {}),
    };
  },
  printer: dialogPrinter(ask, () => named),
  followScanner,
  kiosk: {
    follow: (tell) => void follow('/desk/kiosk', tell),
    touched: (what) => ask('/desk/kiosk', what),
    serveAgain: async () => {
      await ask('/desk/kiosk/staff', {}); // a page has no PIN
      return [];
    },
    leave: async () => {
      const title = 'A page is no kiosk.';
      throw new ProblemError({ type: 'about:blank', code: 'pin_none', status: 0, title });
    },
  },
  customer: {
    display: location.hash === '#customer',
    async turn(on) {
      if (on) screen = globalThis.open('#customer', 'customer');
      else screen?.close();
    },
    show(view) {
      said = view;
      customers.postMessage(view);
    },
    follow(tell) {
      customers.onmessage = ({ data }) => data && tell(data);
      customers.postMessage(null); // what is shown now?
    },
  },
  offline: {
    follow: (tell) => void follow('/desk/till', tell),
    lease: (wish) => ask('/desk/till/lease', wish),
    sell: (wish) => ask('/desk/till/sell', wish),
    close: (lease) => ask('/desk/till/close', { lease_id: lease }),
  },
};
