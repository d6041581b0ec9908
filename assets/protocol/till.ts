// What a till and its hub say to each other, as far as screens read it. Money is integer minor units of `currency`.

import type { Best, HoldAnswer, Order, SeatTraits, TicketChoice } from './json.ts';

export type StaffRole = 'clerk' | 'supervisor' | 'manager';

export interface TerminalSelf {
  terminal_id: string;
  name: string;
  role: 'counter' | 'kiosk';
  /** Somebody has to sign in before it sells, gives back, prints or changes anything. */
  attended: boolean;
  /** Why it may do nothing but report. */
  locked_reason: string | null;
  profile: TerminalProfile;
  /** The provider's ids of the card readers that stand at it. */
  readers: string[];
  /** The same, and how their provider said that they are. */
  reader_states?: ReaderSeen[];
  now: string;
}

export interface ReaderSeen {
  id: string;
  state: 'online' | 'busy' | 'offline' | 'unknown';
  /** When its provider said so. */
  at: string | null;
}

export interface TerminalProfile {
  /** Empty: all. */
  events: number[];
  /** In the order in which they are offered; empty: all. */
  languages: string[];
  idle_s?: number | null;
  lock_after_s?: number | null;
}

/** Who is signed in. */
export interface StaffAtTerminal {
  staff_id: string;
  name: string;
  role: StaffRole;
  expires_at: string;
}

export interface TillHoldRequest {
  event_id: number;
  /** The customer of an earlier hold of this sale. */
  buyer_id?: string;
  seats?: number[];
  best?: Best;
  fewer_ok?: boolean;
  replace?: boolean;
}

export type TillHoldAnswer = HoldAnswer & { buyer_id: string };

/** What a seat costs instead of its list price; a supervisor's to say. */
export interface PriceOverride {
  seat_no: number;
  amount_minor: number;
  reason: string;
}

/** A customer's seats, and as what they are sold. */
export interface TillBasket {
  hold_id: string;
  buyer_id: string;
  tickets: TicketChoice[];
  prices: PriceOverride[];
}

export type TillTender =
  | { kind: 'cash'; received_minor: number }
  | { kind: 'comp'; reason: string }
  | { kind: 'voucher'; code: string };

export interface TillSaleAnswer {
  order: Order;
  change_minor: number;
}

/** What became of a section. */
export interface SectionBlocked {
  changed: number[];
  /** Held, sold, given up for good, or otherwise not to be changed. */
  left: number[];
}

export interface CustomerHoldWish {
  event_id: number;
  seats: number[];
  name: string;
  until: string;
  note: string;
}

/** Seats that wait for somebody; any counter sells them. */
export interface CustomerHold extends CustomerHoldWish {
  hold_id: string;
  buyer_id: string;
  made_by: string;
  made_at: string;
}

/** Seats for nothing, promised to whoever brings a code; `valid_until` left out: until the event begins. */
export interface VoucherWish {
  event_id: number;
  seats_max: number;
  recipient: string;
  reason: string;
  valid_until?: string;
}

export interface Voucher extends Required<VoucherWish> {
  voucher_id: string;
  event_name: string;
  made_by: string;
  made_at: string;
  state: 'open' | 'used' | 'withdrawn' | 'over';
  /** That it paid for. */
  order_id: string | null;
  order_code: string | null;
}

/** Nobody can read the code again. */
export interface VoucherMade {
  code: string;
  voucher: Voucher;
}

/** Whoever is given seats to sell. */
export interface PartnerWish {
  code: string;
  name: string;
  contact: string;
}

export interface Partner extends PartnerWish {
  partner_id: string;
}

/** Seats for a partner: these, or what is free of a section (so many, or all). */
export interface ConsignWish {
  event_id: number;
  partner_id: string;
  seats?: number[];
  section?: string;
  count?: number;
  until: string;
  note: string;
}

/** Seats that a partner sells elsewhere, or gives back, until the cut-off. */
export interface Consignment {
  consignment_id: string;
  event_id: number;
  partner_id: string;
  partner_code: string;
  partner_name: string;
  until: string;
  note: string;
  made_by: string;
  made_at: string;
  open: number[];
  sold: number[];
  /** By the partner, or by the cut-off. */
  returned: number[];
}

export interface PartnerPaymentWish {
  event_id: number;
  amount_minor: number;
  way: 'transfer' | 'cash';
  reference: string;
}

/** How a partner and an event stand. */
export interface Statement {
  event_id: number;
  event_name: string;
  partner: Partner;
  currency: string;
  consigned_seats: number;
  open_seats: number;
  sold_seats: number;
  returned_seats: number;
  sold_minor: number;
  back_minor: number;
  paid_minor: number;
  /** Below 0: the house owes it. */
  owed_minor: number;
  orders: {
    order_id: string;
    code: string;
    sold_at: string;
    seats: number[];
    amount_minor: number;
    back_minor: number;
  }[];
  payments: {
    payment_id: string;
    /** Below 0: the house paid it back. */
    amount_minor: number;
    way: 'transfer' | 'cash';
    reference: string;
    made_by: string;
    made_at: string;
  }[];
}

/** Whose a seat is, and whatever happened to it, the latest first. */
/** What seats are for one performance; what is left out stays. */
export interface TraitsWish {
  seats: number[];
  accessible?: boolean;
  companion?: boolean;
  restricted_view?: boolean;
  /** Empty: nothing any more. */
  note?: string;
  reason: string;
}

export interface TraitsSet {
  changed: number[];
  /** Of these: somebody has bought it as it was. */
  sold: number[];
}

/** Seats that are blocked until the others are sold; then they go on sale by themselves. */
export interface UntilSold {
  until_sold_id: string;
  event_id: number;
  /** Those that wait still. */
  seats: number[];
  reason: string;
  made_by: string;
  made_at: string;
  /** By itself, by hand, or they stayed blocked. Left out: they wait. */
  outcome?: 'sold_out' | 'on_sale' | 'dropped';
  ended_at?: string;
  ended_by?: string;
  /** How many were put on sale as it ended. */
  opened?: number;
}

/** What waits at an event, and how many seats fans could still buy or get back before it goes on sale. */
export interface UntilSoldList {
  rules: UntilSold[];
  left: { free: number; held: number };
}

export type UntilSoldWish =
  { seats: number[]; reason: string } | { section: string; reason: string };

export interface SeatStory {
  event_id: number;
  seat_no: number;
  section: string;
  row: string;
  number: string;
  category: string;
  status: 'free' | 'held' | 'sold' | 'blocked' | 'dead';
  held_until: string | null;
  /** `web`, the terminal's name, or the partner's. */
  held_by: string | null;
  /** What it is for this performance. */
  traits: SeatTraits;
  customer: CustomerHold | null;
  /** A partner has it, to sell. */
  consigned?: { consignment_id: string; partner_name: string; until: string; note: string };
  order: OrderFound | null;
  sales: {
    order_id: string;
    order_code: string;
    channel: string;
    state: 'sold' | 'void' | 'exchanged';
    amount_minor: number;
    currency: string;
    list_minor: number | null;
    price_reason: string | null;
    sold_at: string;
  }[];
  tickets: {
    ticket_id: string;
    order_id: string;
    state: string;
    void_reason: string | null;
    printed: boolean;
    created_at: string;
  }[];
  notes: { verb: string; reason: string; actor: string; at: string }[];
}

/** An order whose tickets were never printed. */
export interface WillCallOrder {
  order_id: string;
  code: string;
  buyer_name: string | null;
  buyer_email: string | null;
  channel: string;
  created_at: string;
  /** Whose tickets wait. */
  seats: number[];
}

export interface OrderFound {
  order_id: string;
  code: string;
  event_id: number;
  event_name: string;
  state: string;
  total_minor: number;
  currency: string;
  channel: string;
  buyer_name: string | null;
  buyer_email: string | null;
  created_at: string;
  seats: number[];
}

export interface StaffOrder {
  order: Order;
  log: { verb: string; text: string; actor: string; created_at: string }[];
  given_back: GivenBack[];
}

export type SeatsBecome = 'on_sale' | 'house' | 'dead';

export interface GivenBack {
  request_id: string;
  amount_minor: number;
  currency: string;
  seats: number[];
  reason: string;
  actor: string;
  created_at: string;
  refunds: { id: string; kind: string; amount_minor: number; state: string }[];
}

export interface RefundWish {
  what:
    { kind: 'all' } | { kind: 'seats'; seats: number[] } | { kind: 'amount'; amount_minor: number };
  seats_become?: SeatsBecome;
  reason: string;
}

export interface ExchangeWish {
  seats: { from: number; to: number }[];
  received_minor?: number;
  /** The reader that the customer holds a card to: the answer's order is followed. */
  reader?: string;
  reason: string;
}

export interface ExchangeOffer {
  /** What is to be paid more; below 0: what goes back. */
  difference_minor: number;
  currency: string;
  /** How that goes back: `card`, `cash`, `comp`, `voucher`, `account`. */
  back: { kind: string; amount_minor: number }[];
}

export interface ExchangeAnswer {
  order: Order;
  difference_minor: number;
  change_minor: number;
}

export interface ShiftSum {
  count: number;
  amount_minor: number;
}

export type ShiftMoveKind = 'drop' | 'pay_in' | 'pay_out';

export interface Denomination {
  value_minor: number;
  count: number;
}

/** X while it is open, Z once it is closed. */
export type ShiftCheckWhat = 'printer' | 'scanner';

export interface ShiftCheck {
  what: ShiftCheckWhat;
  /** Why not; null: it works. */
  skipped: string | null;
  by: string;
  at: string;
}

export interface ShiftReport {
  shift_id: string;
  terminal_name: string;
  business_day: string;
  currency: string;
  opened_at: string;
  opened_by: string;
  float_minor: number;
  cash_sales: ShiftSum;
  cash_back: ShiftSum;
  pay_ins: ShiftSum;
  pay_outs: ShiftSum;
  drops: ShiftSum;
  expected_minor: number;
  tenders: { kind: string; count: number; amount_minor: number }[];
  moves: { kind: ShiftMoveKind; amount_minor: number; reason: string; by: string; at: string }[];
  /** What was tried as it began, the last word about each. Missing in reports from before it was. */
  checks?: ShiftCheck[];
  closed: {
    z_number: number;
    closed_at: string;
    closed_by: string;
    counted: Denomination[];
    counted_minor: number;
    variance_minor: number;
    explanation: string | null;
  } | null;
  now: string;
}

/** What of the log is looked for; what is left out does not matter. */
export interface LogWanted {
  event_id?: number;
  terminal_id?: string;
  person?: string;
  verb?: string;
  since?: string;
  until?: string;
  before?: number;
}

/** What people did, the latest first. */
export interface AuditLog {
  entries: Logged[];
  /** Ask for what is older with it. */
  before: number | null;
}

export interface Logged {
  id: number;
  at: string;
  verb: string;
  actor: string;
  staff_name: string | null;
  terminal_id: string | null;
  terminal_name: string | null;
  event_id: number | null;
  event_name: string | null;
  detail: string;
  reason: string;
}

export interface ShiftListed {
  shift_id: string;
  terminal_name: string;
  business_day: string;
  opened_at: string;
  opened_by: string;
  /** None: open. */
  z_number: number | null;
  closed_at: string | null;
  variance_minor: number | null;
  currency: string;
}

export interface DayLocked {
  date: string;
  locked_at: string;
  locked_by: string;
  shifts: ShiftListed[];
}
