import { describe, expect, it } from 'vitest';
import { Room } from './room.ts';

const head = (epoch: number, frame: number) => ({
  seatCount: 4,
  eventId: 7,
  epoch,
  frame,
  committedAt: 0,
});
const snapshot = (epoch: number, frame: number) =>
  ({ kind: 'snapshot', ...head(epoch, frame), statuses: new Uint8Array(4) }) as const;
const resync = (epoch: number, frame: number) =>
  ({ kind: 'resync', ...head(epoch, frame) }) as const;
const delta = (epoch: number, frame: number) =>
  ({
    kind: 'delta',
    ...head(epoch, frame),
    since: frame - 1,
    seats: Uint32Array.of(1),
    statuses: Uint8Array.of(2),
  }) as const;

/** As the follower in Rust has it (`protocol/src/track.rs`). */
describe("a room and the relay's epochs", () => {
  it('takes a snapshot of a later epoch than it waits for', () => {
    const room = new Room();
    room.adopt(snapshot(4, 10));
    expect(room.take(resync(4, 12))).toEqual({ is: 'out_of_step' });
    expect(room.adopt(snapshot(6, 0))).toBe(true);
    expect([room.epoch, room.frame, room.synced]).toEqual([6, 0, true]);
  });

  it('is not taken back by what a cache kept of an earlier epoch', () => {
    const room = new Room();
    room.adopt(snapshot(6, 3));
    expect(room.take(resync(4, 90))).toEqual({ is: 'stale' });
    expect(room.take(delta(4, 91))).toEqual({ is: 'stale' });
    expect(room.take(delta(6, 4)).is).toBe('applied');
  });

  it('does not compare the epochs of nodes without a feed', () => {
    const room = new Room();
    room.adopt(snapshot(7, 3));
    expect(room.take(resync(5, 1))).toEqual({ is: 'out_of_step' });
    expect(room.adopt(snapshot(7, 9))).toBe(false);
    expect(room.adopt(snapshot(5, 1))).toBe(true);
  });
});

describe('a span', () => {
  const span = (since: number, frame: number) =>
    ({ ...delta(4, frame), kind: 'span', since }) as const;

  it('is for whoever stands within it', () => {
    for (const [at, is] of [
      [9, 'out_of_step'],
      [10, 'applied'],
      [13, 'applied'],
      [14, 'stale'],
    ] as const) {
      const room = new Room();
      room.adopt(snapshot(4, at));
      expect(room.take(span(10, 14)).is).toBe(is);
      expect(room.frame).toBe(is === 'applied' ? 14 : at);
    }
  });

  it('may be a range of neighbours, of which only those that differ are told', () => {
    const room = new Room();
    room.adopt({ ...snapshot(4, 11), statuses: Uint8Array.of(0, 1, 2, 3) });
    const range = {
      ...head(4, 14),
      kind: 'range',
      since: 10,
      first: 1,
      statuses: Uint8Array.of(1, 0, 0),
    } as const;
    const taken = room.take(range);
    expect(taken).toMatchObject({ is: 'applied', frame: { kind: 'span', frame: 14 } });
    if (taken.is === 'applied') {
      expect([...taken.frame.seats]).toEqual([2, 3]);
      expect([...taken.frame.statuses]).toEqual([0, 0]);
    }
    expect([...room.statuses!]).toEqual([0, 1, 0, 0]);
    expect(room.take(range)).toEqual({ is: 'stale' });
  });

  it('bridges to a snapshot that reaches into it', () => {
    const room = new Room();
    room.adopt(snapshot(4, 5));
    room.take(span(10, 14));
    expect(room.adopt(snapshot(4, 9))).toBe(false);
    expect(room.adopt(snapshot(4, 12))).toBe(true);
    expect([room.frame, room.synced]).toEqual([14, true]);
  });
});
