// How a terminal is, from what it said last and when.

import type { Key } from '../lib/text.svelte.ts';

export interface TerminalListed {
  id: string;
  name: string;
  role: string;
  revoked: boolean;
  locked_reason: string | null;
  health: {
    version: string;
    paper: 'ok' | 'low' | 'out' | 'offline' | 'unknown';
    reader: 'ok' | 'offline' | 'none' | 'unknown';
  } | null;
  health_at: string | null;
  /** What the readers' provider told the hub; missing from one that does not ask. */
  reader_states?: { state: string; at: string | null }[];
}

export const PAPER: Record<NonNullable<TerminalListed['health']>['paper'], Key> = {
  ok: 'staff.paper_ok',
  low: 'staff.paper_low',
  out: 'staff.paper_out',
  offline: 'staff.paper_offline',
  unknown: 'staff.paper_unknown',
};

export const READER: Record<NonNullable<TerminalListed['health']>['reader'], Key> = {
  ok: 'staff.reader_ok',
  offline: 'staff.reader_offline',
  none: 'staff.reader_none',
  unknown: 'staff.reader_unknown',
};

/** How its readers are: as their provider told the hub, which is later than what the terminal heard of it. */
export function reader({ health, reader_states }: TerminalListed): keyof typeof READER {
  const told = reader_states?.filter(({ state }) => state !== 'unknown') ?? [];
  if (told.length === 0) return health?.reader ?? 'unknown';
  return told.some(({ state }) => state === 'offline') ? 'offline' : 'ok';
}

/** When that was said; null if it was the terminal alone that said something. */
export const readerAt = ({ reader_states }: TerminalListed): string | null =>
  reader_states?.find(({ state }) => state !== 'unknown')?.at ?? null;

/** A terminal speaks once a minute: whoever is silent for three is off, or cut off. */
const SILENT_MS = 180_000;

/** `bad`: somebody has to go there. */
export function standing(terminal: TerminalListed, now: string): 'good' | 'bad' | 'silent' {
  const { health, health_at } = terminal;
  if (!health || !health_at || Date.parse(now) - Date.parse(health_at) > SILENT_MS) return 'silent';
  const asks = ['out', 'offline'].includes(health.paper) || reader(terminal) === 'offline';
  return asks ? 'bad' : 'good';
}
