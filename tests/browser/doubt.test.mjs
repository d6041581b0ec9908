// The bank does not answer, the box office can't be reached, the page is loaded again in the middle:
// what the buyer reads is true all the time, and it ends.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';

import {
  browser,
  CARD,
  freeSeats,
  holdSeats,
  House,
  openEvent,
  payWith,
  PROVIDER_KEY,
  signUp,
} from './house.mjs';

const EVENT = 'lantern-cup-night-race';
/** Long enough to pay, short enough to see it end. */
const SHORT_HOLD_S = 40;
/** Where pictures of each state go, if anybody wants to look at them. */
const PICTURES = process.env.PICTURES;
const LOOKS = {
  desktop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844 },
};
let house, chrome, page;

async function open(holdTtlS) {
  // A lost answer costs a test two seconds.
  house = await House.open({ holdTtlS, env: { FULLHOUSE__PAYMENT__TIMEOUT_MS: '2000' } });
}

before(async () => {
  chrome = await browser();
  await open(480);
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

beforeEach(async () => {
  await page?.context().close();
  page = await (await chrome.newContext({ locale: 'en-GB' })).newPage();
  await house.rules([]);
});

/** Everything about an intent is silent from now on: nobody can say how its confirmation ended. */
const SILENCE = { match: { op: 'get' }, effect: { network: 'timeout_before' } };
const lost = (outcome) => ({
  match: { op: 'confirm', first: 1 },
  effect: { network: 'timeout_after', ...(outcome ? { outcome } : {}) },
});

async function toPayment() {
  await signUp(page, house);
  await openEvent(page, house, EVENT);
  await holdSeats(page, await freeSeats(house, EVENT, 2));
  await page.getByTestId('checkout-button').click();
  await page.getByTestId('card-form').waitFor();
}

const stage = (name) => page.locator(`[data-testid=payment][data-stage=${name}]`);

async function until(name, timeout = 30_000) {
  await stage(name).waitFor({ timeout });
  await picture(name);
}

async function picture(name) {
  if (!PICTURES) return;
  await mkdir(PICTURES, { recursive: true });
  for (const [look, viewport] of Object.entries(LOOKS)) {
    await page.setViewportSize(viewport);
    await page.screenshot({ path: `${PICTURES}/${name}-${look}.png` });
  }
  await page.setViewportSize(LOOKS.desktop);
}

const text = () => page.locator('main').innerText();

/** The bank speaks again; the hub hears of it as it does of everything. */
async function bankSpeaks() {
  await house.rules([]);
  await house.replay();
}

test('a lost answer: the bank is asked, the seats are yours until then, and it went through', async () => {
  await house.rules([lost(), SILENCE]);
  await toPayment();
  await payWith(page, CARD.good);
  await until('asking_bank');
  const held = await page.evaluate(() => fetch(`/api${location.pathname}`).then((r) => r.json()));
  const clock = new Intl.DateTimeFormat('en-GB', { hour: 'numeric', minute: '2-digit' });
  const seatsUntil = clock.format(new Date(held.order.attempt.seats_until));
  assert.match(await text(), new RegExp(`Your seats are yours until ${seatsUntil}`));
  // Nobody is invited to pay twice, also not in the list of orders.
  assert.equal(await page.getByTestId('pay-button').count(), 0);
  await page.reload();
  await until('asking_bank');
  const order = page.url();
  await page.goto(`${house.url}/orders`);
  await page.getByText('Being checked with your bank').waitFor();
  await page.goto(order);
  await until('asking_bank');
  await bankSpeaks();
  await page.getByTestId('ticket-code').first().waitFor({ timeout: 30_000 });
  assert.equal((await page.getByTestId('ticket-code').count()) > 0, true);
  assert.equal((await house.ledger()).intents.filter((i) => i.status === 'succeeded').length, 1);
});

test('a lost answer that was a decline: another card, while the seats are still yours', async () => {
  await house.rules([lost({ kind: 'decline', code: 'insufficient_funds' }), SILENCE]);
  await toPayment();
  await payWith(page, CARD.good);
  await until('asking_bank');
  await bankSpeaks();
  await until('declined');
  assert.match(
    await text(),
    /[Nn]othing was charged, and your seats are still yours: try another card/,
  );
  await payWith(page, CARD.good);
  await page.getByTestId('ticket-code').first().waitFor({ timeout: 30_000 });
});

test('the box office can’t be reached while you pay: the page says so, keeps trying, and recovers', async () => {
  await toPayment();
  // The press arrives, its answer does not, and then nobody answers at all.
  const api = /\/api\/orders\//;
  await page.route(api, async (route) => {
    if (route.request().url().endsWith('/pay')) await route.fetch().catch(() => undefined);
    await route.abort('connectionreset');
  });
  await payWith(page, CARD.good);
  await page.getByTestId('unreachable').waitFor({ timeout: 30_000 });
  await picture('unreachable');
  assert.match(await text(), /nothing is charged twice/);
  await page.unroute(api);
  await page.getByTestId('ticket-code').first().waitFor({ timeout: 30_000 });
  assert.equal(await page.getByTestId('unreachable').count(), 0);
});

test('loaded again while the box office can’t be reached: it says so, and goes on by itself', async () => {
  await house.rules([lost(), SILENCE]);
  await toPayment();
  await payWith(page, CARD.good);
  await until('asking_bank');
  const api = /\/api\/orders\//;
  await page.route(api, (route) => route.abort('connectionrefused'));
  await page.reload();
  await page.getByTestId('unreachable').waitFor({ timeout: 30_000 });
  await page.unroute(api);
  await until('asking_bank');
  await bankSpeaks();
  await page.getByTestId('ticket-code').first().waitFor({ timeout: 30_000 });
});

test('every language says it', async () => {
  await house.rules([lost(), SILENCE]);
  await toPayment();
  await payWith(page, CARD.good);
  await until('asking_bank');
  for (const [language, words] of [
    ['ja', 'カード会社に確認しています'],
    ['ko', '카드사에 확인하고 있습니다'],
  ]) {
    await page.getByTestId('lang-select').selectOption(language);
    await page.getByText(words).waitFor();
    await picture(`asking_bank-${language}`);
  }
  await page.getByTestId('lang-select').selectOption('en');
  await bankSpeaks();
  await page.getByTestId('ticket-code').first().waitFor({ timeout: 30_000 });
});

test('the time runs out while nobody knows: not charged, and the reservation is let go', async () => {
  await house.close();
  await open(SHORT_HOLD_S);
  await house.rules([lost(), SILENCE]);
  await toPayment();
  await payWith(page, CARD.good);
  await until('asking_bank');
  await until('late', 60_000);
  assert.match(await text(), /These seats went back, and you will not pay for them/);
  assert.equal(await page.locator('.spin').count(), 0, 'nothing turns any more');
  await bankSpeaks();
  const ending = page.getByTestId('ending');
  await ending.waitFor({ timeout: 60_000 });
  await picture('not_charged');
  assert.equal(await ending.getAttribute('data-reason'), 'time_over');
  assert.match(await text(), /You were not charged; if your bank shows a reservation/);
  const { intents } = await house.ledger();
  assert.deepEqual(
    intents.map((i) => i.status),
    ['canceled'],
  );
});

test('the time runs out, and the money comes after all: it is given back, and the page says so', async () => {
  await house.rules([lost(), SILENCE]);
  await toPayment();
  await payWith(page, CARD.good);
  await until('asking_bank');
  const { intents } = await house.ledger();
  const late = intents.find((i) => i.status === 'requires_capture');
  await house.provider(`payment_intents/${late.id}/capture`);
  await until('late', 60_000);
  // The bank speaks again, but what the hub first asks of it is lost: the page hears of the money while it is on its way.
  await house.rules([{ match: { op: 'refund', first: 1 }, effect: { network: 'timeout_before' } }]);
  await house.replay();
  const back = page.getByTestId('given-back');
  await back.waitFor({ timeout: 60_000 });
  assert.equal(await back.getAttribute('data-state'), 'on_its_way');
  await picture('given_back');
  assert.doesNotMatch(await text(), /not charged/);
  // It is asked for again after 2, 5, 10 and 30 s, a fifth more or less, and each request may be lost for two.
  await page.locator('[data-testid=given-back][data-state=arrived]').waitFor({ timeout: 90_000 });
  await page.reload();
  await back.waitFor();
  assert.match(await text(), /You get all of it back/);
  const ledger = await house.ledger();
  assert.equal(ledger.refunded, ledger.captured);
});
