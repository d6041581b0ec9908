// What the page says about prices, places and times, and that everything that it shows fits.

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
  signUp,
} from './house.mjs';

const RACE = 'lantern-cup-night-race';
const STADIUM = 'paper-moons-world-tour';
const CELLAR = 'cellar-night';
const SCREENS = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};
let house, chrome;

before(async () => {
  house = await House.open();
  await house.putOn(cellar(), CELLAR_EVENT);
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

/** A hall of 32 chairs in four rows, at three prices of nearly one colour. */
function cellar() {
  const colors = { Front: '#cc3333', Back: '#cc3344', Rear: '#cc3333' };
  const rows = ['Front', 'Front', 'Back', 'Rear'].map((category, y) => ({
    row_number: 'ABCD'[y],
    position: { x: 0, y: 40 * y },
    seats: Array.from({ length: 8 }, (_, x) => ({
      seat_guid: `${'ABCD'[y]}-${x + 1}`,
      seat_number: String(x + 1),
      position: { x: 30 * x, y: 0 },
      category,
    })),
  }));
  return {
    name: 'Cellar',
    size: { width: 400, height: 300 },
    categories: Object.entries(colors).map(([name, color]) => ({ name, color })),
    zones: [{ name: 'Main', position: { x: 60, y: 90 }, rows, areas: [] }],
  };
}

const CELLAR_EVENT = {
  slug: CELLAR,
  name: 'Cellar Night',
  description: 'Thirty-two chairs.',
  tags: ['jazz'],
  venue: 'cellar',
  plan: 'Cellar',
  doors: '2099-01-20T19:00',
  starts: '2099-01-20T20:00',
  on_sale: '2026-01-01T10:00',
  currency: 'EUR',
  seat_limit: 6,
  performers: [],
  fees: [
    { code: 'service', basis: 'seat', amount_minor: 200 },
    { code: 'booking', basis: 'order', amount_minor: 50 },
  ],
  levels: [
    { category: 'Rear', prices: [{ ticket_type: 'adult', amount_minor: 1500 }] },
    { category: 'Front', prices: [{ ticket_type: 'adult', amount_minor: 3000 }] },
    { category: 'Back', prices: [{ ticket_type: 'adult', amount_minor: 2000 }] },
  ],
};

async function open(t, options = {}) {
  const context = await chrome.newContext({ locale: 'en-GB', ...options });
  t.after(() => context.close());
  return context.newPage();
}

for (const [name, screen] of Object.entries(SCREENS)) {
  test(`the provider's form shows its button without being scrolled: ${name}`, async (t) => {
    const page = await open(t, screen);
    await signUp(page, house);
    await openEvent(page, house, RACE);
    await page.getByTestId('best-button').click();
    await page.getByTestId('checkout-button').click();
    const form = page.frameLocator('[data-testid=card-form]');
    await form.locator('button.go').waitFor();
    const frame = page.getByTestId('card-form');
    await page.waitForFunction(
      () => document.querySelector('[data-testid=card-form]').style.height,
    );
    const high = await form.locator('body').evaluate((body) => body.getBoundingClientRect().height);
    const frameHigh = await frame.evaluate((one) => one.clientHeight);
    assert.ok(frameHigh >= high, `the form is ${high} high, its frame ${frameHigh}`);
    assert.ok(frameHigh <= high + 4, `the frame of ${frameHigh} fits its form of ${high}`);
    // It grows with what it says.
    await form.locator('#number').fill('1');
    await form.locator('button.go').click();
    await form.locator('#message').filter({ hasText: /./ }).waitFor();
    const scrolls = () =>
      form.locator('html').evaluate((html) => html.scrollHeight > html.clientHeight);
    assert.equal(await scrolls(), false);
  });
}

test('what is paid is said before anybody signs in: in the programme, beside the map, of what was picked', async (t) => {
  const page = await open(t, SCREENS.desktop);
  await page.goto(house.url);
  const card = page.getByTestId('event-card').filter({ hasText: 'Cellar Night' });
  assert.match(await card.innerText(), /from €17\.50 with fees/);
  await openEvent(page, house, CELLAR);
  const fees = await page.getByTestId('fees').first().innerText();
  assert.match(fees, /Plus fees: .*Booking fee €0\.50 an order.*Service fee €2\.00 a seat/);
  const [a, b] = await freeSeats(house, CELLAR, 2);
  await clickSeat(page, a);
  await clickSeat(page, b);
  assert.equal(await page.getByTestId('selection-total').innerText(), '€64.50');
  assert.equal(await page.getByTestId('selection-fees').innerText(), '€60.00 and €4.50 in fees');
});

test('doors and start are told apart, on the venue’s clock and on the reader’s', async (t) => {
  const page = await open(t, { ...SCREENS.desktop, timezoneId: 'America/New_York' });
  await openEvent(page, house, CELLAR);
  const text = await page.locator('header .extra').innerText();
  assert.match(text, /Doors 19:00, start 20:00 \(venue time\)/);
  assert.match(text, /On your clock: doors .*13:00, start 14:00\./);
});

test('a hall that is seen whole stays where it is when seats are held', async (t) => {
  const page = await open(t, SCREENS.desktop);
  await signUp(page, house);
  await openEvent(page, house, CELLAR);
  const [a, b, other] = await freeSeats(house, CELLAR, 3);
  const at = () => page.evaluate((seat) => window.__fullhouse.screenPoint(seat), other);
  const before = await at();
  await holdSeats(page, [a, b]);
  await page.waitForTimeout(700); // a flight would be over
  assert.deepEqual(await at(), before);
  await page.getByTestId('show-all').click();
  await page.waitForTimeout(700);
  assert.deepEqual(await at(), before);
  // Bought, they have a sign of their own, and a way to the tickets.
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.good);
  await page.getByTestId('ticket-code').first().waitFor();
  await openEvent(page, house, CELLAR);
  await page.getByTestId('have-tickets').filter({ hasText: '2 tickets' }).waitFor();
  await page.getByText('bought by you').waitFor();
});

test('a price that is looked for is counted among its own seats, and stands in one order everywhere', async (t) => {
  const page = await open(t, SCREENS.desktop);
  await openEvent(page, house, STADIUM);
  const { price_levels: levels } = await house.api(`/api/events/${STADIUM}?seats=none`);
  const names = [...levels]
    .sort((a, b) => b.prices[0].amount_minor - a.prices[0].amount_minor)
    .map((one) => one.name);
  await page.locator('.best summary').click();
  const offered = await page.getByTestId('best-level').locator('option').allInnerTexts();
  assert.deepEqual(
    offered.slice(1).map((one) => one.split(' · ')[0]),
    names,
  );
  // The sections come with the drawing, which may arrive after the prices.
  const sections = page.getByTestId('best-section').locator('optgroup');
  await sections.first().waitFor({ state: 'attached' });
  const groups = await sections.evaluateAll((all) => all.map((one) => one.label));
  for (const label of ['Club 201–220', 'Box 1–100', 'Platform A–V'])
    assert.ok(groups.includes(label), groups.join());
  assert.ok(groups.length < 10 && groups.length > 4, groups.join());
  // A block of two prices, one of them looked for: all of that one are free.
  await page
    .getByTestId('best-level')
    .selectOption({ label: offered.find((one) => one.startsWith('Upper ·')) });
  await page.getByTestId('list-toggle').click();
  const shares = await page.getByTestId('list-section').allInnerTexts();
  assert.ok(shares.length > 30, `${shares.length} sections`);
  for (const share of shares) assert.match(share, /100%/);
});

test('a declined card says why, where that helps', async (t) => {
  const page = await open(t, SCREENS.desktop);
  await signUp(page, house);
  await openEvent(page, house, RACE);
  await page.getByTestId('best-button').click();
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.declined);
  await page.getByTestId('declined').filter({ hasText: 'declined this card' }).waitFor();
  await payWith(page, CARD.funds);
  await page.getByTestId('declined').filter({ hasText: 'not enough money' }).waitFor();
});
