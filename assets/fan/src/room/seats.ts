// What seats are called and what they cost: joins the plan's drawing with the event's price levels.

import {
  SeatFlag,
  type EventPage,
  type OrderLine,
  type PriceLevel,
  type SeatTraits,
  type Ticket,
} from '../../../protocol/index.ts';
import type { Plan } from '../../../seat-map/index.ts';
import { list, money } from '../lib/format.ts';
import { t } from '../lib/text.svelte.ts';
import { feeName } from './names.ts';

export interface Place {
  section: string;
  row: string;
  number: string;
  /** A place to stand: nobody should look for a chair. */
  standing?: boolean;
}

/** What a performance may say otherwise than the plan. */
const OF_A_PERFORMANCE = SeatFlag.accessible | SeatFlag.companion | SeatFlag.restrictedView;

export class Seats {
  readonly currency: string;
  /** By category of the plan; undefined where a category has no price, and so is not for sale. */
  private readonly levelOfCategory: (PriceLevel | undefined)[];
  /** As the plan has them. */
  private readonly drawn: Uint8Array;
  private said = '[]';
  private readonly notes = new Map<number, string>();

  constructor(
    readonly plan: Plan,
    readonly page: EventPage,
  ) {
    this.currency = page.event.currency;
    this.drawn = plan.flags.slice();
    this.setTraits(page.seat_traits);
    const byName = new Map(page.price_levels.map((level) => [level.category, level]));
    this.levelOfCategory = plan.categories.map(({ name }) => byName.get(name));
  }

  level(seat: number): PriceLevel | undefined {
    return this.levelOfCategory[this.plan.category[seat]];
  }

  levelOf(category: number): PriceLevel | undefined {
    return this.levelOfCategory[category];
  }

  /** Categories from cheap to dear. */
  rank(): number[] {
    const price = (category: number) =>
      this.levelOfCategory[category]?.prices[0]?.amount_minor ?? Infinity;
    return this.plan.categories.map((_, index) => index).sort((a, b) => price(a) - price(b));
  }

  price(seat: number, ticketType?: string): number | undefined {
    const prices = this.level(seat)?.prices ?? [];
    return (prices.find((one) => one.ticket_type === ticketType) ?? prices[0])?.amount_minor;
  }

  place(seat: number): Place {
    const { plan } = this;
    return {
      section: plan.sections[plan.section[seat]]?.name ?? '',
      row: plan.rows[plan.row[seat]]?.label ?? '',
      number: plan.number[seat] ?? '',
      standing: (plan.flags[seat] & SeatFlag.standing) !== 0,
    };
  }

  name(seat: number): string {
    return placeName(this.place(seat));
  }

  /** "Block 112, row 7, seats 12, 13": neighbours are named once. */
  nameAll(seats: readonly number[]): string[] {
    const rows = new Map<string, { place: Place; numbers: string[] }>();
    for (const seat of [...seats].sort((a, b) => a - b)) {
      const place = this.place(seat);
      const key = JSON.stringify([place.section, place.row]);
      const row = rows.get(key) ?? { place, numbers: [] };
      row.numbers.push(place.number);
      rows.set(key, row);
    }
    return [...rows.values()].map(({ place, numbers }) =>
      numbers.length === 1
        ? placeName(place)
        : placeName({ ...place, number: list(numbers) }, numbers.length),
    );
  }

  /** What seats are for this performance, instead of what is drawn; false if that was so already. */
  setTraits(traits: readonly SeatTraits[] = []): boolean {
    const said = JSON.stringify(traits);
    if (said === this.said) return false;
    this.said = said;
    this.plan.flags.set(this.drawn);
    this.notes.clear();
    for (const { seat_no: seat, accessible, companion, restricted_view, note } of traits) {
      if (seat >= this.plan.count) continue;
      this.plan.flags[seat] =
        (this.drawn[seat] & ~OF_A_PERFORMANCE) |
        (accessible ? SeatFlag.accessible : 0) |
        (companion ? SeatFlag.companion : 0) |
        (restricted_view ? SeatFlag.restrictedView : 0);
      if (note) this.notes.set(seat, note);
    }
    return true;
  }

  /** What whoever buys it is told of it; empty: nothing. */
  note(seat: number): string {
    return this.notes.get(seat) ?? '';
  }

  /** Besides its name, which says already where somebody stands. */
  traits(seat: number): string[] {
    const flags = this.plan.flags[seat];
    const traits: string[] = [];
    if (flags & SeatFlag.accessible) traits.push(t('trait.accessible'));
    if (flags & SeatFlag.companion) traits.push(t('trait.companion'));
    if (flags & SeatFlag.restrictedView) traits.push(t('trait.restricted_view'));
    if (this.note(seat)) traits.push(this.note(seat));
    return traits;
  }

  /** These, by what is to be known of them: neighbours of one kind are named together. */
  byTraits(seats: readonly number[]): { names: string[]; traits: string[] }[] {
    const kinds = new Map<string, { traits: string[]; seats: number[] }>();
    for (const seat of seats) {
      const traits = this.traits(seat);
      const kind = kinds.get(traits.join('\n')) ?? { traits, seats: [] };
      kind.seats.push(seat);
      kinds.set(traits.join('\n'), kind);
    }
    return [...kinds.values()].map(({ traits, seats }) => ({ names: this.nameAll(seats), traits }));
  }

  /** What these cost, each as the first of its ticket types; without fees. */
  priceOf(seats: readonly number[]): number {
    return seats.reduce((sum, seat) => sum + (this.price(seat) ?? 0), 0);
  }

  money(minor: number): string {
    return money(minor, this.currency);
  }
}

/** What is bought by a line of an order: a place, or what a fee is for. */
export function lineName({ section, row, number, standing, fee_code }: OrderLine): string {
  if (fee_code) return feeName(fee_code);
  return placeName({ section: section ?? '', row: row ?? '', number: number ?? '', standing });
}

/** A blank row name is allowed, and then the word "row" is left out too. */
export function placeName({ section, row, number, standing }: Place, count = 1): string {
  const many = count > 1;
  if (standing) return t(many ? 'seat.standing_many' : 'seat.standing', { section, number });
  if (!row.trim()) {
    return t(many ? 'seat.without_row_many' : 'seat.without_row', { section, number });
  }
  return t(many ? 'seat.full_many' : 'seat.full', { section, row, number });
}

/** What is told of a ticket's seat besides its name; mostly nothing. */
export function seatTold({ traits, note }: Ticket): string {
  return [...(traits ?? []).map((one) => t(`trait.${one}`)), note].filter(Boolean).join(' · ');
}
