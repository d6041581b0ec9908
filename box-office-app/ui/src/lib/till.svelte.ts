// This machine: what it is, whether the hub can be reached, who stands at it.

import { KeyRing, ServerClock, TillHub } from '../../../../assets/hub-client/index.ts';
import type {
  StaffAtTerminal,
  StaffRole,
  TerminalSelf,
} from '../../../../assets/protocol/index.ts';
import type { Credentials, Enrolment, Host } from '../host/port.ts';
import { isCode } from './explain.ts';

let host: Host = null!;
let hub: TillHub = null!;
const clock = new ServerClock();
const keys = new KeyRing(store(), freshKey);

let enrolment = $state.raw<Enrolment | null>(null);
let self = $state.raw<TerminalSelf | null>(null);
let staff = $state.raw<StaffAtTerminal | null>(null);
let reach = $state<boolean | null>(null);
let refused = $state(false);
let now = $state(Date.now());

export const RANK: Record<StaffRole, number> = { clerk: 0, supervisor: 1, manager: 2 };

export const till = {
  version: '',
  /** Tickets come out of a printer; else they are files in the terminal's folder. */
  onPaper: false,
  proposed: { hub: '', code: '' },
  get host(): Host {
    return host;
  },
  get hub(): TillHub {
    return hub;
  },
  get enrolment(): Enrolment | null {
    return enrolment;
  },
  set enrolment(value: Enrolment | null) {
    enrolment = value;
  },
  /** What the hub says of this terminal; null until it has said so. */
  get self(): TerminalSelf | null {
    return self;
  },
  get staff(): StaffAtTerminal | null {
    return staff;
  },
  /** Null: not known yet. */
  get reach(): boolean | null {
    return reach;
  },
  /** The hub doesn't know this terminal any more. */
  get refused(): boolean {
    return refused;
  },
  /** The hub's time; reading it in a template makes a countdown. */
  get now(): number {
    return now;
  },
  /** Whether whoever stands here may do what takes this role; at a counter without sign-in, anybody. */
  may(role: StaffRole): boolean {
    if (enrolment && !enrolment.attended) return true;
    return staff !== null && RANK[staff.role] >= RANK[role];
  },
  get reader(): string | null {
    return self?.readers[0] ?? null;
  },

  async signIn(name: string, secret: string): Promise<void> {
    staff = await withSecret(secret, (credentials) => host.signIn(name, credentials));
  },
  /** Somebody beside whoever is signed in, until `end`. */
  async approver(
    name: string,
    secret: string,
  ): Promise<{ who: StaffAtTerminal; hub: TillHub; end(): Promise<void> }> {
    const approver = await withSecret(secret, (credentials) => host.approve(name, credentials));
    return {
      who: approver.who,
      hub: new TillHub((input, init) => approver.fetch(input, init), clock, keys),
      end: () => approver.end(),
    };
  },
  async signOut(): Promise<void> {
    staff = null;
    await host.signOut();
  },
  /** The hub says that the session is over. */
  lost(): void {
    staff = null;
  },
  /** Reads again what the hub says of this terminal. */
  async look(): Promise<void> {
    try {
      self = await hub.terminal();
      refused = false;
    } catch (error) {
      refused = isCode(error, 'not_signed_in');
    }
  },
};

/** A PIN or a password, whichever it looks like. */
async function withSecret<T>(secret: string, sign: (by: Credentials) => Promise<T>): Promise<T> {
  const isPin = /^\d{6,12}$/.test(secret);
  try {
    return await sign(isPin ? { pin: secret } : { password: secret });
  } catch (error) {
    // A password may be all digits, but has ten at least. A wrong PIN must not count twice.
    if (!isPin || secret.length < 10 || !isCode(error, 'credentials_wrong')) throw error;
    return sign({ password: secret });
  }
}

/** Who this machine is, before anything is shown. */
export async function start(on: Host): Promise<void> {
  host = on;
  const about = await host.about();
  till.version = about.version;
  till.onPaper = about.on_paper;
  till.proposed = { hub: about.proposed.hub ?? '', code: about.proposed.code ?? '' };
  enrolment = about.terminal;
  hub = new TillHub((input, init) => host.fetch(input, init), clock, keys);
  setInterval(() => (now = clock.now()), 250);
  if (!enrolment || (enrolment.role === 'kiosk' && !enrolment.has_exit_pin)) return;
  host.followReach((up) => {
    const back = up && reach !== true;
    reach = up;
    if (back) void till.look();
  });
  if (about.signed_in) {
    try {
      staff = await hub.staff();
    } catch {
      // Then somebody signs in.
    }
  }
}

function store(): Storage | null {
  try {
    return globalThis.localStorage;
  } catch {
    return null;
  }
}

function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
