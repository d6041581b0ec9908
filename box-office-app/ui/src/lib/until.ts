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

/** `2026-11-30T18:45` as a form's field has it, on this machine's clock; null if it is no time. */
export function readLocal(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? new Date(text).getTime() : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
