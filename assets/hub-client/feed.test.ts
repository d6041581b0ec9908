// The feed against a made-up hub under a seeded schedule of misfortunes: sockets die silently or
// with a code, messages come late, caches are stale, epochs change, fetches fail, phones sleep.
// Whatever happens: when the world calms down, the client's seats equal the hub's.

import { describe, expect, it } from 'vitest';
import { encodeFrame, encodeFrames, type Delta, type Range } from '../protocol/index.ts';
import { Feed } from './feed.ts';
import type { FeedPorts, FeedState, SocketHandlers } from './follow.ts';

const SEATS = 300;
const RING = 60;

function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

class Time {
  now = 0;
  private queue: { at: number; order: number; run: () => void }[] = [];
  private order = 0;
  after = (ms: number, run: () => void) => {
    const entry = { at: this.now + Math.max(0, ms), order: this.order++, run };
    this.queue.push(entry);
    return () => void (this.queue = this.queue.filter((one) => one !== entry));
  };
  async run(ms: number) {
    const end = this.now + ms;
    for (;;) {
      await settled();
      this.queue.sort((a, b) => a.at - b.at || a.order - b.order);
      const next = this.queue[0];
      if (!next || next.at > end) break;
      this.queue.shift();
      this.now = next.at;
      next.run();
    }
    this.now = end;
  }
}

const settled = async () => {
  for (let i = 0; i < 8; i++) await Promise.resolve();
};

/** The latest state of each seat that changed in these frames. */
function span(frames: readonly Delta[]): Delta {
  const latest = new Map<number, number>();
  for (const { seats, statuses } of frames)
    seats.forEach((seat, i) => latest.set(seat, statuses[i]));
  const seats = Uint32Array.from([...latest.keys()].sort((a, b) => a - b));
  const statuses = Uint8Array.from(seats, (seat) => latest.get(seat)!);
  return { ...frames.at(-1)!, kind: 'span', since: frames[0].since, seats, statuses };
}

interface Viewer {
  handlers: SocketHandlers;
  alive: boolean;
  /** A dead socket that nobody has told the client about. */
  silent: boolean;
}

class MadeUpHub {
  statuses = new Uint8Array(SEATS);
  epoch = 1;
  frame = 0;
  ring: Delta[] = [];
  viewers: Viewer[] = [];
  socketsWork = true;
  fetchesWork = true;
  /** Their connection is dead, and nobody has noticed. */
  fetchesHang = false;
  cached: { at: number; bytes: Uint8Array<ArrayBuffer> } | null = null;
  wake: (awake: boolean) => void = () => {};
  sockets = 0;
  /** The addresses of the sockets that were asked for. */
  asked: string[] = [];
  snapshots = 0;

  constructor(
    readonly time: Time,
    readonly random: () => number,
    readonly latency: () => number,
  ) {}

  header() {
    return {
      seatCount: SEATS,
      eventId: 7,
      epoch: this.epoch,
      frame: this.frame,
      committedAt: Math.floor(this.time.now),
    };
  }

  publish() {
    const changed = new Map<number, number>();
    for (let n = 1 + Math.floor(this.random() * 5); n > 0; n--) {
      changed.set(Math.floor(this.random() * SEATS), Math.floor(this.random() * 4));
    }
    const seats = Uint32Array.from([...changed.keys()].sort((a, b) => a - b));
    const statuses = Uint8Array.from(seats, (seat) => changed.get(seat)!);
    seats.forEach((seat, i) => (this.statuses[seat] = statuses[i]));
    this.frame++;
    const delta: Delta = {
      kind: 'delta',
      ...this.header(),
      since: this.frame - 1,
      seats,
      statuses,
    };
    this.ring.push(delta);
    if (this.ring.length > RING) this.ring.shift();
    for (const viewer of this.viewers) this.send(viewer, encodeFrame(delta));
  }

  newEpoch() {
    this.epoch++;
    this.frame = Math.floor(this.random() * 5);
    this.ring = [];
    for (const viewer of this.viewers)
      this.send(viewer, encodeFrame({ kind: 'resync', ...this.header() }));
  }

  send(viewer: Viewer, bytes: Uint8Array<ArrayBuffer>) {
    if (!viewer.alive || viewer.silent) return;
    // One connection keeps its order: the same latency for all of its messages at a time.
    this.time.after(5, () => viewer.alive && viewer.handlers.message(bytes.buffer));
  }

  close(viewer: Viewer, code: number, reason = '') {
    viewer.alive = false;
    this.viewers = this.viewers.filter((one) => one !== viewer);
    if (!viewer.silent) this.time.after(5, () => viewer.handlers.close(code, reason));
  }

  accept(address: string, handlers: SocketHandlers) {
    this.asked.push(address);
    this.sockets++;
    const viewer: Viewer = { handlers, alive: true, silent: false };
    this.time.after(this.latency(), () => {
      if (!this.socketsWork) return handlers.close(1006);
      const query = new URL(address, 'http://x').searchParams;
      handlers.open();
      this.viewers.push(viewer);
      const from = Number(query.get('frame'));
      const sameEpoch = Number(query.get('epoch')) === this.epoch && query.has('frame');
      const missed = this.ring.filter((one) => one.frame > from);
      const gapless = from === this.frame || missed[0]?.frame === from + 1;
      if (sameEpoch && from <= this.frame && gapless) {
        // As a hub does: what was missed in one frame, of whichever form; or one by one.
        const form = missed.length > 1 ? this.random() : 0;
        const range = (): Range => ({
          kind: 'range',
          ...this.header(),
          since: from,
          first: 0,
          statuses: this.statuses.slice(),
        });
        for (const one of form < 0.4 ? missed : [form < 0.7 ? span(missed) : range()])
          this.send(viewer, encodeFrame(one));
      } else {
        this.send(viewer, encodeFrame({ kind: 'resync', ...this.header() }));
      }
    });
    return { close: () => this.close({ ...viewer, silent: true }, 1000) };
  }

  fetch(address: string): Promise<ArrayBuffer | null> {
    if (this.fetchesHang) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      this.time.after(this.latency(), () => {
        if (!this.fetchesWork || this.random() < 0.02) return reject(new Error('no network'));
        if (address.endsWith('/frames')) {
          const head = { kind: 'resync' as const, ...this.header() };
          return resolve(encodeFrames(head, this.ring).buffer);
        }
        this.snapshots++;
        // A cache answers for a second with what it has.
        if (!this.cached || this.time.now - this.cached.at > 1000) {
          const snapshot = { kind: 'snapshot' as const, ...this.header(), statuses: this.statuses };
          this.cached = { at: this.time.now, bytes: encodeFrame(snapshot) };
        }
        resolve(this.cached.bytes.buffer);
      });
    });
  }
}

function world(seed: number) {
  const random = seeded(seed);
  const time = new Time();
  const hub = new MadeUpHub(time, random, () => 5 + random() * 300);
  const seen = new Uint8Array(SEATS).fill(9);
  const states: FeedState[] = [];
  const ports: FeedPorts = {
    fetchBytes: (address) => hub.fetch(address),
    openSocket: (address, handlers) => hub.accept(address, handlers),
    now: () => time.now,
    after: time.after,
    random,
    onWake: (wake) => {
      hub.wake = wake;
      return () => {};
    },
  };
  const feed = new Feed(7, ports, {
    whole: (statuses) => seen.set(statuses),
    changed: ({ seats, statuses }) => seats.forEach((seat, i) => (seen[seat] = statuses[i])),
    state: (state) => states.push(state),
  });
  return { random, time, hub, feed, seen, states };
}

describe('a feed', () => {
  for (let seed = 1; seed <= 60; seed++) {
    it(`ends equal to the hub, whatever happened (seed ${seed})`, async () => {
      const { random, time, hub, feed, seen, states } = world(seed * 7919);
      feed.start();
      for (let step = 0; step < 400; step++) {
        await time.run(random() * 400);
        const fate = random();
        const viewer = hub.viewers[Math.floor(random() * hub.viewers.length)];
        if (fate < 0.7) hub.publish();
        else if (fate < 0.75 && viewer)
          hub.close(viewer, [1012, 4000, 1006, 1001][Math.floor(random() * 4)]);
        else if (fate < 0.8 && viewer) viewer.silent = true;
        else if (fate < 0.82) hub.newEpoch();
        else if (fate < 0.85) hub.socketsWork = !hub.socketsWork;
        else if (fate < 0.88) hub.fetchesWork = !hub.fetchesWork;
        else if (fate < 0.9) hub.wake(true);
        else if (fate < 0.91) hub.wake(false);
        else if (fate < 0.92) await time.run(60_000);
      }
      hub.socketsWork = hub.fetchesWork = true;
      hub.publish();
      await time.run(120_000);
      expect([...seen], `states: ${states.slice(-8).join(' ')}`).toEqual([...hub.statuses]);
      expect(states.at(-1)).toBe('live');
    });
  }

  it('is right within two seconds of being shown again, though its socket died asleep', async () => {
    const { time, hub, feed, seen } = world(42);
    feed.start();
    await time.run(3_000);
    hub.viewers.forEach((viewer) => (viewer.silent = true));
    for (let i = 0; i < 5; i++) hub.publish();
    hub.wake(true);
    await time.run(2_000);
    expect([...seen]).toEqual([...hub.statuses]);
  });

  it('is right within two seconds though every connection that it had died asleep', async () => {
    const { time, hub, feed, seen, states } = world(48);
    feed.start();
    await time.run(3_000);
    hub.viewers.forEach((viewer) => (viewer.silent = true));
    hub.fetchesHang = true;
    for (let i = 0; i < 5; i++) hub.publish();
    hub.wake(true);
    await time.run(2_000);
    expect([...seen]).toEqual([...hub.statuses]);
    expect(states.at(-1)).toBe('live');
  });

  it('polls the same frames where sockets are forbidden', async () => {
    const { time, hub, feed, seen, states } = world(43);
    hub.socketsWork = false;
    feed.start();
    await time.run(20_000);
    expect(states.at(-1)).toBe('polling');
    hub.publish();
    await time.run(4_000);
    expect([...seen]).toEqual([...hub.statuses]);
  });

  it('resumes by epoch and frame, without a second snapshot', async () => {
    const { time, hub, feed, seen } = world(44);
    feed.start();
    await time.run(3_000);
    const snapshots = hub.snapshots;
    hub.close(hub.viewers[0], 1012);
    hub.publish();
    await time.run(6_000);
    expect(hub.sockets).toBe(2);
    expect(hub.snapshots).toBe(snapshots);
    expect([...seen]).toEqual([...hub.statuses]);
  });

  it('returns to a house that drains within the time that it was told', async () => {
    let late = 0;
    for (let seed = 1; seed <= 20; seed++) {
      const { time, hub, feed } = world(seed);
      feed.start();
      await time.run(3_000);
      hub.close(hub.viewers[0], 1012, '20000');
      await time.run(3_500);
      if (hub.sockets === 1) late++;
      await time.run(20_000);
      expect(hub.sockets).toBe(2);
      feed.stop();
    }
    expect(late).toBeGreaterThan(10);
  });

  it('begins without a position after a socket that brought nothing and was closed for it', async () => {
    const { time, hub, feed } = world(47);
    feed.start();
    await time.run(3_000);
    expect(hub.asked.at(-1)).toContain('epoch=');
    hub.close(hub.viewers[0], 4000);
    await time.run(3_000);
    expect(hub.asked.at(-1)).not.toContain('epoch=');
  });

  it('does not ask again for an event that is not there, nor after a refusal of its own making', async () => {
    const { time, hub, feed, states } = world(45);
    feed.start();
    await time.run(3_000);
    hub.close(hub.viewers[0], 4001);
    await time.run(60_000);
    expect(hub.sockets).toBe(1);
    expect(states.at(-1)).toBe('polling');

    const other = world(46);
    other.feed.start();
    await other.time.run(3_000);
    other.hub.close(other.hub.viewers[0], 4004);
    await other.time.run(60_000);
    expect(other.hub.sockets).toBe(1);
    expect(other.states.at(-1)).toBe('gone');
  });
});
