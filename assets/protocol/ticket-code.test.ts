// The golden ticket codes, read by Node's own cryptography: whoever builds a door from TICKET.md gets
// the same answers as the hub.

import { createPublicKey, verify, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Golden {
  keys: { id: number; public: string }[];
  codes: {
    name: string;
    code: string;
    error?: string;
    key_id?: number;
    ticket_id?: string;
    event_id?: number;
    seat_no?: number;
  }[];
}

const golden = JSON.parse(
  readFileSync(new URL('../../protocol/golden-tickets/codes.json', import.meta.url), 'utf8'),
) as Golden;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const CLAIM = 29;
const WHOLE = 93;
/** What stands before the 32 bytes of an Ed25519 key in its usual wrapping (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

function base32(text: string): Buffer | null {
  let bits = 0n;
  for (const letter of text) {
    const value = ALPHABET.indexOf(letter);
    if (value < 0) return null;
    bits = (bits << 5n) | BigInt(value);
  }
  const loose = (text.length * 5) % 8;
  if (bits & ((1n << BigInt(loose)) - 1n)) return null;
  const bytes = Math.floor((text.length * 5) / 8);
  if (Math.ceil((bytes * 8) / 5) !== text.length) return null;
  const hex = (bits >> BigInt(loose)).toString(16).padStart(bytes * 2, '0');
  return Buffer.from(bytes ? hex : '', 'hex');
}

function read(text: string, keys: Map<number, KeyObject>) {
  const bytes = base32(text.replace(/[\s-]/g, '').toUpperCase());
  if (bytes?.length !== WHOLE || bytes[0] !== 1) return { error: 'not_a_code' };
  const keyId = bytes.readUInt16BE(1);
  const key = keys.get(keyId);
  if (!key) return { error: 'key_unknown' };
  if (!verify(null, bytes.subarray(0, CLAIM), key, bytes.subarray(CLAIM)))
    return { error: 'forged' };
  const id = bytes.subarray(3, 19).toString('hex');
  return {
    key_id: keyId,
    ticket_id: id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
    event_id: bytes.readUIntBE(19, 6),
    seat_no: bytes.readUInt32BE(25),
  };
}

const keys = new Map(
  golden.keys.map(({ id, public: hex }) => [
    id,
    createPublicKey({
      key: Buffer.concat([SPKI, Buffer.from(hex, 'hex')]),
      format: 'der',
      type: 'spki',
    }),
  ]),
);

test.each(golden.codes)('$name', ({ name: _, code, ...meaning }) => {
  expect(read(code, keys)).toEqual(meaning);
});
