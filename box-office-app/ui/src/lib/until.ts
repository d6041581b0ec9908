// When seats that are put aside go back on sale.

const MINUTE = 60_000;

export interface Until {
  name: string;
  /** Milliseconds since 1970. */
  at: number;
}

/** What is proposed at this moment for an event that begins then: only times that the hub takes, the nearest first. */
export function proposals(now: number, startsAt: number): Until[] {
  const all = [
    { name: 'half an hour', at: now + 30 * MINUTE },
    { name: 'two hours', at: now + 120 * MINUTE },
    { name: 'a day', at: now + 24 * 60 * MINUTE },
    { name: 'an hour before it begins', at: startsAt - 60 * MINUTE },
    { name: 'it begins', at: startsAt },
  ];
  return all.filter(({ at }) => at >= now + 2 * MINUTE && at <= startsAt);
}

/** Likely cut-offs of what a partner has to sell, before an event that begins then; the sale's end is the last. */
export function cutOffs(now: number, startsAt: number, offSaleAt: number): Until[] {
  const days = (count: number) => startsAt - count * 24 * 60 * MINUTE;
  const all = [
    { name: 'two weeks before', at: days(14) },
    { name: 'a week before', at: days(7) },
    { name: 'two days before', at: days(2) },
    { name: 'the end of the sale', at: offSaleAt },
  ];
  return all.filter(({ at }) => at >= now + 2 * MINUTE && at <= offSaleAt);
}

/** `2026-11-30T18:45` as a form's field has it, on this machine's clock; null if it is no time. */
export function readLocal(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? new Date(text).getTime() : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
