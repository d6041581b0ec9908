// What operators ask of the hub about a line. Only their page loads this.

import type { Hub } from '../../../hub-client/index.ts';
import type { Line } from '../../../protocol/index.ts';

/** A line as operators see it. */
export interface StaffLine {
  line: Line & { rate_reason?: string };
  rate_minute_min: number;
  rate_minute_max: number;
  /** Instead of the controller's. */
  rate_fixed: number | null;
  /** Called lately and not here yet. */
  expected: number;
  paused_at: string | null;
  holds_live_max: number | null;
  checkouts_live_max: number | null;
}

/** What is named is changed, the rest stays; null takes a value away. */
export interface LinePatch {
  reason: string;
  paused?: boolean;
  message?: Record<string, string> | null;
  rate_minute_min?: number;
  rate_minute_max?: number;
  rate_fixed?: number | null;
  inside_max?: number;
  holds_live_max?: number | null;
  checkouts_live_max?: number | null;
  next_batch_at?: string | null;
  public_value?: string;
  reveal?: boolean;
  revoke?: string;
  redraw?: { source?: string; round?: string; value_due_at?: string };
}

/** A row of the audit log. */
export interface LineChange {
  id: number;
  at: string;
  actor: string;
  what: string;
  was: unknown;
  is_now: unknown;
  reason: string;
}

/** Somebody with a live pass. */
export interface Inside {
  account_id: string;
  name: string;
  email: string;
  issued_at: string;
  expires_at: string;
  seats_held: number;
}

/** As many as one answer lists, whose name or address has what was looked for. */
export interface InsideList {
  people: Inside[];
  more: boolean;
}

export class StaffHub {
  constructor(
    private readonly hub: Hub,
    readonly event: number,
  ) {}

  look = () => this.hub.ask<StaffLine>('GET', this.address);
  /** Not repeated by itself: whoever asked sees what became of it. */
  change = (patch: LinePatch) => this.hub.ask<StaffLine>('PATCH', this.address, patch);
  inside = (find: string) =>
    this.hub.ask<InsideList>(
      'GET',
      `${this.address}/inside${find ? `?find=${encodeURIComponent(find)}` : ''}`,
    );
  /** The newest first; those before one, to read on. */
  changes = (before?: number) =>
    this.hub.ask<{ changes: LineChange[] }>(
      'GET',
      `${this.address}/changes${before === undefined ? '' : `?before=${before}`}`,
    );

  private get address(): string {
    return `/api/staff/events/${this.event}/queue`;
  }
}
