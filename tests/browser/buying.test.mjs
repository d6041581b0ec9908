// From a seat to a ticket, with everything that goes wrong on the way.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';

import {
  browser,
  CARD,
  freeSeats,
  House,
  holdSeats,
  openEvent,
  payWith,
  signUp,
} from './house.mjs';

const EVENT = 'lantern-cup-night-race';
let house, chrome, page;

before(async () => {
  house = await House.open();
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

beforeEach(async () => {
  await page?.context().close();
  page = await (await chrome.newContext()).newPage();
});

async function toPayment() {
  await openEvent(page, house, EVENT);
  await holdSeats(page, await freeSeats(house, EVENT, 2));
  await page.getByTestId('checkout-button').click();
  await page.getByTestId('card-form').waitFor();
}

const tickets = async () => {
  await page.getByTestId('ticket-code').first().waitFor();
  return page.getByTestId('ticket-code').allTextContents();
};

test('who is not signed in is asked when it matters, and loses nothing by it', async () => {
  await openEvent(page, house, EVENT);
  await page.getByTestId('best-button').click();
  await page.getByTestId('switch-signin').click();
  await page.getByTestId('email').fill('nora at example');
  await page.getByTestId('submit-signin').click();
  for (const field of ['name', 'email', 'password'])
    await page.getByTestId(`${field}-fault`).waitFor(); // all at once, not one after the other
  await page.getByTestId('name').fill('Nora New');
  await page.getByTestId('email').fill(`nora${process.pid}@example.com`);
  await page.getByTestId('password').fill('a long enough password');
  await page.getByTestId('submit-signin').click();
  await page.getByTestId('hold-bar').waitFor();
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.good);
  assert.equal((await tickets()).length, 2);
  await page.goto(`${house.url}/orders`);
  await page.getByText('Lantern Cup', { exact: false }).first().waitFor();
});

test('tickets are shown large at the door, and downloaded as they are', async () => {
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.good);
  await tickets();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByTestId('download-tickets').click(),
  ]);
  assert.match(download.suggestedFilename(), /^tickets-[0-9A-Z]+\.pdf$/);
  const bytes = await readFile(await download.path());
  assert.equal(bytes.subarray(0, 5).toString(), '%PDF-');
  await page.getByTestId('enlarge').first().click();
  const large = page.getByTestId('large-code');
  const width = () => large.locator('svg').evaluate((svg) => svg.getBoundingClientRect().width);
  assert.ok((await width()) > 400);
  const first = await large.locator('path').getAttribute('d');
  await large.getByRole('button', { name: 'Next' }).click();
  assert.notEqual(await large.locator('path').getAttribute('d'), first);
  await page.keyboard.press('Escape');
  await large.waitFor({ state: 'hidden' });
});

test('a declined card charges nothing, and another one pays', async () => {
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.declined);
  await page.getByTestId('declined').waitFor();
  await payWith(page, CARD.good);
  const codes = await tickets();
  assert.equal(new Set(codes).size, 2);
});

test("the bank's challenge is met, also after the page was loaded again", async () => {
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.challenge);
  await page.getByTestId('challenge').waitFor();
  await page.reload();
  await page.frameLocator('[data-testid=challenge]').locator('[data-answer=approve]').click();
  assert.equal((await tickets()).length, 2);
});

test('a challenge that is refused is a decline', async () => {
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.challenge);
  await page.frameLocator('[data-testid=challenge]').locator('[data-answer=fail]').click();
  await page.getByTestId('declined').waitFor();
  await payWith(page, CARD.good);
  assert.equal((await tickets()).length, 2);
});

test('a cancelled order says why, also when it is opened again, and a ticket when and where', async () => {
  await signUp(page, house);
  await toPayment();
  await page.getByTestId('cancel-order').click();
  const ending = page.getByTestId('ending');
  await ending.waitFor();
  assert.equal(await ending.getAttribute('data-reason'), 'buyer');
  await page.reload();
  await ending.waitFor();
  assert.equal(await ending.getAttribute('data-reason'), 'buyer');
  // The seats are still held: they are paid in another order.
  await page.goto(`${house.url}/events/${EVENT}`);
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.good);
  assert.equal((await tickets()).length, 2);
  assert.match(
    await page.getByTestId('ticket-when').first().textContent(),
    /\d{4}.*Kitahara Circuit/,
  );
  assert.match(
    await page.getByTestId('ticket-is-for').first().textContent(),
    /Adult · [A-Z0-9]{8}/,
  );
});

test('an own hold never stands in the way: reload, Back, a second tab', async () => {
  await signUp(page, house);
  await toPayment();
  const mine = async (of) => {
    await of.waitForFunction(() => window.__fullhouse?.mine().length > 0);
    return of.evaluate(() => window.__fullhouse.mine());
  };
  await page.goBack();
  const before = await mine(page);
  assert.equal(before.length, 2);
  await page.reload();
  assert.deepEqual(await mine(page), before);
  const tab = await page.context().newPage();
  await openEvent(tab, house, EVENT);
  assert.deepEqual(await mine(tab), before);
  await tab.getByTestId('checkout-button').click();
  await tab.getByTestId('card-form').waitFor();
  await tab.close();
  await page.getByTestId('release-button').click();
  await page.waitForFunction(() => window.__fullhouse.mine().length === 0);
});

// A letter that is in no font, since it is nobody's.
const NOBODYS = '\u{F0000}';

test('who has a name that no font has is told before paying what the tickets will say, in their language', async () => {
  for (const [locale, words] of [
    ['en-GB', 'Your tickets will say: '],
    ['ja', 'チケット'],
    ['ko', '티켓'],
  ]) {
    await page.context().close();
    const phone = { width: 390, height: 844 };
    page = await (await chrome.newContext({ locale, viewport: phone })).newPage();
    await signUp(page, house, `Ana ${NOBODYS} Seat`);
    await toPayment();
    const note = page.getByTestId('name-on-tickets');
    await note.waitFor();
    const said = await note.textContent();
    assert.ok(said.includes(words) && said.includes('Ana [U+F0000] Seat'), said);
    const [box, form] = [
      await note.boundingBox(),
      await page.getByTestId('card-form').boundingBox(),
    ];
    assert.ok(box.y + box.height <= form.y, 'it stands before the card');
    assert.ok(box.x >= 0 && box.x + box.width <= phone.width, 'and fits the window');
    if (locale !== 'en-GB') continue;
    await payWith(page, CARD.good);
    await tickets();
    assert.equal(await note.count(), 0, 'it is no news then');
  }
});

test('who has a name that can be printed reads nothing of it', async () => {
  await signUp(page, house, 'Łukasz Žižek');
  await toPayment();
  assert.equal(await page.getByTestId('name-on-tickets').count(), 0);
});

test('a ticket says what its seat is, as far as it is not like others', async () => {
  const note = 'a loudspeaker <img src=x onerror=alert(1)>';
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.good);
  await tickets();
  assert.equal(await page.getByTestId('ticket-told').count(), 0);
  const seat = await page.getByTestId('ticket').first().getAttribute('data-seat');
  await house.sql(`insert into seat_trait (event_id, seat_no, flags, note, reason, actor, set_at)
    select id, ${seat}, 4, '${note}', 'the rig', 'a test', clock_timestamp() from event where slug = '${EVENT}'`);
  await page.reload();
  await tickets();
  assert.deepEqual(await page.getByTestId('ticket-told').allInnerTexts(), [
    `restricted view · ${note}`,
  ]);
});

test('a ticket is given back for what the page said before, and its seat is free again', async () => {
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.good);
  await tickets();
  const box = page.getByTestId('give-back');
  await box.locator('summary').click();
  await box.getByTestId('give-back-seat').first().check();
  const seat = Number(await box.getByTestId('give-back-seat').first().inputValue());
  const offer = box.getByTestId('give-back-offer');
  await offer.waitFor();
  // A tenth of a ticket is kept, and the fees.
  assert.match(await offer.textContent(), /You get .+ back.*is kept.*Fees are not given back/s);
  const named = (await offer.textContent()).match(/[\d,.]+/)[0];
  const button = box.getByTestId('give-back-button');
  assert.ok((await button.textContent()).includes(named), 'the button names the same amount');
  await button.click();
  await page.locator(`[data-testid=ticket][data-seat="${seat}"][data-state=void]`).waitFor();
  assert.equal(await page.locator('[data-testid=ticket][data-state=valid]').count(), 1);
  const { seats } = await house.api(`/api/events/${EVENT}`);
  assert.equal(seats.find((one) => one.seat_no === seat).status, 'available');
});

test('the house closes and opens again: what was bought is there, and it sells on', async () => {
  await signUp(page, house);
  await toPayment();
  await payWith(page, CARD.good);
  const codes = await tickets();
  await house.stop();
  await house.start();
  // Whoever was signed in still is, and needs no page for it.
  await page.goto(`${house.url}/signin?next=/orders`);
  await page.waitForURL(`${house.url}/orders`);
  await page.getByText('Lantern Cup', { exact: false }).first().click();
  assert.deepEqual(await tickets(), codes);
  await toPayment();
  await payWith(page, CARD.good);
  const more = await tickets();
  assert.equal(new Set([...codes, ...more]).size, 4);
});
