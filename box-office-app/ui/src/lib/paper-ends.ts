// What became of a paper, in words.

import type { PaperEnd } from '../host/port.ts';

const WHY: Record<string, string> = {
  unreachable: 'the printer does not answer',
  cover_open: 'the cover is open',
  paper_out: 'the paper is out',
  error: 'the printer has a fault',
  stalled: 'the printer stopped taking data',
  cut: 'the connection broke',
  no_answer: 'the printer did not confirm it',
  till_stopped: 'the till stopped in the middle',
  disk: 'this machine could not write',
};

/** Why a paper is not printed, or may not be. */
export const why = ({ why }: PaperEnd): string => WHY[why ?? ''] ?? why ?? 'nobody knows why';

/** What to say of a paper that nobody keeps a ledger of; nothing of one that came out. */
export function said(what: string, end: PaperEnd): string {
  if (end.end === 'printed') return '';
  return `${what} ${end.end === 'doubtful' ? 'may not have come out' : 'did not come out'}: ${why(end)}.`;
}
