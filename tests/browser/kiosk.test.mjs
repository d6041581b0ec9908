// A kiosk: somebody buys alone, by touch and in their language, and leaves nothing behind for the next person.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';

import { asOperator, browser, freeSeats, House, HUNG } from './house.mjs';
import { Cable } from './desk.mjs';
import { brokenPrinter, until } from './printer.mjs';
import { enrolled, holdCard, hurry, mapOf, screensOf, touchSeat } from './till.mjs';

let house, cable, chrome, screens, page;
let kiosks = 0;

before(async () => {
  house = await House.open();
  chrome = await browser();
  cable = await Cable.to(house.url);
  screens = await screensOf(house, cable.url);
});

after(async () => {
  await chrome?.close();
  await screens?.close();
  cable?.close();
  await house?.close();
});

afterEach(async () => {
  const errors = page?.errors ?? [];
  await page?.context().close();
  page = undefined;
  assert.deepEqual(errors, []);
});

async function kiosk() {
  const name = `Kiosk ${++kiosks}`;
  page = await enrolled(chrome, house, screens, name, 'kiosk', {
    viewport: { width: 1080, height: 1920 },
    hasTouch: true,
  });
  return name;
}

const click = (id) => page.getByTestId(id).click();
const shows = (id) =>
  page
    .getByTestId(id)
    .first()
    .waitFor({ timeout: 3 * HUNG });

async function enter(slug = 'lantern-cup-night-race') {
  const { event } = await house.api(`/api/events/${slug}?seats=none`);
  await page.locator(`[data-testid=kiosk-event][data-event="${event.id}"]`).click();
  await mapOf(page, event.id);
}

/** A hall that is there at once: where seconds are short, nobody waits for 62,000 seats. */
async function enterSmall() {
  const { events } = await house.api('/api/events');
  const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
  await enter(open.sort((a, b) => a.seats_total - b.seats_total)[0].slug);
}

test('two seats are bought by the card that is held to this kiosk’s reader', async () => {
  const name = await kiosk();
  await enter();
  await click('kiosk-best');
  await shows('kiosk-held');
  assert.equal(await page.getByTestId('kiosk-seat').count(), 2);
  await click('kiosk-pay');
  await shows('kiosk-pay-screen');
  await holdCard(house, name);
  await shows('kiosk-done');
  const code = (await page.getByTestId('kiosk-code').innerText()).match(/[0-9A-Z]{8}/)[0];
  await click('kiosk-finish');
  await shows('kiosk-event');
  assert.ok(
    !(await page.locator('body').innerText()).includes(code),
    'the next person sees nothing of the last',
  );
});

test('every screen is there in three languages, and the next person begins in the first', async () => {
  await kiosk();
  for (const [language, title, pay] of [
    ['ja', 'チケット', 'カードで支払う'],
    ['ko', '티켓', '카드로 결제'],
  ]) {
    await click(`lang-${language}`);
    await page.getByTestId('house-name').getByText(title).waitFor();
    await enter();
    await click('kiosk-best');
    await page
      .getByTestId('kiosk-pay')
      .getByText(pay)
      .waitFor({ timeout: 3 * HUNG });
    await click('over');
    await shows('kiosk-event');
    await page.getByTestId('house-name').getByText('Tickets').waitFor();
  }
});

test('starting over gives the seats back', async () => {
  await kiosk();
  await enter();
  const before = await page.evaluate(() => window.__fullhouse.statuses());
  await click('kiosk-best');
  await shows('kiosk-held');
  await page.waitForFunction((n) => window.__fullhouse.statuses() === n - 2, before, {
    timeout: HUNG,
  });
  await click('over');
  await shows('kiosk-event');
  await enter();
  await page.waitForFunction((n) => window.__fullhouse.statuses() === n, before, { timeout: HUNG });
});

test('a customer who walks away is asked, and then their seats go back', async () => {
  const name = await kiosk();
  const id = await house.sql(`select id from terminal where name = '${name}'`);
  const profile = { profile: { idle_s: 40, languages: ['en', 'ko'] }, reason: 'a test' };
  await asOperator(chrome, house, 'POST', `/api/staff/terminals/${id}`, profile);
  await hurry(page, 250);
  await shows('kiosk-event');
  await page.getByTestId('lang-ja').waitFor({ state: 'detached' }); // it knows its profile
  await click('lang-ko');
  await enterSmall();
  const before = await page.evaluate(() => window.__fullhouse.statuses());
  await click('kiosk-best');
  await shows('kiosk-held');
  await shows('kiosk-idle');
  await click('kiosk-stay');
  await page.getByTestId('kiosk-idle').waitFor({ state: 'detached' });
  await shows('kiosk-held');
  await shows('kiosk-event'); // by itself
  await page.getByTestId('house-name').getByText('Tickets').waitFor(); // in the first language again
  await enterSmall();
  await page.waitForFunction((n) => window.__fullhouse.statuses() === n, before, { timeout: HUNG });
});

test('whoever walks away from the reader leaves it stopped, and nothing is charged', async () => {
  await kiosk();
  await hurry(page, 120);
  await shows('kiosk-event');
  await enterSmall();
  await click('kiosk-best');
  await click('kiosk-pay');
  await shows('kiosk-pay-screen');
  await shows('kiosk-event');
  assert.equal(
    await house.sql(`select count(*) from attempt where captured_minor > 0 and
    order_id in (select id from "order" where channel = 'kiosk' and state <> 'confirmed')`),
    '0',
  );
});

test('a network that goes while the card is read ends with staff, and the next person finds nothing', async () => {
  await kiosk();
  await hurry(page, 80);
  await shows('kiosk-event');
  await enterSmall();
  await click('kiosk-best');
  await page.getByTestId('kiosk-pay').waitFor({ timeout: HUNG });
  await click('kiosk-pay');
  await page.locator('[data-testid=kiosk-pay-screen][data-ready=true]').waitFor({ timeout: HUNG });
  cable.pull();
  try {
    await shows('kiosk-staff');
    const code = (await page.getByTestId('kiosk-code').innerText()).match(/[0-9A-Z]{8}/)[0];
    await shows('kiosk-closed');
    assert.ok(!(await page.locator('body').innerText()).includes(code));
  } finally {
    cable.plugIn();
  }
  await page.getByTestId('house-name').dispatchEvent('pointerdown');
  await shows('exit-dialog');
  for (const digit of '161803') await click(`pin-${digit}`);
  await click('exit-again');
  await shows('kiosk-event');
});

test('whoever leaves after they have paid leaves a screen that clears itself', async () => {
  const name = await kiosk();
  await hurry(page, 120);
  await shows('kiosk-event');
  await enterSmall();
  await click('kiosk-best');
  await page.locator('[data-testid=kiosk-pay]:enabled').click();
  await shows('kiosk-pay-screen');
  await holdCard(house, name);
  await shows('kiosk-done');
  const [code] = (await page.getByTestId('kiosk-code').innerText()).match(/[0-9A-Z]{8}/);
  await shows('kiosk-event');
  assert.ok(!(await page.content()).includes(code));
});

test('tickets that do not come out are said, mailed and told to staff; then nothing is left of whose they are', async () => {
  const name = await kiosk();
  const printer = await brokenPrinter();
  const id = await house.sql(`select id from terminal where name = '${name}'`);
  await printer.standsAt(join(screens.folder, id));
  try {
    await hurry(page, 120);
    await shows('kiosk-event');
    await enterSmall();
    await click('kiosk-best');
    await page.locator('[data-testid=kiosk-pay]:enabled').click();
    await shows('kiosk-pay-screen');
    await holdCard(house, name);
    await page.locator('[data-screen=printing]').waitFor({ timeout: 3 * HUNG });
    await page.locator('[data-screen=unprinted]').waitFor({ timeout: 3 * HUNG });
    const [code] = (await page.getByTestId('kiosk-code').innerText()).match(/[0-9A-Z]{8}/);
    for (const key of 'ana@example.org') await click(`key-${key}`);
    await click('address-send');
    await shows('kiosk-mailed');
    const told = `select count(*) from terminal where id = '${id}' and health ->> 'detail' like '%Unprinted%${code}%'`;
    await until('staff know of whom', async () => (await house.sql(told)) === '1');
    // They leave.
    await shows('kiosk-closed');
    const left = await page.content();
    for (const word of [code, 'ana@', 'example.org']) assert.ok(!left.includes(word), word);
    await page.getByTestId('house-name').dispatchEvent('pointerdown');
    await shows('exit-dialog');
    for (const digit of '161803') await click(`pin-${digit}`);
    await click('exit-again');
    await page.getByTestId('exit-dialog').waitFor({ state: 'detached', timeout: HUNG });
    await until('nobody is called any more', async () => (await house.sql(told)) === '0');
  } finally {
    printer.close();
  }
});

test('a payment that is cancelled at the reader charges nothing, and another way is open', async () => {
  await kiosk();
  await enter();
  await click('kiosk-best');
  await click('kiosk-pay');
  await shows('kiosk-pay-screen');
  assert.ok(await page.getByTestId('over').isDisabled(), 'nobody walks out of a payment');
  await click('kiosk-stop');
  await page
    .getByTestId('kiosk-held')
    .or(page.getByTestId('kiosk-best'))
    .first()
    .waitFor({ timeout: 3 * HUNG });
  await click('over');
  await shows('kiosk-event');
});

test('a finger that was still on a button when its visit ended changes nothing of the next one', async () => {
  await kiosk();
  await enter();
  const [seat] = await freeSeats(house, 'lantern-cup-night-race', 1);
  await touchSeat(page, seat);
  const button = await page.getByTestId('kiosk-clear').elementHandle();
  // A page that is slow: it takes the button away later than the visit.
  await button.evaluate((one) => document.getElementById('app').append(one));
  await click('over');
  await shows('kiosk-event');
  await enter();
  await touchSeat(page, seat);
  await shows('kiosk-take');
  await button.evaluate((one) => one.click());
  await shows('kiosk-take');
  assert.ok(await page.evaluate((seat) => window.__fullhouse.own(seat) > 0, seat));
  await button.evaluate((one) => one.remove());
});

test('two fingers zoom the map, and never the page', async () => {
  await kiosk();
  const wide = () => page.evaluate(() => visualViewport.scale);
  const pinch = async (y) => {
    const glass = await page.context().newCDPSession(page);
    const touch = (type, apart) =>
      glass.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: apart ? [540 - apart, 540 + apart].map((x, id) => ({ x, y, id })) : [],
      });
    await touch('touchStart', 60);
    for (const apart of [100, 160, 240, 320]) await touch('touchMove', apart);
    await touch('touchEnd');
    await glass.detach();
  };
  await pinch(300);
  assert.equal(await wide(), 1);
  await enter();
  const seats = () =>
    page.evaluate(() => {
      const [a, b] = [0, 1].map((seat) => window.__fullhouse.screenPoint(seat));
      return Math.hypot(a.x - b.x, a.y - b.y);
    });
  const before = await seats();
  await pinch(700);
  assert.ok((await seats()) > 1.5 * before, 'the map is nearer');
  assert.equal(await wide(), 1);
});

test('without a network it says so, and lets nobody begin', async () => {
  await kiosk();
  cable.pull();
  await shows('kiosk-cut');
  assert.equal(await page.getByTestId('kiosk-event').count(), 0);
  cable.plugIn();
  await shows('kiosk-event');
});
