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

/** A terminal speaks once a minute: whoever is silent for three is off, or cut off. */
const SILENT_MS = 180_000;

/** `bad`: somebody has to go there. */
export function standing(
  { health, health_at }: TerminalListed,
  now: string,
): 'good' | 'bad' | 'silent' {
  if (!health || !health_at || Date.parse(now) - Date.parse(health_at) > SILENT_MS) return 'silent';
  const asks = ['out', 'offline'].includes(health.paper) || health.reader === 'offline';
  return asks ? 'bad' : 'good';
}
