// What to say for each refusal. A code that is not here is shown by the hub's own title.

import { ProblemError, UnknownOutcome } from '../../../hub-client/index.ts';
import type { Problem } from '../../../protocol/index.ts';
import { DAY_AND_CLOCK, duration, yourTime } from './format.ts';
import { t, type Key } from './text.svelte.ts';

const TEXTS: Record<string, Key> = {
  not_signed_in: 'problem.not_signed_in',
  credentials_wrong: 'problem.credentials_wrong',
  email_taken: 'problem.email_taken',
  too_many_requests: 'problem.too_many_requests',
  busy: 'problem.busy',
  seats_unavailable: 'problem.seats_unavailable',
  none_together: 'problem.none_together',
  limit_reached: 'problem.limit_reached',
  seats_too_many: 'problem.seats_too_many',
  seats_apart: 'problem.seats_apart',
  seats_too_few: 'problem.seats_too_few',
  leaves_single_seat: 'problem.leaves_single_seat',
  companion_needs_accessible: 'problem.companion_needs_accessible',
  churn_spent: 'problem.churn_spent',
  hold_frozen: 'problem.hold_frozen',
  hold_ended: 'problem.hold_ended',
  hold_unknown: 'problem.hold_ended',
  sale_not_open: 'problem.sale_not_open',
  sale_closed: 'problem.sale_closed',
  sale_paused: 'problem.sale_paused',
  event_cancelled: 'problem.event_cancelled',
  order_not_open: 'problem.order_not_open',
  attempt_live: 'problem.attempt_live',
  too_late_to_pay: 'problem.too_late_to_pay',
  payment_gate_closed: 'problem.payment_gate_closed',
  amount_mismatch: 'problem.amount_mismatch',
  refund_not_allowed: 'problem.refund_not_allowed',
  refund_too_late: 'problem.refund_too_late',
  address_unchecked: 'problem.address_unchecked',
  challenge_invalid: 'problem.challenge',
  challenge_expired: 'problem.challenge',
  challenge_used: 'problem.challenge',
  challenge_foreign: 'problem.challenge',
  joins_too_many: 'problem.joins_too_many',
  line_not_joining: 'problem.line_not_joining',
  line_over: 'problem.line_not_joining',
  pass_missing: 'problem.pass_missing',
  pass_invalid: 'problem.pass_missing',
  pass_foreign: 'problem.pass_missing',
  pass_expired: 'problem.pass_over',
  pass_over: 'problem.pass_over',
  pass_moved: 'problem.pass_moved',
  event_full_of_holds: 'problem.event_full',
  event_full_of_checkouts: 'problem.event_full',
};

/** Which detail of a new account was refused; any other is told in the hub's own words. */
const ACCOUNT_FIELDS: Record<string, Key> = {
  email: 'problem.account_email',
  name: 'problem.account_name',
  password: 'problem.account_password',
};

/** Shorter ones are refused by the hub; longer ones by the form, long before the hub would. */
export const PASSWORD_LENGTH = { min: 10, max: 200 };

/** What to say beside a field of the form; nothing if it has none. */
export function aboutField(field: string, fresh: boolean, value = ''): string | undefined {
  if (field === 'password') {
    if (!fresh) return t('signin.password_missing');
    if (value.length < PASSWORD_LENGTH.min) return t('problem.password_short');
    // Every character of it may take several bytes, and the hub counts those.
    if (value.length >= PASSWORD_LENGTH.max / 2) return t('problem.password_long');
  }
  const key = ACCOUNT_FIELDS[field];
  return key && t(key);
}

export function explain(error: unknown): string {
  if (error instanceof ProblemError) return explainProblem(error.problem);
  if (error instanceof UnknownOutcome) return t('problem.unknown_outcome');
  return t('problem.unexpected');
}

export function explainProblem(problem: Problem): string {
  // The hub says "a second" where it does not count; only more than that is worth a word.
  if (problem.code === 'too_many_requests' && (problem.retry_after_s ?? 0) > 1)
    return t('problem.too_many_requests_in', { time: duration(problem.retry_after_s ?? 0) });
  const key =
    problem.code === 'account_invalid' ? ACCOUNT_FIELDS[problem.field ?? ''] : TEXTS[problem.code];
  if (!key) return problem.detail ? `${problem.title}: ${problem.detail}` : problem.title;
  return t(key, {
    limit: problem.limit ?? 0,
    minimum: problem.minimum ?? 0,
    left: problem.left ?? 0,
    held: problem.held ?? 0,
    bought: problem.bought ?? 0,
    time: problem.opens_at ? yourTime(problem.opens_at, DAY_AND_CLOCK) : '',
  });
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof ProblemError && codes.includes(error.code);
}
