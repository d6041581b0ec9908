// The live feed of an event's line of people: every frame is the whole line, and the newest is all that counts.
//
// Invariant: what was shown is never taken back. A frame with a lower number, from a node that is behind or from a
// cache, is dropped; there is nothing to resync.

import { FrameError, type Frame, type FramesBody, type Line } from '../protocol/index.ts';
import { Follow, type FeedPorts, type FeedState, type Position } from './follow.ts';

export interface LineListener {
  /** The line as it is, and when that became so (ms since 1970, by the database's clock). */
  line(line: Line, committedAt: number): void;
  state(state: FeedState): void;
}

export class LineFeed extends Follow {
  private known: Position | null = null;

  constructor(
    event: number,
    ports: FeedPorts,
    private readonly listener: LineListener,
  ) {
    super(`/api/events/${event}/queue`, ports, (state) => listener.state(state));
  }

  protected get at(): Position | null {
    return this.known;
  }

  protected get synced(): boolean {
    return this.known !== null;
  }

  protected isAt(head: Position): boolean {
    return this.known !== null && head.frame <= this.known.frame;
  }

  /** The first frame comes by whichever way is faster. */
  protected begin(): void {
    void this.poll(true);
    this.connect();
  }

  protected takeFrame(frame: Frame): void {
    if (frame.kind !== 'line' || this.isAt(frame)) return;
    const line = parse(frame.json);
    this.known = { epoch: frame.epoch, frame: frame.frame };
    this.listener.line(line, frame.committedAt);
  }

  protected takePolled({ frames }: FramesBody): void {
    for (const frame of frames) this.takeFrame(frame);
  }

  protected unreadable(): void {
    this.schedule('connect', this.backoff.next(), () => this.connect());
  }
}

function parse(json: string): Line {
  try {
    const line: unknown = JSON.parse(json);
    if (typeof line === 'object' && line !== null && 'state' in line) return line as Line;
  } catch {
    // The same as what is no line.
  }
  throw new FrameError('BadBody', 'not a line');
}
