// The draw of a line, recomputed from what is published, as DRAW.md lays it out: whoever waits need not believe
// what their hub says about their place.
//
// Invariants
// - Nothing is asked of a hub here: bytes in, places or a fault out.
// - Hashes are 32 bytes; leaves are the hashes of numbers 0, 1, 2… one after the other.
// - `places` needs the browser's own AES (a page over https, or of this machine).

import { Sha256, sha256 } from './sha256.ts';

type Bytes = Uint8Array<ArrayBuffer>;

export const HASH_BYTES = 32;

/** What is published of a draw that is over. */
export interface PublishedDraw {
  eventId: number;
  /** From 1. */
  drawNo: number;
  /** Where the public value comes from; `null` for a draw that is only committed. */
  source: string | null;
  round: string | null;
  commitment: Uint8Array;
  count: number;
  root: Uint8Array;
  publicValue: Uint8Array | null;
  secret: Uint8Array;
}

/** Why a draw is not what its hub says. */
export type DrawFault = 'commitment' | 'count' | 'root' | 'value_missing' | 'value_not_announced';

export class DrawError extends Error {
  override name = 'DrawError';
  constructor(readonly fault: DrawFault) {
    super(`the draw does not hold: ${fault}`);
  }
}

const text = new TextEncoder();
const COMMITMENT = text.encode('fullhouse draw commitment v1\n');
const SEED = text.encode('fullhouse draw seed v1\n');

function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

function u64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}

export function fromHex(hex: string): Bytes {
  if (hex.length % 2 || /[^0-9a-f]/i.test(hex)) throw new TypeError('not hex');
  return Uint8Array.from({ length: hex.length / 2 }, (_, i) =>
    Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16),
  );
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** What was published before the first entry. */
export function commitment(
  draw: Pick<PublishedDraw, 'eventId' | 'drawNo' | 'source' | 'round' | 'secret'>,
): Bytes {
  const source = text.encode(draw.source ?? '');
  const round = text.encode(draw.round ?? '');
  return sha256(
    COMMITMENT,
    u64(draw.eventId),
    u32(draw.drawNo),
    draw.secret,
    u32(source.length),
    source,
    u32(round.length),
    round,
  );
}

/** What stands for an entry among the leaves. */
export function leafOf(eventId: number, number: number, entryKey: Uint8Array): Bytes {
  return sha256(Uint8Array.of(0), u64(eventId), u64(number), entryKey);
}

/** The root of all leaves (RFC 6962). Half a million take a second or two: not on a page's own thread. */
export function rootOf(leaves: Uint8Array): Bytes {
  if (leaves.length % HASH_BYTES) throw new RangeError('not whole hashes');
  let count = leaves.length / HASH_BYTES;
  if (!count) return sha256();
  const level = leaves.slice();
  const out = new DataView(level.buffer);
  const node = new Sha256(1 + 2 * HASH_BYTES);
  node.message[0] = 1;
  while (count > 1) {
    const pairs = count >> 1;
    for (let i = 0; i < pairs; i++) {
      const from = 2 * i * HASH_BYTES;
      node.message.set(level.subarray(from, from + 2 * HASH_BYTES), 1);
      node.into(out, i * HASH_BYTES);
    }
    // A leaf without a partner goes up unchanged.
    if (count % 2)
      level.copyWithin(pairs * HASH_BYTES, (count - 1) * HASH_BYTES, count * HASH_BYTES);
    count = pairs + (count % 2);
  }
  return level.slice(0, HASH_BYTES);
}

/** Whether a path leads from a leaf, as the entry of `number` among `count`, to the root. */
export function proves(
  root: Uint8Array,
  count: number,
  number: number,
  leaf: Uint8Array,
  path: Uint8Array[],
): boolean {
  if (number >= count) return false;
  let hash: Uint8Array = leaf;
  let at = number;
  let last = count - 1;
  let step = 0;
  while (last > 0) {
    if (at % 2 || at < last) {
      const beside = path[step++];
      if (beside?.length !== HASH_BYTES) return false;
      const pair = at % 2 ? [beside, hash] : [hash, beside];
      hash = sha256(Uint8Array.of(1), ...pair);
    }
    at = Math.floor(at / 2);
    last = Math.floor(last / 2);
  }
  return step === path.length && same(hash, root);
}

/** What the places follow from. */
export function seedOf(
  secret: Uint8Array,
  root: Uint8Array,
  publicValue: Uint8Array | null,
): Bytes {
  const value = publicValue ?? new Uint8Array();
  return sha256(SEED, secret, root, u32(value.length), value);
}

/** Of the key stream at a time: half a million entries take two pieces. */
const STREAM_BYTES = 1 << 20;

/** The key stream of AES-256-CTR from a multiple of its block. */
async function stream(key: CryptoKey, from: number, length: number): Promise<DataView> {
  const counter = new Uint8Array(16);
  new DataView(counter.buffer).setBigUint64(8, BigInt(from / 16));
  const zeros = new Uint8Array(length);
  return new DataView(
    await crypto.subtle.encrypt({ name: 'AES-CTR', counter, length: 128 }, key, zeros),
  );
}

/** The place of each number, from 0. */
export async function placesOf(seed: Uint8Array, count: number): Promise<Uint32Array<ArrayBuffer>> {
  if (!globalThis.crypto?.subtle)
    throw new Error('this page has no cryptography: open it over https');
  const key = await crypto.subtle.importKey('raw', Uint8Array.from(seed), 'AES-CTR', false, [
    'encrypt',
  ]);
  const places = Uint32Array.from({ length: count }, (_, number) => number);
  // A few words are passed over: a little more than four bytes an entry, in whole blocks.
  const size = Math.min(STREAM_BYTES, 64 + Math.ceil(count / 4) * 16);
  let words: DataView = new DataView(new ArrayBuffer(0));
  let start = 0;
  let used = 0;
  for (let last = count - 1; last > 0; last--) {
    const bound = last + 1;
    const fair = Math.floor(2 ** 32 / bound) * bound;
    let word: number;
    do {
      if (used === words.byteLength) {
        start += used;
        words = await stream(key, start, size);
        used = 0;
      }
      word = words.getUint32(used, true);
      used += 4;
    } while (word >= fair);
    const at = word % bound;
    const place = places[at]!;
    places[at] = places[last]!;
    places[last] = place;
  }
  return places;
}

/**
 * Recomputes a draw from what is published: the place of every number, or a `DrawError` that says what is wrong.
 * Whether the public value is what its source gave is for whoever checks to compare.
 */
export async function checkDraw(
  draw: PublishedDraw,
  leaves: Uint8Array,
): Promise<Uint32Array<ArrayBuffer>> {
  if (!same(commitment(draw), draw.commitment)) throw new DrawError('commitment');
  const announced = draw.source !== null;
  if (announced && draw.publicValue === null) throw new DrawError('value_missing');
  if (!announced && draw.publicValue !== null) throw new DrawError('value_not_announced');
  if (leaves.length !== draw.count * HASH_BYTES) throw new DrawError('count');
  if (!same(rootOf(leaves), draw.root)) throw new DrawError('root');
  return placesOf(seedOf(draw.secret, draw.root, draw.publicValue), draw.count);
}
