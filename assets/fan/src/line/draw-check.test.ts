// A draw made here, checked as the page checks it; and what somebody might have altered, found.

import { describe, expect, it } from 'vitest';
import {
  commitment,
  HASH_BYTES,
  leafOf,
  placesOf,
  rootOf,
  seedOf,
  toHex,
} from '../../../protocol/draw.ts';
import type { LineDraw } from '../../../protocol/index.ts';
import { sha256 } from '../../../protocol/sha256.ts';
import { checkSteps, placeOf, STEPS, type Asked, type Finding } from './draw-check.ts';

const EVENT = 12;
const COUNT = 37;
const secret = new Uint8Array(32).fill(9);
const value = Uint8Array.of(1, 2, 3);
const keyOf = (number: number) => new Uint8Array(16).fill(number);

async function published(source: string | null) {
  const leaves = new Uint8Array(COUNT * HASH_BYTES);
  for (let n = 0; n < COUNT; n++) leaves.set(leafOf(EVENT, n, keyOf(n)), n * HASH_BYTES);
  const root = rootOf(leaves);
  const round = source && 'round 7';
  const draw: LineDraw = {
    no: 1,
    kind: source ? 'verifiable' : 'committed',
    commitment: toHex(commitment({ eventId: EVENT, drawNo: 1, source, round, secret })),
    source,
    round,
    entry_count: COUNT,
    root: toHex(root),
    public_value: source && toHex(value),
    secret: toHex(secret),
  };
  const places = await placesOf(seedOf(secret, root, source ? value : null), COUNT);
  return { draw, leaves, places };
}

/** The path from a leaf up, by the plainest way there is. */
function pathOf(leaves: Uint8Array, number: number): string[] {
  const of = (from: number, to: number): Uint8Array => {
    if (to - from === 1) return leaves.slice(from * HASH_BYTES, to * HASH_BYTES);
    const split = 2 ** (Math.ceil(Math.log2(to - from)) - 1);
    return sha256(Uint8Array.of(1), of(from, from + split), of(from + split, to));
  };
  const path: string[] = [];
  let [from, to] = [0, COUNT];
  while (to - from > 1) {
    const split = from + 2 ** (Math.ceil(Math.log2(to - from)) - 1);
    if (number < split) {
      path.unshift(toHex(of(split, to)));
      to = split;
    } else {
      path.unshift(toHex(of(from, split)));
      from = split;
    }
  }
  return path;
}

async function check(changes: Partial<Asked> = {}, source: string | null = 'a beacon') {
  const { draw, leaves, places } = await published(source);
  const found: Finding[] = [];
  const number = 5;
  const asked = {
    event: EVENT,
    draw,
    number,
    entryKey: toHex(keyOf(number)),
    place: places[number],
    ...changes,
  };
  await checkSteps(
    { ...asked, draw: { ...draw, ...changes.draw } },
    {
      leaves: async () => leaves,
      proof: async (number) => ({
        draw_no: 1,
        number,
        leaf: toHex(leaves.slice(number * HASH_BYTES, (number + 1) * HASH_BYTES)),
        path: pathOf(leaves, number),
        root: draw.root!,
        count: COUNT,
      }),
    },
    (finding) => found.push(finding),
  );
  expect(found.map(({ step }) => step)).toEqual(STEPS);
  return Object.fromEntries(found.map(({ step, is }) => [step, is]));
}

const altered = (changes: Partial<LineDraw>) => ({ draw: changes as LineDraw });
const allRight = {
  commitment: 'right',
  value: 'given',
  root: 'right',
  proof: 'right',
  place: 'right',
};

describe('a draw', () => {
  it('that is as it was published holds in every step', async () => {
    expect(await check()).toEqual(allRight);
    expect(await check({}, null)).toEqual({ ...allRight, value: 'none' });
  });

  it('is found out where anything was altered', async () => {
    expect((await check(altered({ secret: '00'.repeat(32) }))).commitment).toBe('wrong');
    expect((await check(altered({ source: 'another beacon' }))).commitment).toBe('wrong');
    expect((await check(altered({ root: '00'.repeat(32) }))).root).toBe('wrong');
    expect((await check(altered({ root: '00'.repeat(32) }))).proof).toBe('wrong');
    expect((await check(altered({ entry_count: COUNT - 1 }))).root).toBe('wrong');
    expect((await check(altered({ public_value: '01' }))).place).toBe('wrong');
    expect((await check(altered({ public_value: '01' }), null)).value).toBe('wrong');
    expect((await check({ place: 36 })).place).toBe('wrong');
    expect((await check({ entryKey: '00'.repeat(16) })).proof).toBe('wrong');
  });

  it('is found out by what its people kept, if commitment and secret were both put in another place', async () => {
    const { draw } = await published('a beacon');
    const kept = (commitment: string, no = 1) => check({ kept: { no, commitment } });
    expect(await kept(draw.commitment)).toEqual(allRight);
    expect((await kept('00'.repeat(32))).commitment).toBe('wrong');
    expect(await kept('00'.repeat(32), 2), 'of another draw').toEqual(allRight);
    const early = await check({
      ...altered({ secret: null }),
      kept: { no: 1, commitment: '00'.repeat(32) },
    });
    expect(early.commitment, 'before the secret is out').toBe('wrong');
  });

  it('has no value that was out before its entries were fixed', async () => {
    const times = (rooted_at: string) =>
      check(altered({ rooted_at, value_due_at: '2027-03-01T08:01:00Z' }));
    expect(await times('2027-03-01T08:00:01.5Z')).toEqual(allRight);
    expect((await times('2027-03-01T08:01:00Z')).value).toBe('wrong');
  });

  it('passes nothing that is not published yet', async () => {
    expect(
      await check(altered({ secret: null, public_value: null, root: null, entry_count: null })),
    ).toEqual({ commitment: 'open', value: 'open', root: 'open', proof: 'open', place: 'open' });
  });

  it('gives whoever came after it their number', async () => {
    const late = await check({ number: COUNT + 3, place: COUNT + 3, entryKey: null });
    expect(late).toEqual({ ...allRight, proof: 'none' });
  });

  it('gives a place to whoever waits, unless its commitment is broken', async () => {
    const { draw, places } = await published('a beacon');
    expect(await placeOf(EVENT, draw, 5)).toBe(places[5]);
    expect(await placeOf(EVENT, draw, COUNT)).toBe(COUNT);
    expect(await placeOf(EVENT, { ...draw, secret: null }, 5)).toBeNull();
    expect(await placeOf(EVENT, { ...draw, secret: '00'.repeat(32) }, 5)).toBeNull();
  });
});
