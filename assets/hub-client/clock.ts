// The hub's clock, seen from here. Countdowns follow it, so a wrong clock on a phone shows right
// times. Each answer with a `now` is a sample; the one with the shortest round trip is believed,
// since its error is at most half of that trip.

const FORGET_AFTER_MS = 10 * 60_000;

export class ServerClock {
  private offset = 0;
  private roundTrip = Infinity;
  private sampledAt = -Infinity;

  constructor(private readonly local: () => number = Date.now) {}

  /** `now` of an answer whose request was sent and received at these local times. */
  sample(now: string, sentAt: number, receivedAt: number): void {
    const server = Date.parse(now);
    if (Number.isNaN(server)) return;
    const roundTrip = Math.max(0, receivedAt - sentAt);
    // A local clock that jumped (sleep, or set by hand) makes the old sample worthless.
    const jumped =
      Math.abs(server - (receivedAt + this.offset)) > this.roundTrip + roundTrip + 1500;
    const stale = receivedAt - this.sampledAt > FORGET_AFTER_MS;
    if (roundTrip > this.roundTrip && !stale && !jumped) return;
    this.offset = server - (sentAt + roundTrip / 2);
    this.roundTrip = roundTrip;
    this.sampledAt = receivedAt;
  }

  /** The hub's time now, in ms since 1970. */
  now(): number {
    return this.local() + this.offset;
  }
}
