// Two people, two browsers, one hall: what one does, the other sees.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import {
  browser,
  CARD,
  clickSeat,
  freeSeats,
  House,
  holdSeats,
  openEvent,
  payWith,
  seatBecomes,
  signUp,
} from './house.mjs';

const EVENT = 'lantern-cup-night-race';
let house, anas, bos, ana, bo;

before(async () => {
  house = await House.open();
  [anas, bos] = await Promise.all([browser(), browser()]);
  [ana, bo] = await Promise.all([anas.newPage(), bos.newPage()]);
  await signUp(ana, house);
  await signUp(bo, house);
});

after(async () => {
  await Promise.all([anas?.close(), bos?.close()]);
  await house?.close();
});

test('what one holds, the other sees within a second; what one releases comes back', async () => {
  const [seat] = await freeSeats(house, EVENT, 1);
  await Promise.all([openEvent(ana, house, EVENT), openEvent(bo, house, EVENT)]);
  await seatBecomes(bo, seat, 'available');
  await holdSeats(ana, [seat]);
  await seatBecomes(bo, seat, 'held');
  assert.deepEqual(await ana.evaluate(() => window.__fullhouse.mine()), [seat]);
  assert.deepEqual(await bo.evaluate(() => window.__fullhouse.mine()), []);
  await ana.getByTestId('release-button').click();
  await seatBecomes(bo, seat, 'available');
});

test('what one buys is sold for both', async () => {
  const seats = await freeSeats(house, EVENT, 2);
  await Promise.all([openEvent(ana, house, EVENT), openEvent(bo, house, EVENT)]);
  await holdSeats(ana, seats);
  await ana.getByTestId('checkout-button').click();
  await payWith(ana, CARD.good);
  await ana.getByTestId('ticket-code').first().waitFor();
  assert.equal(await ana.getByTestId('ticket-code').count(), 2);
  for (const seat of seats) await seatBecomes(bo, seat, 'sold');
  await openEvent(ana, house, EVENT);
  await ana.waitForFunction(
    (seats) => seats.every((seat) => window.__fullhouse.bought().includes(seat)),
    seats,
  );
  for (const seat of seats) await seatBecomes(ana, seat, 'sold');
});

test('two want the same seat at the same moment: one gets it, the other is offered more', async () => {
  const [seat] = await freeSeats(house, EVENT, 1);
  await Promise.all([openEvent(ana, house, EVENT), openEvent(bo, house, EVENT)]);
  // Bo's request is on its way for as long as Ana's takes.
  let asks, goesOn;
  const asked = new Promise((resolve) => (asks = resolve));
  const held = new Promise((resolve) => (goesOn = resolve));
  await bo.route('**/api/events/*/hold', async (route) => {
    if (route.request().method() === 'POST') {
      asks();
      await held;
    }
    await route.continue();
  });
  await clickSeat(bo, seat);
  await bo.getByTestId('hold-button').click();
  await asked;
  await holdSeats(ana, [seat]);
  goesOn();
  await bo.getByTestId('lost-seats').waitFor();
  assert.deepEqual(await bo.evaluate(() => window.__fullhouse.mine()), []);
  await bo.getByTestId('offer').first().click();
  await bo.getByTestId('hold-bar').waitFor();
  const [offered] = await bo.evaluate(() => window.__fullhouse.mine());
  await seatBecomes(ana, offered, 'held');
  await bo.unroute('**/api/events/*/hold');
  await Promise.all([
    ana.getByTestId('release-button').click(),
    bo.getByTestId('release-button').click(),
  ]);
  await seatBecomes(bo, seat, 'available');
});

test('what expires comes back to both, and the house starts again on the same data', async () => {
  const before = await house.api('/api/events');
  await house.stop();
  await house.start({ holdTtlS: 12 });
  assert.equal((await house.api('/api/events')).events.length, before.events.length);
  // The port is another one, so both have to sign up anew: cookies know hosts, not ports, but pages know addresses.
  const [seat] = await freeSeats(house, EVENT, 1);
  await Promise.all([openEvent(ana, house, EVENT), openEvent(bo, house, EVENT)]);
  await holdSeats(ana, [seat]);
  await seatBecomes(bo, seat, 'held');
  await seatBecomes(bo, seat, 'available', 40_000);
  await seatBecomes(ana, seat, 'available');
  await ana.waitForFunction(() => window.__fullhouse.mine().length === 0);
});
