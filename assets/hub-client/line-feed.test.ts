// A line against two made-up nodes, one of which is always somewhat behind, and a cache that is a second old: what is
// shown never goes back, and when the world calms down it is the newest.

import { describe, expect, it } from 'vitest';
import { encodeFrame, encodeFrames, type LineFrame } from '../protocol/index.ts';
import type { FeedPorts, FeedState, SocketHandlers } from './follow.ts';
import { LineFeed } from './line-feed.ts';

function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const frame = (revision: number): LineFrame => ({
  kind: 'line',
  seatCount: 0,
  eventId: 7,
  epoch: 2,
  frame: revision,
  committedAt: revision * 10,
  json: JSON.stringify({ state: 'open', revision }),
});

class World {
  now = 0;
  private queue: { at: number; run: () => void }[] = [];
  /** What each node has; the database's is the highest. */
  nodes = [1, 1];
  sockets: { node: number; handlers: SocketHandlers }[] = [];
  asked: string[] = [];
  works = true;
  /** Sockets that died asleep: open as far as anybody knows, and nothing comes. */
  silent = false;
  wake: (awake: boolean) => void = () => {};
  shown: number[] = [];
  states: FeedState[] = [];
  readonly feed: LineFeed;

  constructor(private readonly random: () => number) {
    const ports: FeedPorts = {
      fetchBytes: (address) =>
        new Promise((resolve, reject) =>
          this.after(random() * 100, () => {
            if (!this.works) return reject(new Error('no network'));
            expect(address).toBe('/api/events/7/queue/frames');
            const newest = frame(Math.min(...this.nodes)); // out of a cache
            const { json: _, ...header } = newest;
            resolve(encodeFrames({ ...header, kind: 'resync' }, [newest]).buffer);
          }),
        ),
      openSocket: (address, handlers) => {
        this.asked.push(address);
        const socket = { node: random() < 0.5 ? 0 : 1, handlers };
        this.after(random() * 100, () => {
          if (!this.works) return handlers.close(1006);
          handlers.open();
          this.sockets.push(socket);
          const has = Number(new URL(address, 'http://x').searchParams.get('frame'));
          if (this.nodes[socket.node] > has) this.send(socket);
        });
        return { close: () => this.drop(socket) };
      },
      now: () => this.now,
      after: (ms, run) => this.after(ms, run),
      random,
      onWake: (wake) => {
        this.wake = wake;
        return () => {};
      },
    };
    this.feed = new LineFeed(7, ports, {
      line: (line, committedAt) => {
        expect(committedAt).toBe(line.revision! * 10);
        this.shown.push(line.revision!);
      },
      state: (state) => this.states.push(state),
    });
  }

  after(ms: number, run: () => void) {
    const entry = { at: this.now + ms, run };
    this.queue.push(entry);
    return () => void (this.queue = this.queue.filter((one) => one !== entry));
  }

  send(socket: { node: number; handlers: SocketHandlers }) {
    if (this.silent) return;
    socket.handlers.message(encodeFrame(frame(this.nodes[socket.node])).buffer);
  }

  drop(socket: { node: number; handlers: SocketHandlers }) {
    this.sockets = this.sockets.filter((one) => one !== socket);
  }

  step() {
    const fate = this.random();
    const node = this.random() < 0.5 ? 0 : 1;
    if (fate < 0.5) this.move(node, Math.max(...this.nodes) + 1 + Math.floor(this.random() * 3));
    else if (fate < 0.7) this.move(node, Math.max(...this.nodes));
    else if (fate < 0.8) this.works = !this.works;
    else if (fate < 0.9) this.close();
  }

  move(node: number, revision: number) {
    this.nodes[node] = revision;
    this.sockets.filter((one) => one.node === node).forEach((one) => this.send(one));
  }

  close() {
    const [socket] = this.sockets;
    if (!socket) return;
    this.drop(socket);
    socket.handlers.close([1012, 4000, 1006][Math.floor(this.random() * 3)]);
  }

  async run(ms: number) {
    const end = this.now + ms;
    for (;;) {
      for (let i = 0; i < 8; i++) await Promise.resolve();
      this.queue.sort((a, b) => a.at - b.at);
      const next = this.queue[0];
      if (!next || next.at > end) break;
      this.queue.shift();
      this.now = next.at;
      next.run();
    }
    this.now = end;
  }
}

describe("a line's feed", () => {
  for (let seed = 1; seed <= 40; seed++) {
    it(`only goes forward, and ends at the newest (seed ${seed})`, async () => {
      const random = seeded(seed * 104729);
      const world = new World(random);
      world.feed.start();
      for (let step = 0; step < 200; step++) {
        await world.run(random() * 500);
        world.step();
      }
      world.works = true;
      const newest = Math.max(...world.nodes) + 1;
      [0, 1].forEach((node) => world.move(node, newest));
      await world.run(90_000);
      expect(world.shown.at(-1)).toBe(newest);
      expect(world.shown).toEqual([...new Set(world.shown)].sort((a, b) => a - b));
      expect(world.states.at(-1)).toBe('live');
      world.feed.stop();
    });
  }

  it('is right within two seconds of being shown again, though its socket died asleep', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const world = new World(seeded(seed * 7919));
      world.feed.start();
      await world.run(2_000);
      world.silent = true;
      world.wake(false);
      [0, 1].forEach((node) => world.move(node, 9));
      await world.run(600_000 * (seed % 2));
      world.wake(true);
      await world.run(2_000);
      expect(world.shown.at(-1), `seed ${seed}`).toBe(9);
      // And stays so: what comes next comes by a new socket.
      world.silent = false;
      await world.run(5_000);
      [0, 1].forEach((node) => world.move(node, 10));
      await world.run(500);
      expect(world.shown.at(-1), `seed ${seed}`).toBe(10);
      world.feed.stop();
    }
  });

  it('returns by its revision, and is given what it missed', async () => {
    const world = new World(seeded(5));
    world.feed.start();
    await world.run(2_000);
    expect(world.asked).toEqual(['/api/events/7/queue/live']);
    world.close();
    [0, 1].forEach((node) => world.move(node, 9));
    await world.run(10_000);
    expect(world.shown).toEqual([1, 9]);
    expect(world.asked.at(-1)).toMatch(/^\/api\/events\/7\/queue\/live(\?epoch=2&frame=1)?$/);
  });
});
