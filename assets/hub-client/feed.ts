// The live feed of one event: snapshot, then socket, then frames, for as long as the page is open.
//
// - A client comes back by (epoch, frame); it fetches a snapshot only if told to, or if it missed
//   something.
// - If sockets fail it polls the same frames, and keeps trying for a socket.
// - Pings are invisible to a page, so a dead socket in a quiet hall is found by asking now and then
//   where the head is: at once when the page is shown again, since phones let sockets die asleep.
// - Whatever arrives by whichever way is numbered; the room drops what it has already.

import {
  decodeFrame,
  decodeFrames,
  decodeKnown,
  FrameError,
  type Delta,
  type Frame,
} from '../protocol/index.ts';
import { Backoff } from './backoff.ts';
import { Room } from './room.ts';

const POLL_MS = 2_000;
const CHECK_MS = 20_000;
const OPEN_TIMEOUT_MS = 8_000;
const HURRY_MS = 400;
const SOCKET_GRACE_MS = 1_500;
const RESYNC_SPREAD_MS = 400;
const SNAPSHOT_AGAIN_MS = 1_000;
/** After this many socket failures in a row the same frames are polled meanwhile. */
const FAILURES_TILL_POLLING = 2;
/** After this many snapshots that were too old, the next one is taken as it is. */
const OLD_SNAPSHOTS_MAX = 4;

/** Where a node that drains does not say within which time its viewers return. */
const RETURN_WITHIN_MS = 3_000;
const RETURN_WITHIN_MAX_MS = 60_000;

export type FeedState = 'connecting' | 'live' | 'polling' | 'offline' | 'gone';

export interface SocketHandlers {
  open(): void;
  message(bytes: ArrayBuffer): void;
  close(code: number, reason?: string): void;
}

/** Everything the feed needs from the world; tests bring their own. */
export interface FeedPorts {
  /** Rejects if there is no answer; null for 404. */
  fetchBytes(address: string): Promise<ArrayBuffer | null>;
  openSocket(address: string, handlers: SocketHandlers): { close(): void };
  now(): number;
  after(ms: number, run: () => void): () => void;
  random(): number;
  /** Calls back when the page is shown again or the network returns; false when it goes. */
  onWake(wake: (awake: boolean) => void): () => void;
}

export interface FeedListener {
  /** Every seat may have changed. */
  whole(statuses: Uint8Array): void;
  changed(delta: Delta): void;
  state(state: FeedState): void;
}

export class Feed {
  readonly room = new Room();
  private state: FeedState = 'connecting';
  private socket: { close(): void } | null = null;
  private socketOpen = false;
  /** Answers for a socket or a fetch that was given up must not be heard. */
  private generation = 0;
  private readonly backoff: Backoff;
  private cancels = new Map<string, () => void>();
  private snapshotRun = 0;
  private snapshotInFlight = false;
  /** The furthest that the socket itself has brought us; polls don't count. */
  private heard = { epoch: 0, frame: 0 };
  private polling = false;
  /** Whether the present socket has brought anything. */
  private brought = false;
  /** The next socket begins without a position: the first thing that it brings is where the head is. */
  private startOver = false;
  private oldSnapshots = 0;
  private unwake: () => void = () => {};
  private stopped = false;
  private socketsBarred = false;

  constructor(
    private readonly event: number,
    private readonly ports: FeedPorts,
    private readonly listener: FeedListener,
  ) {
    this.backoff = new Backoff(ports.random);
  }

  start(): void {
    this.unwake = this.ports.onWake((awake) => (awake ? this.wake() : this.setState('offline')));
    this.schedule('check', CHECK_MS, () => this.check());
    this.fetchSnapshot(0);
  }

  stop(): void {
    this.stopped = true;
    this.unwake();
    for (const cancel of this.cancels.values()) cancel();
    this.cancels.clear();
    this.dropSocket();
  }

  /** The page is back: be right within two seconds, whatever the timers and the socket did. */
  wake(): void {
    if (this.stopped || this.state === 'gone') return;
    this.backoff.reset();
    if (this.state === 'offline')
      this.setState(this.socketOpen && this.room.synced ? 'live' : 'connecting');
    if (this.room.synced) {
      // A connection that died asleep swallows the question too. A new socket has a new connection.
      this.schedule('hurry', HURRY_MS * (1 + this.ports.random()), () => {
        this.dropSocket();
        this.connect();
      });
      void this.poll(true).then(() => this.cancel('hurry'));
    } else {
      // A fetch from before the sleep may hang for long; it is overtaken.
      this.snapshotInFlight = false;
      this.schedule('snapshot', 0, () => void this.snapshot());
    }
    if (!this.socket) this.schedule('connect', this.ports.random() * 300, () => this.connect());
  }

  // ---- snapshot ----

  private fetchSnapshot(spread: number): void {
    if (this.snapshotInFlight || this.cancels.has('snapshot') || this.stopped) return;
    this.schedule('snapshot', this.ports.random() * spread, () => void this.snapshot());
  }

  private async snapshot(): Promise<void> {
    const run = ++this.snapshotRun;
    this.snapshotInFlight = true;
    let again: number | null;
    try {
      const bytes = await this.ports.fetchBytes(`/api/events/${this.event}/snapshot`);
      if (this.stopped || run !== this.snapshotRun) return;
      if (!bytes) return this.gone();
      again = this.adopt(decodeFrame(bytes));
    } catch {
      if (this.stopped || run !== this.snapshotRun) return;
      if (!this.room.statuses) this.setState('offline');
      again = SNAPSHOT_AGAIN_MS + this.backoff.next();
    }
    this.snapshotInFlight = false;
    if (again !== null) this.schedule('snapshot', again, () => void this.snapshot());
    else if (!this.socket && !this.cancels.has('connect')) this.connect();
  }

  /** Null if we are in step again, else how long to wait for a newer snapshot. */
  private adopt(snapshot: Frame): number | null {
    if (snapshot.kind !== 'snapshot') throw new FrameError('BadBody', 'not a snapshot');
    if (!this.room.adopt(snapshot)) {
      // A cache may be a second behind. If it stays behind (a node that fell back to its own
      // epoch), the snapshot is the truth, and the socket starts anew from it.
      if (++this.oldSnapshots < OLD_SNAPSHOTS_MAX) return SNAPSHOT_AGAIN_MS;
      this.dropSocket();
      this.room.forget();
      this.room.adopt(snapshot);
    }
    this.oldSnapshots = 0;
    this.listener.whole(this.room.statuses!);
    if (this.socketOpen) this.setState('live');
    return this.room.synced ? null : SNAPSHOT_AGAIN_MS;
  }

  // ---- socket ----

  private connect(): void {
    if (this.stopped || this.socket || this.state === 'gone' || this.socketsBarred) return;
    this.cancel('connect');
    const mine = ++this.generation;
    const heard = () => mine === this.generation && !this.stopped;
    const known = this.room.statuses !== null && !this.startOver;
    this.startOver = false;
    this.brought = false;
    const at = known ? `?epoch=${this.room.epoch}&frame=${this.room.frame}` : '';
    this.schedule('open', OPEN_TIMEOUT_MS, () => {
      if (heard() && !this.socketOpen) this.closed(1006);
    });
    this.socket = this.ports.openSocket(`/api/events/${this.event}/live${at}`, {
      open: () => {
        if (!heard()) return;
        this.socketOpen = true;
        this.heard = { epoch: this.room.epoch, frame: this.room.frame };
        this.cancel('open');
        this.cancel('poll');
        this.polling = false;
        if (this.room.synced) this.setState('live');
        // Only a socket that lasts counts as a success; one that closes at once keeps backing off.
        this.schedule('steady', 5_000, () => this.backoff.reset());
      },
      message: (bytes) => {
        if (heard()) this.receive(bytes);
      },
      close: (code, reason) => {
        if (heard()) this.closed(code, reason);
      },
    });
  }

  private receive(bytes: ArrayBuffer): void {
    try {
      const frame = decodeKnown(bytes);
      if (!frame) return;
      this.brought = true;
      this.heard = { epoch: frame.epoch, frame: frame.frame };
      this.takeFrame(frame);
      if (this.room.synced) this.setState('live');
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      // Bytes we cannot read: never guess, start from a snapshot.
      this.dropSocket();
      this.room.forget();
      this.fetchSnapshot(RESYNC_SPREAD_MS);
    }
  }

  private takeFrame(frame: Frame): void {
    const taken = this.room.take(frame);
    if (taken.is === 'applied') this.listener.changed(taken.frame);
    else if (taken.is === 'out_of_step') this.fetchSnapshot(RESYNC_SPREAD_MS);
  }

  private closed(code: number, reason = ''): void {
    const brought = this.brought;
    this.dropSocket();
    switch (code) {
      case 4004:
        return this.gone();
      case 4001:
        // Our own mistake; asking again would repeat it. The same frames can be polled.
        this.socketsBarred = true;
        return this.startPolling();
      case 4008:
        this.startPolling();
        return this.schedule('connect', 15_000 + this.ports.random() * 30_000, () =>
          this.connect(),
        );
      case 1012:
        // The node drains and said so: others are there, but not for everybody at once.
        return this.schedule('connect', this.ports.random() * within(reason), () => this.connect());
      case 4000:
        // It brought nothing: it does not know our place, and another node may not either.
        if (!brought) this.startOver = true;
    }
    const wait = this.backoff.next();
    if (this.backoff.count >= FAILURES_TILL_POLLING) this.startPolling();
    else if (this.state === 'live') this.setState('connecting');
    this.schedule('connect', wait, () => this.connect());
  }

  private dropSocket(): void {
    this.generation++;
    this.socketOpen = false;
    this.cancel('open');
    this.cancel('steady');
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  // ---- polling, and looking where the head is ----

  private startPolling(): void {
    if (this.polling || this.stopped) return;
    this.polling = true;
    if (this.state === 'live') this.setState('connecting');
    void this.poll(false);
  }

  private async poll(once: boolean): Promise<void> {
    const generation = this.generation;
    try {
      const bytes = await this.ports.fetchBytes(`/api/events/${this.event}/frames`);
      if (this.stopped) return;
      if (!bytes) return this.gone();
      const { head, frames } = decodeFrames(bytes);
      const missed = this.room.synced && !this.room.isAt(head);
      if (this.room.synced) {
        for (const frame of frames) {
          // Frames from before our place are no gap; the first that we need decides.
          if (frame.epoch === this.room.epoch) this.takeFrame(frame);
        }
      }
      if (this.room.synced) this.takeFrame(head);
      // The socket should have brought what we missed; it may merely be slower than this answer.
      if (missed && this.socketOpen && generation === this.generation) {
        this.schedule('suspect', SOCKET_GRACE_MS, () => this.suspect(generation, head));
      }
      if (this.polling) this.setState(this.room.synced ? 'polling' : 'connecting');
      else if (this.socketOpen && this.room.synced) this.setState('live');
    } catch {
      if (this.stopped) return;
      if (!this.socketOpen) this.setState('offline');
    }
    if (this.polling && !once) {
      this.schedule(
        'poll',
        POLL_MS * (0.8 + this.ports.random() * 0.4),
        () => void this.poll(false),
      );
    }
  }

  private async check(): Promise<void> {
    if (this.room.synced && !this.polling) await this.poll(true);
    if (!this.stopped)
      this.schedule('check', CHECK_MS * (0.8 + this.ports.random() * 0.4), () => void this.check());
  }

  /** A socket that brings nothing while the head moves is dead, whatever it says. */
  private suspect(generation: number, head: { epoch: number; frame: number }): void {
    if (generation !== this.generation) return;
    if (this.heard.epoch === head.epoch && this.heard.frame >= head.frame) return;
    this.dropSocket();
    this.connect();
  }

  // ---- small things ----

  private gone(): void {
    this.setState('gone');
    this.polling = false;
    this.dropSocket();
    for (const cancel of this.cancels.values()) cancel();
    this.cancels.clear();
  }

  private setState(state: FeedState): void {
    if (this.state === state || this.state === 'gone') return;
    this.state = state;
    this.listener.state(state);
  }

  private schedule(name: string, ms: number, run: () => void): void {
    this.cancel(name);
    const cancel = this.ports.after(ms, () => {
      this.cancels.delete(name);
      if (!this.stopped) run();
    });
    this.cancels.set(name, cancel);
  }

  private cancel(name: string): void {
    this.cancels.get(name)?.();
    this.cancels.delete(name);
  }
}

/** The milliseconds that a node which drains has named. */
function within(reason: string): number {
  const named = /^\d{1,9}$/.test(reason) ? Number(reason) : RETURN_WITHIN_MS;
  return Math.min(named, RETURN_WITHIN_MAX_MS);
}
