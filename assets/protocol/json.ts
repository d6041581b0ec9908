// The JSON bodies of the hub's API as a browser sees them. Times are RFC 3339 in UTC, money is
// integer minor units of `currency`. The wire only grows: unknown fields are ignored.

import type { StatusName } from './frames.ts';

export type Sale = 'upcoming' | 'on_sale' | 'paused' | 'closed' | 'sold_out' | 'cancelled';

export interface VenueSummary {
  id: number;
  slug: string;
  name: string;
  city: string;
  country: string;
}

export interface Performer {
  id: number;
  slug: string;
  name: string;
}

export interface EventSummary {
  id: number;
  slug: string;
  name: string;
  tags: string[];
  venue: VenueSummary;
  performers: Performer[];
  time_zone: string;
  starts_at: string;
  starts_local: string;
  doors_local: string | null;
  on_sale_at: string;
  on_sale_local: string;
  off_sale_at: string | null;
  sale: Sale;
  /** Whether people stand in a line before they come to the seats. */
  has_line?: boolean;
  currency: string;
  from_minor: number | null;
  /** The fees that an order of one such ticket pays on top. */
  from_fees_minor: number;
  seats_total: number;
  seats_available: number;
  now: string;
}

export interface EventList {
  events: EventSummary[];
}

export interface PriceLevel {
  level: number;
  name: string;
  category: string;
  color: string;
  prices: { ticket_type: string; amount_minor: number }[];
}

export interface Fee {
  code: string;
  basis: 'seat' | 'order';
  amount_minor: number;
}

export interface SeatInfo {
  seat_no: number;
  guid: string;
  section: string;
  row: string;
  number: string;
  level: number;
  accessible: boolean;
  companion: boolean;
  restricted_view: boolean;
  standing: boolean;
  status: StatusName;
}

/** What a seat is for one performance, where that is not what the drawing says. */
export interface SeatTraits {
  seat_no: number;
  accessible: boolean;
  companion: boolean;
  restricted_view: boolean;
  /** For whoever buys it. */
  note: string | null;
}

export interface EventPage {
  event: EventSummary & {
    description: string;
    /** Why it does not take place, if somebody has said so for everybody. */
    called_off_reason: string | null;
    doors_at: string | null;
    seat_limit: number;
    hold_ttl_s: number;
    /** What a buyer may give back, as it is agreed on by buying now. */
    refund_terms?: RefundTerms | null;
  };
  venue: VenueSummary & { time_zone: string };
  performers: Performer[];
  price_levels: PriceLevel[];
  fees: Fee[];
  plan: { hash: string; revision: number; seat_count: number; geometry: string };
  /** By number; an older hub says nothing of it. */
  seat_traits?: SeatTraits[];
  seats?: SeatInfo[];
}

export interface Account {
  id: number;
  email: string;
  name: string;
  role: string;
  /** Whether somebody has read the mail that went to this address; a line asks for it. */
  email_checked?: boolean;
}

export interface Hold {
  id: string;
  event_id: number;
  seats: number[];
  held_until: string;
  /** What the countdown shows: no payment starts after it. */
  pay_until: string;
  frozen: boolean;
  version: number;
}

export interface Limit {
  seat_limit: number;
  held: number;
  bought: number;
  left: number;
}

export interface EndedHold {
  hold_id: string;
  /** It was bought, given back, its time was over, or the event was called off. */
  why: 'bought' | 'released' | 'expired' | 'called_off';
  order_id: string | null;
}

export interface HoldState {
  hold: Hold | null;
  /** What became of the last one, where there is none now. */
  ended?: EndedHold | null;
  limit: Limit;
  now: string;
}

export interface Best {
  count: number;
  level?: number;
  section?: string;
  accessible?: number;
}

export type HoldRequest = ({ seats: number[] } | { best: Best }) & {
  fewer_ok?: boolean;
  replace?: boolean;
};

export interface HoldAnswer {
  hold: Hold;
  not_held?: number[];
  now: string;
}

export interface ReleaseAnswer {
  hold: Hold | null;
  now: string;
}

export interface TicketChoice {
  seat_no: number;
  ticket_type: string;
}

export interface OrderLine {
  seat_no: number | null;
  section?: string | null;
  row?: string | null;
  number?: string | null;
  /** A place to stand, and no seat. */
  standing?: boolean;
  ticket_type: string | null;
  fee_code: string | null;
  amount_minor: number;
  /** Contained in the amount; none where the event said nothing of tax. */
  tax_minor?: number | null;
}

export interface OrderTax {
  name: string;
  /** As it is written: `19`, `8.875`. */
  percent: string;
  amount_minor: number;
  refunded_minor: number;
}

export type SeatTrait = 'accessible' | 'companion' | 'restricted_view';

export interface Ticket {
  /** What the code carries; a reissued ticket has another. */
  id: string;
  seat_no: number;
  section: string;
  row: string;
  number: string;
  /** A place to stand, and no seat. */
  standing?: boolean;
  /** What is to be known of the seat; none of a hub that does not tell it yet. */
  traits?: SeatTrait[];
  /** What the house says of it for this performance. */
  note?: string | null;
  /** Of a valid ticket only. */
  code: string | null;
  state: 'pending' | 'valid' | 'void';
}

export type AttemptPhase =
  'working' | 'action_required' | 'asking_bank' | 'declined' | 'not_charged' | 'paid' | 'failed';

export interface Attempt {
  id: string;
  state: string;
  phase: AttemptPhase;
  action_url: string | null;
  decline_code: string | null;
  /** How it ended: `declined`, `hold_ended`, `cancelled`, … */
  outcome?: string | null;
  seats_until: string | null;
  /** Money that came although nothing was sold for it: it goes back, whatever else is said here. */
  refund?: AttemptRefund | null;
  /** The card that paid, once it has. */
  card?: { brand: string; last4: string } | null;
}

export interface AttemptRefund {
  amount_minor: number;
  state: 'on_its_way' | 'arrived' | 'failed';
}

export type CancelReason =
  'time_over' | 'buyer' | 'replaced' | 'not_paid' | 'refunded' | 'called_off';

export interface Order {
  id: string;
  code: string;
  event_id: number;
  /** Of the event's page; none from an older hub. */
  event_slug?: string;
  event_name: string;
  venue: string;
  city: string;
  /** On the venue's clock. */
  starts_local: string;
  starts_at: string;
  /** The venue's zone, by its IANA name. */
  time_zone?: string;
  state: 'open' | 'confirmed' | 'payment_due' | 'cancelled';
  currency: string;
  total_minor: number;
  /** Paid already, with the order that this one's seats were exchanged for. */
  credit_minor?: number;
  /** What is still to be paid; 0 of an order that is paid, or over. */
  due_minor?: number;
  /** The order that all of this one's seats were exchanged for. */
  exchanged_for?: string | null;
  /** While it is open: what the tickets will say for a name that no font of the house has. */
  name_on_tickets?: string | null;
  /** What may be given back, as it was agreed on when it was bought. */
  refund_terms?: RefundTerms | null;
  /** What of the money went back since it was bought. */
  refunded?: AttemptRefund | null;
  lines: OrderLine[];
  tax?: OrderTax | null;
  held_until: string | null;
  pay_until: string | null;
  attempt: Attempt | null;
  tickets: Ticket[];
  created_at: string;
  confirmed_at: string | null;
  /** Of a cancelled order; null where nobody can tell any more. */
  cancel_reason: CancelReason | null;
}

export interface RefundTerms {
  until: string;
  keep_percent: number;
  keep_minor: number;
  keep_fees: boolean;
}

export interface CancellationOffer {
  seats: { seat_no: number; amount_minor: number; back_minor: number }[];
  fees_back_minor: number;
  back_minor: number;
  kept_minor: number;
  currency: string;
  until: string;
}

export interface PaymentConfig {
  /** No payment begins now. */
  paused?: boolean;
  publishable_key: string;
  form_url: string;
}

/** What the provider's card form and challenge page say to the page that framed them. */
export type ProviderMessage =
  | { type: 'fullhouse:payment_method'; id: string; brand?: string; last4?: string }
  | { type: 'fullhouse:challenge_done' };

/** How high a provider's page is, in CSS pixels; its frame follows. */
export interface ProviderResize {
  type: 'fullhouse:resize';
  height: number;
}
