// The screen that a counter turns to its customer: their own sale, and nothing of anybody else.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { HUNG } from './house.mjs';
import { CLERK, Counters, holdCard, openShift, signIn, SUPERVISOR } from './till.mjs';

let at, screen;

before(async () => {
  at = await Counters.open('lantern-cup-night-race');
});

after(() => at?.close());

afterEach(async () => assert.deepEqual(await at.leave(), []));

/** Opens the customer's screen beside the counter's. */
async function turned() {
  await at.page.keyboard.press('F3');
  const opened = at.page.context().waitForEvent('page');
  await at.click('customer-on');
  screen = await opened;
  screen.on('pageerror', (error) => at.page.errors.push(error));
  await at.page.keyboard.press('F1');
  await welcomes();
}

const welcomes = () => screen.getByTestId('customer-welcome').waitFor({ timeout: HUNG });
const says = (pattern) =>
  screen.getByTestId('customer-now').filter({ hasText: pattern }).waitFor({ timeout: HUNG });
const text = (id) => screen.getByTestId(id).innerText();

test('a customer sees seats, price and change, and the next one nothing of it', async () => {
  await at.stand(SUPERVISOR);
  await openShift(at.page, '10000', 'JPY');
  await turned();
  await at.take(2);
  await says(/Kept for you until/);
  assert.equal(await text('customer-total'), await at.text('total'));
  assert.equal(await screen.locator('li').count(), 2);
  await at.page.keyboard.press('F8');
  await at.page.getByTestId('cash-likely').nth(1).click();
  await at.page.keyboard.press('Enter');
  await at.shows('sold');
  await says(/Paid/);
  assert.equal(await text('customer-change'), await at.text('change'));
  await at.click('next');
  await welcomes();
  assert.doesNotMatch(await screen.locator('body').innerText(), /row|seat|¥/i);
});

test('whoever pays by card is told when to hold it, and that one was declined', async () => {
  const name = await at.stand(SUPERVISOR);
  await turned();
  await at.take(1);
  await at.click('card');
  await says(/hold your card/);
  await at.click('stop-card');
  await says(/Kept for you until/);
  await at.click('card');
  await holdCard(at.house, name);
  await at.page.getByTestId('sold').waitFor({ timeout: 3 * HUNG });
  await says(/Paid|charged/);
  await at.click('next');
  await welcomes();
});

test('a counter that locks shows nobody’s seats, and closes its second screen', async () => {
  await at.stand(CLERK);
  await turned();
  await at.take(1);
  await screen.getByTestId('customer-sale').waitFor();
  await at.page.keyboard.press('F12');
  await welcomes();
  await signIn(at.page, CLERK);
  await at.page.keyboard.press('F3');
  const closed = screen.waitForEvent('close');
  await at.click('customer-off');
  await closed;
});
