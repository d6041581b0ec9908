// What was tried as a shift began, in words.

import { CLOCK, yourTime } from '../../../../assets/fan/src/lib/format.ts';
import type { ShiftCheckWhat, ShiftReport } from '../../../../assets/protocol/index.ts';

const DONE: Record<ShiftCheckWhat, string> = {
  printer: 'Test page printed',
  scanner: 'Test page scanned',
};
const NOT_DONE: Record<ShiftCheckWhat, string> = {
  printer: 'No test page',
  scanner: 'Test page not scanned',
};

const last = ({ checks }: ShiftReport, what: ShiftCheckWhat) =>
  checks?.find((one) => one.what === what);

/** It works, or somebody said why it was not tried. */
export const isChecked = (report: ShiftReport, what: ShiftCheckWhat): boolean =>
  last(report, what) !== undefined;

/** What came of it; nothing if nobody has said anything. */
export function checked(report: ShiftReport, what: ShiftCheckWhat): string | null {
  const said = last(report, what);
  if (!said) return null;
  return said.skipped
    ? `${NOT_DONE[what]}: ${said.skipped}, ${said.by}`
    : `${DONE[what]} ${yourTime(said.at, CLOCK)}, ${said.by}`;
}

/** For a report, which says also what nobody has tried. */
export const checkLines = (report: ShiftReport): string[] =>
  (['printer', 'scanner'] as const).map((what) => checked(report, what) ?? NOT_DONE[what]);
