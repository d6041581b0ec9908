// What this counter has leased to sell without a network, and what it owes the hub. The core decides; here is what it
// said last.

import type { Leased, TillStanding } from '../host/port.ts';
import { till } from './till.svelte.ts';

let standing = $state.raw<TillStanding | null>(null);

export const offline = {
  get standing(): TillStanding | null {
    return standing;
  },
  get leases(): Leased[] {
    return standing?.leases ?? [];
  },
  /** Those that still sell. */
  get selling(): Leased[] {
    return offline.leases.filter((one) => one.sells_for_s > 0);
  },
  get left(): number {
    return offline.selling.reduce(
      (sum, one) => sum + one.seats.filter((seat) => !seat.sold).length,
      0,
    );
  },
  /** The hub has not heard all of it yet. */
  get owes(): boolean {
    return standing !== null && standing.unsettled + standing.to_report > 0;
  },
  /** Somebody has to see to something. */
  get troubled(): boolean {
    return (
      standing !== null &&
      (standing.stuck !== null ||
        standing.copied ||
        standing.strange.length + standing.not_sold.length + standing.new_codes.length > 0)
    );
  },
  follow: () => till.host.offline.follow((now) => (standing = now)),
};
