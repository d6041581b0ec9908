// The binary frames of an event's feed, as PROTOCOL.md lays them out.
//
// Invariants
// - Little endian, a header of 40 bytes, then the body of the kind.
// - Decoding never trusts a length: whatever does not fit throws FrameError, nothing is guessed.
// - Epoch and frame stay below 2^53, so they are plain numbers here.

export const FRAME_VERSION = 1;
export const HEADER_BYTES = 40;
const SINCE_BYTES = 8;
const RANGE_BYTES = SINCE_BYTES + 8;
const LINE_BYTES_MAX = 16 * 1024;

export const Kind = { delta: 1, resync: 2, snapshot: 3, span: 5, line: 6, range: 7 } as const;

export const Status = { available: 0, held: 1, sold: 2, blocked: 3 } as const;
export type Status = 0 | 1 | 2 | 3;
export const STATUS_NAMES = ['available', 'held', 'sold', 'blocked'] as const;
export type StatusName = (typeof STATUS_NAMES)[number];

export interface Header {
  seatCount: number;
  eventId: number;
  epoch: number;
  frame: number;
  /** When the oldest change of the frame was made, in ms since 1970, by the database's clock. */
  committedAt: number;
}

/** A frame's changes; a span has the latest state of each seat that changed in several frames. */
export interface Delta extends Header {
  kind: 'delta' | 'span';
  /** It is for whoever stands at this frame, or between it and `frame`. A delta follows on `frame - 1`. */
  since: number;
  /** Seat numbers, ascending; `statuses` runs beside it. */
  seats: Uint32Array;
  statuses: Uint8Array;
}

export interface Resync extends Header {
  kind: 'resync';
}

export interface Snapshot extends Header {
  kind: 'snapshot';
  /** One status a seat, by seat number. */
  statuses: Uint8Array;
}

/** What a span says, of neighbours: the state of as many seats as `statuses` has, from `first` on. */
export interface Range extends Header {
  kind: 'range';
  since: number;
  first: number;
  statuses: Uint8Array;
}

/** A line of people, whole: `frame` is its revision, and there are no seats. */
export interface LineFrame extends Header {
  kind: 'line';
  /** Of a `Line`. */
  json: string;
}

export type Frame = Delta | Range | LineFrame | Resync | Snapshot;

export type FrameFault =
  | 'Short'
  | 'Long'
  | 'UnknownVersion'
  /** A newer hub speaks of something else; a reader skips it. */
  | 'UnknownKind'
  | 'TooLarge'
  | 'SeatOrder'
  | 'StrayBits'
  | 'NotText'
  | 'BadBody';

export class FrameError extends Error {
  override name = 'FrameError';
  constructor(
    readonly fault: FrameFault,
    message: string,
  ) {
    super(message);
  }
}

/** Decodes one frame that fills `bytes` exactly. */
export function decodeFrame(bytes: ArrayBuffer | Uint8Array): Frame {
  const view = viewOf(bytes);
  if (view.byteLength < HEADER_BYTES) {
    throw new FrameError(
      'Short',
      `a frame has at least ${HEADER_BYTES} bytes, this has ${view.byteLength}`,
    );
  }
  const version = view.getUint8(0);
  if (version !== FRAME_VERSION)
    throw new FrameError('UnknownVersion', `unknown frame version ${version}`);
  const header: Header = {
    seatCount: view.getUint32(4, true),
    eventId: safeInteger(view, 8),
    epoch: safeInteger(view, 16),
    frame: safeInteger(view, 24),
    committedAt: safeInteger(view, 32),
  };
  const kind = view.getUint8(1);
  const count = view.getUint16(2, true);
  const body = view.byteLength - HEADER_BYTES;
  switch (kind) {
    case Kind.delta:
      expectBody(body, count * 4);
      return {
        kind: 'delta',
        ...header,
        since: header.frame - 1,
        ...decodeChanges(view, HEADER_BYTES, count, header.seatCount),
      };
    case Kind.span: {
      expectBody(body, SINCE_BYTES + count * 4);
      const since = safeInteger(view, HEADER_BYTES);
      if (since >= header.frame) throw new FrameError('TooLarge', `a span back from ${since}`);
      const changes = decodeChanges(view, HEADER_BYTES + SINCE_BYTES, count, header.seatCount);
      return { kind: 'span', ...header, since, ...changes };
    }
    case Kind.range: {
      if (body < RANGE_BYTES) throw new FrameError('Short', 'a range without its numbers');
      if (count > 0) throw new FrameError('StrayBits', 'a range counts with 32 bits');
      const since = safeInteger(view, HEADER_BYTES);
      if (since >= header.frame) throw new FrameError('TooLarge', `a range back from ${since}`);
      const first = view.getUint32(HEADER_BYTES + SINCE_BYTES, true);
      const seats = view.getUint32(HEADER_BYTES + SINCE_BYTES + 4, true);
      if (first + seats > header.seatCount)
        throw new FrameError('SeatOrder', `${seats} seats from ${first} of ${header.seatCount}`);
      expectBody(body, RANGE_BYTES + Math.ceil(seats / 4));
      const statuses = decodeStatuses(view, HEADER_BYTES + RANGE_BYTES, seats);
      return { kind: 'range', ...header, since, first, statuses };
    }
    case Kind.line: {
      if (header.seatCount > 0) throw new FrameError('StrayBits', 'a line has no seats');
      if (count > LINE_BYTES_MAX) throw new FrameError('TooLarge', `a line of ${count} bytes`);
      expectBody(body, count);
      return { kind: 'line', ...header, json: decodeText(view, HEADER_BYTES, count) };
    }
    case Kind.resync:
      expectBody(body, 0);
      return { kind: 'resync', ...header };
    case Kind.snapshot:
      expectBody(body, Math.ceil(header.seatCount / 4));
      return {
        kind: 'snapshot',
        ...header,
        statuses: decodeStatuses(view, HEADER_BYTES, header.seatCount),
      };
    default:
      throw new FrameError('UnknownKind', `unknown frame kind ${kind}`);
  }
}

export type Polled = Exclude<Frame, Snapshot>;

/** What `/frames` answers: the head, then what led there. */
export interface FramesBody {
  head: Resync;
  frames: Polled[];
}

/** Decodes the body of `/frames`: length-prefixed frames, oldest first, after one that names the head. */
export function decodeFrames(bytes: ArrayBuffer | Uint8Array): FramesBody {
  const view = viewOf(bytes);
  const frames: Polled[] = [];
  let at = 0;
  while (at < view.byteLength) {
    if (at + 4 > view.byteLength) throw new FrameError('Short', 'a length is cut off');
    const length = view.getUint32(at, true);
    at += 4;
    if (at + length > view.byteLength) throw new FrameError('Short', 'a frame is cut off');
    const frame = decodeKnown(new Uint8Array(view.buffer, view.byteOffset + at, length));
    if (frame?.kind === 'snapshot') throw new FrameError('BadBody', 'a snapshot among the frames');
    if (frame) frames.push(frame);
    at += length;
  }
  const head = frames.shift();
  if (head?.kind !== 'resync')
    throw new FrameError('BadBody', 'the first entry must name the head');
  return { head, frames };
}

/** Like `decodeFrame`, but null for a kind that only newer readers know. */
export function decodeKnown(bytes: ArrayBuffer | Uint8Array): Frame | null {
  try {
    return decodeFrame(bytes);
  } catch (error) {
    if (error instanceof FrameError && error.fault === 'UnknownKind') return null;
    throw error;
  }
}

export function encodeFrame(frame: Frame): Uint8Array<ArrayBuffer> {
  const text = frame.kind === 'line' ? new TextEncoder().encode(frame.json) : null;
  const packed = frame.kind === 'snapshot' || frame.kind === 'range' ? frame.statuses : null;
  const count = 'seats' in frame ? frame.seats.length : (text?.length ?? 0);
  const changesAt = HEADER_BYTES + (frame.kind === 'span' ? SINCE_BYTES : 0);
  const packedAt = HEADER_BYTES + (frame.kind === 'range' ? RANGE_BYTES : 0);
  const body =
    'seats' in frame
      ? changesAt - HEADER_BYTES + count * 4
      : packed
        ? packedAt - HEADER_BYTES + Math.ceil(packed.length / 4)
        : count;
  const bytes = new Uint8Array(HEADER_BYTES + body);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, FRAME_VERSION);
  view.setUint8(1, Kind[frame.kind]);
  view.setUint16(2, count, true);
  view.setUint32(4, frame.seatCount, true);
  view.setBigUint64(8, BigInt(frame.eventId), true);
  view.setBigUint64(16, BigInt(frame.epoch), true);
  view.setBigUint64(24, BigInt(frame.frame), true);
  view.setBigUint64(32, BigInt(frame.committedAt), true);
  if (frame.kind === 'span' || frame.kind === 'range')
    view.setBigUint64(HEADER_BYTES, BigInt(frame.since), true);
  if (frame.kind === 'range') {
    view.setUint32(HEADER_BYTES + SINCE_BYTES, frame.first, true);
    view.setUint32(HEADER_BYTES + SINCE_BYTES + 4, frame.statuses.length, true);
  }
  if (text) bytes.set(text, HEADER_BYTES);
  if ('seats' in frame) {
    for (let i = 0; i < count; i++) {
      const word = ((frame.seats[i] << 2) | frame.statuses[i]) >>> 0;
      view.setUint32(changesAt + i * 4, word, true);
    }
  } else if (packed) {
    for (let i = 0; i < packed.length; i++) {
      bytes[packedAt + (i >> 2)] |= packed[i] << ((i & 3) * 2);
    }
  }
  return bytes;
}

export function encodeFrames(head: Resync, frames: readonly Polled[]): Uint8Array<ArrayBuffer> {
  const encoded = [head, ...frames].map(encodeFrame);
  const bytes = new Uint8Array(encoded.reduce((sum, one) => sum + 4 + one.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const one of encoded) {
    view.setUint32(at, one.length, true);
    bytes.set(one, at + 4);
    at += 4 + one.length;
  }
  return bytes;
}

function decodeChanges(view: DataView, start: number, count: number, seatCount: number) {
  const seats = new Uint32Array(count);
  const statuses = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const word = view.getUint32(start + i * 4, true);
    const seat = word >>> 2;
    if (seat >= seatCount) throw new FrameError('SeatOrder', `seat ${seat} of ${seatCount}`);
    if (i > 0 && seat <= seats[i - 1]) throw new FrameError('SeatOrder', 'seats must ascend');
    seats[i] = seat;
    statuses[i] = word & 3;
  }
  return { seats, statuses };
}

function decodeText(view: DataView, start: number, length: number): string {
  const bytes = new Uint8Array(view.buffer, view.byteOffset + start, length);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FrameError('NotText', 'a line that is not UTF-8');
  }
}

function decodeStatuses(view: DataView, start: number, count: number): Uint8Array {
  const statuses = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    statuses[i] = (view.getUint8(start + (i >> 2)) >> ((i & 3) * 2)) & 3;
  }
  const spare = (4 - (count & 3)) & 3;
  if (spare > 0 && view.getUint8(view.byteLength - 1) >> ((4 - spare) * 2) !== 0) {
    throw new FrameError('StrayBits', 'bits beyond the last seat');
  }
  return statuses;
}

function expectBody(is: number, want: number): void {
  if (is !== want)
    throw new FrameError(
      is < want ? 'Short' : 'Long',
      `a body of ${want} bytes was announced, ${is} came`,
    );
}

function safeInteger(view: DataView, at: number): number {
  const value = view.getBigUint64(at, true);
  if (value > BigInt(Number.MAX_SAFE_INTEGER))
    throw new FrameError('TooLarge', `${value} is above 2^53`);
  return Number(value);
}

function viewOf(bytes: ArrayBuffer | Uint8Array): DataView {
  return bytes instanceof ArrayBuffer
    ? new DataView(bytes)
    : new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
