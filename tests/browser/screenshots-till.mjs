// Pictures of the counter, at a house in the middle of a sale: the screens in a browser, and the real window of the
// desktop app.

import { browser, House } from './house.mjs';
import { Desk } from './desk.mjs';
import {
  CLERK,
  codeFor,
  enrolled,
  holdCard,
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
  await click('voucher-new');
  await fill('voucher-recipient', 'The Gazette');
  await fill('voucher-reason', 'press, on the right of the stage');
  await picture(page, 'till-voucher-new');
  await click('voucher-make');
  await shows('voucher-made');
  await picture(page, 'till-voucher');
  await click('voucher-done');
  await page.getByTestId('voucher').first().scrollIntoViewIfNeeded();
  await picture(page, 'till-vouchers');
  await page.keyboard.press('F3');
  const opened = page.context().waitForEvent('page');
  await click('customer-on');
  const customer = await opened;
  await customer.setViewportSize({ width: 960, height: 640 });
  await picture(page, 'till-customer-on');
  await page.keyboard.press('F1');
  await touch(2);
  await click('take');
  await shows('total');
  await picture(customer, 'customer-held');
  await click('card');
  await shows('card-waiting');
  await picture(customer, 'customer-card');
  await holdCard(house, 'Counter 1');
  await shows('sold');
  await customer.locator('[data-testid=customer-sale][data-stage=sold]').waitFor();
  await picture(customer, 'customer-sold');
  const paid = await page.getByTestId('order-code').innerText();
  await click('next');
  await customer.getByTestId('customer-welcome').waitFor();
  await picture(customer, 'customer-welcome');
  await page.keyboard.press('F2');
  await fill('find', paid);
  await page.keyboard.press('Enter');
  await shows('order');
  await click('order-seat');
  await click('exchange-start');
  await shows('exchange');
  await touchSeat(page, await dearest(small));
  await fill('exchange-reason', 'nearer to the stage');
  await shows('exchange-offer');
  await picture(page, 'till-exchange');
  await click('exchange-card');
  await shows('card-waiting');
  await picture(page, 'till-exchange-card');
  await holdCard(house, 'Counter 1');
  await shows('exchange-done');
  await picture(page, 'till-exchange-done');
  await click('exchange-leave');
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
  await click('house-traits');
  await page.getByTestId('traits-restricted_view').check();
  await fill('traits-note', 'A loudspeaker hangs in the way');
  await fill('traits-reason', 'the rig hangs lower tonight');
  await picture(page, 'till-traits');
  await page.keyboard.press('Escape');
  await click('consign');
  await fill('partner-name', 'Atlas Travel');
  await fill('partner-code', 'ATLAS');
  await fill('consign-note', 'their spring tour');
  await picture(page, 'till-consign');
  await click('consign-go');
  await page.getByTestId('house-done').filter({ hasText: 'Atlas' }).waitFor();
  await page.keyboard.press('F4');
  await shows('consignment');
  await page.getByTestId('consignment').first().scrollIntoViewIfNeeded();
  await picture(page, 'till-consigned');
  await page.keyboard.press('F1');
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

/** A free seat of the dearest kind, where the crowd looks last. */
async function dearest({ slug }) {
  const { price_levels, seats } = await house.api(`/api/events/${slug}`);
  const cost = new Map(price_levels.map(({ level, prices }) => [level, prices[0].amount_minor]));
  const plain = (one) => one.status === 'available' && !one.accessible && !one.companion;
  const most = Math.max(...cost.values());
  return seats.findLast((one) => plain(one) && cost.get(one.level) === most).seat_no;
}
