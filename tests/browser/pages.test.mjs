// Languages, the keyboard alone, a phone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { browser, CARD, freeSeats, House, HUNG, openEvent, signUp } from './house.mjs';

const EVENT = 'lantern-cup-night-race';
let house, chrome;

before(async () => {
  house = await House.open();
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

/** A page of a browser like this one; closed when the test ends. */
async function open(t, options = {}) {
  const context = await chrome.newContext(options);
  t.after(() => context.close());
  return context.newPage();
}

test('the language is the browser’s, and whichever is chosen stays', async (t) => {
  const page = await open(t, { locale: 'ja-JP', timezoneId: 'Asia/Tokyo' });
  await page.goto(house.url);
  await page.getByTestId('event-card').first().waitFor();
  assert.equal(await page.locator('html').getAttribute('lang'), 'ja');
  assert.match(
    await page.locator('h1').innerText(),
    /\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Han}/u,
  );
  await page.getByTestId('lang-select').selectOption('ko');
  assert.match(await page.locator('h1').innerText(), /\p{Script=Hangul}/u);
  await page.reload();
  await page.getByTestId('event-card').first().waitFor();
  assert.equal(await page.locator('html').getAttribute('lang'), 'ko');
  await page.getByTestId('lang-select').selectOption('en');
  assert.match(await page.locator('h1').innerText(), /[A-Za-z]/);
});

/** Tabs until the focus is on something with this test id; the keyboard alone. */
async function tabTo(page, testid, steps = 80) {
  for (let step = 0; step < steps; step++) {
    const at = await page.evaluate(() => document.activeElement?.dataset?.testid);
    if (at === testid) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the keyboard does not reach ${testid}`);
}

test('a ticket is bought with the keyboard alone, from the list', async (t) => {
  const page = await open(t);
  await signUp(page, house);
  await openEvent(page, house, EVENT);
  await tabTo(page, 'list-toggle');
  await page.keyboard.press('Enter');
  await tabTo(page, 'list-section');
  await page.keyboard.press('Enter');
  await tabTo(page, 'list-row');
  await page.keyboard.press('Enter');
  await tabTo(page, 'list-seat');
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => window.__fullhouse.picked().length === 1);
  await tabTo(page, 'hold-button');
  await page.keyboard.press('Enter');
  await page.getByTestId('checkout-button').waitFor();
  await tabTo(page, 'checkout-button');
  await page.keyboard.press('Enter');
  await page.getByTestId('card-form').waitFor();
  const form = page.frameLocator('[data-testid=card-form]');
  await form.locator('button.go').waitFor();
  for (let step = 0; ; step++) {
    assert.ok(step < 60, 'the keyboard reaches the button of the form');
    if (await form.locator('button.go').evaluate((one) => one === document.activeElement)) break;
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  await page.getByTestId('pay-button').waitFor();
  await tabTo(page, 'pay-button');
  await page.keyboard.press('Enter');
  await page.getByTestId('ticket-code').first().waitFor();
});

test('on a phone: everything fits, a tap takes the best seats, a tap on the map picks one', async (t) => {
  const page = await open(t, {
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true,
    deviceScaleFactor: 2,
  });
  const fits = async () => {
    const [wide, screen] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      window.innerWidth,
    ]);
    assert.ok(wide <= screen, `${page.url()} is ${wide} wide on a screen of ${screen}`);
  };
  await page.goto(house.url);
  await page.getByTestId('event-card').first().waitFor();
  await fits();
  await signUp(page, house);
  await fits();
  await openEvent(page, house, EVENT);
  await fits();
  const [seat] = await freeSeats(house, EVENT, 1);
  const point = await page.evaluate((seat) => window.__fullhouse.screenPoint(seat), seat);
  await page.touchscreen.tap(point.x, point.y);
  await page.waitForFunction((seat) => window.__fullhouse.picked().includes(seat), seat, {
    timeout: HUNG,
  });
  await page.touchscreen.tap(point.x, point.y);
  await page.waitForFunction(() => window.__fullhouse.picked().length === 0);
  await page.getByTestId('best-button').tap();
  await page.getByTestId('hold-bar').waitFor();
  await fits();
  await page.getByTestId('checkout-button').tap();
  await page.getByTestId('card-form').waitFor();
  await fits();
  const form = page.frameLocator('[data-testid=card-form]');
  await form.locator('.cards button', { hasText: CARD.good }).tap();
  await form.locator('button.go').tap();
  await page.getByTestId('pay-button').tap();
  await page.getByTestId('ticket-code').first().waitFor();
  await fits();
});
