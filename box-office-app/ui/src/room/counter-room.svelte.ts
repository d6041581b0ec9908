// The hall at a counter: seats are picked to be sold, to be taken out of the sale, or in exchange for others.

import { Look, Own } from '../../../../assets/seat-map/index.ts';
import { Status, type EventPage, type Geometry } from '../../../../assets/protocol/index.ts';
import { LiveRoom } from './live-room.svelte.ts';
import { Sale } from './sale.svelte.ts';

export type Mode = 'sell' | 'house' | 'exchange';

export class CounterRoom extends LiveRoom {
  sale = $state.raw<Sale>(null!);
  mode = $state<Mode>('sell');
  /** What happened to picked seats without our doing. */
  said = $state('');
  /** Why house seats are changed: it stays while something else is looked at. */
  why = $state('');
  /** What is picked is asked for in exchange: what the map says of it before the answer may be that. */
  exchanging = false;
  /** A seat that can't be picked was touched: whose is it? */
  asked = $state<number | null>(null);

  static async open(event: number): Promise<CounterRoom> {
    return new CounterRoom(...(await LiveRoom.read(event)));
  }

  private constructor(page: EventPage, geometry: Geometry) {
    super(page, geometry);
    this.sale = new Sale(this.id, () => this.redraw());
    this.follow();
  }

  override close(): void {
    super.close();
    this.sale.close();
  }

  /** Nothing of the last customer is left. */
  next(): void {
    this.sale.close();
    this.sale = new Sale(this.id, () => this.redraw());
    this.said = '';
    this.asked = null;
    this.pick([]);
    void this.readTraits();
  }

  turn(mode: Mode): void {
    this.mode = mode;
    this.why = '';
    this.asked = null;
    this.pick([]);
  }

  override get mine(): readonly number[] {
    return this.sale?.seats ?? [];
  }

  override toggle(seat: number): void {
    this.said = '';
    this.asked = null;
    if (this.picked.includes(seat)) return this.pick(this.picked.filter((one) => one !== seat));
    if (this.mine.includes(seat)) return;
    const status = this.board.status[seat];
    const free = status === Status.available;
    if (!free && !(this.mode === 'house' && status === Status.blocked)) {
      this.asked = seat;
      return;
    }
    if (this.mode !== 'house' && !this.seats.level(seat)) {
      this.said = `${this.seats.name(seat)} has no price.`;
      return;
    }
    this.pick([...this.picked, seat]);
  }

  protected override look(): void {
    if (this.mode === 'house' || this.picked.length === 0) return;
    if (this.sale.taking || this.exchanging) return;
    // What this customer holds is theirs: the map may say so before the hub's answer has been priced.
    const lost = (seat: number) =>
      this.board.status[seat] !== Status.available && !this.mine.includes(seat);
    const gone = this.picked.filter(lost);
    if (gone.length === 0) return;
    this.said = `Just taken by somebody else: ${this.seats.nameAll(gone).join('; ')}`;
    this.pick(this.picked.filter((seat) => !gone.includes(seat)));
  }
}

export const NAMES: Record<number, string> = {
  [Look.available]: 'free',
  [Look.held]: 'held',
  [Look.sold]: 'sold',
  [Look.blocked]: 'blocked',
  [Own.picked]: 'picked',
  [Own.mine]: 'of this customer',
};
