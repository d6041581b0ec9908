// SHA-256 (FIPS 180-4), of many short messages at once: a browser's own answers each with a promise, which
// for a million nodes of a tree takes ten times as long as the hashing.

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const K = new Int32Array(64);
/** The same of the square roots of the first 8. */
const FIRST = new Int32Array(8);

{
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  // A double keeps 52 bits, of which 32 behind the point are asked for: none of these roots is near a border.
  const fraction = (root: number) => (root - Math.floor(root)) * 2 ** 32;
  primes.forEach((p, i) => {
    K[i] = fraction(Math.cbrt(p));
    if (i < 8) FIRST[i] = fraction(Math.sqrt(p));
  });
}

const words = new Int32Array(64);
const state = new Int32Array(8);

function block(view: DataView, at: number): void {
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const w = words[i - 15]!;
    const v = words[i - 2]!;
    const low = ((w >>> 7) | (w << 25)) ^ ((w >>> 18) | (w << 14)) ^ (w >>> 3);
    const high = ((v >>> 17) | (v << 15)) ^ ((v >>> 19) | (v << 13)) ^ (v >>> 10);
    words[i] = (words[i - 16]! + low + words[i - 7]! + high) | 0;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const high = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const one = (h + high + ((e & f) ^ (~e & g)) + K[i]! + words[i]!) | 0;
    const low = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const two = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

/** A hasher for messages of one length, so that the padding is written once. */
export class Sha256 {
  /** The message; filled by the caller before each `into`. */
  readonly message: Uint8Array;
  readonly #padded: DataView;

  constructor(length: number) {
    const bytes = new Uint8Array(Math.ceil((length + 9) / 64) * 64);
    bytes[length] = 0x80;
    this.#padded = new DataView(bytes.buffer);
    this.#padded.setBigUint64(bytes.length - 8, BigInt(length) * 8n);
    this.message = bytes.subarray(0, length);
  }

  /** Writes the hash of `message` to `out` from `at`. */
  into(out: DataView, at: number): void {
    state.set(FIRST);
    for (let from = 0; from < this.#padded.byteLength; from += 64) block(this.#padded, from);
    for (let i = 0; i < 8; i++) out.setInt32(at + 4 * i, state[i]!);
  }
}

/** The hash of these bytes, one after the other. */
export function sha256(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const hasher = new Sha256(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    hasher.message.set(part, at);
    at += part.length;
  }
  const hash = new Uint8Array(32);
  hasher.into(new DataView(hash.buffer), 0);
  return hash;
}
