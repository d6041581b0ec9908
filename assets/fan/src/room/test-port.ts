// A port for tests and for looking inside: `window.__fullhouse` on an event's page. It only reads,
// except `screenPoint`, which brings the seat into view so that a real click can hit it.

import { STATUS_NAMES, type StatusName } from '../../../protocol/index.ts';
import type { EventRoom } from './event-room.svelte.ts';

export interface TestPort {
  /** What the hub says about a seat, as this page knows it. */
  status(seat: number): StatusName | 'unknown';
  /** Seats that this fan holds. */
  mine(): number[];
  picked(): number[];
  bought(): number[];
  epoch(): number;
  frame(): number;
  /** The seat's place on the screen in CSS pixels, large enough to be clicked; null without a map. */
  screenPoint(seat: number): { x: number; y: number } | null;
  /** How long drawing took lately, in ms. */
  timings(): { paint: number; sharp: number; touch: number } | null;
}

declare global {
  interface Window {
    __fullhouse?: TestPort;
  }
}

export function exposeForTests(room: EventRoom): () => void {
  const port: TestPort = {
    status: (seat) =>
      room.epoch === 0 ? 'unknown' : (STATUS_NAMES[room.board.status[seat]] ?? 'unknown'),
    mine: () => [...room.mine],
    picked: () => [...room.picked],
    bought: () => [...room.bought],
    epoch: () => room.epoch,
    frame: () => room.frame,
    screenPoint(seat) {
      const map = room.map;
      if (!map || seat >= room.board.plan.count) return null;
      map.showSeats([seat], false);
      const [x, y] = map.pointOf(seat);
      const box = map.canvas.getBoundingClientRect();
      return { x: box.left + x, y: box.top + y };
    },
    timings: () => (room.map ? { ...room.map.timings } : null),
  };
  window.__fullhouse = port;
  return () => {
    if (window.__fullhouse === port) delete window.__fullhouse;
  };
}
