// Pictures of the counter and the kiosk, at a house in the middle of a sale: the screens in a browser, and the real
// window of the desktop app.

import { browser, freeSeats, House } from './house.mjs';
import { Desk } from './desk.mjs';
import {
  codeFor,
  enrolled,
  hire,
  holdCard,
  mapOf,
  openHall,
  openShift,
  readerOf,
  screensOf,
  signIn,
  SUPERVISOR,
  touchSeat,
} from './till.mjs';

const OUT = 'assets/screenshots';
const CROWD = 80;
const CROWD_SETTLES_MS = 30_000;

const house = await House.open({ crowd: CROWD });
const chrome = await browser();
const screens = await screensOf(house);
try {
  await hire(house, SUPERVISOR, 'supervisor');
  const { events } = await house.api('/api/events');
  const onSale = events.filter((one) => one.sale === 'on_sale' && !one.has_line);
  onSale.sort((a, b) => b.seats_total - a.seats_total);
  await new Promise((resolve) => setTimeout(resolve, CROWD_SETTLES_MS));
  await counter(onSale[0], onSale.at(-1));
  await kiosk(onSale[0]);
  await window();
} finally {
  await chrome.close();
  await screens.close();
  await house.close();
}

async function counter(largest, small) {
  const page = await enrolled(chrome, house, screens, 'Counter 1', 'counter', {
    colorScheme: 'light',
  });
  await page.getByTestId('sign-in-form').waitFor();
  await picture(page, 'till-sign-in');
  await signIn(page, SUPERVISOR);
  await openShift(page, '200', small.currency);
  await openHall(page, largest.id);
  await picture(page, 'till-hall');
  await openHall(page, small.id);
  for (const seat of await freeSeats(house, small.slug, 2)) await touchSeat(page, seat);
  await picture(page, 'till-picked');
  await page.getByTestId('take').click();
  await page.getByTestId('total').waitFor();
  await picture(page, 'till-held');
  await page.keyboard.press('F8');
  await page.getByTestId('cash-likely').nth(1).click();
  await picture(page, 'till-cash');
  await page.keyboard.press('Enter');
  await page.getByTestId('sold').waitFor();
  await picture(page, 'till-sold');
  const code = await page.getByTestId('order-code').innerText();
  await page.getByTestId('next').click();
  await page.keyboard.press('F2');
  await page.getByTestId('find').fill(code);
  await page.keyboard.press('Enter');
  await page.getByTestId('order').waitFor();
  await page.getByTestId('order-seat').first().click();
  await picture(page, 'till-order');
  await page.getByTestId('refund').click();
  await picture(page, 'till-give-back');
  await page.keyboard.press('Escape');
  await page.keyboard.press('F3');
  await page.getByTestId('x-report').waitFor();
  await picture(page, 'till-shift');
  await page.getByTestId('shift-count').click();
  await page.getByTestId('count-form').waitFor();
  await picture(page, 'till-count');
  await page.keyboard.press('F1');
  await page.context().setOffline(true);
  await page.getByTestId('no-network').waitFor();
  await picture(page, 'till-no-network');
  await page.context().close();
}

async function kiosk(event) {
  const page = await enrolled(chrome, house, screens, 'Kiosk 1', 'kiosk', {
    colorScheme: 'light',
    viewport: { width: 1080, height: 1920 },
    hasTouch: true,
  });
  await page.locator(`[data-event="${event.id}"]`).waitFor();
  await picture(page, 'kiosk-programme');
  await page.getByTestId('lang-ja').click();
  await page.locator(`[data-event="${event.id}"]`).click();
  await mapOf(page, event.id);
  await picture(page, 'kiosk-choose-ja');
  await page.getByTestId('lang-en').click();
  await picture(page, 'kiosk-choose');
  await page.getByTestId('kiosk-best').click();
  await page.getByTestId('kiosk-total').waitFor();
  await picture(page, 'kiosk-held');
  await page.getByTestId('kiosk-pay').click();
  await page.getByTestId('kiosk-pay-screen').waitFor();
  await picture(page, 'kiosk-pay');
  await holdCard(house, 'Kiosk 1');
  await page.getByTestId('kiosk-done').waitFor({ timeout: 30_000 });
  await picture(page, 'kiosk-done');
  await page.context().close();
}

/** The desktop's own window, as WebKit draws it. */
async function window() {
  const desk = await Desk.open();
  const shot = async (name) => {
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
    await app.type('staff-name', SUPERVISOR.name);
    await app.type('staff-secret', SUPERVISOR.pin);
    await app.click('sign-in');
    await app.click('best');
    await app.shows('total', 60_000);
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // the map has come to rest
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
