// What the screens need of whatever they run in: the desktop's window, or a browser's page under test.

import type { SocketHandlers } from '../../../../assets/hub-client/follow.ts';
import type {
  Best,
  Hold,
  Order,
  OrderLine,
  Problem,
  StaffAtTerminal,
  TicketChoice,
} from '../../../../assets/protocol/index.ts';

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

/** What a kiosk's machine shows (`core/src/kiosk.rs`, `terminal/visits.rs`): the page draws it, and decides nothing. */
export interface Visit {
  /** Another number is another customer: nothing that the page has of the last one stays. */
  visit: number;
  screen: KioskScreen;
  languages: string[];
  /** By its place there; null: none was chosen. */
  language: number | null;
  /** Seconds that are left, once they are counted down for all to see. */
  ends_in_s: number | null;
  needs_mail: boolean;
  /** Tickets come out of this machine; else they are fetched at the counter. */
  prints: boolean;
  /** A card reader stands here. */
  reader: boolean;
  hold: Hold | null;
  order: Order | null;
  /** Why the last wish came to nothing. */
  problem: Problem | null;
}

export type KioskScreen =
  | { name: 'attract' | 'language' | 'holding' | 'held' | 'stopping' | 'authorising' }
  | { name: 'approved' | 'printing' | 'done' | 'staff' }
  | { name: 'out_of_service'; of: 'case' | 'no_hub' | 'printer' }
  | { name: 'choosing'; of: Way }
  | { name: 'at_reader'; of: { ready: boolean } }
  | { name: 'unprinted'; of: { mailed: boolean } }
  | { name: 'failed'; of: 'seats_gone' | 'hold_over' | 'no_hub' | { unpaid: Unpaid } };

export type Way = 'map' | 'best';
export type Unpaid = 'declined' | 'stopped' | 'reader';

export type Touched =
  | { did: 'glass' | 'begin' | 'pay' | 'cancel' }
  | { did: 'language'; language: number }
  | { did: 'choose'; way: Way }
  | { did: 'take'; wish: { event_id: number; seats?: number[]; best?: Best } }
  | { did: 'types'; tickets: TicketChoice[] }
  | { did: 'mail'; to: string };

/** What staff were called for. */
export interface Call {
  case: 'payment_in_doubt' | 'unprinted' | 'paid_unattended';
  code: string | null;
}

export interface KioskHost {
  follow(tell: (visit: Visit) => void): void;
  touched(what: Touched): Promise<void>;
  /** For whoever knows the PIN: staff have come; what they were called for. */
  serveAgain(pin: string): Promise<Call[]>;
  /** Ends the program. */
  leave(pin: string): Promise<void>;
}

/** How a counter stands that sells without a network (`core/src/till`, `terminal/offline.rs`). */
export interface TillStanding {
  /** Why nothing can be leased; null: it can. */
  not_ready: string | null;
  online: boolean;
  /** Sales that the hub has not answered. */
  unsettled: number;
  /** Leases that have ended here, and not at the hub. */
  to_report: number;
  /** Sales that became none: number and reason. */
  not_sold: [number, string][];
  /** Sales whose printed codes are dead. */
  new_codes: number[];
  /** Leases that an earlier journal of this terminal may have sold from. */
  strange: string[];
  /** The terminal's folder is a copy: nothing is leased here. */
  copied: boolean;
  /** What stands in the way of settling. */
  stuck: string | null;
  leases: Leased[];
}

export interface Leased {
  lease_id: string;
  event_id: number;
  event: string;
  currency: string;
  seats_max: number;
  /** 0: over. */
  sells_for_s: number;
  seats: LeasedSeat[];
}

export interface LeasedSeat extends Place {
  /** By ticket type, the first one first. */
  prices: [string, number][];
  sold: boolean;
}

export interface Place {
  seat_no: number;
  section: string;
  row: string;
  number: string;
  /** A place to stand, and no seat. */
  standing?: boolean;
}

export interface SoldOffline {
  code: string;
  currency: string;
  total_minor: number;
  change_minor: number;
  seats: Place[];
  printed: Printed[];
}

export interface OfflineHost {
  follow(tell: (standing: TillStanding) => void): void;
  lease(ask: {
    event_id: number;
    count?: number;
    seats?: number[];
    section?: string;
    sells_for_s: number;
  }): Promise<string>;
  sell(wish: {
    lease_id: string;
    tickets: TicketChoice[];
    received_minor: number;
    language: string;
  }): Promise<SoldOffline>;
  close(lease: string): Promise<void>;
}

/** What the customer at a counter sees on a screen of their own; nothing of anybody else. */
export interface CustomerView {
  language: string;
  /** None: nobody stands there. */
  sale: {
    event: string;
    stage: 'held' | 'card' | 'bank' | 'sold';
    lines: OrderLine[];
    currency: string;
    total_minor: number;
    /** In cash beside a card. */
    cash_minor: number;
    /** How a card ended; it is charged, or has to be paid otherwise. */
    card: 'declined' | 'charging' | 'due' | null;
    change_minor: number | null;
    /** Given away. */
    free: boolean;
    held_until: string | null;
    order: string | null;
  } | null;
}

export interface CustomerHost {
  /** This is the customer's screen, not the clerk's. */
  display: boolean;
  /** Opens it, on a second monitor if there is one, or closes it. */
  turn(on: boolean): Promise<void>;
  show(view: CustomerView): void;
  follow(tell: (view: CustomerView) => void): void;
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
  kiosk: KioskHost;
  customer: CustomerHost;
  offline: OfflineHost;
}

/** Which of the two this is. */
export async function openHost(): Promise<Host> {
  return '__TAURI_INTERNALS__' in globalThis
    ? (await import('./tauri.ts')).windowHost
    : (await import('./web.ts')).webHost;
}
