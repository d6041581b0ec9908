// A page has no printer of tickets: its papers go to the browser's print dialog, which also makes PDFs. What came out of
// it nobody tells us: a print stays "sent", which counts as printed.

import { renderSVG } from 'uqr';
import type { Order, ShiftReport } from '../../../../assets/protocol/index.ts';
import { TEST_CODE } from '../lib/scans.ts';
import * as papers from './paper.ts';
import type { Block, Paper } from './paper.ts';
import type { Printer } from './port.ts';

type Ask = <T>(path: string, body?: unknown) => Promise<T>;

export function dialogPrinter(ask: Ask, terminal: () => string): Printer {
  const order = async (id: string) =>
    (await ask<{ order: Order }>(`/api/staff/orders/${id}`)).order;
  const end = { end: 'printed' as const };
  return {
    elsewhere: 'went to the print dialog.',
    async print(id) {
      const sold = await order(id);
      const { jobs } = await ask<{ jobs: { id: string; ticket_id: string; seat_no: number }[] }>(
        `/api/box-office/orders/${id}/prints`,
        { ticket_ids: [] },
      );
      print(
        papers.tickets(
          sold,
          jobs.map(({ ticket_id }) => ticket_id),
        ),
      );
      return jobs.map(({ id, seat_no }) => ({ job: id, seat_no, ...end }));
    },
    doubts: async () => [],
    decide: async () => {},
    openDrawer: async () => false,
    async receipt(id, paid) {
      print([papers.receipt(await order(id), paid, terminal())]);
      return end;
    },
    async report(shift) {
      const path = `/api/box-office/shifts/${shift ?? 'current'}`;
      print([papers.report(await ask<ShiftReport>(path))]);
      return end;
    },
    async testPage() {
      print([papers.testPage(TEST_CODE)]);
      return end;
    },
  };
}

function print(pages: Paper[]): void {
  document.querySelector('.papers')?.remove();
  const roll = document.createElement('div');
  roll.className = 'papers';
  roll.dataset.testid = 'papers';
  for (const page of pages) {
    const paper = document.createElement('section');
    paper.append(...page.map(drawn));
    roll.append(paper);
  }
  document.body.append(roll);
  globalThis.print();
}

function drawn(block: Block): HTMLElement {
  const line = document.createElement('p');
  if ('rule' in block) return document.createElement('hr');
  if ('code' in block) {
    const picture = document.createElement('img');
    picture.alt = block.code;
    picture.src = `data:image/svg+xml,${encodeURIComponent(renderSVG(block.code))}`;
    line.append(picture);
    return line;
  }
  if (block.large) line.className = 'large';
  for (const text of 'text' in block ? [block.text] : [block.left, block.right]) {
    const part = document.createElement('span');
    part.textContent = text;
    line.append(part);
  }
  return line;
}
