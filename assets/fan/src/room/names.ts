// Names of ticket types and fees: the usual ones are translated, the house's own are shown as they
// are written.

import { t, type Key } from '../lib/text.svelte.ts';

const TICKET_TYPES: Record<string, Key> = {
  adult: 'type.adult',
  full: 'type.adult',
  child: 'type.child',
  concession: 'type.concession',
  reduced: 'type.concession',
  student: 'type.student',
  senior: 'type.senior',
};

const FEES: Record<string, Key> = {
  service: 'fee.service',
  booking: 'fee.booking',
  order: 'fee.booking',
  handling: 'fee.booking',
  facility: 'fee.facility',
  dispatch: 'fee.dispatch',
  delivery: 'fee.dispatch',
};

export function ticketTypeName(type: string): string {
  const key = TICKET_TYPES[type.toLowerCase()];
  return key ? t(key) : readable(type);
}

export function feeName(code: string): string {
  const key = FEES[code.toLowerCase().replace(/_?fee$/, '')];
  return key ? t(key) : readable(code);
}

function readable(code: string): string {
  const words = code.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
