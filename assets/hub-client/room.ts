// What this client knows of an event's seats, and whether that is gapless. Pure: no network, no time.
//
// Invariants
// - `statuses` is the state after frame `frame` of `epoch`, exactly; a frame is applied only if it
//   is the next one, or spans what lies between.
// - A room that is not in step keeps what it cannot apply yet, up to a bound, and asks for a snapshot.

import type { Delta, Frame, Resync, Snapshot } from '../protocol/index.ts';

const PENDING_MAX = 1200;

export type Taken =
  | { is: 'applied'; frame: Delta }
  /** Already known. */
  | { is: 'stale' }
  /** Needs a snapshot; the frame is kept if it may be applied later. */
  | { is: 'out_of_step' };

export class Room {
  epoch = 0;
  frame = 0;
  statuses: Uint8Array | null = null;
  /** When the oldest change of its last frame was made, by the hub's clock. */
  committedAt = 0;
  private inStep = false;
  /** A snapshot must be at least this far. */
  private target: { epoch: number; frame: number } | null = null;
  private pending: Delta[] = [];

  get synced(): boolean {
    return this.inStep;
  }

  get needed(): { epoch: number; frame: number } | null {
    return this.target;
  }

  take(frame: Frame): Taken {
    switch (frame.kind) {
      case 'delta':
      case 'span':
        return this.takeDelta(frame);
      case 'resync':
        return this.takeResync(frame);
      case 'snapshot':
        return { is: 'stale' };
    }
  }

  /** Whether the head named by somebody who knows is where we are. */
  isAt(head: { epoch: number; frame: number }): boolean {
    return this.inStep && head.epoch === this.epoch && head.frame <= this.frame;
  }

  /**
   * Takes a snapshot and whatever was kept since. False: it is too old to continue from, and
   * another one, or the frames in between, must be fetched.
   */
  adopt(snapshot: Snapshot): boolean {
    const from = snapshot.frame;
    const kept = this.pending.filter((one) => one.epoch === snapshot.epoch && one.frame > from);
    if (this.target && !reaches(snapshot, kept, this.target)) return false;
    if (kept.length > 0 && kept[0].since > from) return false;
    this.statuses = snapshot.statuses.slice();
    this.epoch = snapshot.epoch;
    this.frame = from;
    this.committedAt = snapshot.committedAt;
    this.inStep = true;
    this.target = null;
    this.pending = [];
    for (const one of kept) {
      // A hole among the kept ones: what is behind it stays pending, for the next snapshot.
      if (this.take(one).is === 'out_of_step') break;
    }
    return true;
  }

  /** Gives up every claim to continuity: the next snapshot is taken as it is. */
  forget(): void {
    this.inStep = false;
    this.target = null;
    this.pending = [];
  }

  private takeDelta(delta: Delta): Taken {
    if (!this.inStep || !this.statuses) {
      this.keep(delta);
      return { is: 'out_of_step' };
    }
    if (delta.epoch === this.epoch && delta.frame <= this.frame) return { is: 'stale' };
    if (isLater(this.epoch, delta.epoch)) return { is: 'stale' };
    if (delta.epoch !== this.epoch || delta.since > this.frame) {
      this.inStep = false;
      this.target = { epoch: delta.epoch, frame: delta.since };
      this.pending = [];
      this.keep(delta);
      return { is: 'out_of_step' };
    }
    for (let i = 0; i < delta.seats.length; i++) this.statuses[delta.seats[i]] = delta.statuses[i];
    this.frame = delta.frame;
    this.committedAt = delta.committedAt;
    return { is: 'applied', frame: delta };
  }

  private takeResync(head: Resync): Taken {
    // A cache may still answer with what was before a new epoch.
    if (this.isAt(head) || (this.inStep && isLater(this.epoch, head.epoch))) return { is: 'stale' };
    this.inStep = false;
    this.target = { epoch: head.epoch, frame: head.frame };
    // What was kept came before the head or from another epoch; later frames follow from the head.
    this.pending = this.pending.filter((one) => one.epoch === head.epoch && one.frame > head.frame);
    return { is: 'out_of_step' };
  }

  private keep(delta: Delta): void {
    const last = this.pending.at(-1);
    if (!last && this.target && this.target.epoch !== delta.epoch) {
      this.target = { epoch: delta.epoch, frame: delta.since };
    }
    if (last && (last.epoch !== delta.epoch || delta.since > last.frame)) {
      if (last.epoch === delta.epoch && delta.frame <= last.frame) return;
      // Another epoch, or a hole: only what follows without one can be used.
      this.pending = [];
      this.target = { epoch: delta.epoch, frame: delta.since };
    }
    this.pending.push(delta);
    if (this.pending.length > PENDING_MAX) {
      const dropped = this.pending.splice(0, this.pending.length - PENDING_MAX).at(-1)!;
      this.target = { epoch: dropped.epoch, frame: dropped.frame };
    }
  }
}

/** The relay's epochs are even and ascend. Those of nodes without a feed can't be compared. */
function isLater(epoch: number, than: number): boolean {
  return epoch > than && epoch % 2 === 0 && than % 2 === 0;
}

function reaches(
  snapshot: Snapshot,
  kept: readonly Delta[],
  target: { epoch: number; frame: number },
): boolean {
  if (snapshot.epoch !== target.epoch) return isLater(snapshot.epoch, target.epoch);
  const last = kept.at(-1);
  return (
    snapshot.frame >= target.frame ||
    (last !== undefined && kept[0].since <= snapshot.frame && last.frame >= target.frame)
  );
}
