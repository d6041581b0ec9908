// Whether an event still takes place is told by no frame: a page asks, soon where something is at
// stake, seldom where nobody waits for it, and ever more seldom while nobody answers.
//
// What is asked is the event without its seats: any cache may answer it for a second, so a full house
// costs the hub as much as one page does.

const AT_STAKE_MS = 4_000;
const LOOKING_MS = 10_000;
const AT_MOST_MS = 60_000;
/** So that those who came together do not ask together. */
const SPREAD = 0.5;

/** How long to wait before the next question. */
export function askAgainIn(atStake: boolean, failures: number, random: () => number): number {
  const base = Math.min(AT_MOST_MS, (atStake ? AT_STAKE_MS : LOOKING_MS) * 2 ** failures);
  return base * (1 - SPREAD / 2 + SPREAD * random());
}

interface Watched {
  /** Something is lost or spoilt if the news comes late. */
  atStake(): boolean;
  /** Asks; false if there was no answer. */
  ask(): Promise<boolean>;
}

export class SaleWatch {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private due = 0;
  private stopped = false;

  constructor(private readonly watched: Watched) {
    this.wait();
  }

  /** Something is at stake now that was not before: the next question comes sooner. */
  hurry(): void {
    if (this.stopped) return;
    const sooner = Date.now() + askAgainIn(this.watched.atStake(), this.failures, Math.random);
    if (sooner < this.due) this.wait();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private wait(): void {
    clearTimeout(this.timer);
    const ms = askAgainIn(this.watched.atStake(), this.failures, Math.random);
    this.due = Date.now() + ms;
    this.timer = setTimeout(() => void this.look(), ms);
  }

  private async look(): Promise<void> {
    // Nobody looks at a hidden page; when it is shown again, it asks by itself.
    if (document.visibilityState === 'visible')
      this.failures = (await this.watched.ask()) ? 0 : Math.min(this.failures + 1, 6);
    if (!this.stopped) this.wait();
  }
}
