// What comes out of a counter's printer, sold and counted in the real window: tickets, a receipt, reports, a test page.
// The printer is one without paper, whose sheets are pictures.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Desk } from './desk.mjs';
import { House, HUNG } from './house.mjs';
import { Printer, until } from './printer.mjs';
import { CLERK, codeFor, hire, SUPERVISOR } from './till.mjs';

let house, desk, window, printer, sold;
const sheet = (number) => printer.sheet(number);

before(async () => {
  house = await House.open();
  desk = await Desk.open();
  await hire(house, CLERK, 'clerk');
  await hire(house, SUPERVISOR, 'supervisor');
  printer = await Printer.beside(join(desk.home, 'terminal'));
});

after(async () => {
  await printer?.close();
  await desk?.close();
  await house?.close();
});

test('a sale for cash prints its tickets, opens the drawer, and prints a receipt', async () => {
  const code = await codeFor(house, 'Paper', 'counter');
  window = await desk.start({ args: ['--hub', house.url, '--code', code] });
  await window.click('enrol');
  await desk.enrolled();
  await desk.end('terminal', window);
  window = await desk.start();
  await window.type('staff-name', CLERK.name);
  await window.type('staff-secret', CLERK.pin);
  await window.click('sign-in');
  await window.shows('best', 3 * HUNG);
  await window.click('tab-shift');
  await window.type('shift-float', '100');
  await window.click('shift-open');
  await window.shows('x-report');
  await window.click('tab-sell');
  await window.click('best');
  await window.shows('total', 3 * HUNG);
  await window.click('cash');
  await window.click('cash-likely');
  await window.click('cash-sell');
  await window.says('printed', /^2 of 2 printed/, 3 * HUNG);
  for (const number of [1, 2]) assert.match(await sheet(number), /^[A-Z2-7]{149}$/);
  await until('the drawer opens', () => printer.said.includes('the drawer at pin 2 opens'));
  await window.click('receipt');
  await sheet(3);
  sold = await window.text('order-code');
  await window.click('next');
});

test('a seat of it is given back in cash, approved beside the clerk, and can be sold again', async () => {
  const seats = () =>
    house.sql(`select count(*) filter (where s.status = 0), count(*) filter (where s.status = 2)
      from order_line l join "order" o on o.id = l.order_id
      join event_seat s on s.event_id = o.event_id and s.seat_no = l.seat_no where o.code = '${sold}'`);
  assert.equal(await seats(), '0|2');
  await window.click('tab-orders');
  await window.type('find', sold);
  await window.click('find-go');
  await window.click('order-seat');
  await window.click('refund');
  await window.click('become-on_sale');
  await window.type('refund-reason', 'ill');
  await window.click('refund-go');
  await window.type('approver-name', SUPERVISOR.name);
  await window.type('approver-secret', SUPERVISOR.pin);
  await window.click('approve');
  const back = await window.says('order-done', /^Hand back .*\d.* in cash\.$/);
  assert.equal(await window.text('who'), CLERK.name);
  assert.equal(await seats(), '1|1');
  const books = await house.sql(`select s.name, r.kind, r.state, t.name from refund r
    join staff s on s.id = r.staff_id join terminal t on t.id = r.terminal_id`);
  assert.equal(books, `${SUPERVISOR.name}|cash|succeeded|Paper`);
  await window.click('tab-shift');
  const drawer = await window.says('x-report', /Handed back, 1\b/);
  const amount = back.match(/\d[\d.,]*\d/)[0];
  assert.ok(drawer.includes(amount), `${amount} is not in the report: ${drawer}`);
});

test('a test page teaches the scanner, X and Z come out, and the Z again', async () => {
  await window.click('tab-shift');
  await window.click('test-print');
  assert.equal(await sheet(4), 'FULLHOUSE:0123456789-AQWZYM');
  await window.shows('test-waiting');
  await desk.scan('FULLHOUSE:0123456789-AQWZYM');
  await window.says('test-scan', /reads what is printed/);
  await window.click('print-report');
  await sheet(5);
  await window.click('shift-count');
  await window.click('shift-close');
  await window.type('variance-why', 'nobody counted 数えていません');
  await window.click('shift-close');
  await window.shows('z-report');
  await window.click('print-report');
  await sheet(6);
  await window.click('shift-next');
  await window.click('past-shift');
  await window.click('print-report');
  await sheet(7);
});
