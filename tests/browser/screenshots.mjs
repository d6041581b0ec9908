// Pictures of every page, on a desktop and on a phone, with a house full of synthetic fans:
// what README shows stays what a newcomer sees.

import { mkdir, readdir, rm } from 'node:fs/promises';

import {
  browser,
  CARD,
  freeSeats,
  holdSeats,
  House,
  openEvent,
  payWith,
  signUp,
} from './house.mjs';

const OUT = 'assets/screenshots';
const SCREENS = {
  desktop: { viewport: { width: 1440, height: 900 } },
  phone: {
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true,
    deviceScaleFactor: 2,
  },
};
/** The crowd needs some time to leave its marks on the maps. */
const CROWD = 150;
const CROWD_SETTLES_MS = 45_000;

const house = await House.open({ crowd: CROWD });
const chrome = await browser();
try {
  await mkdir(OUT, { recursive: true });
  for (const old of await readdir(OUT)) if (old.endsWith('.png')) await rm(`${OUT}/${old}`);
  const { events } = await house.api('/api/events');
  const onSale = events.filter((one) => one.sale === 'on_sale');
  onSale.sort((a, b) => b.seats_total - a.seats_total);
  const [largest] = onSale;
  const small = onSale.at(-1);
  await new Promise((resolve) => setTimeout(resolve, CROWD_SETTLES_MS));
  for (const [name, screen] of Object.entries(SCREENS)) {
    await fanSees(
      name,
      { ...screen, locale: 'en-GB', timezoneId: 'Europe/London' },
      largest,
      small,
    );
  }
  for (const [locale, timezoneId] of [
    ['ja-JP', 'Asia/Tokyo'],
    ['ko-KR', 'Asia/Seoul'],
  ]) {
    await inOtherWords(locale.slice(0, 2), { ...SCREENS.phone, locale, timezoneId }, small);
  }
  await atNight({ ...SCREENS.desktop, locale: 'en-GB', colorScheme: 'dark' }, largest);
} finally {
  await chrome.close();
  await house.close();
}

/** The whole way, a picture at each step. */
async function fanSees(name, screen, largest, small) {
  const page = await (await chrome.newContext({ colorScheme: 'light', ...screen })).newPage();
  const shot = (what) => picture(page, `${what}-${name}`);
  await page.goto(house.url);
  await page.getByTestId('event-card').first().waitFor();
  await shot('programme');
  await page.goto(`${house.url}/signin`);
  await page.getByTestId('signin-form').waitFor();
  await shot('signin');
  await signUp(page, house);
  await openEvent(page, house, largest.slug);
  await shot('event');
  await page.getByTestId('best-button').click();
  await page.getByTestId('hold-bar').waitFor();
  await shot('hold');
  await page.getByTestId('list-toggle').click();
  await page.getByTestId('list-section').first().click();
  await shot('list');
  await openEvent(page, house, small.slug);
  await holdSeats(page, await freeSeats(house, small.slug, 3));
  await shot('seats');
  await page.getByTestId('checkout-button').click();
  const form = page.frameLocator('[data-testid=card-form]');
  await form.locator('button.go').waitFor();
  await shot('payment');
  await payWith(page, CARD.declined);
  await page.getByTestId('declined').waitFor();
  await shot('declined');
  await payWith(page, CARD.challenge);
  const bank = page.frameLocator('[data-testid=challenge]');
  await bank.locator('[data-answer=approve]').waitFor();
  await shot('challenge');
  await bank.locator('[data-answer=approve]').click();
  await page.getByTestId('download-tickets').waitFor(); // the money is captured
  await shot('tickets');
  await page.goto(`${house.url}/orders`);
  await page.getByText(small.name).first().waitFor();
  await shot('orders');
  await page.context().close();
}

async function inOtherWords(language, screen, event) {
  const page = await (await chrome.newContext({ colorScheme: 'light', ...screen })).newPage();
  await page.goto(house.url);
  await page.getByTestId('event-card').first().waitFor();
  await picture(page, `programme-${language}-phone`);
  await openEvent(page, house, event.slug);
  await picture(page, `event-${language}-phone`);
  await page.context().close();
}

async function atNight(screen, event) {
  const page = await (await chrome.newContext(screen)).newPage();
  await openEvent(page, house, event.slug);
  await picture(page, 'event-dark-desktop');
  await page.context().close();
}

async function picture(page, name) {
  await page.waitForTimeout(700); // movements of the map have come to rest
  await page.screenshot({ path: `${OUT}/${name}.png`, animations: 'disabled' });
  console.log(`${OUT}/${name}.png`);
}
