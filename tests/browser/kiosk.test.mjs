// A kiosk: somebody buys alone, by touch and in their language. Who walks away in the middle: `kiosk-leaving.test.mjs`.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { freeSeats, HUNG } from './house.mjs';
import { Kiosks } from './kiosks.mjs';
import { holdCard, touchSeat } from './till.mjs';

let at;

before(async () => {
  at = await Kiosks.open();
});

after(() => at?.close());

afterEach(() => at.leave());

test('two seats are bought by the card that is held to this kiosk’s reader', async () => {
  const name = await at.stand();
  await at.enter();
  await at.click('kiosk-best');
  await at.shows('kiosk-held');
  assert.equal(await at.page.getByTestId('kiosk-seat').count(), 2);
  await at.click('kiosk-pay');
  await at.shows('kiosk-pay-screen');
  await holdCard(at.house, name);
  await at.shows('kiosk-done');
  const code = await at.code();
  await at.click('kiosk-finish');
  await at.shows('kiosk-event');
  assert.ok(
    !(await at.page.locator('body').innerText()).includes(code),
    'the next person sees nothing of the last',
  );
});

test('every screen is there in three languages, and the next person begins in the first', async () => {
  await at.stand();
  for (const [language, title, pay] of [
    ['ja', 'チケット', 'カードで支払う'],
    ['ko', '티켓', '카드로 결제'],
  ]) {
    await at.click(`lang-${language}`);
    await at.page.getByTestId('house-name').getByText(title).waitFor();
    await at.enter();
    await at.click('kiosk-best');
    await at.page
      .getByTestId('kiosk-pay')
      .getByText(pay)
      .waitFor({ timeout: 3 * HUNG });
    await at.click('over');
    await at.shows('kiosk-event');
    await at.page.getByTestId('house-name').getByText('Tickets').waitFor();
  }
});

test('starting over gives the seats back', async () => {
  await at.stand();
  await at.enter();
  const before = await at.page.evaluate(() => window.__fullhouse.statuses());
  await at.click('kiosk-best');
  await at.shows('kiosk-held');
  await at.page.waitForFunction((n) => window.__fullhouse.statuses() === n - 2, before, {
    timeout: HUNG,
  });
  await at.click('over');
  await at.shows('kiosk-event');
  await at.enter();
  await at.page.waitForFunction((n) => window.__fullhouse.statuses() === n, before, {
    timeout: HUNG,
  });
});

test('a payment that is cancelled at the reader charges nothing, and another way is open', async () => {
  await at.stand();
  await at.enter();
  await at.click('kiosk-best');
  await at.click('kiosk-pay');
  await at.shows('kiosk-pay-screen');
  assert.ok(await at.page.getByTestId('over').isDisabled(), 'nobody walks out of a payment');
  await at.click('kiosk-stop');
  await at.page
    .getByTestId('kiosk-held')
    .or(at.page.getByTestId('kiosk-best'))
    .first()
    .waitFor({ timeout: 3 * HUNG });
  await at.click('over');
  await at.shows('kiosk-event');
});

test('a finger that was still on a button when its visit ended changes nothing of the next one', async () => {
  await at.stand();
  await at.enter();
  const [seat] = await freeSeats(at.house, 'lantern-cup-night-race', 1);
  await touchSeat(at.page, seat);
  const button = await at.page.getByTestId('kiosk-clear').elementHandle();
  // A page that is slow: it takes the button away later than the visit.
  await button.evaluate((one) => document.getElementById('app').append(one));
  await at.click('over');
  await at.shows('kiosk-event');
  await at.enter();
  await touchSeat(at.page, seat);
  await at.shows('kiosk-take');
  await button.evaluate((one) => one.click());
  await at.shows('kiosk-take');
  assert.ok(await at.page.evaluate((seat) => window.__fullhouse.own(seat) > 0, seat));
  await button.evaluate((one) => one.remove());
});

test('two fingers zoom the map, and never the page', async () => {
  await at.stand();
  const wide = () => at.page.evaluate(() => visualViewport.scale);
  const pinch = async (y) => {
    const glass = await at.page.context().newCDPSession(at.page);
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
  await at.enter();
  const seats = () =>
    at.page.evaluate(() => {
      const [a, b] = [0, 1].map((seat) => window.__fullhouse.screenPoint(seat));
      return Math.hypot(a.x - b.x, a.y - b.y);
    });
  const before = await seats();
  await pinch(700);
  assert.ok((await seats()) > 1.5 * before, 'the map is nearer');
  assert.equal(await wide(), 1);
});

test('what a seat is for this performance is read before it is paid, also if that was said after the hall was opened', async () => {
  await at.stand();
  await at.enter('lantern-cup-night-race');
  const [seat, beside, other] = await freeSeats(at.house, 'lantern-cup-night-race', 3);
  await touchSeat(at.page, seat);
  await touchSeat(at.page, beside);
  const picked = at.page.getByTestId('kiosk-picked');
  assert.doesNotMatch(await picked.innerText(), /restricted view/);
  const note = 'a camera <img src=x onerror=alert(1)>';
  await at.setTraits([seat], { restricted_view: true, note });
  await picked.getByText(`restricted view · ${note}`).waitFor({ timeout: 3 * HUNG });
  assert.match(await at.page.getByTestId('kiosk-price').innerText(), /¥/, 'and what it costs');

  // The one beside it too, in the moment before it is held.
  await at.setTraits([beside], { accessible: true });
  await at.click('kiosk-take');
  await at.shows('kiosk-held');
  const traits = at.page.getByTestId('kiosk-traits');
  await traits.getByText('wheelchair place').waitFor({ timeout: HUNG });
  assert.deepEqual((await traits.allInnerTexts()).sort(), [
    `restricted view · ${note}`,
    'wheelchair place',
  ]);
  await at.click('lang-ja');
  await traits.getByText('車いす席').waitFor({ timeout: HUNG });

  await at.click('over');
  await at.shows('kiosk-event');
  await at.setTraits([seat, beside], { restricted_view: false, accessible: false, note: '' });
  await at.enter();
  await touchSeat(at.page, other);
  assert.doesNotMatch(await picked.innerText(), /restricted view|wheelchair/);
});

test('staff read what is theirs in the first of the kiosk’s languages, whatever its customer chose', async () => {
  await at.stand();
  await at.click('lang-ko');
  await at.page.getByTestId('house-name').getByText('티켓').waitFor();
  await at.page.getByTestId('house-name').dispatchEvent('pointerdown');
  await at.page.getByTestId('exit-dialog').getByText('Staff only').waitFor({ timeout: HUNG });
  await at.click('pin-1');
  await at.click('exit-leave');
  await at.page.getByTestId('exit-message').getByText('Wrong PIN').waitFor({ timeout: HUNG });
  await at.click('pin-1');
  await at.page.getByTestId('exit-message').waitFor({ state: 'detached', timeout: HUNG });
});

test('without a network it says so, and lets nobody begin', async () => {
  await at.stand();
  at.cable.pull();
  await at.shows('kiosk-cut');
  assert.equal(await at.page.getByTestId('kiosk-event').count(), 0);
  at.cable.plugIn();
  await at.shows('kiosk-event');
});
