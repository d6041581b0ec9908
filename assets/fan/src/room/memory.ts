// What a tab remembers of its picks, and how tabs tell each other that the hold changed.

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
