// The desktop app itself, in its real window: what a browser can't show of it. Its screens are tested in
// `till.test.mjs` and `kiosk.test.mjs`.

import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Cable, Desk } from './desk.mjs';
import { House, HUNG } from './house.mjs';
import { CLERK, codeFor, hire, holdCard, readerOf, SUPERVISOR } from './till.mjs';

let house, cable, desk, window;

before(async () => {
  house = await House.open();
  cable = await Cable.to(house.url);
  desk = await Desk.open();
  await hire(house, CLERK, 'clerk');
  await hire(house, SUPERVISOR, 'supervisor');
});

after(async () => {
  await desk?.close();
  cable?.close();
  await house?.close();
});

/** Types a code into the enrolment screen, and answers with the window that the machine shows from then on. */
async function enrol(name, role, folder) {
  const code = await codeFor(house, name, role);
  window = await desk.start({ folder, args: ['--hub', cable.url] });
  await window.type('enrol-code', code);
  await window.click('enrol');
  if (role === 'kiosk') {
    await window.type('exit-pin', '161803');
    await window.type('exit-pin-again', '161803');
  }
  return window;
}

/** A command of the shell, as a script that got into the page would call it. */
const call = (command, args = {}) =>
  window.later(
    'return await window.__TAURI_INTERNALS__.invoke(arguments[0], arguments[1])',
    command,
    args,
  );

/** Every command of the shell that a window has no use for is refused to it, whatever it says. */
async function refusedAll(label) {
  const shell = 'box-office-app/src-tauri';
  const build = await readFile(`${shell}/build.rs`, 'utf8');
  const commands = [...build.matchAll(/^ {8}"(\w+)",$/gm)].map(([, name]) => name);
  const { permissions } = JSON.parse(await readFile(`${shell}/capabilities/${label}.json`, 'utf8'));
  const may = permissions.map((name) => name.replace(/^allow-/, '').replaceAll('-', '_'));
  const refused = commands.filter((name) => !may.includes(name));
  assert.ok(refused.length > 4 && may.length + refused.length === commands.length, `${refused}`);
  for (const name of refused)
    assert.match(String((await call(name)).error), /not allowed/, `${name} at a ${label}`);
}

test('a machine becomes a counter by a code, signs somebody in, and sells by card', async () => {
  await enrol('Window 1', 'counter', 'counter');
  await record('counter');
  await house.command(['terminal', 'reader', 'Window 1', readerOf('Window 1')]);
  await desk.end('counter', window); // it shows another window now, which no driver has
  window = await desk.start({ folder: 'counter' });
  await window.type('staff-name', CLERK.name);
  await window.type('staff-secret', CLERK.pin);
  await window.click('sign-in');
  assert.equal(await window.text('who'), CLERK.name);
  // A second one beside it would write the same journal.
  const second = await desk.launch('counter');
  const lines = second.said.trim().split('\n');
  assert.match(lines.at(-1), /^box-office: this terminal is open already/);
  assert.ok(second.code === 1 && !second.said.includes('panicked'), second.said);
  await window.click('best');
  await window.shows('total', 3 * HUNG);
  await window.click('card');
  await window.shows('card-waiting');
  await holdCard(house, 'Window 1');
  await window.shows('sold', 3 * HUNG);
  // Once the card is charged.
  await window.says('printed', /2 of 2 lie as PDFs/, 3 * HUNG);
  assert.equal((await readdir(join(desk.home, 'counter', 'tickets'))).length, 2);
});

test('a scan opens its order and lands in no field, under any layout and Caps Lock', async () => {
  const { value: ticket } = await window.later(
    `const ask = (target) => window.__TAURI_INTERNALS__
       .invoke('ask', { ask: { method: 'GET', target } })
       .then((bytes) => JSON.parse(new TextDecoder().decode(new Uint8Array(bytes).slice(4))));
     const { orders } = await ask('/api/staff/orders?q=' + arguments[0]);
     const { order } = await ask('/api/staff/orders/' + orders[0].order_id);
     return order.tickets[0].code;`,
    await window.text('order-code'),
  );
  assert.match(ticket, /^[A-Z0-9:-]{20,}$/);
  await window.click('next');
  for (const [layout, capsLock] of [
    ['us', false],
    ['de', false],
    ['fr', true],
  ]) {
    await window.click('tab-waiting');
    await window.shows('waiting-find');
    await window.run(`document.querySelector('[data-testid=waiting-find]').focus()`);
    await desk.layout(layout, { capsLock });
    await desk.scan(ticket);
    await window.shows('order');
    const found = await window.run(`return document.querySelector('[data-testid=find]').value`);
    assert.equal(found, ticket, layout);
    await window.run(`document.querySelector('[data-testid=find]').value = ''`);
  }
  await desk.layout('us', { capsLock: true }); // and off again
  await window.run(`document.querySelector('[data-testid=find]').focus()`);
  await desk.typeByHand('Ana 42');
  for (let tries = 0; ; tries++) {
    const typed = await window.run(`return document.querySelector('[data-testid=find]').value`);
    if (typed === 'Ana 42') break;
    assert.ok(tries < 100, `a hand typed ${typed}`);
  }
  await window.click('tab-sell');
});

test('receipts, reports and the test page are files where there is no printer', async () => {
  const before = (await readdir(join(desk.home, 'counter', 'tickets'))).length;
  const { value } = await call('print_test_page');
  assert.equal(value.end, 'printed');
  const after = await readdir(join(desk.home, 'counter', 'tickets'));
  assert.equal(after.length, before + 1);
  assert.match(String((await call('print_report', { shift: null })).error), /shift_unknown/);
});

test('the hub hears how the terminal is', async () => {
  const said = await house.command(['terminal', 'list']);
  assert.match(said, /Window 1.*paper unknown, reader (none|unknown), \d/);
});

test('a script in the window can do no more than its buttons, and sees no token', async () => {
  await refusedAll('counter');
  for (const [command, args, refused] of [
    ['ask', { approved: true, ask: { method: 'GET', target: '/api/events' } }, /not_allowed/],
    ['plugin:window|close', {}, /not allowed|not found/],
    ['plugin:fs|read_file', { path: '/etc/passwd' }, /not allowed|not found/],
    ['enrol_anew', {}, /still_enrolled/],
    ['ask', { ask: { method: 'GET', target: '/api/staff/money' } }, /not_allowed/],
    [
      'ask',
      { ask: { method: 'POST', target: '/api/box-office/sign-in', body: {} } },
      /not_allowed/,
    ],
    ['ask', { ask: { method: 'GET', target: '//example.org/api/events' } }, /not_allowed/],
    ['open_feed', { id: 9, target: '/api/events/1/live', events: 'x' }, /invalid/],
  ]) {
    const { error } = await call(command, args);
    assert.match(String(error), refused, command);
  }
  const { value } = await call('about');
  assert.ok(!JSON.stringify(value).includes('token'), JSON.stringify(value));
  const { value: kept } = await window.later(
    'return JSON.stringify([localStorage, sessionStorage, document.cookie])',
  );
  assert.ok(!/token|Bearer/i.test(kept), kept);
});

test('the window speaks to nobody, not even to the hub', async () => {
  const { value } = await window.later(
    `try { await fetch(arguments[0]); return 'reached'; } catch { return 'refused'; }`,
    `${house.url}/healthz`,
  );
  assert.equal(value, 'refused');
  const inline = await window.run(
    `const script = document.createElement('script'); script.textContent = 'window.ran = true';
     document.head.append(script); return window.ran === true;`,
  );
  assert.equal(inline, false);
});

test('a second window is turned to the customer, and asks for nothing', async () => {
  await window.click('tab-shift');
  await window.click('customer-on');
  await desk.windows('Fullhouse', 1);
  const file = 'box-office-app/src-tauri/capabilities/customer.json';
  const { windows, permissions } = JSON.parse(await readFile(file, 'utf8'));
  assert.deepEqual([windows, permissions], [['customer'], ['allow-follow-customer']]);
  const welcome = await desk.changes('Fullhouse');
  await window.click('tab-sell');
  await window.click('best');
  await window.shows('total', 3 * HUNG);
  const sale = await desk.changes('Fullhouse', welcome);
  await window.click('release');
  await desk.changes('Fullhouse', sale);
  await window.click('tab-shift');
  await window.click('customer-off');
  await desk.windows('Fullhouse', 0);
  await window.click('tab-sell');
  await window.shows('best');
});

test('it says that the cable was pulled, and sells again once it is back', async () => {
  cable.pull();
  await window.shows('no-network');
  assert.equal(
    await window.run(`return document.querySelector('[data-testid=best]').disabled`),
    true,
  );
  cable.plugIn();
  await window.hides('no-network', 3 * HUNG);
  await window.click('best');
  await window.shows('total', 3 * HUNG);
  await window.click('release');
});

test('a supervisor approves one request, and no more', async () => {
  await window.click('best');
  await window.shows('total', 3 * HUNG);
  await window.click('comp');
  await window.type('comp-reason', 'press');
  await window.click('comp-go');
  await window.type('approver-name', SUPERVISOR.name);
  await window.type('approver-secret', SUPERVISOR.pin);
  await window.click('approve');
  await window.shows('sold', 3 * HUNG);
  assert.equal(await window.text('who'), CLERK.name);
  const again = { approved: true, ask: { method: 'GET', target: '/api/events' } };
  assert.match(String((await call('ask', again)).error), /not_allowed/);
  await window.click('next');
});

test('seats that it leased are sold while the cable is out, and the hub hears of them afterwards', async () => {
  const { events } = await house.api('/api/events');
  const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
  const [{ id, currency }] = open.sort((a, b) => a.seats_total - b.seats_total);
  const shift = { target: '/api/box-office/shifts', body: { float_minor: 0, currency } };
  await call('ask', { ask: { method: 'POST', ...shift } });
  const ask = { event_id: id, count: 4, sells_for_s: 3600 };
  const { value: lease } = await call('lease', { ask });
  assert.match(String(lease), /^[0-9a-f-]{36}$/);
  cable.pull();
  await window.shows('no-network');
  await window.click('offline-best');
  await window.click('offline-cash');
  await window.click('cash-likely');
  await window.click('cash-sell');
  await window.shows('offline-sold');
  await window.says('offline-printed', /^2 of 2/);
  assert.ok((await stat(join(desk.home, 'counter', 'journal', 'journal'))).size > 0);
  assert.equal(await house.sql('select count(*) from journal_entry'), '0', 'nobody was told yet');
  await window.click('next');
  cable.plugIn();
  await window.hides('no-network', 3 * HUNG);
  await window.hides('unsettled', 3 * HUNG);
  assert.equal(
    await house.sql('select count(*) from journal_entry where order_id is not null'),
    '1',
  );
  await call('close_lease', { leaseId: lease });
  await window.hides('leased-strip', 3 * HUNG);
  assert.equal(await house.sql('select count(*) from event_seat where lease_id is not null'), '0');
});

test('a kiosk fills the screen, and is left by its PIN alone', async () => {
  await window.close();
  await enrol('Window 2', 'kiosk', 'kiosk');
  await window.click('begin');
  await record('kiosk');
  await desk.end('kiosk', window);
  window = await desk.start({ folder: 'kiosk' });
  await window.shows('kiosk');
  const size = await window.run('return [innerWidth, innerHeight]');
  assert.deepEqual(size, [1280, 800]);
  await refusedAll('kiosk');
  for (const [command, args] of [
    ['plugin:window|close', {}],
    ['plugin:webview|webview_close', {}],
  ])
    assert.match(String((await call(command, args)).error), /not allowed|not found/, command);
  for (const [method, target] of [
    ['POST', '/api/box-office/sales'],
    ['POST', '/api/box-office/holds'],
    ['POST', '/api/box-office/card-sales'],
    ['GET', '/api/staff/orders?q=a'],
    ['POST', '/api/box-office/events/1/block'],
    ['GET', '/api/box-office/events/1/will-call'],
  ]) {
    const ask = { method, target, ...(method === 'POST' ? { body: {} } : {}) };
    assert.match(String((await call('ask', { ask })).error), /not_allowed/, target);
  }
  // A script that closes its own window, and one that loads it anew: the machine goes on where it was.
  await window.run(
    'window.close(); Object.getPrototypeOf(window).close?.call(window); self.close();',
  );
  await window.run('location.reload()').catch(() => {});
  await window.shows('kiosk');
  assert.match(String((await call('leave_kiosk', { pin: '000000' })).error), /pin_wrong/);
  await call('leave_kiosk', { pin: '161803' }).catch(() => {}); // the answer may be gone with the window
  await window.gone();
});

/** Waits until the machine has kept who it is; the token lies where nobody else can read it. */
async function record(folder) {
  const home = join(desk.home, folder);
  await desk.enrolled(folder);
  assert.equal((await stat(home)).mode & 0o077, 0, 'the folder is read by others');
  const files = (await readdir(home)).filter(
    (file) => file === 'token' || file === 'terminal.json',
  );
  for (const file of files)
    assert.equal((await stat(join(home, file))).mode & 0o077, 0, `${file} is read by others`);
}
