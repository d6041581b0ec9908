// A kiosk with a second monitor: what stands there is no way out, whenever it is plugged in.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Desk } from './desk.mjs';
import { House, HUNG } from './house.mjs';
import { PIN } from './kiosks.mjs';
import { until } from './printer.mjs';
import { codeFor } from './till.mjs';

/** What covers a monitor (`src-tauri/src/kiosk.rs`). */
const COVER = '14110f';
let house, desk;

before(async () => {
  house = await House.open();
  desk = await Desk.open({ monitors: true });
});

after(async () => {
  await desk?.close();
  await house?.close();
});

test('the control: a desktop’s menu opens on a second monitor, from which the session can be ended', async () => {
  const middle = await desk.plug();
  const before = await desk.rest();
  await desk.press(3, middle);
  await until('its menu is there', async () => (await desk.look()) !== before);
  await desk.keys('Escape');
  await until('it is gone', async () => (await desk.look()) === before);
  await desk.unplug();
});

test('a kiosk covers every other monitor, also one that is plugged in later', async () => {
  const code = await codeFor(house, 'Foyer', 'kiosk');
  let window = await desk.start({ args: ['--hub', house.url, '--code', code] });
  await window.click('enrol');
  await window.type('exit-pin', PIN);
  await window.type('exit-pin-again', PIN);
  await window.click('begin');
  await desk.enrolled();
  await desk.end('terminal', window);
  let middle = await desk.plug();
  window = await desk.start();
  await window.shows('kiosk-event', 3 * HUNG);
  const covered = () =>
    until('the other monitor is covered', async () => (await desk.colour(middle)) === COVER);
  await covered();
  await desk.unplug();
  middle = await desk.plug();
  await covered();
  const before = await desk.rest();
  for (const button of [1, 2, 3]) await desk.press(button, middle);
  for (const keys of [
    'alt+F4',
    'alt+Tab',
    'super+d',
    'alt+space',
    'ctrl+alt+Delete',
    'ctrl+Escape',
  ])
    await desk.keys(keys);
  await desk.finger(true); // and stays
  assert.equal(await desk.rest(), before);
  await desk.finger(false);
  assert.equal(await desk.rest(), before);
  assert.deepEqual(await window.run('return [innerWidth, innerHeight]'), [1280, 800]);
  await desk.end('terminal', window);
});
