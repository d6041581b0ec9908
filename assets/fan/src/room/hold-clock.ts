// Watches a hold's end by the hub's clock and says so in time. Deadlines are looked at again and
// again rather than slept until: timers stop while a phone sleeps.

import type { Hold } from '../../../protocol/index.ts';
import { time } from '../lib/hub.svelte.ts';

const WARN_MINUTES = [2, 1];
const LOOK_MS = 500;
/** The hub frees the seats at its own instant; asking a moment later saves an answer too early. */
const AFTER_END_MS = 800;

interface Heard {
  minutesLeft(minutes: number): void;
  payTimeOver(): void;
  ended(): void;
}

export class HoldClock {
  private hold: Hold | null = null;
  private said = new Set<string>();
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(private readonly heard: Heard) {
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  follow(hold: Hold | null): void {
    if (hold?.id !== this.hold?.id) this.said.clear();
    this.hold = hold;
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const hold = this.hold;
    if (!hold) return;
    const left = Date.parse(hold.pay_until) - time.now;
    if (time.now > Date.parse(hold.held_until) + AFTER_END_MS) {
      this.once('ended', () => this.heard.ended());
    } else if (left <= 0) {
      this.once('pay', () => this.heard.payTimeOver());
    } else {
      for (const minutes of WARN_MINUTES) {
        const ms = minutes * 60_000;
        if (left <= ms && left > ms - 20_000)
          this.once(`${minutes}`, () => this.heard.minutesLeft(minutes));
      }
    }
  }

  private once(what: string, say: () => void): void {
    if (this.said.has(what)) return;
    this.said.add(what);
    say();
  }
}
