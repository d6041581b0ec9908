// The hall as one customer of a kiosk chooses in it. Nothing of it outlives the visit.

import { placeName } from '../../../../assets/fan/src/room/seats.ts';
import { Status, type EventPage, type Geometry } from '../../../../assets/protocol/index.ts';
import { k } from '../kiosk/words.ts';
import { LiveRoom } from './live-room.svelte.ts';

export class KioskRoom extends LiveRoom {
  said = $state('');
  private ours: readonly number[] = [];

  static async open(event: number): Promise<KioskRoom> {
    return new KioskRoom(...(await LiveRoom.read(event)));
  }

  private constructor(page: EventPage, geometry: Geometry) {
    super(page, geometry);
    this.follow();
  }

  /** What the hub holds for this customer: what was picked is picked no more. Before they pay, what these seats are is
      asked for once more. */
  set held(seats: readonly number[]) {
    this.ours = seats;
    if (seats.length > 0) {
      this.picked = [];
      void this.readTraits();
    }
    this.redraw();
  }

  override get mine(): readonly number[] {
    return this.ours ?? [];
  }

  override toggle(seat: number): void {
    this.said = '';
    if (this.mine.length > 0) return;
    if (this.picked.includes(seat)) return this.pick(this.picked.filter((one) => one !== seat));
    if (this.board.status[seat] !== Status.available || !this.seats.level(seat)) return;
    if (this.picked.length < this.page.event.seat_limit) this.pick([...this.picked, seat]);
  }

  protected override look(): void {
    const gone = this.picked.filter((seat) => this.board.status[seat] !== Status.available);
    if (gone.length === 0) return;
    this.said = k('choose.taken', {
      seats: gone.map((seat) => placeName(this.seats.place(seat))).join('; '),
    });
    this.pick(this.picked.filter((seat) => !gone.includes(seat)));
  }
}
