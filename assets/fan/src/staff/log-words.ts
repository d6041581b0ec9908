// What a row of a line's log says, in words.

import { clockAt, count, DAY_AND_CLOCK } from '../lib/format.ts';
import { t, type Key } from '../lib/text.svelte.ts';
import type { LineChange } from './staff-hub.ts';

const NUMBERS: Record<string, Key> = {
  rate_minute_min: 'staff.log_rate_minute_min',
  rate_minute_max: 'staff.log_rate_minute_max',
  inside_max: 'staff.log_inside_max',
  holds_live_max: 'staff.log_holds_live_max',
  checkouts_live_max: 'staff.log_checkouts_live_max',
};
type Fields = Record<string, unknown>;
const fields = (of: unknown): Fields => (typeof of === 'object' && of !== null ? of : {}) as Fields;
const text = (of: unknown): string =>
  of === null || of === undefined ? '–' : typeof of === 'object' ? JSON.stringify(of) : String(of);
const number = (of: unknown, none: Key): string =>
  typeof of === 'number' ? count(of) : of === null || of === undefined ? t(none) : text(of);

/** Who it was; an operator is an address, which says enough. */
export function whoDid(actor: string): string {
  if (actor === 'controller') return t('staff.the_controller');
  if (actor === 'command line') return t('staff.the_command_line');
  const [, typist] = /^(.+), by command$/.exec(actor) ?? [];
  if (typist) return t('staff.command_line', { who: typist });
  return actor.replace(/^(operator|terminal) /, '');
}

/** What was done. `zone`: of the venue. */
export function whatWasDone(change: LineChange, zone: string): string {
  const { what, was, is_now: now } = change;
  const at = (of: unknown) =>
    typeof of === 'string' ? clockAt(of, zone, DAY_AND_CLOCK) : t('staff.not_set');
  if (change.actor === 'controller') {
    const [before, after] = [fields(was), fields(now)];
    return t('staff.log_pace', {
      was: number(before.rate_minute, 'staff.not_set'),
      now: number(after.rate_minute, 'staff.not_set'),
      inside: number(after.inside_max, 'staff.not_set'),
    });
  }
  if (what in NUMBERS) {
    return t(NUMBERS[what], {
      was: number(was, 'staff.no_limit'),
      now: number(now, 'staff.no_limit'),
    });
  }
  switch (what) {
    case 'opened': {
      const { joins_at, closes_at, inside_max } = fields(now);
      return t('staff.log_opened', {
        joins: at(joins_at),
        closes: at(closes_at),
        inside: number(inside_max, 'staff.not_set'),
      });
    }
    case 'rate_fixed':
      return t('staff.log_rate_fixed', {
        was: number(was, 'staff.not_set'),
        now: number(now, 'staff.not_set'),
      });
    case 'next_batch_at':
      return t('staff.log_next_batch_at', { was: at(was), now: at(now) });
    case 'paused':
      return t(now === true ? 'staff.log_paused' : 'staff.log_resumed');
    case 'message': {
      const words = Object.values(fields(now)).map(text).join(' · ');
      return words ? t('staff.log_message', { text: words }) : t('staff.log_message_gone');
    }
    case 'public_value':
      return t('staff.log_public_value', { now: text(now) });
    case 'reveal':
      return t('staff.log_reveal');
    case 'redraw':
      return t('staff.log_redraw', { was: text(was), now: text(now) });
    case 'revoked':
      return t('staff.log_revoked', { was: text(was) });
    case 'passed_by_role':
      return t(now === 'kiosk' ? 'staff.log_by_kiosk' : 'staff.log_by_counter');
    default:
      return t('staff.log_other', { what, was: text(was), now: text(now) });
  }
}
