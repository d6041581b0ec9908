// Whoever looks after terminals sees which of them need a hand.

import { expect, it } from 'vitest';
import { reader, readerAt, standing, type TerminalListed } from './terminals.ts';

const NOW = '2026-11-30T20:00:00Z';
const AT = '2026-11-30T19:59:00Z';

function terminal(change: Partial<TerminalListed> = {}): TerminalListed {
  const health = { version: '0.1.0', paper: 'ok', reader: 'ok' } as const;
  const who = { id: '1', name: 'Counter 1', role: 'counter', revoked: false, locked_reason: null };
  return { ...who, health, health_at: AT, ...change };
}

it('is well while it speaks and has paper', () => {
  expect(standing(terminal(), NOW)).toBe('good');
});

it('asks for a hand without paper, printer or reader', () => {
  for (const paper of ['out', 'offline'] as const)
    expect(
      standing(terminal({ health: { version: '1', paper, reader: 'none' } }), NOW),
      paper,
    ).toBe('bad');
  const health = { version: '1', paper: 'ok', reader: 'offline' } as const;
  expect(standing(terminal({ health }), NOW)).toBe('bad');
});

it('believes what the reader’s provider said before what the terminal had heard', () => {
  const said = (...states: string[]) =>
    terminal({ reader_states: states.map((state) => ({ state, at: AT })) });
  expect(reader(said('offline'))).toBe('offline');
  expect(standing(said('online', 'offline'), NOW)).toBe('bad');
  expect(reader(said('busy'))).toBe('ok');
  expect(reader(said('unknown'))).toBe('ok'); // as the terminal said
  expect(readerAt(said('unknown'))).toBe(null);
  expect(readerAt(said('busy'))).toBe(AT);
});

it('is silent if it said nothing for minutes, whatever it said last', () => {
  expect(standing(terminal({ health: null, health_at: null }), NOW)).toBe('silent');
  expect(standing(terminal({ health_at: '2026-11-30T19:56:59Z' }), NOW)).toBe('silent');
});
