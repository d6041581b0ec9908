// Following a room of one event, for as long as the page is open: its socket, or the same frames polled.
//
// - A client comes back by (epoch, frame), with full jitter.
// - If sockets fail it polls the same frames, and keeps trying for a socket.
// - Pings are invisible to a page, so a dead socket in a quiet hall is found by asking now and then
//   where the head is: at once when the page is shown again, since phones let sockets die asleep.
// - Whatever arrives by whichever way is numbered; what is known already changes nothing.
//
// What the frames say is for whoever extends this: a map (`feed.ts`) or a line of people (`line-feed.ts`).

import {
  decodeFrames,
  decodeKnown,
  FrameError,
  type Frame,
  type FramesBody,
} from '../protocol/index.ts';
import { Backoff } from './backoff.ts';

const POLL_MS = 2_000;
const CHECK_MS = 20_000;
const OPEN_TIMEOUT_MS = 8_000;
const HURRY_MS = 400;
const SOCKET_GRACE_MS = 1_500;
/** After this many socket failures in a row the same frames are polled meanwhile. */
const FAILURES_TILL_POLLING = 2;

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

/** A place in a room's frames. */
export interface Position {
  epoch: number;
  frame: number;
}

export abstract class Follow {
  protected state: FeedState = 'connecting';
  protected socket: { close(): void } | null = null;
  protected socketOpen = false;
  /** Answers for a socket or a fetch that was given up must not be heard. */
  private generation = 0;
  protected readonly backoff: Backoff;
  protected readonly cancels = new Map<string, () => void>();
  /** The furthest that the socket itself has brought us; polls don't count. */
  private heard: Position = { epoch: 0, frame: 0 };
  protected polling = false;
  /** Whether the present socket has brought anything. */
  private brought = false;
  /** The next socket begins without a position: the first thing that it brings is where the head is. */
  private startOver = false;
  private unwake: () => void = () => {};
  protected stopped = false;
  private socketsBarred = false;

  constructor(
    /** Where its rooms are: `/api/events/7`, or `/api/events/7/queue`. */
    protected readonly address: string,
    protected readonly ports: FeedPorts,
    private readonly tell: (state: FeedState) => void,
  ) {
    this.backoff = new Backoff(ports.random);
  }

  // ---- what the frames say ----

  /** Where we are; null while nothing is known. */
  protected abstract get at(): Position | null;
  /** Whether what is shown is right as of `at`. */
  protected abstract get synced(): boolean;
  /** Whether a head that somebody names is where we are. */
  protected abstract isAt(head: Position): boolean;
  protected abstract takeFrame(frame: Frame): void;
  protected abstract takePolled(body: FramesBody): void;
  /** Nothing is known yet, or the page is back and what was asked may never be answered. */
  protected abstract begin(again: boolean): void;
  /** Bytes that can't be read came over the socket, which is dropped. */
  protected abstract unreadable(): void;

  start(): void {
    this.unwake = this.ports.onWake((awake) => (awake ? this.wake() : this.setState('offline')));
    this.schedule('check', CHECK_MS, () => this.check());
    this.begin(false);
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
      this.setState(this.socketOpen && this.synced ? 'live' : 'connecting');
    if (this.synced) {
      // A connection that died asleep swallows the question too. A new socket has a new connection.
      this.schedule('hurry', HURRY_MS * (1 + this.ports.random()), () => {
        this.dropSocket();
        this.connect();
      });
      void this.poll(true).then(() => this.cancel('hurry'));
    } else {
      this.begin(true);
    }
    if (!this.socket) this.schedule('connect', this.ports.random() * 300, () => this.connect());
  }

  // ---- socket ----

  protected connect(): void {
    if (this.stopped || this.socket || this.state === 'gone' || this.socketsBarred) return;
    this.cancel('connect');
    const mine = ++this.generation;
    const heard = () => mine === this.generation && !this.stopped;
    const from = this.startOver ? null : this.at;
    this.startOver = false;
    this.brought = false;
    const at = from ? `?epoch=${from.epoch}&frame=${from.frame}` : '';
    this.schedule('open', OPEN_TIMEOUT_MS, () => {
      if (heard() && !this.socketOpen) this.closed(1006);
    });
    this.socket = this.ports.openSocket(`${this.address}/live${at}`, {
      open: () => {
        if (!heard()) return;
        this.socketOpen = true;
        this.heard = this.at ?? { epoch: 0, frame: 0 };
        this.cancel('open');
        this.cancel('poll');
        this.polling = false;
        if (this.synced) this.setState('live');
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
      if (this.synced) this.setState('live');
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      // Bytes we cannot read: never guess.
      this.dropSocket();
      this.unreadable();
    }
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

  protected dropSocket(): void {
    this.generation++;
    this.socketOpen = false;
    this.cancel('open');
    this.cancel('steady');
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  // ---- polling, and looking where the head is ----

  protected startPolling(): void {
    if (this.polling || this.stopped) return;
    this.polling = true;
    if (this.state === 'live') this.setState('connecting');
    void this.poll(false);
  }

  protected async poll(once: boolean): Promise<void> {
    const generation = this.generation;
    try {
      const bytes = await this.ports.fetchBytes(`${this.address}/frames`);
      if (this.stopped) return;
      if (!bytes) return this.gone();
      const body = decodeFrames(bytes);
      const { head } = body;
      const missed = this.synced && !this.isAt(head);
      this.takePolled(body);
      // The socket should have brought what we missed; it may merely be slower than this answer.
      if (missed && this.socketOpen && generation === this.generation) {
        this.schedule('suspect', SOCKET_GRACE_MS, () => this.suspect(generation, head));
      }
      if (this.polling) this.setState(this.synced ? 'polling' : 'connecting');
      else if (this.socketOpen && this.synced) this.setState('live');
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
    if (this.synced && !this.polling) await this.poll(true);
    if (!this.stopped)
      this.schedule('check', CHECK_MS * (0.8 + this.ports.random() * 0.4), () => void this.check());
  }

  /** A socket that brings nothing while the head moves is dead, whatever it says. */
  private suspect(generation: number, head: Position): void {
    if (generation !== this.generation) return;
    if (this.heard.epoch === head.epoch && this.heard.frame >= head.frame) return;
    this.dropSocket();
    this.connect();
  }

  // ---- small things ----

  protected gone(): void {
    this.setState('gone');
    this.polling = false;
    this.dropSocket();
    for (const cancel of this.cancels.values()) cancel();
    this.cancels.clear();
  }

  protected setState(state: FeedState): void {
    if (this.state === state || this.state === 'gone') return;
    this.state = state;
    this.tell(state);
  }

  protected schedule(name: string, ms: number, run: () => void): void {
    this.cancel(name);
    const cancel = this.ports.after(ms, () => {
      this.cancels.delete(name);
      if (!this.stopped) run();
    });
    this.cancels.set(name, cancel);
  }

  protected cancel(name: string): void {
    this.cancels.get(name)?.();
    this.cancels.delete(name);
  }
}

/** The milliseconds that a node which drains has named. */
function within(reason: string): number {
  const named = /^\d{1,9}$/.test(reason) ? Number(reason) : RETURN_WITHIN_MS;
  return Math.min(named, RETURN_WITHIN_MAX_MS);
}
