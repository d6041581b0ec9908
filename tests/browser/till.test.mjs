// A counter: who stands at it, whom it sells to, and what becomes of what was sold. The screens are the desktop's own.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { browser, freeSeats, House, HUNG } from './house.mjs';
import {
  CLERK,
  enrolled,
  hire,
  holdCard,
  openHall,
  screensOf,
  signIn,
  SUPERVISOR,
  touchSeat,
} from './till.mjs';

const EVENT = 'lantern-cup-night-race';
let house, chrome, screens, page, event, number;
let counters = 0;

before(async () => {
  house = await House.open();
  chrome = await browser();
  screens = await screensOf(house);
  await hire(house, CLERK, 'clerk');
  await hire(house, SUPERVISOR, 'supervisor');
  ({ event } = await house.api(`/api/events/${EVENT}?seats=none`));
  number = event.id;
});

after(async () => {
  await chrome?.close();
  await screens?.close();
  await house?.close();
});

afterEach(async () => {
  const errors = page?.errors ?? [];
  await page?.context().close();
  page = undefined;
  assert.deepEqual(errors, []);
});

/** A counter of its own, with somebody behind it and the hall open. */
async function counter(person = SUPERVISOR) {
  const name = `Counter ${++counters}`;
  page = await enrolled(chrome, house, screens, name, 'counter');
  await signIn(page, person);
  await openHall(page, number);
  return name;
}

const text = (id) => page.getByTestId(id).innerText();
const click = (id) => page.getByTestId(id).click();

/** Takes seats on the map, for whoever stands there. */
async function take(count) {
  const seats = await freeSeats(house, EVENT, count);
  for (const seat of seats) await touchSeat(page, seat);
  await click('take');
  await page.getByTestId('total').waitFor({ timeout: HUNG });
  return seats;
}

/** Sells two seats by card: the order's code. */
async function sellByCard(name, count = 2) {
  const seats = await take(count);
  await click('card');
  await page.getByTestId('card-waiting').waitFor({ timeout: HUNG });
  await holdCard(house, name);
  await page.getByTestId('sold').waitFor({ timeout: 3 * HUNG });
  const code = await text('order-code');
  await page.keyboard.press('Enter');
  return { code, seats };
}

async function find(code) {
  await page.keyboard.press('F2');
  await page.getByTestId('find').fill(code);
  await page.keyboard.press('Enter');
  await page.getByTestId('order').waitFor({ timeout: HUNG });
}

test('a code makes a terminal once, and nothing is sold before somebody has signed in', async () => {
  page = await enrolled(chrome, house, screens, 'First', 'counter');
  await page.getByTestId('sign-in-form').waitFor({ timeout: HUNG });
  await page.getByTestId('staff-name').fill(CLERK.name);
  await page.getByTestId('staff-secret').fill('000000');
  await click('sign-in');
  await page.getByTestId('sign-in-message').waitFor();
  assert.match(await text('sign-in-message'), /wrong/);
  await signIn(page, CLERK);
  assert.equal(await text('who'), CLERK.name);
  await page.keyboard.press('F12');
  await page.getByTestId('sign-in-form').waitFor();
});

test('a wrong code is refused, and says so', async () => {
  page = await (await chrome.newContext()).newPage();
  await page.goto(screens.url);
  await page.getByTestId('enrol-code').fill('AAAAA-AAAAA');
  await click('enrol');
  await page.getByTestId('enrol-message').waitFor({ timeout: HUNG });
  assert.match(await text('enrol-message'), /code/);
});

test('seats that are touched on the map are paid by the card that is held to this counter’s reader', async () => {
  const name = await counter(CLERK);
  const { seats } = await sellByCard(name);
  for (const seat of seats)
    await page.waitForFunction((seat) => window.__fullhouse.status(seat) === 2, seat, {
      timeout: HUNG,
    });
  // Nothing of the last customer is left for the next.
  assert.equal(await page.getByTestId('total').count(), 0);
  assert.equal(await page.getByTestId('held-seat').count(), 0);
});

test('a reader that is stopped has charged nothing, and the seats stay the customer’s', async () => {
  await counter();
  const seats = await take(1);
  await click('card');
  await click('stop-card');
  await page.getByTestId('total').waitFor({ timeout: 3 * HUNG });
  await click('release');
  await page.getByTestId('best').waitFor();
  await page.waitForFunction((seat) => window.__fullhouse.status(seat) === 0, seats[0], {
    timeout: HUNG,
  });
});

test('a part is paid in cash and the rest by card, and the drawer has the cash once the card has paid', async () => {
  const name = await counter();
  await page.keyboard.press('F3');
  await page.getByTestId('shift-currency').selectOption('JPY');
  await page.getByTestId('shift-float').fill('10000');
  await click('shift-open');
  await page.getByTestId('x-report').waitFor({ timeout: HUNG });
  await page.keyboard.press('F1');
  await take(1);
  await page.keyboard.press('F8');
  await page.getByTestId('cash-received').fill('1000');
  const rest = await text('cash-rest');
  await page.keyboard.press('Enter');
  await page.getByTestId('card-waiting').waitFor({ timeout: HUNG });
  assert.match(await text('cash-beside'), /1,000 in cash/);
  await holdCard(house, name);
  await page.getByTestId('paid-split').waitFor({ timeout: 3 * HUNG });
  assert.ok((await text('paid-split')).includes(rest), 'what the card paid');
  await page.keyboard.press('Enter');
  await page.keyboard.press('F3');
  await click('shift-read');
  await page.waitForFunction(
    () => /11,000/.test(document.querySelector('[data-testid=expected]')?.innerText ?? ''),
    undefined,
    { timeout: HUNG },
  );
});

test('the best seats together are held by one key', async () => {
  await counter();
  await page.keyboard.press('F6');
  await page.getByTestId('total').waitFor({ timeout: HUNG });
  assert.equal(await page.getByTestId('held-seat').count(), 2);
  await page.keyboard.press('Escape');
  await page.getByTestId('best').waitFor();
});

test('another ticket type is another price', async () => {
  await counter();
  await take(1);
  const types = page.locator('[data-testid^=type-]');
  if ((await types.count()) < 2) return assert.fail('the event has one ticket type only');
  const before = await text('total');
  await types.nth(1).click();
  await page.waitForFunction(
    (before) => document.querySelector('[data-testid=total]').innerText !== before,
    before,
    {
      timeout: HUNG,
    },
  );
  await click('release');
});

test('a supervisor gives seats away with a reason; a clerk has no button for it', async () => {
  await counter(CLERK);
  await take(1);
  assert.equal(await page.getByTestId('comp').count(), 0);
  await click('release');
  await page.context().close();
  await counter(SUPERVISOR);
  await take(1);
  await page.keyboard.press('F10');
  await page.getByTestId('comp-reason').fill('press');
  await page.keyboard.press('Enter');
  await page.getByTestId('sold').waitFor({ timeout: HUNG });
  assert.match(await text('sold'), /free of charge/);
});

test('an order is found by its code, and a seat of it goes back to the house', async () => {
  const name = await counter();
  const { code, seats } = await sellByCard(name);
  await find(code);
  await page.getByTestId('order-seat').first().click();
  await click('refund');
  await click('become-house');
  await page.getByTestId('refund-reason').fill('ill');
  await click('refund-go');
  await page.getByTestId('order-done').waitFor({ timeout: HUNG });
  await page.keyboard.press('F1');
  await page.waitForFunction((seat) => window.__fullhouse.status(seat) === 3, seats[0], {
    timeout: HUNG,
  });
  assert.equal(await page.evaluate((seat) => window.__fullhouse.status(seat), seats[1]), 2);
});

test('a seat is exchanged for another one on the map', async () => {
  const name = await counter();
  const { code, seats } = await sellByCard(name, 1);
  await find(code);
  await page.getByTestId('order-seat').first().click();
  await click('exchange-start');
  await page.getByTestId('exchange').waitFor();
  const [free] = await freeSeats(house, EVENT, 1);
  await touchSeat(page, free);
  await page.getByTestId('exchange-reason').fill('behind a pillar');
  await click('exchange-go');
  await page.getByTestId('exchange-done').waitFor({ timeout: HUNG });
  await page.waitForFunction(
    ([old, other]) =>
      window.__fullhouse.status(old) === 0 && window.__fullhouse.status(other) === 2,
    [seats[0], free],
    { timeout: HUNG },
  );
  await click('exchange-leave');
  await page.getByTestId('best').waitFor();
});

test('house seats are blocked and put back on sale, with a reason', async () => {
  await counter();
  await click('house');
  const [seat] = await freeSeats(house, EVENT, 1);
  await touchSeat(page, seat);
  await page.getByTestId('block-reason').fill('camera');
  await click('block');
  await page.getByTestId('house-done').waitFor({ timeout: HUNG });
  await page.waitForFunction((seat) => window.__fullhouse.status(seat) === 3, seat, {
    timeout: HUNG,
  });
  await touchSeat(page, seat);
  await click('unblock');
  await page.waitForFunction((seat) => window.__fullhouse.status(seat) === 0, seat, {
    timeout: HUNG,
  });
});

test('seats that somebody else was faster to take are told, and nearby ones offered', async () => {
  await counter();
  const [seat] = await freeSeats(house, EVENT, 1);
  const other = await enrolled(chrome, house, screens, `Counter ${++counters}`, 'counter');
  await signIn(other, CLERK);
  await openHall(other, number);
  await touchSeat(page, seat);
  await page.route('**/api/box-office/holds', async (route) => {
    await touchSeat(other, seat);
    await other.getByTestId('take').click();
    await other.getByTestId('total').waitFor({ timeout: HUNG });
    await route.continue();
  });
  await click('take');
  await page.getByTestId('sale-message').waitFor({ timeout: HUNG });
  assert.match(await text('sale-message'), /taken/);
  await other.context().close();
});

test('within two seconds it says that the network is gone, and sells again when it is back', async () => {
  await counter();
  await page.context().setOffline(true);
  await page.getByTestId('no-network').waitFor({ timeout: 2_000 + HUNG });
  assert.ok(await page.getByTestId('best').isDisabled());
  await page.context().setOffline(false);
  await page.getByTestId('no-network').waitFor({ state: 'detached', timeout: HUNG });
  await page.keyboard.press('F6');
  await page.getByTestId('total').waitFor({ timeout: HUNG });
  await page.keyboard.press('Escape');
});
