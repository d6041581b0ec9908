// What was done in another window, or by the house, is said in this one: in a sentence, in seconds.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import {
  browser,
  callOff,
  CARD,
  freeSeats,
  House,
  holdSeats,
  HUNG,
  openEvent,
  payWith,
  signUp,
} from './house.mjs';

const EVENT = 'lantern-cup-night-race';
let house, chrome, page, tab;

before(async () => {
  house = await House.open();
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

/** One person with two windows. */
beforeEach(async () => {
  await page?.context().close();
  const context = await chrome.newContext();
  page = await context.newPage();
  tab = await context.newPage();
  await signUp(page, house);
});

const notice = (of) => of.getByTestId('notice');
/** A screen reader is told the same, at once. */
const urgent = (of, words) =>
  of.getByTestId('announce-urgent').filter({ hasText: words }).waitFor({ state: 'attached' });

/** The first window looks at its held seats, the second is about to pay for them. */
async function holdAndPay() {
  await openEvent(page, house, EVENT);
  await holdSeats(page, await freeSeats(house, EVENT, 2));
  await openEvent(tab, house, EVENT);
  await tab.getByTestId('checkout-button').click();
  await tab.getByTestId('card-form').waitFor();
}

test('seats that were given back in another window: both windows say so', async () => {
  await holdAndPay();
  await page.getByTestId('release-button').click();
  await page.getByTestId('best-button').waitFor();
  assert.equal(await notice(page).count(), 0, 'who did it needs no telling');
  const text = tab.getByTestId('ending-text').filter({ hasText: 'another window' });
  await text.waitFor({ timeout: HUNG });
  await urgent(tab, 'cancelled');

  // And the other way about, one seat of two, and then the last one.
  await holdSeats(page, await freeSeats(house, EVENT, 2));
  await openEvent(tab, house, EVENT);
  await tab.getByTestId('held-seat').first().locator('.drop').click();
  await notice(page).filter({ hasText: 'You gave this seat back in another window' }).waitFor();
  await tab.getByTestId('release-button').click();
  await page.getByTestId('best-button').waitFor();
  await notice(page).filter({ hasText: 'in another window' }).waitFor();
  await urgent(page, 'You gave this seat back in another window');
});

test('seats that were paid in another window: the tickets are a link away, here and later', async () => {
  await holdAndPay();
  await payWith(tab, CARD.good);
  await tab.getByTestId('ticket-code').first().waitFor();
  await notice(page).filter({ hasText: 'Paid' }).waitFor();
  await urgent(page, 'Paid');
  assert.equal(
    await page.getByTestId('bought-link').getAttribute('href'),
    new URL(tab.url()).pathname,
  );
  const have = page.getByTestId('have-tickets');
  await have.filter({ hasText: 'You have 2 tickets here' }).waitFor();
  await have.getByRole('link').click();
  await page.getByTestId('ticket-code').first().waitFor();
});

test('a payment page that lay open while its order was paid shows the tickets', async () => {
  await holdAndPay();
  await page.goto(tab.url());
  await page.getByTestId('card-form').waitFor();
  await payWith(tab, CARD.good);
  await page.getByTestId('ticket-code').first().waitFor({ timeout: HUNG });
});

test('my tickets: what ended is listed, with what became of the money', async () => {
  await holdAndPay();
  await tab.getByTestId('cancel-order').click();
  await tab.getByTestId('ending').waitFor();
  await page.goto(`${house.url}/orders`);
  const card = page.getByTestId('order-card');
  assert.match(await card.first().innerText(), /Cancelled by you/);
  assert.equal(await page.getByTestId('order-money').first().innerText(), 'Not charged');
  assert.equal(await card.count(), 1);
});

test('who signs out is told what becomes of the seats', async () => {
  await openEvent(page, house, EVENT);
  await holdSeats(page, await freeSeats(house, EVENT, 2));
  const email = await page.evaluate(() =>
    fetch('/api/session')
      .then((one) => one.json())
      .then((one) => one.account.email),
  );
  await page.getByTestId('signout').click();
  const parting = page.getByTestId('parting');
  await parting.filter({ hasText: /Your 2 seats stay held until \d/ }).waitFor();
  // And so it is.
  await page.goto(`${house.url}/signin`);
  await page.getByTestId('email').fill(email);
  await page.getByTestId('password').fill('a long enough password');
  await page.getByTestId('submit-signin').click();
  await page.getByTestId('signout').waitFor();
  assert.equal(await parting.count(), 0);
  await openEvent(page, house, EVENT);
  await page.getByTestId('held-seat').nth(1).waitFor();
  // Whose seats were bought has none that are held.
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.good);
  await page.getByTestId('ticket-code').first().waitFor();
  await page.getByTestId('signout').click();
  await page.getByTestId('signin-link').waitFor();
  assert.equal(await parting.count(), 0);
});

test('seats that a call-off took, while a cache still shows the event as on: the words are right at once', async () => {
  const slug = 'paper-moons-world-tour';
  await openEvent(page, house, slug);
  await page.getByTestId('best-button').click();
  await page.getByTestId('hold-bar').waitFor();
  const { events } = await house.api('/api/events');
  const { id } = events.find((one) => one.slug === slug);
  // A cache on the way answers with what it knew before.
  const before = await house.api(`/api/events/${id}?seats=none`);
  const isEvent = (url) => url.pathname === `/api/events/${id}`;
  await page.route(isEvent, (route) => route.fulfill({ json: before }));
  await callOff(chrome, house, id);
  await notice(page)
    .filter({ hasText: 'The event was called off' })
    .waitFor({ timeout: 2 * HUNG });
  await urgent(page, 'called off');
});

// The last one: there is no event after it.
test('an event that is called off: nothing is charged, and the way is back to the programme', async () => {
  await holdAndPay();
  const { events } = await house.api('/api/events');
  await callOff(chrome, house, events.find((one) => one.slug === EVENT).id);
  const ending = tab.getByTestId('ending');
  await ending.waitFor({ timeout: HUNG });
  assert.equal(await ending.innerText(), 'The event was called off');
  const text = await tab.getByTestId('ending-text').innerText();
  assert.match(text, /Nothing was charged/);
  assert.doesNotMatch(text, /goes back|no longer valid/);
  assert.equal(await tab.getByTestId('card-form').count(), 0);
  await urgent(tab, 'called off');
  await notice(page)
    .filter({ hasText: 'The event was called off' })
    .waitFor({ timeout: 2 * HUNG });
  await urgent(page, 'called off');
  await page.getByTestId('sale-state').waitFor();
  await page.goto(`${house.url}/orders`);
  await page.getByText('Event called off').waitFor();
  assert.equal(await page.getByTestId('order-money').innerText(), 'Not charged');
  await tab.getByRole('link', { name: 'To the programme', exact: true }).click();
  await tab.getByTestId('event-card').first().waitFor();
});
