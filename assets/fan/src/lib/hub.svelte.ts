// The one connection to the hub, the time by its clock, and who is signed in.

import { Hub, KeyRing, ServerClock } from '../../../hub-client/index.ts';
import type { Account } from '../../../protocol/index.ts';
import { text } from './text.svelte.ts';

const clock = new ServerClock();

export const hub = new Hub(
  (input, init) => fetch(input, init),
  clock,
  new KeyRing(sessionStore(), freshKey),
);

let now = $state(Date.now());
setInterval(() => (now = clock.now()), 250);

/** The hub's time; reading it in a template makes a countdown. */
export const time = {
  get now(): number {
    return now;
  },
};

/** Between two questions who we are, while nobody answers. */
const LOAD_PAUSE_MS = 1_000;
const LOAD_PAUSE_MAX_MS = 15_000;

let account = $state.raw<Account | null>(null);
let known = $state(false);
/** What the hub knows of this account's language, if we told it. */
let told: string | null = null;

export const session = {
  get account(): Account | null {
    return account;
  },
  /** False until the hub has said who we are: no answer does not mean that nobody is signed in. */
  get known(): boolean {
    return known;
  },
  async load(): Promise<void> {
    for (let pause = LOAD_PAUSE_MS; !known; pause = Math.min(2 * pause, LOAD_PAUSE_MAX_MS)) {
      await session.refresh();
      if (!known) await new Promise((done) => setTimeout(done, pause * (0.5 + Math.random())));
    }
  },
  /** What may have changed elsewhere; without an answer, what we knew stays. */
  async refresh(): Promise<void> {
    const before = account;
    try {
      const answer = (await hub.session()).account;
      // Whoever signed in or out meanwhile knows better than a question from before.
      if (account === before) account = answer;
      known = true;
    } catch {
      // Asked again by whoever waits for it.
    }
  },
  async signIn(email: string, password: string): Promise<void> {
    account = (await hub.signIn(email, password)).account;
    told = null;
    known = true;
  },
  async signUp(email: string, name: string, password: string): Promise<void> {
    account = (await hub.signUp(email, name, password, text.language)).account;
    told = text.language;
    known = true;
  },
  /** Tickets and mail speak the language of the page, chosen by hand or by the browser: told when it is
   *  chosen, and before an order is made, since an account may be older than this browser. */
  async speak(language: string): Promise<void> {
    if (!account || told === language) return;
    try {
      await hub.setLanguage(language);
      told = language;
    } catch {
      // The page speaks it already; mail that can't be told stays as it was.
    }
  },
  async signOut(): Promise<void> {
    await hub.signOut();
    account = null;
  },
  /** The hub says that the session is over. */
  lost(): void {
    account = null;
  },
};

function sessionStore(): Storage | null {
  try {
    return globalThis.sessionStorage;
  } catch {
    return null;
  }
}

/** randomUUID exists only in secure contexts; a hall's test machine may speak plain HTTP. */
function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
