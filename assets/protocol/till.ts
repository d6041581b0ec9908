// What a till and its hub say to each other, as far as screens read it. Money is integer minor units of `currency`.

import type { Best, HoldAnswer, Order, TicketChoice } from './json.ts';

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
  now: string;
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

/** A customer's seats, and as what they are sold. */
export interface TillBasket {
  hold_id: string;
  buyer_id: string;
  tickets: TicketChoice[];
}

export type TillTender =
  { kind: 'cash'; received_minor: number } | { kind: 'comp'; reason: string };

export interface TillSaleAnswer {
  order: Order;
  change_minor: number;
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
  reason: string;
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
