// Where the shared state of a line comes from. One address serves everybody and is cached for a second;
// how often it is asked follows what can change.

import type { FeedState } from '../../../hub-client/index.ts';
import type { Line } from '../../../protocol/index.ts';

export interface SourcePorts {
  fetch(): Promise<Line>;
  now(): number;
  after(ms: number, run: () => void): () => void;
  random(): number;
  visible(): boolean;
  onWake(wake: (awake: boolean) => void): () => void;
}

export interface SourceHeard {
  line(line: Line): void;
  state(state: FeedState): void;
}

const EVERY_MS = 2_500;
const HIDDEN_EVERY_MS = 6_000;
/** Long before the joining nothing changes but the number of people who look. */
const EARLY_EVERY_MS = 30_000;
const EARLY_MS = 10 * 60_000;
const AGAIN_MS = 1_000;
const AGAIN_MAX_MS = 20_000;

export class PolledLine {
  private last: Line | null = null;
  private cancel: () => void = () => {};
  private failures = 0;
  private run = 0;
  private readonly unwake: () => void;
  private stopped = false;

  constructor(
    private readonly ports: SourcePorts,
    private readonly heard: SourceHeard,
  ) {
    this.unwake = ports.onWake((awake) => {
      if (awake) this.wake();
      else heard.state('offline');
    });
    void this.ask();
  }

  stop(): void {
    this.stopped = true;
    this.unwake();
    this.cancel();
  }

  /** Asks at once: what was on its way when a phone fell asleep is overtaken. */
  wake(): void {
    if (this.stopped) return;
    this.failures = 0;
    void this.ask();
  }

  private async ask(): Promise<void> {
    this.cancel();
    const run = ++this.run;
    try {
      const line = await this.ports.fetch();
      if (this.stopped || run !== this.run) return;
      this.failures = 0;
      this.last = line;
      this.heard.state('polling');
      this.heard.line(line);
    } catch {
      if (this.stopped || run !== this.run) return;
      this.failures++;
      if (this.failures > 1 || !this.last) this.heard.state('offline');
    }
    this.cancel = this.ports.after(this.wait(), () => void this.ask());
  }

  private wait(): number {
    const spread = 0.7 + this.ports.random() * 0.6;
    if (this.failures > 0)
      return Math.min(AGAIN_MAX_MS, AGAIN_MS * 2 ** this.failures) * (0.5 + this.ports.random());
    const early =
      this.last?.state === 'soon' && Date.parse(this.last.joins_at) - this.ports.now() > EARLY_MS;
    if (early || this.last?.state === 'over') return EARLY_EVERY_MS * spread;
    return (this.ports.visible() ? EVERY_MS : HIDDEN_EVERY_MS) * spread;
  }
}
