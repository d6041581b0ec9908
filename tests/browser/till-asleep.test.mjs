// A counter's window that slept: its page alone, which systems freeze, or the whole machine. Meanwhile others sell. When it
// wakes it is right without being loaded anew, and what somebody touched on the picture of before was not sold.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Cable, Desk } from './desk.mjs';
import { freeSeats, House, HUNG } from './house.mjs';
import { until } from './printer.mjs';
import { CLERK, codeFor, hire } from './till.mjs';

const NAME = 'Window 1';
const FOLDER = 'terminal';
const TITLE = 'Fullhouse box office';
const SOLD = 2;
/** Long enough to take seats, and short enough to sleep through. */
const HOLD_S = 20;

/** Holds that hold; one whose time is over may stand there until it is tidied up. */
const HELD = `select count(*) from hold where state = 'live' and held_until > clock_timestamp()`;

let house, cable, desk, window, other, hall;

before(async () => {
  house = await House.open({ holdTtlS: HOLD_S });
  cable = await Cable.to(house.url);
  desk = await Desk.open();
  const { events } = await house.api('/api/events');
  const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
  [hall] = open.sort((a, b) => a.seats_total - b.seats_total);
  other = await elsewhere();
  await stand();
});

after(async () => {
  await desk?.close();
  cable?.close();
  await house?.close();
});

/** Another counter of the house: takes seats and sells them for cash. */
async function elsewhere() {
  const said = await house.command(['terminal', 'add', 'Elsewhere', '--role', 'counter']);
  const [token] = said.match(/[A-Za-z0-9_-]{40,}/);
  const ask = async (what, body) => {
    const response = await fetch(`${house.url}/api/box-office/${what}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
      },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${what}: ${JSON.stringify(answer)}`);
    return answer;
  };
  return {
    async sell(seats) {
      const { buyer_id, hold } = await ask('holds', { event_id: hall.id, seats });
      const tender = { kind: 'cash', received_minor: 10_000_000 };
      await ask('sales', { hold_id: hold.id, buyer_id, tender });
    },
  };
}

/** A counter in its real window, with somebody behind it and the small hall open. */
async function stand() {
  await hire(house, CLERK, 'clerk');
  const code = await codeFor(house, NAME, 'counter');
  window = await desk.start({ args: ['--hub', cable.url, '--code', code] });
  await window.click('enrol');
  await desk.enrolled();
  await desk.end(FOLDER, window);
  window = await desk.start();
  await window.type('staff-name', CLERK.name);
  await window.type('staff-secret', CLERK.pin);
  await window.click('sign-in');
  await window.shows('who');
  await window.run(
    `const choice = document.querySelector('[data-testid=event-select]');
     choice.value = arguments[0];
     choice.dispatchEvent(new Event('change', { bubbles: true }))`,
    String(hall.id),
  );
  await until('the map has come', () =>
    window.run(
      'return window.__fullhouse?.event === arguments[0] && !!window.__fullhouse.map() && window.__fullhouse.statuses() > 0',
      hall.id,
    ),
  );
  await window.run('globalThis.samePage = true');
}

/** Free seats that are all in one view of the map. */
async function look(count) {
  const seats = await freeSeats(house, hall.slug, count);
  await window.run('window.__fullhouse.show(arguments[0])', seats);
  await desk.rest();
  return seats;
}

/** Where in the window a seat is drawn now. */
const point = (seat) => window.run('return window.__fullhouse.screenPoint(arguments[0])', seat);
const colourOf = async (seat) => desk.colour(await point(seat), TITLE);

/** Picks a seat by a touch; by another one if the map moved under the first, as it does below a banner that comes. */
async function pick(seat) {
  for (let tries = 0; tries < 3; tries++) {
    await desk.touch(await point(seat), TITLE);
    for (const end = Date.now() + HUNG / 2; Date.now() < end;) if ((await own(seat)) > 0) return;
  }
  throw new Error(`seat ${seat} is not picked`);
}

const status = (seat) => window.run('return window.__fullhouse.status(arguments[0])', seat);
const own = (seat) => window.run('return window.__fullhouse.own(arguments[0])', seat);

/** Waits until the map knows that these are sold, and draws them as it draws another that is; nothing covers it. */
async function drawnAsSold(seats, another) {
  const asked = () => window.run(`return document.querySelector('dialog[open]') !== null`);
  await until('nobody is asked for anything', async () => !(await asked()));
  for (const seat of seats) {
    await until(`seat ${seat} is sold`, async () => (await status(seat)) === SOLD);
    assert.equal(await own(seat), 0, `seat ${seat} is nobody’s here`);
    const same = async () => (await colourOf(seat)) === (await colourOf(another));
    await until(`seat ${seat} is drawn as sold`, same);
  }
}

/** What came meanwhile came as what was missed: no page was loaded anew, and no map. */
async function caughtUp(asked) {
  assert.equal(await window.run('return globalThis.samePage'), true);
  const since = cable.asked.slice(asked);
  const anew = (one) => /\/snapshot/.test(one) || (/\/live/.test(one) && !/epoch=/.test(one));
  assert.deepEqual(since.filter(anew), []);
}

/** Nothing is held by anybody, and nothing was sold but by the other counter. */
async function nothingTaken() {
  assert.equal(await house.sql(HELD), '0');
  const sold = `select count(*) from "order" where state = 'confirmed' and actor not like '%Elsewhere%'`;
  assert.equal(await house.sql(sold), '0');
}

test('a page that was frozen wakes to what others bought, and a touch on its old picture takes nothing', async () => {
  const [before, picked, touched] = await look(3);
  await other.sell([before]);
  await until('it is sold', async () => (await status(before)) === SOLD);
  await pick(picked);
  await desk.rest();
  assert.notEqual(await colourOf(touched), await colourOf(before), 'a free seat looks otherwise');
  const asked = cable.asked.length;
  const at = await point(touched);
  const page = (await desk.processes(FOLDER, 'WebKitWebProces')).at(-1);
  process.kill(page, 'SIGSTOP');
  try {
    await other.sell([picked, touched]);
    await desk.touch(at, TITLE);
    await desk.keys('Return'); // these, for this customer
  } finally {
    process.kill(page, 'SIGCONT');
  }
  await drawnAsSold([picked, touched], before);
  await caughtUp(asked);
  await nothingTaken();
});

test('a machine that slept through its customer’s time sells nothing of theirs when it wakes', async () => {
  await window.run('document.activeElement?.blur()');
  const [before, ...theirs] = await look(3);
  await other.sell([before]);
  await until('it is sold', async () => (await status(before)) === SOLD);
  for (const seat of theirs) await pick(seat);
  await window.click('take');
  await window.shows('total');
  const asked = cable.asked.length;
  await desk.signalAll(FOLDER, 'SIGSTOP');
  try {
    await until('their time is over', async () => (await house.sql(HELD)) === '0');
    await other.sell(theirs);
    cable.plugIn(); // no connection outlives such a sleep
    await desk.keys('F8'); // they pay in cash
  } finally {
    await desk.signalAll(FOLDER, 'SIGCONT');
  }
  await window.hides('total');
  assert.match(await window.text('sale-message'), /The time for these seats is over/);
  await drawnAsSold(theirs, before);
  await caughtUp(asked);
  await nothingTaken();
});
