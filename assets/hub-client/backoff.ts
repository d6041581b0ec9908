// Full jitter: wait anywhere between nothing and a bound that doubles. When a node dies, its fans
// come back spread over the whole time, not all at once.

export class Backoff {
  private failures = 0;

  constructor(
    private readonly random: () => number,
    private readonly base_ms = 500,
    private readonly max_ms = 30_000,
  ) {}

  next(): number {
    const bound = Math.min(this.max_ms, this.base_ms * 2 ** this.failures);
    this.failures = Math.min(this.failures + 1, 16);
    return this.random() * bound;
  }

  reset(): void {
    this.failures = 0;
  }

  get count(): number {
    return this.failures;
  }
}
