// Pictures of every page, on a desktop and on a phone, with a house full of synthetic fans:
// what README shows stays what a newcomer sees. `node tests/browser/screenshots.mjs line` makes those of
// the line before an event alone.

import { mkdir, readdir, rm } from 'node:fs/promises';

import {
  asOperator,
  browser,
  CARD,
  freeSeats,
  holdSeats,
  House,
  joinLine,
  openEvent,
  payWith,
  putOnWithLine,
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

const onlyLine = process.argv[2] === 'line';
const house = await House.open({ crowd: onlyLine ? 0 : CROWD });
const chrome = await browser();
try {
  await mkdir(OUT, { recursive: true });
  for (const old of await readdir(OUT))
    if (old.endsWith('.png') && (!onlyLine || old.startsWith('line-'))) await rm(`${OUT}/${old}`);
  for (const [name, screen] of Object.entries(SCREENS)) {
    await fanWaits(name, { ...screen, locale: 'en-GB', timezoneId: 'Europe/London' });
  }
  if (!onlyLine) await everythingElse();
} finally {
  await chrome.close();
  await house.close();
}

async function everythingElse() {
  const { events } = await house.api('/api/events');
  const onSale = events.filter((one) => one.sale === 'on_sale' && !one.has_line);
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

/** A line from its announcement to the draw that is checked, with a crowd of rows before this fan. */
async function fanWaits(name, screen) {
  const context = await chrome.newContext({ colorScheme: 'light', ...screen });
  const page = await context.newPage();
  const shot = (what) => picture(page, `line-${what}-${name}`);
  const go = (slug) => page.goto(`${house.url}/events/${slug}`);
  const staff = (id, change) =>
    asOperator(chrome, house, 'PATCH', `/api/staff/events/${id}/queue`, {
      reason: 'for the picture',
      ...change,
    });
  await putOnWithLine(chrome, house, `soon-${name}`, { opensInS: 5400, joinS: 1800 });
  await go(`soon-${name}`);
  await page.getByTestId('join-countdown').waitFor();
  await shot('soon');
  await signUp(page, house);
  const slug = `crowded-${name}`;
  const id = await putOnWithLine(chrome, house, slug, { joinS: 45, rate: 900, insideMax: 800 });
  await go(slug);
  await page.getByTestId('join-button').waitFor();
  await shot('join');
  await page.getByTestId('join-button').click();
  await page.getByTestId('address-link').waitFor();
  await shot('address');
  await joinLine(page, house, slug);
  await shot('in');
  await crowd(id, 9_000);
  await page.getByTestId('place').waitFor({ timeout: 120_000 });
  await page.waitForTimeout(20_000);
  await shot('placed');
  if (name === 'phone') {
    for (const [language, words] of [
      ['ja', '入場は16:30からです。'],
      ['ko', '입장은 16:30부터입니다.'],
    ]) {
      await staff(id, { message: { en: 'Doors open at 16:30.', [language]: words } });
      await page.getByTestId('lang-select').selectOption(language);
      await page.getByTestId('operator-word').getByText(words).waitFor();
      await shot(`placed-${language}`);
    }
    await page.getByTestId('lang-select').selectOption('en');
  }
  await staff(id, { paused: true, message: { en: 'A short break: the card provider is down.' } });
  await page.locator('[data-testid=wait][data-is=paused]').waitFor();
  await shot('paused');

  await operatorSees(name, screen, slug, ['pause', 'pace', 'draw', 'log']);

  await putOnWithLine(chrome, house, `short-${name}`, { joinS: 12 });
  await joinLine(page, house, `short-${name}`);
  await page.evaluate(() =>
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true }),
  );
  await page.getByTestId('grace').waitFor({ timeout: 60_000 });
  await shot('called');
  await go(`short-${name}`);
  await page.getByTestId('turn').waitFor();
  await shot('turn');
  await page.getByTestId('best-button').click();
  await page.getByTestId('hold-bar').waitFor();
  await shot('turn-held');
  await operatorSees(name, screen, `short-${name}`, ['inside']);
  await page.goto(`${house.url}/events/short-${name}/draw`);
  await page.locator('[data-testid=verdict][data-verdict=committed]').waitFor();
  await shot('draw');
  await context.close();
}

/** The operators' page of a line, tab by tab. */
async function operatorSees(name, screen, slug, tabs) {
  const page = await (await chrome.newContext({ colorScheme: 'light', ...screen })).newPage();
  await page.goto(`${house.url}/staff/lines/${slug}`);
  await page.getByTestId('email').fill('operator@example.com');
  await page.getByTestId('password').fill('open the doors');
  await page.getByTestId('submit-signin').click();
  await page.getByTestId('staff-line').waitFor();
  await page.locator('[data-testid=staff-live][data-state=live]').waitFor();
  for (const tab of tabs) {
    await page.getByTestId(`tab-${tab}`).click();
    const there = tab === 'inside' ? '[data-testid=inside-list] li' : '[role=tabpanel] *';
    await page.locator(there).first().waitFor();
    await picture(page, `line-staff-${tab}-${name}`, { fullPage: true });
  }
  if (name === 'phone' && tabs.includes('log')) {
    await page.getByTestId('lang-select').selectOption('ja');
    await picture(page, 'line-staff-log-ja-phone');
  }
  await page.context().close();
}

/** So many more who stand in a line, each with an account of their own; nobody of them ever comes. */
async function crowd(event, people) {
  await house.sql(`
    with place as (
      update line set next_number = next_number + ${people}, revision = revision + 1
      where event_id = ${event} returning next_number - ${people} as first)
    insert into line_entry (event_id, number, account_id, entry_key, joined_at)
    select ${event}, first + n, gen_random_uuid(), decode(md5(n::text), 'hex'), now()
    from place, generate_series(0, ${people} - 1) n`);
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

async function picture(page, name, more = {}) {
  await page.waitForTimeout(700); // movements of the map have come to rest
  await page.screenshot({ path: `${OUT}/${name}.png`, animations: 'disabled', ...more });
  console.log(`${OUT}/${name}.png`);
}
