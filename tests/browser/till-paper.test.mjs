// What comes out of a counter's printer, sold and counted in the real window: tickets, a receipt, reports, a test page.
// The printer is one without paper, whose sheets are pictures.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { Desk, freePort } from './desk.mjs';
import { House, HUNG } from './house.mjs';
import { CLERK, codeFor, hire } from './till.mjs';

const PRINTER = resolve(process.env.CARGO_TARGET_DIR ?? 'target', 'debug', 'paper-printer');
let house, desk, window, printer, sheets;
const said = [];

before(async () => {
  house = await House.open();
  desk = await Desk.open();
  await hire(house, CLERK, 'clerk');
  const address = `127.0.0.1:${await freePort()}`;
  sheets = join(desk.home, 'sheets');
  printer = spawn(PRINTER, ['--listen', address, '--folder', sheets]);
  createInterface(printer.stdout).on('line', (line) => said.push(line));
  await until('the printer stands', () => said.length > 0);
  const home = join(desk.home, 'terminal');
  await mkdir(home, { mode: 0o700 });
  const profile = {
    place: { kind: 'network', address },
    paper: 'mm80',
    code_page: 'pc858',
    confirms: 'jobs',
    cuts: true,
    own_qr: false,
    drawer: 'two',
  };
  await writeFile(join(home, 'printer.json'), JSON.stringify(profile));
});

after(async () => {
  if (printer) {
    const ended = once(printer, 'exit');
    printer.kill();
    await ended;
  }
  await desk?.close();
  await house?.close();
});

async function until(what, check) {
  for (const end = Date.now() + 3 * HUNG; !(await check());) {
    assert.ok(Date.now() < end, `not within half a minute: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Waits for so many sheets; what its square says, of the last. */
async function sheet(number) {
  const file = join(sheets, `${number}.png`);
  await until(`sheet ${number}`, async () =>
    (await readdir(sheets)).some((name) => name === `${number}.png`),
  );
  const keep = process.env.PRINTED;
  if (keep) await copyFile(file, join(keep, `${number}.png`));
  const read = promisify(execFile)('zbarimg', ['--quiet', '--raw', file]);
  return (await read.catch(({ stdout }) => ({ stdout }))).stdout.trim();
}

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
  await until('the drawer opens', () => said.includes('the drawer at pin 2 opens'));
  await window.click('receipt');
  await sheet(3);
  await window.click('next');
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
