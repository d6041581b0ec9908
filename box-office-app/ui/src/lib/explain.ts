// What to say to whoever stands at a till. A code that is not here is shown in the hub's own words.

import { ProblemError, UnknownOutcome } from '../../../../assets/hub-client/index.ts';

const TEXTS: Record<string, string> = {
  enrolment_refused: 'This code is wrong, was used already, or is over. Ask for a new one.',
  address_invalid: 'Write the address as https://tickets.example.org.',
  credentials_wrong: 'Name, password or PIN is wrong.',
  staff_locked: 'Too many wrong tries. Wait a quarter of an hour, or ask a manager.',
  staff_required: 'Sign in again.',
  staff_session_over: 'Sign in again.',
  role_too_low: 'Your role may not do this: ask somebody who may do more.',
  shift_required: 'Open a shift first: cash needs a drawer (F3).',
  leases_open: 'Seats of this till are still leased: give them back first.',
  leases_too_many: 'This till has too many leases: give one back first.',
  lease_over: 'The time to sell these seats is over. They go back as soon as the hub is heard.',
  journal_copied:
    'This terminal’s folder is a copy of another machine’s, or of a backup. It leases no seats.',
  lease_not_taken: 'This till can’t sell from that lease. It is given back.',
  till_not_ready: 'This till can’t sell without a network yet: its journal is not open.',
  journal_broken:
    'This machine could not write the sale down, so nobody knows whether it is kept. Sell nothing else here: start the app anew.',
  shift_open: 'A shift is open already.',
  variance_unexplained: 'The drawer differs from the books. Say why.',
  seats_unavailable: 'Somebody else has taken some of these seats.',
  none_together: 'There are not so many seats together.',
  limit_reached: 'One customer may not buy more seats of this event.',
  seats_in_use: 'Some of these seats are held or sold.',
  seats_dead: 'Some of these seats were given up for good.',
  hold_ended: 'The time for these seats is over. Take them again.',
  hold_unknown: 'The time for these seats is over. Take them again.',
  hold_frozen: 'A card is being charged for these seats.',
  attempt_live: 'A card is being charged for this order.',
  tender_invalid: 'That is not enough money.',
  voucher_unknown: 'No voucher has this code. Look at it again: O is 0, I and L are 1.',
  voucher_used: 'This voucher was used already.',
  voucher_over: 'This voucher was withdrawn, or its time is over.',
  voucher_mismatch: 'This voucher is for another event, or for fewer seats.',
  name_taken: 'Somebody else has this name or code.',
  consignment_over: 'The cut-off has come: what was not sold is on sale again.',
  seats_not_consigned: 'The partner does not have some of these seats any more. Look again.',
  until_sold_over: 'They wait no more: somebody else was faster. Look again.',
  nothing_left: 'The others are sold already: put these on sale instead.',
  owes_less: 'Less is owed than that.',
  order_on_account: 'A partner owes for this order: give it back, and sell the other evening anew.',
  payment_gate_closed: 'No cards are taken now. Cash still works.',
  shift_currency: 'The drawer of this shift is in another currency.',
  drawer_short: 'There is not that much in the drawer.',
  day_locked: 'The books of this day are closed: no shift of it opens any more.',
  shifts_open: 'Some shifts of that day are still open.',
  until_invalid:
    'Seats wait from a minute to the beginning of the event, with a partner to the end of its sale; not longer.',
  reader_not_yours: 'That card reader stands at another terminal.',
  order_not_paid: 'This order is not paid.',
  ticket_printed: 'It is on paper already, or may be: print it again with a reason.',
  pin_wrong: 'The PIN is wrong.',
  pin_invalid: 'A PIN has 6 to 12 digits.',
  not_allowed: 'This screen does not do that.',
};

/** Nobody with the role that it takes has said yes. */
export class NotApproved extends Error {
  override name = 'NotApproved';
}

export function explain(error: unknown): string {
  if (error instanceof NotApproved) return error.message;
  if (error instanceof UnknownOutcome)
    return 'No answer from the hub, so nobody knows yet whether it was done. Press again: nothing is done twice.';
  if (!(error instanceof ProblemError)) return `Something went wrong here: ${String(error)}`;
  const { code, title, detail } = error.problem;
  if (code === 'role_too_low' && detail) return detail; // whose it is to do
  return TEXTS[code] ?? (detail && detail !== title ? `${title}: ${detail}` : title);
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof ProblemError && codes.includes(error.code);
}
