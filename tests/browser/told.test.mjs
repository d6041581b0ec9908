// What a fan has to be told while they look at something else: seats that tick away, money that comes
// back, payments that are paused, an event that is called off, a box office that is away.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import {
  browser,
  callOff,
  CARD,
  clickSeat,
  freeSeats,
  holdSeats,
  House,
  HUNG,
  openEvent,
  operator,
  payWith,
  signUp,
} from './house.mjs';

const EVENT = 'lantern-cup-night-race';
let house, chrome;

/** A room of two rows of eight chairs. */
const room = (name) => ({
  name,
  size: { width: 400, height: 200 },
  categories: [{ name: 'Chair', color: '#3366cc' }],
  zones: [
    {
      name: 'Main',
      position: { x: 60, y: 60 },
      rows: ['A', 'B'].map((row, y) => ({
        row_number: row,
        position: { x: 0, y: 40 * y },
        seats: Array.from({ length: 8 }, (_, x) => ({
          seat_guid: `${row}-${x + 1}`,
          seat_number: String(x + 1),
          position: { x: 30 * x, y: 0 },
          category: 'Chair',
        })),
      })),
      areas: [],
    },
  ],
});

const evening = (slug, amount_minor) => ({
  slug,
  name: slug,
  description: '',
  tags: ['small'],
  venue: `${slug}-house`,
  plan: `${slug} room`,
  starts: '2099-01-20T20:00',
  on_sale: '2026-01-01T10:00',
  currency: 'EUR',
  seat_limit: 6,
  performers: [],
  fees: [],
  levels: [{ category: 'Chair', prices: [{ ticket_type: 'adult', amount_minor }] }],
});

before(async () => {
  house = await House.open();
  await house.putOn(room('open-talk room'), evening('open-talk', 0));
  await house.putOn(room('reading room'), evening('reading', 1_000));
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

/** One person; their windows are pages of the same context. */
async function person(t, options = {}) {
  const context = await chrome.newContext({ locale: 'en-GB', ...options });
  t.after(() => context.close());
  const page = await context.newPage();
  await signUp(page, house);
  return { context, page };
}

async function buy(page, count) {
  await openEvent(page, house, EVENT);
  await holdSeats(page, await freeSeats(house, EVENT, count));
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.good);
  await page.locator('[data-testid=ticket][data-state=valid]').first().waitFor();
}

test('held seats tick away on the programme and among the tickets too, and are gone when they are given back', async (t) => {
  const { context, page } = await person(t);
  const errors = [];
  const other = await context.newPage();
  other.on('pageerror', (error) => errors.push(error.message));
  await openEvent(page, house, EVENT);
  await holdSeats(page, await freeSeats(house, EVENT, 2));
  for (const path of ['/', '/orders']) {
    await other.goto(house.url + path);
    const held = other.getByTestId('held-elsewhere');
    await held.filter({ hasText: '2 seats held for you' }).waitFor();
    assert.match(await held.getByTestId('held-countdown').innerText(), /^[67]:\d\d$/);
    assert.equal(await held.locator('a').getAttribute('href'), `/events/${EVENT}`);
  }
  await page.getByTestId('release-button').click();
  await page.getByTestId('best-button').waitFor();
  await other.getByTestId('held-elsewhere').waitFor({ state: 'detached' });
  assert.deepEqual(errors, []);
});

test('what may be given back is said before paying, by the venue’s clock and by one’s own', async (t) => {
  const { page } = await person(t, { timezoneId: 'America/New_York' });
  await openEvent(page, house, EVENT);
  const terms = page.getByTestId('refund-terms');
  const said = await terms.innerText();
  assert.match(said, /given back until .*\(Kitahara\); on your clock /);
  assert.match(said, /10% of each ticket’s price is kept\. Fees are not given back/);
  // Where seats are held, and where they are paid for, it is the same.
  await page.getByTestId('best-button').click();
  assert.equal(await page.getByTestId('hold-bar').getByTestId('refund-terms').innerText(), said);
  await page.getByTestId('checkout-button').click();
  await page.getByTestId('card-form').waitFor();
  assert.equal(await terms.innerText(), said);
});

test('what was given back is told: on the order, in its sum, and in the list', async (t) => {
  const { page } = await person(t);
  await buy(page, 2);
  const box = page.getByTestId('give-back');
  await box.locator('summary').click();
  await box.getByTestId('give-back-seat').first().check();
  await box.getByTestId('give-back-button').click();
  await page.getByTestId('paid').filter({ hasText: '1 of 2 tickets given back' }).waitFor();
  const told = page.getByTestId('announce-urgent').filter({ hasText: '1 ticket given back.' });
  await told.waitFor({ state: 'attached' });
  const sum = (await page.getByTestId('order-refunded').innerText()).replace('-', '');
  assert.ok((await page.getByTestId('money-back').innerText()).includes(sum));
  const dead = page.locator('[data-testid=ticket][data-state=void]');
  assert.match(await dead.innerText(), /Given back/);
  await page.goto(`${house.url}/orders`);
  const money = await page.getByTestId('order-money').first().innerText();
  assert.ok(money.startsWith('Paid ') && money.endsWith(`given back ${sum}`), money);
});

test('paused payments are told before a card is asked for, and the page goes on by itself', async (t) => {
  const { page } = await person(t);
  await openEvent(page, house, EVENT);
  await page.getByTestId('best-button').click();
  await page.getByTestId('hold-bar').waitFor();
  await operator(chrome, house, '/api/staff/gate/pause', { note: 'a look at the till' });
  await page.getByTestId('checkout-button').click();
  const paused = page.getByTestId('paused');
  await paused.filter({ hasText: /Your seats are yours until .*you are not charged/ }).waitFor();
  assert.equal(await page.getByTestId('card-form').count(), 0);
  await operator(chrome, house, '/api/staff/gate/paused/open', { note: 'all is well' });
  await page.getByTestId('card-form').waitFor({ timeout: 2 * HUNG });
  assert.equal(await paused.count(), 0);
});

test('the programme stays while the box office is away, says so, and is fresh again by itself', async (t) => {
  const page = await (await chrome.newContext({ locale: 'en-GB' })).newPage();
  t.after(() => page.context().close());
  await page.goto(house.url);
  const cards = page.getByTestId('event-card');
  await cards.first().waitFor();
  const many = await cards.count();
  await page.route('**/api/events*', (route) => route.abort());
  await page.getByTestId('search').fill('lantern');
  await page.getByTestId('stale').filter({ hasText: 'what we knew last' }).waitFor();
  assert.equal(await cards.count(), many, 'the list stays');
  await page.unroute('**/api/events*');
  await page.getByTestId('stale').waitFor({ state: 'detached' });
  assert.equal(await cards.count(), 1, 'and is what was searched for');
});

test('tickets and mail speak the language of the page that the order was made on', async (t) => {
  const { page } = await person(t);
  const told = [];
  page.on('request', (one) => one.url().endsWith('/language') && told.push(one.postDataJSON()));
  await page.evaluate(() => localStorage.setItem('fullhouse.language', 'ja'));
  await openEvent(page, house, EVENT);
  await page.getByTestId('best-button').click();
  await page.getByTestId('checkout-button').click();
  await page.getByTestId('card-form').waitFor();
  assert.deepEqual(told, [{ language: 'ja' }]);
});

test('who pays nothing reads of no payment', async (t) => {
  const { page } = await person(t);
  const panel = page.locator('main');
  const quiet = async (where) =>
    assert.doesNotMatch(await panel.innerText(), /\bpa(y|id|yment)\b/i, where);
  await openEvent(page, house, 'open-talk');
  await page.getByTestId('best-button').click();
  await page.getByTestId('checkout-button').filter({ hasText: 'free of charge' }).waitFor();
  await quiet('held');
  await page.getByTestId('checkout-button').click();
  await page.getByTestId('pay-button').waitFor();
  await quiet('taken');
  await page.getByTestId('pay-button').click();
  await page.getByTestId('paid').filter({ hasText: 'They are yours' }).waitFor();
  await quiet('tickets');
  await page.goto(`${house.url}/orders`);
  await page.getByTestId('order-card').filter({ hasText: 'Booked' }).waitFor();
  await quiet('list');
});

test('a seat that would be left alone is named, until others are picked', async (t) => {
  const { page } = await person(t);
  await openEvent(page, house, 'reading');
  const seats = await freeSeats(house, 'reading', 4);
  await clickSeat(page, seats[1]);
  await clickSeat(page, seats[2]);
  await page.getByTestId('hold-button').click();
  const notice = page.locator('[data-testid=notice][data-kind=single]');
  await notice.filter({ hasText: 'Main, row A, seat 1' }).waitFor();
  await clickSeat(page, seats[0]);
  await notice.waitFor({ state: 'detached' });
  await page.getByTestId('hold-button').click();
  await page.getByTestId('hold-bar').waitFor();
});

test('the seat list says what opens and what it costs', async (t) => {
  const { page } = await person(t);
  await openEvent(page, house, 'reading');
  await page.getByTestId('list-toggle').click();
  const section = page.getByTestId('list-section').first();
  assert.match(await section.innerText(), /€10\.00/);
  assert.equal(await section.getAttribute('aria-expanded'), 'false');
  await section.click();
  assert.match(await page.getByTestId('list-row').first().innerText(), /€10\.00/);
});

test('a password that is too short is told to be that', async (t) => {
  const page = await (await chrome.newContext({ locale: 'en-GB' })).newPage();
  t.after(() => page.context().close());
  await page.goto(`${house.url}/signin`);
  await page.getByTestId('switch-signin').click();
  await page.getByTestId('password').fill('short');
  await page.getByTestId('submit-signin').click();
  assert.match(await page.getByTestId('password-fault').innerText(), /too short: .* 10 characters/);
});

// The last one: there is no event after it.
test('an event is called off: every window says so within seconds', async (t) => {
  const { context, page } = await person(t);
  await buy(page, 1);
  const [map, list, picking] = [
    await context.newPage(),
    await context.newPage(),
    await (await person(t)).page,
  ];
  for (const one of [map, list, picking]) await openEvent(one, house, EVENT);
  await list.getByTestId('list-toggle').click();
  const [seat] = await freeSeats(house, EVENT, 1);
  await clickSeat(picking, seat);
  await picking.getByTestId('hold-button').waitFor();
  const { events } = await house.api('/api/events');
  await callOff(chrome, house, events.find((one) => one.slug === EVENT).id);
  const began = Date.now();
  const within = { timeout: 15_000 };
  const told = async (what, of) => {
    await of.waitFor(within);
    console.log(`${what}: ${Date.now() - began} ms`);
  };
  await Promise.all([
    told('picked', picking.getByTestId('notice').filter({ hasText: 'called off' })),
    told('map', map.getByTestId('sale-state').filter({ hasText: 'Cancelled' })),
    told('list', list.getByTestId('sale-state').filter({ hasText: 'Cancelled' })),
    told('tickets', page.getByTestId('ending').filter({ hasText: 'called off' })),
  ]);
  assert.equal(await picking.getByTestId('hold-button').count(), 0);
  assert.equal(await page.locator('[data-testid=ticket][data-state=valid]').count(), 0);
  assert.equal(await page.locator('a[href^="/events/"]').count(), 0, 'nothing can be chosen again');
});
