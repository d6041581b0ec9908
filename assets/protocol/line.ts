// The waiting room of an event: its line as everybody sees it (one shared frame), and one's own stand in
// it. Times are RFC 3339 in UTC, hashes and values lower-case hex. Places count from 0; people read one more.

export type LineState = 'soon' | 'joining' | 'closed' | 'open' | 'paused' | 'sold_out' | 'over';

/** With a public value that nobody could choose a draw is verifiable; without one it is only committed. */
export type DrawKind = 'committed' | 'verifiable';

export interface LineDraw {
  no: number;
  kind: DrawKind;
  /** Published before anybody could join. */
  commitment: string;
  /** Where the public value comes from, and which of its rounds. */
  source?: string | null;
  round?: string | null;
  value_due_at?: string | null;
  closed_at?: string | null;
  entry_count?: number | null;
  root?: string | null;
  /** Before `value_due_at`: who fixed the entries knew no value. */
  rooted_at?: string | null;
  public_value?: string | null;
  drawn_at?: string | null;
  /** Once it is revealed. */
  secret?: string | null;
  abandoned_at?: string | null;
  abandoned_why?: string | null;
}

export interface Line {
  event_id: number;
  /** Only rises: an answer with a lower one is old. */
  revision?: number;
  state: LineState;
  joins_at: string;
  closes_at: string;
  opens_at: string;
  /** Numbers 0 to `joined - 1` were given out. */
  joined: number;
  /** Numbers below it are drawn; above, the place is the number. Null until it is fixed. */
  drawn_count: number | null;
  /** All places below it may come in. */
  called_through: number;
  called_last_minute: number;
  called_last_5_minutes: number;
  rate_minute: number;
  inside: number;
  inside_max: number;
  seats_left: number;
  sold_out_at?: string | null;
  next_batch_at?: string | null;
  /** The operator's words by language; `default` for all others. */
  message?: Record<string, string> | null;
  draw: LineDraw;
  /** Called and not come for so long: the next are called. */
  show_s: number;
  /** How long a pass is good, and how long it can be renewed. */
  pass_s: number;
  pass_max_s: number;
  /** So long after the call the entry is still good. */
  grace_s: number;
  /** The hub can't reach its database: what is shown may be old, places are kept. */
  database_late?: boolean;
  now?: string;
}

export interface Preferences {
  /** Seats in all, wheelchair places and companions included. */
  party_size?: number | null;
  price_level?: number | null;
  accessible?: number;
  companions?: number;
}

export interface Pass {
  /** Goes into the header `fullhouse-pass` when seats are taken. */
  pass: string;
  expires_at: string;
  renewable_until: string;
}

export type EntryState = 'waiting' | 'called' | 'inside' | 'lapsed';

export interface LineEntry {
  /** In order of joining, from 0; it never changes. */
  number: number;
  /** From 0; null until the draw. */
  place: number | null;
  state: EntryState;
  /** The signed receipt of this stand. */
  ticket: string;
  /** With it anybody finds this entry among the draw's leaves. */
  entry_key: string;
  joined_at: string;
  called_at?: string | null;
  grace_until?: string | null;
  pass?: Pass | null;
  /** Another session of this account has the pass; coming in here takes it over. */
  inside_elsewhere?: boolean;
  preferences: Preferences;
  now?: string;
}

export interface LineProof {
  draw_no: number;
  number: number;
  leaf: string;
  path: string[];
  root: string;
  count: number;
}

/** What the hub's challenge looks like is ALTCHA's business (v2); the page only hands it to the solver. */
export interface LineChallenge {
  parameters: {
    algorithm: string;
    nonce: string;
    salt: string;
    cost: number;
    keyLength: number;
    keyPrefix: string;
    expiresAt?: number;
    [more: string]: unknown;
  };
  signature?: string;
}
