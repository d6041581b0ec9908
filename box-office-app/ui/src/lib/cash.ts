// Money that people type and hand over: amounts in writing, notes and coins.

/** Digits behind the point. */
export function digits(currency: string): number {
  return (
    new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions()
      .maximumFractionDigits ?? 2
  );
}

/** "12.5", "12,50", "12" to minor units; null if it is no amount. */
export function readAmount(text: string, currency: string): number | null {
  const places = digits(currency);
  const match = /^(\d{1,9})(?:[.,](\d*))?$/.exec(text.trim().replaceAll(/[\s']/g, ''));
  if (!match || (match[2] ?? '').length > places) return null;
  return Number(match[1]) * 10 ** places + Number((match[2] ?? '').padEnd(places, '0') || 0);
}

/** Notes and coins, from large to small, in minor units. */
const KINDS: Record<string, number[]> = {
  EUR: [20000, 10000, 5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1],
  USD: [10000, 5000, 2000, 1000, 500, 200, 100, 50, 25, 10, 5, 1],
  GBP: [5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1],
  CHF: [100000, 20000, 10000, 5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5],
  JPY: [10000, 5000, 2000, 1000, 500, 100, 50, 10, 5, 1],
  KRW: [50000, 10000, 5000, 1000, 500, 100, 50, 10],
};

export function kinds(currency: string): number[] {
  const known = KINDS[currency];
  if (known) return known;
  // Any other: 1, 2 and 5 of each power, from a thousand down to the smallest.
  const all: number[] = [];
  for (let power = 10 ** (digits(currency) + 2); power >= 1; power /= 10)
    all.push(5 * power, 2 * power, power);
  return all;
}

/** What somebody is likely to hand over for `total`: the sum itself, and the next round ones. */
export function likely(total: number, currency: string): number[] {
  const notes = kinds(currency).filter((kind) => kind >= 5 * 10 ** digits(currency));
  const round = notes.map((note) => Math.ceil(total / note) * note);
  return [...new Set([total, ...round])].sort((a, b) => a - b).slice(0, 5);
}

/** How many of each kind lie there, as it was typed; what is left empty is none. Null: one of them is no number. */
export function counted(
  kinds: number[],
  typed: Record<number, string>,
): { value_minor: number; count: number }[] | null {
  const pieces = kinds.map((value_minor) => {
    const text = (typed[value_minor] ?? '').trim();
    return { value_minor, count: /^\d{0,6}$/.test(text) ? Number(text) : Number.NaN };
  });
  if (pieces.some(({ count }) => Number.isNaN(count))) return null;
  return pieces.filter(({ count }) => count > 0);
}
