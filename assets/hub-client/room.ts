// What this client knows of an event's seats, and whether that is gapless. Pure: no network, no time.
//
// Invariants
// - `statuses` is the state after frame `frame` of `epoch`, exactly; a frame is applied only if it
//   is the next one, or spans what lies between.
// - A room that is not in step keeps what it cannot apply yet, up to a bound, and asks for a snapshot.

import type { Delta, Frame, Range, Resync, Snapshot } from '../protocol/index.ts';

/** Frames that are kept for a snapshot. A range may be a whole hall, so it counts for many. */
const PENDING_MAX = 1200;
const RANGE_COUNTS_FOR = 100;

/** What leads from one frame to another. */
type Leading = Delta | Range;

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
  private pending: Leading[] = [];

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
      case 'range':
        return this.takeLeading(frame);
      case 'resync':
        return this.takeResync(frame);
      case 'snapshot':
      case 'line':
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

  private takeLeading(delta: Leading): Taken {
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
    const changes = delta.kind === 'range' ? differing(delta, this.statuses) : delta;
    const { seats, statuses } = changes;
    for (let i = 0; i < seats.length; i++) this.statuses[seats[i]] = statuses[i];
    this.frame = delta.frame;
    this.committedAt = delta.committedAt;
    return { is: 'applied', frame: changes };
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

  private keep(delta: Leading): void {
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
    let kept = this.pending.reduce((sum, one) => sum + weight(one), 0);
    while (kept > PENDING_MAX) {
      const dropped = this.pending.shift()!;
      kept -= weight(dropped);
      this.target = { epoch: dropped.epoch, frame: dropped.frame };
    }
  }
}

const weight = (one: Leading) => (one.kind === 'range' ? RANGE_COUNTS_FOR : 1);

/** The seats of a range that are not as they were: a page need not touch the others. */
function differing(range: Range, known: Uint8Array): Delta {
  const { statuses, ...header } = range;
  const seats: number[] = [];
  statuses.forEach((status, i) => {
    if (known[range.first + i] !== status) seats.push(range.first + i);
  });
  const changed = Uint8Array.from(seats, (seat) => statuses[seat - range.first]);
  return { ...header, kind: 'span', seats: Uint32Array.from(seats), statuses: changed };
}

/** The relay's epochs are even and ascend. Those of nodes without a feed can't be compared. */
function isLater(epoch: number, than: number): boolean {
  return epoch > than && epoch % 2 === 0 && than % 2 === 0;
}

function reaches(
  snapshot: Snapshot,
  kept: readonly Leading[],
  target: { epoch: number; frame: number },
): boolean {
  if (snapshot.epoch !== target.epoch) return isLater(snapshot.epoch, target.epoch);
  const last = kept.at(-1);
  return (
    snapshot.frame >= target.frame ||
    (last !== undefined && kept[0].since <= snapshot.frame && last.frame >= target.frame)
  );
}
