// For tests, which look at the map by numbers.

import type { LiveRoom } from '../room/live-room.svelte.ts';

export function watchForTests(room: LiveRoom): void {
  Object.assign(globalThis, {
    __fullhouse: {
      event: room.id,
      /** How many seats are free: none until the map has come. */
      statuses: () => room.board.freeInAll,
      status: (seat: number) => room.board.status[seat],
      own: (seat: number) => room.board.own[seat],
      screenPoint(seat: number) {
        const box = room.map?.canvas.getBoundingClientRect();
        const [x, y] = room.map?.pointOf(seat) ?? [0, 0];
        return box && { x: box.x + x, y: box.y + y };
      },
      show: (seats: number[]) => room.map?.showSeats(seats, false),
      map: () => room.map,
    },
  });
}
