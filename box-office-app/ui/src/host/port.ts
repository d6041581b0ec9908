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

/** What became of a ticket; `why` of one that is not on paper, or may not be. */
export interface Printed {
  job: string;
  seat_no: number;
  end: 'printed' | 'not_printed' | 'doubtful';
  why?: string;
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
  /** What prints tickets; none in a page. */
  printer: Printer | null;
  /** Ends the program of a kiosk. */
  leaveKiosk(pin: string): Promise<void>;
}

/** Which of the two this is. */
export async function openHost(): Promise<Host> {
  return '__TAURI_INTERNALS__' in globalThis
    ? (await import('./tauri.ts')).windowHost
    : (await import('./web.ts')).webHost;
}
