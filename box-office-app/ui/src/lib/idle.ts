// For how long nobody has touched this. A clock that is set back must not keep a counter open, and one that stands while
// the machine sleeps must not either: the longer of the two counts.

export class Idle {
  private touchedAt: [number, number];

  constructor(
    private readonly steady: () => number = () => performance.now(),
    private readonly wall: () => number = () => Date.now(),
  ) {
    this.touchedAt = [steady(), wall()];
  }

  touched(): void {
    this.touchedAt = [this.steady(), this.wall()];
  }

  ms(): number {
    const [steady, wall] = this.touchedAt;
    return Math.max(this.steady() - steady, this.wall() - wall);
  }
}
