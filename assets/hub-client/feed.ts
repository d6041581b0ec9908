// The live feed of an event's map: snapshot, then socket, then frames, for as long as the page is open.
//
// - A client comes back by (epoch, frame); it fetches a snapshot only if told to, or if it missed
//   something. Everything else about staying connected is `follow.ts`.

import {
  decodeFrame,
  FrameError,
  type Delta,
  type Frame,
  type FramesBody,
} from '../protocol/index.ts';
import { Follow, type FeedPorts, type FeedState, type Position } from './follow.ts';
import { Room } from './room.ts';

const RESYNC_SPREAD_MS = 400;
const SNAPSHOT_AGAIN_MS = 1_000;
/** After this many snapshots that were too old, the next one is taken as it is. */
const OLD_SNAPSHOTS_MAX = 4;

export interface FeedListener {
  /** Every seat may have changed. */
  whole(statuses: Uint8Array): void;
  changed(delta: Delta): void;
  state(state: FeedState): void;
}

export class Feed extends Follow {
  readonly room = new Room();
  private snapshotRun = 0;
  private snapshotInFlight = false;
  private oldSnapshots = 0;

  constructor(
    event: number,
    ports: FeedPorts,
    private readonly listener: FeedListener,
  ) {
    super(`/api/events/${event}`, ports, (state) => listener.state(state));
  }

  protected get at(): Position | null {
    return this.room.statuses === null ? null : { epoch: this.room.epoch, frame: this.room.frame };
  }

  protected get synced(): boolean {
    return this.room.synced;
  }

  protected isAt(head: Position): boolean {
    return this.room.isAt(head);
  }

  protected begin(again: boolean): void {
    if (!again) return this.fetchSnapshot(0);
    // A fetch from before the sleep may hang for long; it is overtaken.
    this.snapshotInFlight = false;
    this.schedule('snapshot', 0, () => void this.snapshot());
  }

  protected unreadable(): void {
    this.room.forget();
    this.fetchSnapshot(RESYNC_SPREAD_MS);
  }

  protected takeFrame(frame: Frame): void {
    const taken = this.room.take(frame);
    if (taken.is === 'applied') this.listener.changed(taken.frame);
    else if (taken.is === 'out_of_step') this.fetchSnapshot(RESYNC_SPREAD_MS);
  }

  protected takePolled({ head, frames }: FramesBody): void {
    if (this.room.synced) {
      for (const frame of frames) {
        // Frames from before our place are no gap; the first that we need decides.
        if (frame.epoch === this.room.epoch) this.takeFrame(frame);
      }
    }
    if (this.room.synced) this.takeFrame(head);
  }

  private fetchSnapshot(spread: number): void {
    if (this.snapshotInFlight || this.cancels.has('snapshot') || this.stopped) return;
    this.schedule('snapshot', this.ports.random() * spread, () => void this.snapshot());
  }

  private async snapshot(): Promise<void> {
    const run = ++this.snapshotRun;
    this.snapshotInFlight = true;
    let again: number | null;
    try {
      const bytes = await this.ports.fetchBytes(`${this.address}/snapshot`);
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
}
