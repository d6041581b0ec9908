// How many people are before us, as it is shown: within one stand the number only falls. An answer that
// is older than the one before, or wrong, must not send anybody back; a redraw or another entry begins anew.

export class Falling {
  private stand = '';
  private least = Infinity;

  /** The number to show; `stand` names the entry and the draw that its place is from. */
  show(stand: string, ahead: number): number {
    if (stand !== this.stand) {
      this.stand = stand;
      this.least = Infinity;
    }
    this.least = Math.max(0, Math.min(this.least, ahead));
    return this.least;
  }
}
