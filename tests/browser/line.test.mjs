// A line before an event: people join, places are drawn, and the line brings them in one after the other.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import {
  asOperator,
  browser,
  CARD,
  House,
  HUNG,
  joinLine,
  opens,
  payWith,
  putOnWithLine,
  shows,
  signUp,
} from './house.mjs';

/** Until a line that has opened is called, on a busy machine. */
const DRAWN = 60_000;
let house, chrome;

before(async () => {
  house = await House.open();
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

/** Another person: a browser of their own, signed up. */
async function person(t, options = {}) {
  const context = await chrome.newContext({ locale: 'en-GB', ...options });
  t.after(() => context.close());
  const page = await context.newPage();
  page.email = await signUp(page, house);
  return page;
}

const stage = (page) => page.locator('[data-testid=line]').getAttribute('data-stage');
const stages = (page, ...wanted) =>
  page.waitForFunction(
    (wanted) => wanted.includes(document.querySelector('[data-testid=line]')?.dataset.stage),
    wanted,
    { timeout: DRAWN },
  );
const ahead = (page) => page.locator('[data-testid=ahead]').getAttribute('data-ahead').then(Number);
const place = (page) => page.getByTestId('place').getAttribute('data-place').then(Number);
const aheadFalls = (page, to) =>
  page.waitForFunction(
    (to) => Number(document.querySelector('[data-testid=ahead]')?.dataset.ahead) === to,
    to,
    { timeout: DRAWN },
  );
const inside = (page) => page.getByTestId('turn').waitFor({ timeout: DRAWN });

/** Somebody who has a place, or is inside already: until one of both is known. */
async function placed(page) {
  await page.getByTestId('place').or(page.getByTestId('turn')).first().waitFor({ timeout: DRAWN });
  return page.getByTestId('turn').isVisible();
}

async function buys(page) {
  await page.getByTestId('best-button').click();
  await page.getByTestId('hold-bar').waitFor();
  await page.getByTestId('checkout-button').click();
  await payWith(page, CARD.good);
  await page.getByTestId('ticket-code').first().waitFor();
}

// What takes time here is waiting: several wait at once.
describe('a line before an event', { concurrency: 3 }, () => {
  test('three join, places are drawn, one after the other comes in and buys', async (t) => {
    const people = await Promise.all([person(t), person(t), person(t)]);
    const id = await putOnWithLine(chrome, house, 'three-in-line');
    await Promise.all(people.map((page) => joinLine(page, house, 'three-in-line')));
    for (const page of people) assert.equal(await stage(page), 'waiting');
    await opens(house, id);
    await Promise.all(people.map((page) => placed(page)));
    await Promise.race(people.map((page) => inside(page)));
    const order = [];
    let waiting = people;
    for (let turn = 0; turn < 3; turn++) {
      await Promise.race(waiting.map((page) => inside(page)));
      const within = [];
      for (const page of waiting) if (await page.getByTestId('turn').isVisible()) within.push(page);
      assert.equal(within.length, 1, 'one at a time, as the operator said');
      const [first] = within;
      waiting = waiting.filter((page) => page !== first);
      order.push(first);
      // A reload keeps the turn, and the place of those who wait.
      await first.reload();
      await inside(first);
      const places = await Promise.all(waiting.map(place));
      const before = await Promise.all(waiting.map(ahead));
      await Promise.all(waiting.map((page) => page.reload()));
      await Promise.all(waiting.map((page) => page.getByTestId('place').waitFor()));
      assert.deepEqual(await Promise.all(waiting.map(place)), places);
      const after = await Promise.all(waiting.map(ahead));
      assert.ok(
        after.every((number, i) => number <= before[i]),
        `${before} became ${after}`,
      );
      await buys(first);
      if (waiting.length === 2) {
        // The pass is over with the order: the next one is called, and the other's number falls.
        const [low, high] = places[0] < places[1] ? waiting : [...waiting].reverse();
        await inside(low);
        await aheadFalls(high, 0);
      }
    }
    assert.equal(new Set(order).size, 3);
  });

  test('a place is kept without a socket, after a pause, on another device', async (t) => {
    const bare = await person(t);
    await bare.addInitScript(() => {
      window.WebSocket = class {
        constructor() {
          setTimeout(() => this.onclose?.({ code: 1006, reason: '' }), 10);
        }
        close() {}
      };
    });
    const other = await person(t);
    const id = await putOnWithLine(chrome, house, 'without-socket');
    await joinLine(bare, house, 'without-socket');
    await joinLine(other, house, 'without-socket');
    await opens(house, id);
    await Promise.all([placed(bare), placed(other)]);
    await Promise.race([inside(bare), inside(other)]);
    const bareIsIn = await bare.getByTestId('turn').isVisible();
    const [inThere, waits] = bareIsIn ? [bare, other] : [other, bare];
    await aheadFalls(waits, 0);

    // The operator pauses, and says why; everybody who waits reads it.
    const staff = `/api/staff/events/${id}/queue`;
    await asOperator(chrome, house, 'PATCH', staff, {
      reason: 'the printer is on fire',
      paused: true,
      message: { en: 'A short break.', ja: '少々お待ちください。', default: 'A short break.' },
    });
    await waits.getByTestId('operator-word').getByText('A short break.').waitFor();
    await waits.locator('[data-testid=wait][data-is=paused]').waitFor();

    // The same account on another device: the same place.
    const kept = await place(waits);
    const phone = await (await chrome.newContext({ locale: 'ja-JP' })).newPage();
    t.after(() => phone.context().close());
    await phone.goto(`${house.url}/signin`);
    await phone.getByTestId('email').fill(waits.email);
    await phone.getByTestId('password').fill('a long enough password');
    await phone.getByTestId('submit-signin').click();
    await phone.getByTestId('signout').waitFor();
    await phone.goto(`${house.url}/events/without-socket`);
    await phone.getByTestId('place').waitFor();
    assert.equal(await place(phone), kept);
    await phone.getByText('少々お待ちください。').waitFor();

    // It goes on; who was inside leaves by buying; one of the two devices takes the turn, the other is told.
    await asOperator(chrome, house, 'PATCH', staff, {
      reason: 'it is out',
      paused: false,
      message: null,
    });
    await buys(inThere);
    await Promise.race([inside(waits), inside(phone)]);
    // Whichever came in first, or last at the same moment: one has it, and the other is told.
    const told = async (page) => {
      await page.getByTestId('take-over').waitFor({ timeout: DRAWN });
      return page;
    };
    const there = await Promise.race([told(waits), told(phone)]);
    const here = there === phone ? waits : phone;
    await inside(here);
    await there.getByTestId('take-over').click();
    await inside(there);
    await here.getByTestId('best-button').click();
    await here.getByTestId('take-over').waitFor();
  });

  test('whoever looks elsewhere is called by the title, and comes in when they look', async (t) => {
    const page = await person(t);
    const id = await putOnWithLine(chrome, house, 'looks-elsewhere');
    await joinLine(page, house, 'looks-elsewhere');
    // Another window lies before it, as the page sees it.
    const look = (hidden) =>
      page.evaluate((hidden) => {
        const state = hidden ? 'hidden' : 'visible';
        Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    await look(true);
    await opens(house, id);
    await page.waitForFunction(() => document.title.startsWith('●'), null, { timeout: DRAWN });
    assert.equal(await stage(page), 'called');
    await page.getByTestId('grace').waitFor();
    assert.equal(await page.getByTestId('turn').count(), 0);
    const began = Date.now();
    await look(false);
    await inside(page);
    assert.ok(Date.now() - began < HUNG);
  });

  test('who still waits when all is sold is told so, when it was, and which place they had', async (t) => {
    const people = await Promise.all([person(t), person(t)]);
    const id = await putOnWithLine(chrome, house, 'sold-out', { rows: ['A'], seats: 2 });
    await Promise.all(people.map((page) => joinLine(page, house, 'sold-out')));
    await opens(house, id);
    await Promise.race(people.map((page) => inside(page)));
    const [first, second] = (await people[0].getByTestId('turn').isVisible())
      ? people
      : [...people].reverse();
    await buys(first);
    await second.getByTestId('sold-out').waitFor({ timeout: DRAWN });
    assert.match(await second.getByTestId('sold-out').textContent(), /Sold out at \d+:\d\d/);
    await second.getByText('You were place 2;').waitFor();
    // Whoever has bought is shown the tickets first.
    await first.goto(`${house.url}/events/sold-out`);
    await first.getByTestId('have-tickets').waitFor();
  });

  test('the draw is recomputed by the page, and says what kind of draw it is', async (t) => {
    const page = await person(t);
    const id = await putOnWithLine(chrome, house, 'checked-draw');
    const commitment = (await house.api(`/api/events/${id}/queue`)).draw.commitment;
    await joinLine(page, house, 'checked-draw');
    await page.getByTestId('draw-note').locator('summary').click();
    assert.equal(await page.getByTestId('commitment').textContent(), commitment);
    await opens(house, id);
    await inside(page);
    await page.goto(`${house.url}/events/checked-draw/draw`);
    await page.locator('[data-testid=verdict][data-verdict=committed]').waitFor();
    for (const step of ['commitment', 'root', 'proof', 'place'])
      await page.locator(`[data-testid=step-${step}][data-is=right]`).waitFor();
    assert.equal(await page.getByTestId('computed-place').getAttribute('data-place'), '1');
    // What was altered on its way is found out.
    await page.route('**/queue/draws/1/leaves', async (route) => {
      const answer = await route.fetch();
      const leaves = await answer.body();
      leaves[3] ^= 1;
      await route.fulfill({ response: answer, body: leaves });
    });
    await page.getByTestId('draw-check').click();
    await page.locator('[data-testid=verdict][data-verdict=wrong]').waitFor();
    await page.locator('[data-testid=step-root][data-is=wrong]').waitFor();
  });

  test('a hall that was open when its line was put up becomes the line', async (t) => {
    const page = await person(t);
    await putOnWithLine(chrome, house, 'lined-later', {
      first: async () => {
        await page.goto(`${house.url}/events/lined-later`);
        await shows(page, 'sale-state');
      },
    });
    await shows(page, 'join-button');
    assert.equal(await page.getByTestId('sale-state').count(), 0);
  });

  test('whoever is done goes out of the hall by a press, and the next one comes in', async (t) => {
    const people = await Promise.all([person(t), person(t)]);
    const id = await putOnWithLine(chrome, house, 'goes-out');
    await Promise.all(people.map((page) => joinLine(page, house, 'goes-out')));
    await opens(house, id);
    await Promise.race(people.map((page) => inside(page)));
    const [first, second] = (await people[0].getByTestId('turn').isVisible())
      ? people
      : [...people].reverse();
    await first.getByTestId('go-out').click();
    await first.getByTestId('go-out-sure').click();
    await stages(first, 'turn_over');
    await inside(second);
    // What is held outlives the turn that was given up.
    await second.getByTestId('best-button').click();
    await second.getByTestId('hold-bar').waitFor();
    await second.getByTestId('go-out').click();
    await second.getByTestId('go-out-sure').click();
    await second.getByTestId('turn-over').waitFor();
    await second.getByTestId('checkout-button').click();
    await payWith(second, CARD.good);
    await second.getByTestId('ticket-code').first().waitFor();
    const ended = await house.sql(
      `select string_agg(ended_why, ',') from pass where event_id = ${id}`,
    );
    assert.equal(ended, 'left,left');
  });

  for (const [locale, title, turn] of [
    ['en-GB', 'The line opens in', '10 minutes to choose seats'],
    ['ja-JP', '受付開始まで', '座席を選ぶ時間は10分です'],
    ['ko-KR', '줄 서기 시작까지', '10분'],
  ]) {
    test(`before it opens, the page counts down and says the rules: ${locale}`, async (t) => {
      const context = await chrome.newContext({ locale });
      t.after(() => context.close());
      const page = await context.newPage();
      const slug = `soon-${locale.slice(0, 2)}`;
      await putOnWithLine(chrome, house, slug, { opensInS: 3600, joinS: 600 });
      await page.goto(`${house.url}/events/${slug}`);
      await page.getByText(title).first().waitFor();
      const seconds = Number(await page.getByTestId('join-countdown').getAttribute('data-seconds'));
      assert.ok(seconds > 3500 && seconds <= 3600, `${seconds} s`);
      assert.equal(await page.getByTestId('join-button').count(), 0);
      const words = await page.locator('main').innerText();
      assert.doesNotMatch(words, /\b(line|draw|sale)\.[a-z_]+/, 'a text is missing');
      assert.ok(words.includes(turn), `how long a turn lasts, in that language's words: ${words}`);
    });
  }
});
