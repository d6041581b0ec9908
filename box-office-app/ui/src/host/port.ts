// What the screens need of whatever they run in: the desktop's window, or a browser's page under test.

import type { SocketHandlers } from '../../../../assets/hub-client/follow.ts';
import type { StaffAtTerminal } from '../../../../assets/protocol/index.ts';

/** Who this machine is; nothing secret. */
export interface Enrolment {
  terminal_id: string;
  name: string;
  role: 'counter' | 'kiosk';
  attended: boolean;
  hub: string;
  has_exit_pin: boolean;
}

export interface About {
  version: string;
  terminal: Enrolment | null;
  /** What the enrolment screen proposes. */
  proposed: { hub: string | null; code: string | null };
  signed_in: boolean;
  /** Tickets come out of a printer; else they are files in the terminal's folder. */
  on_paper: boolean;
}

/** What became of a paper; `why` of one that is not printed, or may not be. */
export interface PaperEnd {
  end: 'printed' | 'not_printed' | 'doubtful';
  why?: string;
}

/** What became of a ticket. */
export interface Printed extends PaperEnd {
  job: string;
  seat_no: number;
}

/** In cash, for a receipt: handed over, and handed back. */
export interface Paid {
  cash_minor: number;
  change_minor: number;
}

export interface Doubt {
  job: string;
  ticket_id: string | null;
  what: string;
}

export interface Printer {
  /** Prints the tickets of an order that are not on paper yet. */
  print(order: string, language: string): Promise<Printed[]>;
  doubts(): Promise<Doubt[]>;
  /** What a person found of a doubtful print. */
  decide(job: string, cameOut: boolean, replacedBy: string | null, by: string): Promise<void>;
  openDrawer(): Promise<boolean>;
  receipt(order: string, paid: Paid, clerk: string | null): Promise<PaperEnd>;
  /** The X report of the open shift (null), or what a shift of this terminal's was: its Z. */
  report(shift: string | null): Promise<PaperEnd>;
  /** Shows whether printer and scanner work: it bears `TEST_CODE`. */
  testPage(): Promise<PaperEnd>;
  /** Where papers go if there is no printer, as the end of a sentence. */
  elsewhere: string;
}

/** Somebody who signed in for the one request that follows, beside whoever is signed in. */
export interface Approver {
  who: StaffAtTerminal;
  fetch: typeof globalThis.fetch;
  end(): Promise<void>;
}

export type Credentials = { password: string } | { pin: string };

export interface Host {
  about(): Promise<About>;

  /** Makes this machine a terminal. The hub's refusals are ProblemErrors, here and below. */
  enrol(hub: string, code: string): Promise<Enrolment>;
  /** Opens the terminal's own screens; a kiosk takes the PIN by which staff leave it. */
  begin(exitPin: string | null): Promise<void>;
  /** Forgets an enrolment that the hub refuses. */
  enrolAnew(): Promise<void>;

  /** Requests to the hub, with the tokens that a screen doesn't have. */
  fetch: typeof globalThis.fetch;
  openSocket(address: string, handlers: SocketHandlers): { close(): void };
  /** Calls back with whether the hub can be reached, within two seconds of a change; null: not known yet. */
  followReach(tell: (up: boolean | null) => void): void;

  signIn(name: string, credentials: Credentials): Promise<StaffAtTerminal>;
  signOut(): Promise<void>;
  approve(name: string, credentials: Credentials): Promise<Approver>;
  printer: Printer;
  /** Calls back with what the scanner reads; none of its keys reaches a field. Null: it has to be scanned again. */
  followScanner(tell: (scan: string | null) => void): void;
  /** Ends the program of a kiosk. */
  leaveKiosk(pin: string): Promise<void>;
}

/** Which of the two this is. */
export async function openHost(): Promise<Host> {
  return '__TAURI_INTERNALS__' in globalThis
    ? (await import('./tauri.ts')).windowHost
    : (await import('./web.ts')).webHost;
}
