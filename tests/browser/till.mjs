// The screens of till and kiosk in a browser, at a house of a test: the same pages that the desktop shows, whose host
// is the browser itself.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { preview } from 'vite';

import { browser, clickSeat, freeSeats, House, HUNG } from './house.mjs';

const PAGE_HOST = join(process.env.CARGO_TARGET_DIR ?? 'target', 'debug', 'page-host');

export const CLERK = { name: 'Cleo Clerk', pin: '314159' };
export const SUPERVISOR = { name: 'Sora Supervisor', pin: '271828' };
export const MANAGER = { name: 'Mika Manager', pin: '161803' };

/** Keys of a scan may be so far apart: each comes through the driver of a browser. */
const SCAN_GAP_MS = 500;

/** Serves the built screens, and passes what they ask on to the house, and to the core that stands behind them.
 * `hub`: the way to the house, if it is one that can be cut. */
export async function screensOf(house, hub = house.url) {
  const core = await coreOf(hub);
  const to = (target) => ({ target, ws: true, changeOrigin: true });
  const proxy = { '/api': to(hub), '/healthz': to(hub), '/desk': to(core.url) };
  const server = await preview({
    configFile: 'box-office-app/ui/vite.config.ts',
    logLevel: 'error',
    preview: { port: 0, host: '127.0.0.1', proxy },
  });
  return {
    url: server.resolvedUrls.local[0].replace(/\/$/, '').replace('localhost', '127.0.0.1'),
    /** A folder a terminal, by its id. */
    folder: core.folder,
    async close() {
      await server.close();
      await core.close();
    },
  };
}

/** The desktop's core without its window. */
async function coreOf(hub) {
  const folder = await mkdtemp(join(tmpdir(), 'fullhouse-browser-core-'));
  const child = spawn(PAGE_HOST, ['--hub', hub, '--folder', folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const url = await new Promise((found, failed) => {
    createInterface(child.stdout).on('line', (line) => {
      const [, url] = /^listening on (http:.*)$/.exec(line) ?? [];
      if (url) found(url);
    });
    ended.then(([code]) => failed(new Error(`the core ended with ${code}`)));
  });
  return {
    url,
    folder,
    async close() {
      child.stdin.end();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** This kiosk's seconds are so long from now on, for those who would wait for a minute and a half. */
export async function hurry(page, ms) {
  await page.evaluate(async (ms) => {
    const authorization = `Bearer ${sessionStorage.getItem('fullhouse.till.terminal')}`;
    const headers = { authorization, 'content-type': 'application/json' };
    await fetch('/desk/second', { method: 'POST', headers, body: JSON.stringify({ ms }) });
  }, ms);
  await page.reload();
}

/** Somebody who may sign in at counters. */
export async function hire(house, person, role) {
  const why = ['--reason', 'a test', '--by', 'a test'];
  await house.command(['staff', 'add', person.name, '--role', role, ...why], {
    input: 'a long enough password\n',
  });
  await house.command(['staff', 'pin', person.name, ...why], { input: `${person.pin}\n` });
}

/** A code that makes a terminal. */
export async function codeFor(house, name, role) {
  const args = ['terminal', 'enrol', name, '--role', role, '--reason', 'a test', '--by', 'a test'];
  const said = await house.command(args);
  return said.match(/[0-9A-Z]{5}-[0-9A-Z]{5}/)[0];
}

/** A terminal's screens in a tab of their own, enrolled by the form. */
export async function enrolled(chrome, house, screens, name, role, options = {}) {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.addInitScript((gap) => {
    const right = Date.now.bind(Date);
    Object.assign(globalThis, { scanGapMs: gap, wrongByMs: 0 });
    Date.now = () => right() + globalThis.wrongByMs; // somebody sets the machine's clock
  }, SCAN_GAP_MS);
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error));
  const code = await codeFor(house, name, role);
  await page.goto(screens.url);
  await page.getByTestId('enrol-code').fill(code);
  await page.getByTestId('enrol').click();
  if (role === 'kiosk') {
    await page.getByTestId('exit-pin').fill('161803');
    await page.getByTestId('exit-pin-again').fill('161803');
    await page.getByTestId('begin').click();
  }
  const opened = role === 'kiosk' ? 'kiosk' : 'sign-in-form';
  await page.getByTestId(opened).waitFor({ timeout: 3 * HUNG });
  // A reader stands at a terminal that is there; it learns of it when it looks again.
  await house.command(['terminal', 'reader', name, readerOf(name)]);
  await page.reload();
  await page.getByTestId(opened).waitFor({ timeout: 3 * HUNG });
  return page;
}

/** The card reader that stands at a terminal. */
export const readerOf = (name) => `tmr_${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')}`;

/** A card that its bank declines. */
export const DECLINED = '4000000000000002';

/** The customer holds a card to a terminal's reader, as soon as it waits for one. */
export async function holdCard(house, name, number) {
  const fields = number ? { 'card_present[number]': number } : {};
  const path = `test_helpers/terminal/readers/${readerOf(name)}/present_payment_method`;
  for (const end = Date.now() + HUNG; ;) {
    try {
      return await house.provider(path, fields);
    } catch (error) {
      if (!/terminal_reader_not_in_use/.test(error.message) || Date.now() > end) throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

export async function signIn(page, person) {
  await page.getByTestId('staff-name').fill(person.name);
  await page.getByTestId('staff-secret').fill(person.pin);
  await page.getByTestId('sign-in').click();
  await page.getByTestId('who').waitFor({ timeout: HUNG });
}

/** The counter shows the map of this event, live. */
export async function openHall(page, event) {
  await page.getByTestId('event-select').selectOption(String(event));
  await mapOf(page, event);
}

export async function mapOf(page, event) {
  await page.waitForFunction((event) => window.__fullhouse?.event === event, event, {
    timeout: 3 * HUNG,
  });
  await page.waitForFunction(
    () => window.__fullhouse.map() && window.__fullhouse.statuses() > 0,
    null,
    {
      timeout: 3 * HUNG,
    },
  );
}

/** Touches a seat, wherever the map has to go for it. */
export async function touchSeat(page, seat) {
  await page.evaluate((seat) => window.__fullhouse.show([seat]), seat);
  await clickSeat(page, seat);
}

/** Opens the counter's drawer, as a shift begins. */
export async function openShift(page, float, currency) {
  await page.keyboard.press('F3');
  await page.getByTestId('shift-open-form').waitFor({ timeout: HUNG });
  const choice = page.getByTestId('shift-currency');
  if (await choice.isVisible()) await choice.selectOption(currency);
  await page.getByTestId('shift-float').fill(float);
  await page.getByTestId('shift-open').click();
  await page.getByTestId('x-report').waitFor({ timeout: HUNG });
  await page.keyboard.press('F1');
}

/** Whoever has the role approves what a clerk has asked for. */
export async function approve(page, person) {
  await page.getByTestId('approver-name').fill(person.name);
  await page.getByTestId('approver-secret').fill(person.pin);
  await page.getByTestId('approve').click();
}

/** A scanner that is set to a US keyboard reads a code: its keys, as fast as it sends them. */
export async function scan(page, text) {
  for (const letter of text)
    await page.keyboard.press(letter === ':' ? 'Shift+Semicolon' : letter, { delay: 0 });
  await page.keyboard.press('Enter', { delay: 0 });
}

/** A house with staff, at whose counters tests stand one after the other. */
export class Counters {
  /** The counter's page that is open now. */
  page;
  #count = 0;

  /** `putOn`: what is done at the house first, such as putting the event on. */
  static async open(event, putOn = async () => {}) {
    const counters = new Counters();
    counters.house = await House.open();
    await putOn(counters.house);
    counters.chrome = await browser();
    counters.screens = await screensOf(counters.house);
    await hire(counters.house, CLERK, 'clerk');
    await hire(counters.house, SUPERVISOR, 'supervisor');
    await hire(counters.house, MANAGER, 'manager');
    counters.slug = event;
    ({ event: counters.event } = await counters.house.api(`/api/events/${event}?seats=none`));
    return counters;
  }

  async close() {
    await this.chrome?.close();
    await this.screens?.close();
    await this.house?.close();
  }

  /** Leaves the counter that is open; answers with what went wrong in its page. */
  async leave() {
    const errors = this.page?.errors ?? [];
    await this.page?.context().close();
    this.page = undefined;
    return errors;
  }

  /** A counter of its own, with somebody behind it and the hall open: its name. */
  async stand(person) {
    const name = `Counter ${++this.#count}`;
    this.page = await enrolled(this.chrome, this.house, this.screens, name, 'counter');
    await signIn(this.page, person);
    await openHall(this.page, this.event.id);
    return name;
  }

  text(id) {
    return this.page.getByTestId(id).first().innerText();
  }

  click(id) {
    return this.page.getByTestId(id).first().click();
  }

  fill(id, text) {
    return this.page.getByTestId(id).fill(text);
  }

  shows(id, within = HUNG) {
    return this.page.getByTestId(id).first().waitFor({ timeout: within });
  }

  /** Waits until it says so. */
  says(id, pattern) {
    return this.page
      .getByTestId(id)
      .filter({ hasText: pattern })
      .first()
      .waitFor({ timeout: HUNG });
  }

  /** Of the event's page, which may be a second old, what this counter's own map shows as free too. */
  async free(count) {
    const some = await freeSeats(this.house, this.slug, count + 10);
    const free = await this.page.evaluate(
      (some) => some.filter((seat) => window.__fullhouse.status(seat) === 0),
      some,
    );
    return free.slice(0, count);
  }

  async touch(seats) {
    for (const seat of seats) await touchSeat(this.page, seat);
  }

  async becomes(seat, status) {
    await this.page.waitForFunction(
      ([seat, status]) => window.__fullhouse.status(seat) === status,
      [seat, status],
      { timeout: HUNG },
    );
  }

  /** Takes seats on the map, for whoever stands there. */
  async take(count) {
    return this.takeThese(await this.free(count));
  }

  async takeThese(seats) {
    await this.touch(seats);
    await this.click('take');
    await this.shows('total');
    return seats;
  }

  /** A free seat of the cheapest kind, and one of the dearest. */
  async cheapAndDear() {
    const { price_levels, seats } = await this.house.api(`/api/events/${this.slug}`);
    const cost = new Map(price_levels.map(({ level, prices }) => [level, prices[0].amount_minor]));
    const plain = seats.filter((one) => !one.accessible && !one.companion && !one.standing);
    const numbers = plain
      .toSorted((a, b) => cost.get(a.level) - cost.get(b.level))
      .map(({ seat_no }) => seat_no);
    const free = await this.page.evaluate(
      (numbers) => numbers.filter((seat) => window.__fullhouse.status(seat) === 0),
      numbers,
    );
    return [free[0], free.at(-1)];
  }

  /** Sells seats by card at this counter's reader: the order's code. */
  async sellByCard(name, count = 2) {
    return this.sellSeatsByCard(name, await this.free(count));
  }

  async sellSeatsByCard(name, seats) {
    const count = seats.length;
    await this.takeThese(seats);
    await this.click('card');
    await this.shows('card-waiting');
    await holdCard(this.house, name);
    await this.shows('sold', 3 * HUNG);
    await this.says('printed', new RegExp(`\\b${count} of ${count}\\b`)); // once it is charged
    const code = await this.text('order-code');
    await this.page.keyboard.press('Enter');
    return { code, seats };
  }

  /** Begins to exchange an order's first seat for this one. */
  async beginExchange(code, seat, reason) {
    await this.find(code);
    await this.click('order-seat');
    await this.click('exchange-start');
    await this.shows('exchange');
    await this.touch([seat]);
    await this.fill('exchange-reason', reason);
    await this.shows('exchange-offer');
  }

  async find(words) {
    await this.page.keyboard.press('F2');
    await this.fill('find', words);
    await this.page.keyboard.press('Enter');
    await this.shows('order');
  }
}
