// Whether everybody can use a kiosk: what is touched is large, nothing covers it, and somebody in a wheelchair reaches it
// on every screen. Operable parts stand between 380 and 1,220 mm above the floor (ADA 308.2.1, EN 301 549 8.3.2), on
// screens that hang as README says.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Cable } from './desk.mjs';
import { browser, freeSeats, House, HUNG, shows } from './house.mjs';
import { brokenPrinter } from './printer.mjs';
import { enrolled, holdCard, hurry, mapOf, screensOf, touchSeat } from './till.mjs';

const REACH_MM = [380, 1_220];
/** In CSS pixels, either way: 22 mm on the one screen, 18 mm on the other. */
const SIZE_MIN = 60;
/** How high they are, and at most how high their lower edge hangs. */
const HUNG_AS = [
  { what: '32 inches, upright', width: 1080, height: 1920, height_mm: 708, edge_mm: 800 },
  { what: '27 inches, lying', width: 1920, height: 1080, height_mm: 336, edge_mm: 880 },
];
/** Staff's way in is no customer's part; the pad that it opens is measured. */
const FOR_STAFF = 'house-name';

let house, cable, chrome, screens, hall;

before(async () => {
  house = await House.open();
  chrome = await browser();
  cable = await Cable.to(house.url);
  screens = await screensOf(house, cable.url);
  const { events } = await house.api('/api/events');
  const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
  [hall] = open.sort((a, b) => a.seats_total - b.seats_total);
});

after(async () => {
  await chrome?.close();
  await screens?.close();
  cable?.close();
  await house?.close();
});

/** Everything on the page that is touched: where it is, and what a finger there meets. */
function targets() {
  const all = 'button, a[href], input, select, textarea, summary, [role=button], [tabindex="0"]';
  return [...document.querySelectorAll(all)].flatMap((one) => {
    one.scrollIntoView({ block: 'nearest' }); // of a list that is longer than its place
    const { x, y, width, height } = one.getBoundingClientRect();
    if (width === 0 || one.tagName === 'CANVAS' || one.closest('[inert]')) return [];
    const modal = document.querySelector('dialog[open]');
    if (modal && !modal.contains(one)) return [];
    const met = document.elementFromPoint(x + width / 2, y + height / 2);
    return [
      {
        name: one.dataset.testid ?? one.innerText,
        ...{ x, y, width, height },
        met: one === met || one.contains(met),
      },
    ];
  });
}

for (const hung of HUNG_AS)
  test(`everything is large and within reach on a screen of ${hung.what}`, async (t) => {
    const { width, height, height_mm, edge_mm } = hung;
    const name = `Reach ${width}`;
    const size = { viewport: { width, height }, hasTouch: true };
    const page = await enrolled(chrome, house, screens, name, 'kiosk', size);
    const wrong = [];
    let measured = 0;
    const measure = async (screen) => {
      for (const one of await page.evaluate(targets)) {
        if (one.name === FOR_STAFF) continue;
        measured++;
        const above = (y) => Math.round(edge_mm + ((height - y) * height_mm) / height);
        const [low, high] = [above(one.y + one.height), above(one.y)];
        const is = `${screen}: ${one.name}, ${Math.round(one.width)} × ${Math.round(one.height)} px, ${low} to ${high} mm`;
        if (Math.min(one.width, one.height) < SIZE_MIN) wrong.push(`${is}: small`);
        if (low < REACH_MM[0] || high > REACH_MM[1]) wrong.push(`${is}: out of reach`);
        if (one.x < 0 || one.x + one.width > width || one.y + one.height > height || !one.met)
          wrong.push(`${is}: can't be touched`);
      }
    };
    const click = (id) => page.getByTestId(id).first().click();
    const payable = async () => {
      await shows(page, 'kiosk-pay');
      await page.locator('[data-testid=kiosk-pay]:enabled').waitFor({ timeout: HUNG });
    };
    const enter = async () => {
      await page.locator(`[data-testid=kiosk-event][data-event="${hall.id}"]`).click();
      await mapOf(page, hall.id);
    };

    await shows(page, 'kiosk-event');
    await measure('the programme');
    await enter();
    await measure('choosing');
    await t.test('any seat can be drawn down to where it is reached', async () => {
      const limit = ((edge_mm + height_mm - REACH_MM[1]) * height) / height_mm;
      const farthest = await page.evaluate(() => {
        const { map, screenPoint } = window.__fullhouse;
        const seats = Array.from(map().plan.x, (_, seat) => seat);
        return seats.reduce((a, b) => (screenPoint(b).y < screenPoint(a).y ? b : a));
      });
      const pane = await page.getByTestId('map-canvas').boundingBox();
      const from = Math.max(limit, pane.y) + 40;
      const at = () => page.evaluate((seat) => window.__fullhouse.screenPoint(seat).y, farthest);
      for (let drags = 0; (await at()) < limit && drags < 20; drags++) {
        await page.mouse.move(pane.x + 200, from);
        await page.mouse.down();
        await page.mouse.move(pane.x + 200, pane.y + pane.height - 40, { steps: 5 });
        await page.mouse.up();
      }
      assert.ok((await at()) >= limit, `${await at()} of ${limit}`);
      await click('show-all');
    });
    const free = await freeSeats(house, hall.slug, 2);
    for (const seat of free) await touchSeat(page, seat);
    await shows(page, 'kiosk-take');
    await measure('seats that were touched');
    await click('help');
    await measure('help');
    await click('kiosk-take');
    await payable();
    await measure('held, with help');
    await click('help');
    await measure('held');
    await click('kiosk-other');
    await shows(page, 'kiosk-best');
    for (let more = 2; more < 6; more++) await click('kiosk-more');
    await click('kiosk-best');
    await payable();
    await page.getByTestId('kiosk-seat').nth(5).waitFor();
    await measure('six seats');
    await click('kiosk-pay');
    await page.locator('[data-ready=true]').waitFor({ timeout: HUNG });
    await measure('at the reader');
    await holdCard(house, name);
    await shows(page, 'kiosk-finish');
    await measure('done');
    await click('kiosk-finish');
    await shows(page, 'kiosk-event');
    await page.getByTestId('house-name').dispatchEvent('pointerdown');
    await shows(page, 'exit-dialog');
    await measure("the staff's PIN");
    await page.keyboard.press('Escape');

    await hurry(page, 250);
    await shows(page, 'kiosk-event');
    await enter();
    await shows(page, 'kiosk-idle');
    await measure('is anybody there');

    const printer = await brokenPrinter();
    const id = await house.sql(`select id from terminal where name = '${name}'`);
    await printer.standsAt(join(screens.folder, id));
    await hurry(page, 1_000);
    await shows(page, 'kiosk-event');
    await enter();
    await click('kiosk-best');
    await page.locator('[data-testid=kiosk-pay]:enabled').click();
    await page.locator('[data-ready=true]').waitFor({ timeout: HUNG });
    await holdCard(house, name);
    await page.locator('[data-screen=unprinted]').waitFor({ timeout: 6 * HUNG });
    await measure('not printed: an address');
    for (const key of 'ana@example.org') await click(`key-${key}`);
    await measure('an address that was typed');
    printer.close();

    await page.context().close();
    assert.ok(measured > 150, `only ${measured} targets were found`);
    assert.deepEqual(wrong, []);
  });
