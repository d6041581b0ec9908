// A line in an operator's hands: followed by its shared frames, and asked for what only operators see.

import { browserPorts, LineFeed, type FeedState } from '../../../hub-client/index.ts';
import type { EventPage } from '../../../protocol/index.ts';
import { announce } from '../lib/announce.svelte.ts';
import { hub } from '../lib/hub.svelte.ts';
import { explain } from '../lib/problems.ts';
import { t } from '../lib/text.svelte.ts';
import { isOlder } from '../line/stand.ts';
import {
  StaffHub,
  type InsideList,
  type LineChange,
  type LinePatch,
  type StaffLine,
} from './staff-hub.ts';

/** Frames come up to several times a second; what an operator can turn changes seldom. */
const LOOK_EVERY_MS = 2_000;

export class StaffLineRoom {
  seen = $state.raw<StaffLine>(null!);
  changes = $state.raw<LineChange[]>([]);
  /** Older ones than those that are shown may be there. */
  more = $state(false);
  /** Who is inside, while somebody looks at them. */
  inside = $state.raw<InsideList | null>(null);
  insideFailed = $state<string | null>(null);
  feedState = $state<FeedState>('connecting');
  /** Which form is being sent. */
  busy = $state<string | null>(null);
  failed = $state.raw<{ form: string; why: string } | null>(null);
  done = $state<string | null>(null);
  private readonly feed: LineFeed;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  /** What is looked for among those inside; null: nobody looks at them. */
  private find: string | null = null;

  static async open(page: EventPage): Promise<StaffLineRoom> {
    const staff = new StaffHub(hub, page.event.id);
    const [seen, { changes }] = await Promise.all([staff.look(), staff.changes()]);
    return new StaffLineRoom(page, staff, seen, changes);
  }

  private constructor(
    readonly page: EventPage,
    private readonly staff: StaffHub,
    seen: StaffLine,
    changes: LineChange[],
  ) {
    this.seen = seen;
    this.changes = changes;
    this.more = changes.length > 0 && changes.at(-1)!.what !== 'opened';
    this.feed = new LineFeed(page.event.id, browserPorts(), {
      line: (line) => {
        if (!isOlder(line, this.seen.line)) this.seen = { ...this.seen, line };
        this.timer ??= setTimeout(() => void this.look(), LOOK_EVERY_MS);
      },
      state: (state) => (this.feedState = state),
    });
    this.feed.start();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.feed.stop();
  }

  watchInside(find: string | null): void {
    this.find = find;
    if (find !== null) void this.lookInside(find);
  }

  private async lookInside(find: string): Promise<void> {
    try {
      const inside = await this.staff.inside(find);
      // Somebody who types has asked for another list meanwhile.
      if (!this.closed && this.find === find) [this.inside, this.insideFailed] = [inside, null];
    } catch (error) {
      if (this.find === find) this.insideFailed = explain(error);
    }
  }

  private async look(): Promise<void> {
    if (this.find !== null) void this.lookInside(this.find);
    try {
      const [seen, { changes }] = await Promise.all([this.staff.look(), this.staff.changes()]);
      if (this.closed) return;
      if (!isOlder(seen.line, this.seen.line)) this.seen = seen;
      // Two looks may be under way (a frame's, and one after a change): the second adds what the first has not.
      const newest = this.changes[0]?.id ?? 0;
      this.changes = [...changes.filter(({ id }) => id > newest), ...this.changes];
    } catch {
      // The next frame asks again; that frames stay away is told by the feed's state.
    } finally {
      this.timer = undefined;
    }
  }

  async readOn(): Promise<void> {
    const oldest = this.changes.at(-1)?.id;
    const { changes } = await this.staff.changes(oldest);
    if (this.changes.at(-1)?.id !== oldest) return; // pressed twice
    this.more = changes.length > 0 && changes.at(-1)!.what !== 'opened';
    this.changes = [...this.changes, ...changes];
  }

  /** True if it was done; otherwise the form says why not. */
  async change(form: string, patch: LinePatch): Promise<boolean> {
    if (this.busy) return false;
    this.busy = form;
    this.failed = null;
    this.done = null;
    try {
      this.seen = await this.staff.change(patch);
      this.done = form;
      announce(t('staff.done'));
      void this.look();
      return true;
    } catch (error) {
      this.failed = { form, why: explain(error) };
      announce(this.failed.why, true);
      return false;
    } finally {
      this.busy = null;
    }
  }
}
