// The database is away for a minute while people stand in a line: they are told, keep their places, and it goes on.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { browser, CARD, House, joinLine, opens, payWith, putOnWithLine, signUp } from './house.mjs';

const A_MINUTE = 60_000;
let house, chrome;

before(async () => {
  house = await House.open();
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  try {
    await house?.database('SIGCONT'); // whatever came between
  } finally {
    await house?.close();
  }
});

test('a minute without a database costs nobody their place, and the page says so', async () => {
  const people = [];
  for (let n = 0; n < 3; n++) {
    const page = await (await chrome.newContext({ locale: 'en-GB' })).newPage();
    await signUp(page, house);
    people.push(page);
  }
  const id = await putOnWithLine(chrome, house, 'away');
  for (const page of people) await joinLine(page, house, 'away');
  await opens(house, id);
  const turn = (page) => page.getByTestId('turn').waitFor({ timeout: A_MINUTE });
  const inside = await Promise.race(people.map(async (page) => (await turn(page), page)));
  const waiting = people.filter((page) => page !== inside);
  for (const page of waiting) await page.getByTestId('place').waitFor();
  const place = (page) => page.getByTestId('place').getAttribute('data-place');
  const places = await Promise.all(waiting.map(place));
  assert.deepEqual([...places].sort(), ['2', '3']);

  const began = Date.now();
  await house.database('SIGSTOP');
  // Who waits is told by the page, who asks anew by the hub; both still know the place or the line.
  await Promise.all(
    waiting.map((page) => page.getByTestId('database-late').waitFor({ timeout: A_MINUTE })),
  );
  const line = await house.api(`/api/events/${id}/queue`);
  assert.deepEqual([line.database_late, line.joined, line.called_through], [true, 3, 1]);
  assert.deepEqual(await Promise.all(waiting.map(place)), places);
  await waiting[0].waitForTimeout(Math.max(0, began + A_MINUTE - Date.now()));
  await house.database('SIGCONT');

  for (const page of waiting)
    await page.getByTestId('database-late').waitFor({ state: 'detached', timeout: A_MINUTE });
  assert.deepEqual(await Promise.all(waiting.map(place)), places);
  await waiting[0].reload();
  await waiting[0].getByTestId('place').waitFor();
  assert.equal(await place(waiting[0]), places[0]);
  // The sale goes on: who was inside buys, and the next one comes in.
  await inside.getByTestId('best-button').click();
  await inside.getByTestId('hold-bar').waitFor();
  await inside.getByTestId('checkout-button').click();
  await payWith(inside, CARD.good);
  await inside.getByTestId('ticket-code').first().waitFor();
  await turn(waiting[places.indexOf('2')]);
  assert.equal(await place(waiting[places.indexOf('3')]), '3');
});
