// A house among whose public kiosks stand, one after the other, and what may be left of a customer when they are gone.

import assert from 'node:assert/strict';

import { Cable } from './desk.mjs';
import { browser, House, HUNG } from './house.mjs';
import { enrolled, holdCard, hurry, mapOf, screensOf } from './till.mjs';

export const PIN = '161803';

/** All that a page could keep of somebody. Runs in it. */
export async function kept() {
  const databases = (await indexedDB.databases?.()) ?? [];
  const caches = globalThis.caches ? await globalThis.caches.keys() : [];
  return {
    page: document.documentElement.outerHTML,
    fields: [...document.querySelectorAll('input, textarea, output')]
      .map((one) => one.value)
      .join(' '),
    stores: JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      databases,
      caches,
      name,
    ]),
    history: JSON.stringify([history.length, history.state, location.href]),
  };
}

/** The next person finds none of these words, and the page as one that nobody has touched. */
export function nothingOf(words, now, untouched) {
  for (const word of words)
    assert.ok(!now.page.includes(word) && !now.fields.includes(word), `${word} is left`);
  assert.equal(now.stores, untouched.stores);
  assert.equal(now.history, untouched.history);
}

export class Kiosks {
  /** The kiosk's page that is open now. */
  page;
  /** The way to the house, which can be cut. */
  cable;
  #count = 0;
  /** The token of a counter. */
  #till;

  /** `options`: of the house. */
  static async open(options) {
    const kiosks = new Kiosks();
    kiosks.house = await House.open(options);
    kiosks.chrome = await browser();
    kiosks.cable = await Cable.to(kiosks.house.url);
    kiosks.screens = await screensOf(kiosks.house, kiosks.cable.url);
    return kiosks;
  }

  async close() {
    await this.chrome?.close();
    await this.screens?.close();
    this.cable?.close();
    await this.house?.close();
  }

  /** Leaves the kiosk that is open: nothing went wrong in its page. */
  async leave() {
    const errors = this.page?.errors ?? [];
    await this.page?.context().close();
    this.page = undefined;
    assert.deepEqual(errors, []);
  }

  /** A kiosk of its own, upright: its name. */
  async stand() {
    const name = `Kiosk ${++this.#count}`;
    const options = { viewport: { width: 1080, height: 1920 }, hasTouch: true };
    this.page = await enrolled(this.chrome, this.house, this.screens, name, 'kiosk', options);
    return name;
  }

  /** Somebody at a counter says what seats are for this performance. */
  async setTraits(seats, traits, slug = 'lantern-cup-night-race') {
    this.#till ??= (await this.house.command(['terminal', 'add', 'A counter', '--role', 'counter']))
      .trim()
      .split('\n')
      .at(-1);
    const { event } = await this.house.api(`/api/events/${slug}?seats=none`);
    const answer = await fetch(`${this.house.url}/api/box-office/events/${event.id}/traits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#till}`, 'content-type': 'application/json' },
      body: JSON.stringify({ seats, ...traits, reason: 'a test' }),
    });
    assert.ok(answer.ok, await answer.text());
  }

  /** Its terminal's id. */
  id(name) {
    return this.house.sql(`select id from terminal where name = '${name}'`);
  }

  click(id) {
    return this.page.getByTestId(id).click();
  }

  shows(id) {
    return this.page
      .getByTestId(id)
      .first()
      .waitFor({ timeout: 3 * HUNG });
  }

  /** Waits for a screen of the machine's. */
  stage(name) {
    const stage = this.page.locator(`[data-testid=kiosk][data-stage=${name}]`);
    return stage.waitFor({ timeout: 3 * HUNG });
  }

  /** Its seconds are so long from now on; somebody may begin. */
  async hurry(ms) {
    await hurry(this.page, ms);
    await this.shows('kiosk-event');
  }

  async enter(slug = 'lantern-cup-night-race') {
    const { event } = await this.house.api(`/api/events/${slug}?seats=none`);
    await this.page.locator(`[data-testid=kiosk-event][data-event="${event.id}"]`).click();
    await mapOf(this.page, event.id);
  }

  /** A hall that is there at once: where seconds are short, nobody waits for 62,000 seats. */
  async enterSmall() {
    const { events } = await this.house.api('/api/events');
    const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
    await this.enter(open.sort((a, b) => a.seats_total - b.seats_total)[0].slug);
  }

  /** Two seats of the small hall: what this customer's screen calls them. */
  async takeTwo() {
    await this.enterSmall();
    await this.click('kiosk-best');
    await this.shows('kiosk-held');
    return this.page.getByTestId('kiosk-seat').allInnerTexts();
  }

  /** The same, up to the reader. */
  async toReader() {
    const seats = await this.takeTwo();
    await this.page.locator('[data-testid=kiosk-pay]:enabled').click();
    await this.shows('kiosk-pay-screen');
    return seats;
  }

  /** The same, and a card is held to it: paid. The order's code too. */
  async buy(name) {
    const seats = await this.toReader();
    await holdCard(this.house, name);
    await this.shows('kiosk-done');
    return { seats, code: await this.code() };
  }

  /** The order's, that is on the screen. */
  async code() {
    return (await this.page.getByTestId('kiosk-code').innerText()).match(/[0-9A-Z]{8}/)[0];
  }

  kept() {
    return this.page.evaluate(kept);
  }

  /** Staff come, and let it serve again. */
  async staffCome() {
    await this.page.getByTestId('house-name').dispatchEvent('pointerdown');
    await this.shows('exit-dialog');
    for (const digit of PIN) await this.click(`pin-${digit}`);
    await this.click('exit-again');
    await this.page.getByTestId('exit-dialog').waitFor({ state: 'detached', timeout: HUNG });
  }
}
