// Pictures of the counter, at a house in the middle of a sale: the screens in a browser, and the real window of the
// desktop app.

import { browser, House } from './house.mjs';
import { Desk } from './desk.mjs';
import {
  CLERK,
  codeFor,
  enrolled,
  hire,
  MANAGER,
  openHall,
  openShift,
  readerOf,
  screensOf,
  signIn,
  touchSeat,
} from './till.mjs';

const OUT = 'assets/screenshots';
const CROWD = 80;
/** All of them, or what is named: `node tests/browser/screenshots-till.mjs counter`. */
const wanted = (part) => process.argv.length < 3 || process.argv.includes(part);
const CROWD_SETTLES_MS = 30_000;

const house = await House.open({ crowd: CROWD });
const chrome = await browser();
const screens = await screensOf(house);
try {
  await hire(house, CLERK, 'clerk');
  await hire(house, MANAGER, 'manager');
  const { events } = await house.api('/api/events');
  const onSale = events.filter((one) => one.sale === 'on_sale' && !one.has_line);
  onSale.sort((a, b) => b.seats_total - a.seats_total);
  await new Promise((resolve) => setTimeout(resolve, CROWD_SETTLES_MS));
  if (wanted('counter')) await counter(onSale[0], onSale.at(-1));
  if (wanted('window')) await window();
} finally {
  await chrome.close();
  await screens.close();
  await house.close();
}

async function counter(largest, small) {
  const page = await enrolled(chrome, house, screens, 'Counter 1', 'counter', {
    colorScheme: 'light',
  });
  const click = (id) => page.getByTestId(id).first().click();
  const fill = (id, text) => page.getByTestId(id).fill(text);
  const shows = (id) => page.getByTestId(id).first().waitFor();
  // From the end of the hall, where the crowd does not buy: what it takes meanwhile can't be put aside or sold here.
  const touch = async (count) => {
    const { seats } = await house.api(`/api/events/${small.slug}`);
    const plain = (one) => one.status === 'available' && !one.accessible && !one.companion;
    for (const { seat_no } of seats.filter(plain).slice(-count)) await touchSeat(page, seat_no);
  };
  await shows('sign-in-form');
  await picture(page, 'till-sign-in');
  await signIn(page, MANAGER);
  await page.keyboard.press('F3');
  await shows('shift-open-form');
  await picture(page, 'till-shift-open');
  await openShift(page, '30000', small.currency);
  await openHall(page, largest.id);
  await page.locator('[data-testid=reach][data-state=live]').waitFor();
  await picture(page, 'till-hall');
  await openHall(page, small.id);
  await touch(2);
  await picture(page, 'till-picked');
  await click('aside');
  await fill('aside-name', 'Mrs Lovelace');
  await fill('aside-note', 'Comes at six, pays in cash.');
  await picture(page, 'till-put-aside');
  await click('aside-go');
  await shows('aside-done');
  await touch(2);
  await click('take');
  await shows('total');
  await click('held-price');
  await fill('price-amount', '5000');
  await fill('price-reason', 'a pillar in front of it');
  await picture(page, 'till-price');
  await click('price-set');
  await page.getByTestId('price-dialog').waitFor({ state: 'detached' });
  await picture(page, 'till-held');
  await page.keyboard.press('F8');
  await page.getByTestId('cash-likely').nth(1).click();
  await picture(page, 'till-cash');
  await page.keyboard.press('Enter');
  await shows('sold');
  await picture(page, 'till-sold');
  const code = await page.getByTestId('order-code').innerText();
  await click('next');
  await page.keyboard.press('F2');
  await fill('find', code);
  await page.keyboard.press('Enter');
  await shows('order');
  await click('order-seat');
  await picture(page, 'till-order');
  await click('refund');
  await picture(page, 'till-give-back');
  await page.keyboard.press('Escape');
  await page.keyboard.press('F4');
  await shows('aside-hold');
  await click('will-call-all');
  await picture(page, 'till-waiting');
  await page.keyboard.press('F1');
  const sold = await page.evaluate(() => {
    for (let seat = 0; seat < 100_000; seat++)
      if (window.__fullhouse.status(seat) === 2) return seat;
    throw new Error('nothing is sold');
  });
  await touchSeat(page, sold);
  await shows('seat-status');
  await picture(page, 'till-seat');
  await page.keyboard.press('Escape');
  await click('house');
  await fill('block-reason', 'a camera stands here');
  await touch(3);
  await picture(page, 'till-house');
  await click('house-end');
  await page.keyboard.press('F3');
  await shows('x-report');
  await fill('move-amount', '10000');
  await fill('move-reason', 'too much in the drawer');
  await click('move');
  await shows('moved');
  await picture(page, 'till-shift');
  await click('shift-count');
  await shows('count-form');
  await fill('count-10000', '3');
  await fill('count-100', '1');
  await click('shift-close');
  await shows('variance');
  await picture(page, 'till-count');
  await fill('variance-why', 'a hundred too much given as change');
  await click('shift-close');
  await shows('z-report');
  await picture(page, 'till-z');
  await page.keyboard.press('F5');
  await shows('logged');
  await picture(page, 'till-log');
  await page.keyboard.press('F12');
  await signIn(page, CLERK);
  await page.keyboard.press('F1');
  await page.keyboard.press('F6');
  await shows('total');
  await page.keyboard.press('F10');
  await fill('comp-reason', 'press');
  await page.keyboard.press('Enter');
  await shows('approval');
  await picture(page, 'till-approval');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.context().setOffline(true);
  await shows('no-network');
  await picture(page, 'till-no-network');
  await page.context().close();
}

/** The desktop's own window, as WebKit draws it. */
async function window() {
  const desk = await Desk.open();
  const shot = async (name) => {
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // it is drawn, and its map has come to rest
    await desk.picture(`${OUT}/${name}.png`);
    console.log(`${OUT}/${name}.png`);
  };
  try {
    const code = await codeFor(house, 'Counter 2', 'counter');
    let app = await desk.start({ args: ['--hub', house.url, '--code', code] });
    await app.shows('enrol-form');
    await shot('till-enrol');
    await app.click('enrol');
    await desk.enrolled();
    await house.command(['terminal', 'reader', 'Counter 2', readerOf('Counter 2')]);
    await desk.end('terminal', app);
    app = await desk.start();
    await app.type('staff-name', CLERK.name);
    await app.type('staff-secret', CLERK.pin);
    await app.click('sign-in');
    await app.click('best');
    await app.shows('total', 60_000);
    await shot('till-window');
    await app.close();
  } finally {
    await desk.close();
  }
}

async function picture(page, name) {
  await page.waitForTimeout(700); // movements of the map have come to rest
  await page.screenshot({ path: `${OUT}/${name}.png`, animations: 'disabled' });
  console.log(`${OUT}/${name}.png`);
}
