// A kiosk as it stands in a foyer: its real window on a portrait screen, a printer beside it. Somebody buys by touch;
// somebody else leaves in the middle. What a browser can show of it is in `kiosk.test.mjs`.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Desk } from './desk.mjs';
import { asOperator, browser, House, HUNG } from './house.mjs';
import { kept, nothingOf, PIN } from './kiosks.mjs';
import { Printer, until } from './printer.mjs';
import { codeFor, holdCard, readerOf } from './till.mjs';

const NAME = 'Foyer';
/** The shortest that a profile may have: nobody of a test is hurried away, and nobody waits for a minute and a half. */
const IDLE_S = 20;
let house, desk, window, printer, hall;

before(async () => {
  house = await House.open();
  desk = await Desk.open({ size: '1080x1920' });
  printer = await Printer.beside(join(desk.home, 'terminal'));
  const { events } = await house.api('/api/events');
  const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
  [hall] = open.sort((a, b) => a.seats_total - b.seats_total);
  await enrol();
});

after(async () => {
  await desk?.close();
  await printer?.close();
  await house?.close();
});

/** By a code and a PIN; then its window is opened by the driver. */
async function enrol() {
  const code = await codeFor(house, NAME, 'kiosk');
  window = await desk.start({ args: ['--hub', house.url, '--code', code] });
  await window.click('enrol');
  await window.type('exit-pin', PIN);
  await window.type('exit-pin-again', PIN);
  await window.click('begin');
  await desk.enrolled();
  await desk.end('terminal', window);
  await house.command(['terminal', 'reader', NAME, readerOf(NAME)]);
  const id = await house.sql(`select id from terminal where name = '${NAME}'`);
  const profile = { events: [hall.id], languages: ['en', 'ko'], idle_s: IDLE_S };
  const chrome = await browser();
  await asOperator(chrome, house, 'POST', `/api/staff/terminals/${id}`, {
    profile,
    reason: 'a test',
  });
  await chrome.close();
  window = await desk.start();
}

/** Touches what has this test id, where it stands on the screen. */
async function touch(testid) {
  const middle = await until(`${testid} can be touched`, () =>
    window.run(
      `const found = document.querySelector('[data-testid="' + arguments[0] + '"]');
       if (!found || found.disabled) return null;
       const { x, y, width, height } = found.getBoundingClientRect();
       return { x: x + width / 2, y: y + height / 2 };`,
      testid,
    ),
  );
  await desk.touch(middle);
}

/** Into the hall by a touch: its map has come. */
async function enter() {
  await touch('kiosk-event');
  await until('the map has come', () =>
    window.run(
      'return window.__fullhouse?.event === arguments[0] && !!window.__fullhouse.map() && window.__fullhouse.statuses() > 0',
      hall.id,
    ),
  );
}

/** Two free seats side by side, touched on the map: what they are called. */
async function pick() {
  const { seats } = await house.api(`/api/events/${hall.slug}`);
  const plain = (one) =>
    one?.status === 'available' && !one.accessible && !one.companion && !one.standing;
  const first = seats.findIndex((one, at) => plain(one) && plain(seats[at + 1]));
  const wanted = [seats[first].seat_no, seats[first + 1].seat_no];
  await window.run('window.__fullhouse.show(arguments[0])', wanted);
  for (const seat of wanted) {
    const point = await until('the map rests', () => resting(seat));
    await desk.touch(point);
    await until(`seat ${seat} is picked`, () =>
      window.run('return window.__fullhouse.own(arguments[0]) > 0', seat),
    );
  }
  return wanted;
}

/** Where the map draws a seat, once it draws it twice at the same place. */
async function resting(seat) {
  const at = () => window.run('return window.__fullhouse.screenPoint(arguments[0])', seat);
  const [one, other] = [await at(), await at()];
  return one && one.x === other.x && one.y === other.y && other;
}

const statusOf = (seats) =>
  house.sql(`select string_agg(status::text, ' ' order by seat_no) from event_seat
    where event_id = ${hall.id} and seat_no in (${seats})`);

/** What the page keeps now. */
const keeps = async () => (await window.later(`return (${kept})()`)).value;

let untouched;

test('two seats are chosen by touch, paid at the reader and printed here', async () => {
  await window.shows('kiosk-event', 3 * HUNG);
  assert.deepEqual(await window.run('return [innerWidth, innerHeight]'), [1080, 1920]);
  untouched = await keeps();
  await enter();
  const seats = await pick();
  await touch('kiosk-take');
  await window.shows('kiosk-held');
  assert.equal(await statusOf(seats), '1 1');
  const places = await names();
  assert.equal(places.length, 2);
  await touch('kiosk-pay');
  await until('the reader waits for a card', () =>
    window.run(`return !!document.querySelector('[data-ready=true]')`),
  );
  await holdCard(house, NAME);
  await window.shows('kiosk-finish', 3 * HUNG);
  for (const number of [1, 2]) assert.match(await printer.sheet(number), /^[A-Z2-7]{149}$/);
  assert.match(await window.text('kiosk-paper'), /take your tickets/);
  const [code] = (await window.text('kiosk-code')).match(/[0-9A-Z]{8}/);
  assert.equal(await statusOf(seats), '2 2');
  await touch('kiosk-finish');
  await window.shows('kiosk-event');
  nothingOf([code, ...places], await keeps(), untouched);
});

test('whoever leaves while choosing is asked, then their seats are free again and nothing is left of them', async () => {
  await touch('lang-ko');
  await window.says('house-name', /티켓/);
  await enter();
  const seats = await pick();
  await touch('kiosk-take');
  await window.shows('kiosk-held');
  const places = await names();
  assert.equal(places.length, 2);
  assert.equal(await statusOf(seats), '1 1');
  // Nobody is there any more.
  await window.shows('kiosk-idle', 3 * HUNG);
  await window.shows('kiosk-event', 3 * HUNG);
  await until('the seats are free again', async () => (await statusOf(seats)) === '0 0');
  assert.equal(await window.find('kiosk-idle'), undefined);
  await window.says('house-name', /^Tickets$/); // in the first language
  nothingOf(places, await keeps(), untouched);
  await enter();
  const own = await window.run('return arguments[0].map(window.__fullhouse.own)', seats);
  assert.deepEqual(own, [0, 0], 'no seat is the next person’s before they choose one');
  assert.equal(await window.find('kiosk-take'), undefined);
  await touch('over');
  await window.shows('kiosk-event');
});

/** What this customer's seats are called on their screen. */
const names = () =>
  window.run(
    `return [...document.querySelectorAll('[data-testid=kiosk-seat]')].map((one) => one.innerText)`,
  );

// ---- no way out but a PIN ----

/** Of browsers, window managers and systems: what any of them answers with a way out. */
const KEYS = [
  ...['alt+F4', 'ctrl+w', 'ctrl+q', 'ctrl+n', 'ctrl+t', 'ctrl+l', 'ctrl+o', 'ctrl+s', 'ctrl+u'],
  ...['ctrl+p', 'ctrl+f', 'ctrl+r', 'F1', 'F5', 'F7', 'F10', 'F11', 'F12', 'ctrl+shift+i'],
  ...['ctrl+shift+c', 'alt+Left', 'alt+Home', 'BackSpace', 'Escape', 'ctrl+alt+Left'],
  ...['ctrl+alt+Right', 'ctrl+alt+Up', 'ctrl+alt+Down', 'alt+Tab', 'alt+Escape', 'alt+space'],
  ...['super+d', 'super+e', 'super+1', 'shift+F10', 'Menu', 'ctrl+plus', 'ctrl+minus', 'ctrl+a'],
];
const MIDDLE = { x: 540, y: 400 };

/** What a script would try that got into the page. */
const SCRIPTS = {
  'closes its window': `window.close(); self.close(); Object.getPrototypeOf(window).close?.call(window)`,
  'closes it by the hands of a frame': `
    const frame = document.createElement('iframe');
    document.body.append(frame);
    frame.contentWindow?.close.call(window);
    frame.contentWindow?.parent.close();
    frame.remove()`,
  'opens another window': `
    for (const address of ['https://example.org/', 'about:blank', location.href])
      if (window.open(address) !== null) throw new Error('opened ' + address)`,
  'follows a link into another window': `
    const link = document.createElement('a');
    Object.assign(link, { href: 'https://example.org/', target: '_blank' });
    document.body.append(link);
    link.click();
    link.remove()`,
  'goes to another address': `location.href = 'https://example.org/'`,
  'goes to a file': `location.href = 'file:///etc/passwd'`,
  'goes to a page of its own': `location.href = 'data:text/html,mine'`,
  'goes to nowhere': `location.href = 'about:blank'`,
  'goes back': `history.back(); history.go(-2)`,
  'sends a form away': `
    const form = document.createElement('form');
    form.action = 'https://example.org/';
    document.body.append(form);
    form.submit();
    form.remove()`,
  prints: `window.print()`,
  asks: `alert('x'); confirm('x'); prompt('x')`,
  'opens files': `
    const field = document.createElement('input');
    field.type = 'file';
    document.body.append(field);
    field.click();
    field.remove()`,
  'leaves the full screen': `
    document.documentElement.requestFullscreen?.().catch(() => {});
    document.documentElement.webkitRequestFullscreen?.();
    document.exitFullscreen?.().catch(() => {});
    document.webkitExitFullscreen?.()`,
};

test('nothing that is typed, touched or run ends it or leads out of it', async () => {
  await window.run(`globalThis.samePage = true; document.activeElement?.blur()`);
  await desk.press(1, { x: 1079, y: 300 }); // nobody's finger rests on anything
  const before = await desk.rest();
  const address = await window.run('return location.href');
  const still = async (what) => {
    const now = await window.run(
      'return [globalThis.samePage, location.href, innerWidth, innerHeight, devicePixelRatio, visualViewport.scale]',
    );
    assert.deepEqual(now, [true, address, 1080, 1920, 1, 1], what);
    assert.equal(await desk.look(), before, `the screen after ${what}`);
  };
  for (const keys of KEYS) {
    await desk.keys(keys);
    await still(keys);
  }
  for (const [what, script] of Object.entries(SCRIPTS)) {
    const { error } = await window.later(script);
    assert.equal(error, undefined, what);
    await still(`a script that ${what}`);
  }
  for (const at of [MIDDLE, { x: 200, y: 40 }, { x: 540, y: 1500 }]) await desk.press(3, at);
  await still('a right click');
  await desk.press(4, MIDDLE, ['ctrl']);
  await desk.press(5, MIDDLE, ['ctrl']);
  await still('a wheel with Ctrl');
  await desk.drag({ x: 40, y: 500 }, { x: 900, y: 900 });
  assert.equal(await window.run('return String(getSelection())'), '', 'no text is selected');
  await still('a finger over the text');
  const dropped = await window.run(`
    return ['dragover', 'drop'].map((name) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(['x'], 'x.html', { type: 'text/html' }));
      const event = new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer });
      document.querySelector('[data-testid=kiosk]').dispatchEvent(event);
      return event.defaultPrevented;
    });`);
  assert.deepEqual(dropped, [true, true], 'a file that is dropped is nobody’s');
  await still('all of it');
});

test('its PIN ends it, and a wrong one does not', async () => {
  const [x, y] = await window.run(`
    const { left, top, height } = document.querySelector('[data-testid=house-name]').getBoundingClientRect();
    return [left + 20, top + height / 2];`);
  await desk.drag({ x, y }, { x, y });
  assert.equal(await window.find('exit-dialog'), undefined, 'a touch is no long one');
  await desk.finger(true);
  await window.shows('exit-dialog');
  await desk.finger(false);
  for (const digit of '000000') await touch(`pin-${digit}`);
  await touch('exit-leave');
  await window.shows('exit-message');
  for (const digit of PIN) await touch(`pin-${digit}`);
  await touch('exit-leave');
  await window.gone();
});

test('a window that is closed past its page opens again, and a page that ends begins anew', async () => {
  await desk.end('terminal', window);
  window = await desk.start();
  await window.shows('kiosk-event');
  await desk.press(1, { x: 1079, y: 300 });
  const before = await desk.rest();
  const page = async () => (await desk.processes('terminal', 'WebKitWebProces')).at(-1);
  const anew = (what, old) =>
    until(what, async () => (await page()) !== old && (await desk.look()) === before);
  const first = await page();
  await window.closeTab().catch(() => {}); // the driver loses its window
  await anew('a window that was closed is there again', first);
  const second = await page();
  process.kill(second);
  await anew('another page draws the screen', second);
  await desk.end('terminal', window);
});
