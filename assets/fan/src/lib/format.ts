// Money, numbers and times, in the reader's way of writing them.

import { t, text } from './text.svelte.ts';

/** Minor units to what people write; the currency's own number of digits (JPY 0, KWD 3). */
export function money(minor: number, currency: string): string {
  // "JP¥" in some languages. A bare ¥ is the yen in all of them: the yuan is never written so here.
  const currencyDisplay = currency === 'JPY' ? 'narrowSymbol' : 'symbol';
  const format = new Intl.NumberFormat(text.locale, {
    style: 'currency',
    currency,
    currencyDisplay,
  });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(minor / 10 ** digits);
}

export function percent(share: number): string {
  // "0 % free" must mean none, "100 % free" all.
  const rounded = share <= 0 ? 0 : share >= 1 ? 1 : Math.min(0.99, Math.max(0.01, share));
  return new Intl.NumberFormat(text.locale, { style: 'percent' }).format(rounded);
}

/** A share that is agreed on: 100 % is 100, 0 % is 0, and nothing is rounded to look better. */
export function exactPercent(value: number): string {
  return new Intl.NumberFormat(text.locale, { style: 'percent' }).format(value / 100);
}

export function list(items: string[]): string {
  return new Intl.ListFormat(text.locale, { type: 'conjunction' }).format(items);
}

/** A local time of the venue ("2027-03-01T19:00"), as the hub says it: no zone rules of ours. */
export function venueTime(local: string, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(text.locale, { ...options, timeZone: 'UTC' }).format(
    new Date(`${local.slice(0, 16)}Z`),
  );
}

/** An instant in the reader's own zone. */
export function yourTime(instant: string | number, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(text.locale, options).format(new Date(instant));
}

/** An instant on a place's clock. The browser's own zone rules; nothing if it doesn't know the zone. */
export function zoneTime(
  instant: string,
  zone: string,
  options: Intl.DateTimeFormatOptions,
): string {
  try {
    return new Intl.DateTimeFormat(text.locale, { ...options, timeZone: zone }).format(
      new Date(instant),
    );
  } catch {
    return '';
  }
}

/** An instant of a line, and whose clock it is on: the venue's, with its zone, and the reader's where that differs. */
export function clockAt(
  instant: string | number,
  zone: string | undefined,
  options: Intl.DateTimeFormatOptions = CLOCK,
): string {
  const at = new Date(instant).toISOString();
  const named = { ...options, timeZoneName: 'short' } as const;
  const venue = zone ? zoneTime(at, zone, named) : '';
  if (!venue) return yourTime(instant, named);
  if (zoneTime(at, zone!, options) === yourTime(instant, options)) return venue;
  // The day is said again only if it is another one there. In brackets: it may stand within a sentence.
  const sameDay = zoneTime(at, zone!, DAY) === yourTime(instant, DAY);
  return t('time.and_yours', { venue, yours: yourTime(instant, sameDay ? CLOCK : DAY_AND_CLOCK) });
}

/** An instant on the clock of a place, and on the reader's where that shows another time. */
export function bothClocks(instant: string, zone: string | undefined, city: string): string {
  const yours = yourTime(instant, DAY_AND_CLOCK);
  const there = zone ? zoneTime(instant, zone, DAY_AND_CLOCK) : '';
  if (!there) return yours;
  const venue = t('line.at_venue', { time: there, city: city || zone! });
  return there === yours ? venue : t('time.both', { venue, yours });
}

export const DAY: Intl.DateTimeFormatOptions = {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
};
export const CLOCK: Intl.DateTimeFormatOptions = { hour: 'numeric', minute: '2-digit' };
export const DAY_AND_CLOCK: Intl.DateTimeFormatOptions = { ...DAY, ...CLOCK };

/** Whether an instant reads differently on the reader's clock than on the venue's. */
export function elsewhere(instant: string, local: string): boolean {
  const date = new Date(instant);
  const pad = (n: number) => String(n).padStart(2, '0');
  const mine = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
  return mine !== local.slice(0, 16);
}

/** "7:05", or "1:07:05"; days are the caller's business. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const pad = (n: number) => String(n).padStart(2, '0');
  const h = Math.floor(seconds / 3600);
  const m = Math.floor((seconds % 3600) / 60);
  return h > 0 ? `${h}:${pad(m)}:${pad(seconds % 60)}` : `${m}:${pad(seconds % 60)}`;
}

/** "10 minutes", "45 seconds", "1 hour 30 minutes". */
export function duration(seconds: number): string {
  if (seconds < 90) return unit(Math.round(seconds), 'second');
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return unit(minutes, 'minute');
  const rest = minutes % 60;
  const hours = unit(Math.floor(minutes / 60), 'hour');
  return rest === 0 ? hours : `${hours} ${unit(rest, 'minute')}`;
}

/** "25–40 minutes". */
export function minutesBetween(low: number, high: number): string {
  if (high < 120) return tight(minutes(low, high));
  return `${duration(low * 60)} – ${duration(high * 60)}`;
}

const unitFormat = (unit: string) =>
  new Intl.NumberFormat(text.locale, { style: 'unit', unit, unitDisplay: 'long' });
const minutes = (low: number, high: number) => unitFormat('minute').formatRange(low, high);
const unit = (value: number, name: string) => tight(unitFormat(name).format(value));

/** Japanese writes 10分 in a sentence: without the space that the long form has; the narrow one is 10m in some browsers. */
function tight(said: string): string {
  return text.language === 'ja' ? said.replace(/\s/g, '') : said;
}

export function count(value: number): string {
  return new Intl.NumberFormat(text.locale).format(value);
}
