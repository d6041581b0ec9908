// Pictures of a kiosk in every state that its machine knows, by default into assets/screenshots/kiosk (KIOSK_PICTURES).

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { Cable } from './desk.mjs';
import { browser, House, HUNG } from './house.mjs';
import { brokenPrinter } from './printer.mjs';
import { enrolled, holdCard, hurry, mapOf, readerOf, screensOf, touchSeat } from './till.mjs';

const OUT = process.env.KIOSK_PICTURES ?? 'assets/screenshots/kiosk';
const NAME = 'Kiosk 1';
/** A flight of the map's is over, and its sharp picture is there. */
const MAP_RESTS_MS = 700;
await mkdir(OUT, { recursive: true });
const house = await House.open();
const cable = await Cable.to(house.url);
const chrome = await browser();
const screens = await screensOf(house, cable.url);
const printer = await brokenPrinter();
try {
  const page = await enrolled(chrome, house, screens, NAME, 'kiosk', {
    viewport: { width: 1080, height: 1920 },
    hasTouch: true,
  });
  const event = (await house.api('/api/events/lantern-cup-night-race?seats=none')).event.id;
  const seen = (id) =>
    page
      .getByTestId(id)
      .first()
      .waitFor({ timeout: 3 * HUNG });
  const click = (id) => page.getByTestId(id).first().click();
  const picture = async (name) => {
    await page.evaluate(() => document.activeElement?.blur());
    await page.waitForTimeout(MAP_RESTS_MS);
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    console.log(name);
  };
  const enter = async () => {
    await page.locator(`[data-testid=kiosk-event][data-event="${event}"]`).click();
    await mapOf(page, event);
    await page.waitForTimeout(600); // the map's sharp picture
  };
  const pay = async () => {
    await click('kiosk-best');
    await page.locator('[data-testid=kiosk-pay]:enabled').click();
    await page.locator('[data-ready=true]').waitFor({ timeout: HUNG });
  };

  await seen('kiosk-event');
  await picture('attract');
  await click('lang-ja');
  await page.getByText('最初から').first().waitFor({ timeout: HUNG });
  await picture('attract-ja');
  await click('over');
  await enter();
  await picture('choosing');
  const free = await page.evaluate(() => {
    const { status, map } = window.__fullhouse;
    const seats = map().plan.x.length;
    return Array.from({ length: seats }, (_, seat) => seat)
      .filter((seat) => status(seat) === 0)
      .slice(200, 202);
  });
  for (const seat of free) await touchSeat(page, seat);
  await page.waitForTimeout(600);
  await picture('choosing-map');
  await click('kiosk-take');
  await seen('kiosk-pay');
  await page.waitForTimeout(600);
  await picture('held');
  await click('lang-ko');
  await picture('held-ko');
  await click('help');
  await picture('held-help');
  await click('lang-en');
  await page.locator('[data-testid=kiosk-pay]:enabled').click();
  await page.locator('[data-ready=true]').waitFor({ timeout: HUNG });
  await picture('reader');
  await click('kiosk-stop');
  await picture('stopping');
  await seen('kiosk-held');
  await picture('stopped');
  await click('over');

  const declines = { tap_after_ms: 0, decline: 'insufficient_funds' };
  await house.rules([{ match: { op: 'process' }, effect: { reader: declines } }]);
  await enter();
  await click('kiosk-best');
  await page.locator('[data-testid=kiosk-pay]:enabled').click();
  await page.getByTestId('kiosk-message').waitFor({ timeout: 3 * HUNG });
  await picture('declined');
  await house.rules([]);
  await click('over');
  await enter();
  await pay();
  await holdCard(house, NAME);
  await seen('kiosk-finish');
  await picture('done-collect');
  await click('kiosk-finish');

  await hurry(page, 250);
  await seen('kiosk-event');
  await enter();
  await click('kiosk-best');
  await seen('kiosk-held');
  await seen('kiosk-idle');
  await picture('idle');
  await seen('kiosk-event');

  // A printer that says it is well, and then breaks in the middle.
  await printer.standsAt(join(screens.folder, await terminal()));
  await hurry(page, 1_000);
  await seen('kiosk-event');
  await enter();
  await pay();
  await holdCard(house, NAME);
  await page.locator('[data-screen=printing]').waitFor({ timeout: HUNG });
  await picture('printing');
  await page.locator('[data-screen=unprinted]').waitFor({ timeout: 6 * HUNG });
  await picture('unprinted');
  for (const key of 'ana@example.org') await click(`key-${key}`);
  await picture('unprinted-address');
  await click('address-send');
  await seen('kiosk-mailed');
  await picture('unprinted-mailed');
  printer.close();
  await hurry(page, 1_000);
  await seen('kiosk-closed');
  await picture('out-of-service-case');
  await page.getByTestId('house-name').dispatchEvent('pointerdown');
  await seen('exit-dialog');
  await picture('staff-pin');
  for (const digit of '161803') await click(`pin-${digit}`);
  await click('exit-again');
  await page.getByTestId('exit-dialog').waitFor({ state: 'detached' });
  await page.waitForTimeout(300);
  await picture('out-of-service-printer');

  const other = await enrolled(chrome, house, screens, 'Kiosk 2', 'kiosk', {
    viewport: { width: 1080, height: 1920 },
    hasTouch: true,
  });
  await house.command(['terminal', 'reader', 'Kiosk 2', readerOf('Kiosk 2')]);
  await hurry(other, 120);
  await other.getByTestId('kiosk-event').first().waitFor({ timeout: HUNG });
  await other.locator(`[data-testid=kiosk-event][data-event="${event}"]`).click();
  await mapOf(other, event);
  await other.getByTestId('kiosk-best').click();
  await other.locator('[data-testid=kiosk-pay]:enabled').click();
  await other.locator('[data-ready=true]').waitFor({ timeout: HUNG });
  cable.pull();
  await other.getByTestId('kiosk-staff').waitFor({ timeout: 6 * HUNG });
  await other.screenshot({ path: join(OUT, 'staff.png') });
  cable.plugIn();
  await other.context().close();

  async function terminal() {
    return house.sql(`select id from terminal where name = '${NAME}'`);
  }
} finally {
  printer.close();
  await chrome.close();
  await screens.close();
  cable.close();
  await house.close();
}
