// Names of kinds of events, ticket types and fees: the usual ones are translated, the house's own are shown as they
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

const KINDS: Record<string, Key> = {
  'chamber music': 'kind.chamber_music',
  classical: 'kind.classical',
  comedy: 'kind.comedy',
  concert: 'kind.concert',
  dance: 'kind.dance',
  family: 'kind.family',
  food: 'kind.food',
  jazz: 'kind.jazz',
  musical: 'kind.musical',
  'open air': 'kind.open_air',
  opera: 'kind.opera',
  pop: 'kind.pop',
  racing: 'kind.racing',
  rock: 'kind.rock',
  small: 'kind.small',
  sport: 'kind.sport',
  theatre: 'kind.theatre',
};

export function kindName(tag: string): string {
  const key = KINDS[tag.toLowerCase()];
  return key ? t(key) : tag;
}

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
