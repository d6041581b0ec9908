// Idempotency keys. A request whose outcome is unknown (no answer, a 5xx) is sent again under the
// same key until the hub gives a definite answer, across reloads of the tab too: so one press of a
// button is one hold and one payment, whatever the network does.
//
// A key belongs to an intent (its name) and to the exact body; another body is another key.

export interface KeyStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

const PREFIX = 'fullhouse.key.';

export class KeyRing {
  private readonly fallback = new Map<string, string>();

  constructor(
    private readonly store: KeyStore | null,
    private readonly fresh: () => string,
  ) {}

  /** The key for this intent and body: the pending one, or a fresh one. */
  take(intent: string, body: string): string {
    const pending = this.read(intent);
    if (pending && pending.body === body) return pending.key;
    const key = this.fresh();
    this.write(intent, JSON.stringify({ key, body }));
    return key;
  }

  /** A definite answer came: the next press is a new intent. */
  settle(intent: string): void {
    this.fallback.delete(intent);
    try {
      this.store?.removeItem(PREFIX + intent);
    } catch {
      // Storage may be forbidden (private windows); the map above is then all there is.
    }
  }

  private read(intent: string): { key: string; body: string } | null {
    let text = this.fallback.get(intent) ?? null;
    try {
      text ??= this.store?.getItem(PREFIX + intent) ?? null;
      const value = text === null ? null : JSON.parse(text);
      return typeof value?.key === 'string' && typeof value?.body === 'string' ? value : null;
    } catch {
      return null;
    }
  }

  private write(intent: string, text: string): void {
    this.fallback.set(intent, text);
    try {
      this.store?.setItem(PREFIX + intent, text);
    } catch {
      // See settle.
    }
  }
}
