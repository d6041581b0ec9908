// What a tab remembers of its picks, what a browser remembers of its holds, and how tabs tell each
// other that the hold changed.

const name = (event: number) => `fullhouse.picked.${event}`;

export function remember(event: number, seats: readonly number[]): void {
  try {
    sessionStorage.setItem(name(event), JSON.stringify(seats));
  } catch {
    // Without storage a reload forgets the picks; nothing that is held depends on them.
  }
}

export function recall(event: number): number[] {
  try {
    const seats: unknown = JSON.parse(sessionStorage.getItem(name(event)) ?? '[]');
    return Array.isArray(seats) ? seats.filter((seat) => Number.isInteger(seat) && seat >= 0) : [];
  } catch {
    return [];
  }
}

export function forget(event: number): void {
  try {
    sessionStorage.removeItem(name(event));
  } catch {
    // See remember.
  }
}

export function otherTabs(event: number, changed: () => void): { tell(): void; close(): void } {
  if (!('BroadcastChannel' in globalThis)) return { tell: () => {}, close: () => {} };
  const channel = new BroadcastChannel(`fullhouse.hold.${event}`);
  channel.onmessage = changed;
  return { tell: () => channel.postMessage('changed'), close: () => channel.close() };
}

const HELD = 'fullhouse.held';
type Held = Record<string, { until: string; seats: number; slug?: string; name?: string }>;

/** So that other pages count down too, and whoever signs out is told what becomes of the seats. The
 *  time is the one that the event's page counts down to: the seats go back a moment later. */
export function keepHeld(
  event: number,
  hold: { pay_until: string; seats: number[] } | null,
  named: { slug?: string; name?: string } = {},
): void {
  const held = readHeld();
  if (hold) {
    const { slug, name } = { ...held[event], ...named };
    held[event] = { until: hold.pay_until, seats: hold.seats.length, slug, name };
  } else if (held[event]) delete held[event];
  else return;
  writeHeld(held);
}

export interface HeldSeats {
  event: number;
  seats: number;
  until: string;
  slug: string;
  name: string;
}

/** What this browser believes to be held at this time, what ends first before the rest. */
export function heldAt(now: number): HeldSeats[] {
  return Object.entries(readHeld())
    .map(([event, { until, seats, slug, name }]) => ({
      event: Number(event),
      seats,
      until,
      slug: slug ?? event,
      name: name ?? '',
    }))
    .filter((one) => one.seats > 0 && Date.parse(one.until) > now)
    .sort((a, b) => Date.parse(a.until) - Date.parse(b.until));
}

/** How many seats are held at this time, and until when all of them are; forgets them. */
export function takeHeld(now: number): { seats: number; until: string } | null {
  const live = Object.values(readHeld()).filter(({ until }) => Date.parse(until) > now);
  writeHeld({});
  if (live.length === 0) return null;
  const [first] = live.map(({ until }) => until).sort();
  return { seats: live.reduce((sum, one) => sum + one.seats, 0), until: first };
}

function readHeld(): Held {
  try {
    const held: unknown = JSON.parse(localStorage.getItem(HELD) ?? '{}');
    return held && typeof held === 'object' ? (held as Held) : {};
  } catch {
    return {};
  }
}

function writeHeld(held: Held): void {
  try {
    localStorage.setItem(HELD, JSON.stringify(held));
  } catch {
    // Without storage nobody is told; the hub keeps the seats all the same.
  }
}
