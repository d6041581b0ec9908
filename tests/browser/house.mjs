// A house to test in: the real binary's demo on a free port, with data of its own, gone at the end.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { chromium } from 'playwright-core';

const BINARY = join(process.env.CARGO_TARGET_DIR ?? 'target', 'debug', 'fullhouse');
/** The key by which a test speaks to the provider itself, as somebody on its own pages would. */
export const PROVIDER_KEY = 'sk_test_browser';
const STARTS_WITHIN_MS = 120_000; // the first start makes a cluster and imports 62,000 seats

/** "Within a second" in a test means this before it counts as hung. */
export const HUNG = 10_000;

export class House {
  #data;
  #child;
  #said = [];
  #env;

  /** Opens a house whose holds last so long; `env` are settings of its hub. */
  static async open({ holdTtlS = 480, crowd = 0, env = {} } = {}) {
    const house = new House();
    house.#env = { FULLHOUSE__PAYMENT__SECRET_KEY: PROVIDER_KEY, ...env };
    house.#data = await mkdtemp(join(tmpdir(), 'fullhouse-browser-'));
    await chmod(house.#data, 0o755); // PostgreSQL's own user passes through
    await house.start({ holdTtlS, crowd });
    return house;
  }

  /** Starts it again on the same data. */
  async start({ holdTtlS = 480, crowd = 0 } = {}) {
    const args = ['demo', '--listen', '127.0.0.1:0', '--data', this.#data];
    args.push('--hold-ttl-s', String(holdTtlS), '--crowd', String(crowd));
    this.#child = spawn(BINARY, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#env },
    });
    const ended = once(this.#child, 'exit');
    createInterface(this.#child.stderr).on('line', (line) => this.#said.push(line));
    const lines = createInterface(this.#child.stdout);
    this.url = await new Promise((found, failed) => {
      const timer = setTimeout(
        () => failed(new Error(`the demo does not start: ${this.log}`)),
        STARTS_WITHIN_MS,
      );
      lines.on('line', (line) => {
        this.#said.push(line);
        const url = line.match(/http:\/\/127\.0\.0\.1:\d+/);
        if (url) {
          clearTimeout(timer);
          found(url[0]);
        }
      });
      ended.then(([code]) => failed(new Error(`the demo ended with ${code}: ${this.log}`)));
    });
  }

  get log() {
    return this.#said.join('\n');
  }

  /** Asks it to end, as Ctrl-C does; it has to within ten seconds. */
  async stop() {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    const hung = setTimeout(() => this.#child.kill('SIGKILL'), HUNG);
    this.#child.kill('SIGINT');
    const [code, signal] = await ended;
    clearTimeout(hung);
    if (code !== 0) throw new Error(`the demo ended with ${code ?? signal}: ${this.log}`);
  }

  async close() {
    try {
      await this.stop();
    } finally {
      await rm(this.#data, { recursive: true, force: true });
    }
  }

  /** What goes wrong at the payment provider from now on; its answers come at once. */
  async rules(rules) {
    const atOnce = { match: {}, effect: { latency: { kind: 'fixed', ms: 50 } } };
    await this.#control('rules', [...rules, atOnce]);
  }

  /** Every webhook once more: what the hub could not ask about before it asks now. */
  async replay() {
    await this.#control('replay', {});
  }

  /** The provider's truth about money. */
  async ledger() {
    return (await fetch(`${await this.#providerUrl()}/_sim/ledger`)).json();
  }

  /** Somebody does something on the provider's own pages. */
  async provider(path, fields = {}) {
    const response = await fetch(`${await this.#providerUrl()}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PROVIDER_KEY}` },
      body: new URLSearchParams(fields),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  }

  /** Somebody pulls a card reader's plug, or puts it in again. */
  switchReader(id, offline) {
    return this.#control('reader', { id, offline });
  }

  async #control(what, body) {
    const response = await fetch(`${await this.#providerUrl()}/_sim/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${what}: ${response.status} ${await response.text()}`);
  }

  async #providerUrl() {
    return new URL((await this.api('/api/payment/config')).form_url).origin;
  }

  /** What the binary says to an operator on its command line. */
  async command(args, { input = '' } = {}) {
    const socket = encodeURIComponent(join(this.#data, 'socket'));
    const env = {
      ...process.env,
      FULLHOUSE__DATABASE__URL: `postgres://fullhouse@localhost:5432/fullhouse?host=${socket}`,
    };
    const run = promisify(execFile)(BINARY, args, { env });
    run.child.stdin.end(input);
    return (await run).stdout;
  }

  /** Imports a plan (with the file beside it) and puts an event on it, as an operator does on the command line. */
  async putOn(plan, event, venueName, beside) {
    const planFile = join(this.#data, `${event.slug}-plan.json`);
    const eventFile = join(this.#data, `${event.slug}.json`);
    await writeFile(planFile, JSON.stringify(plan));
    if (beside) await writeFile(planFile.replace('.json', '.seats.json'), JSON.stringify(beside));
    await writeFile(eventFile, JSON.stringify(event));
    const place = ['--venue', event.venue, '--city', 'Berlin', '--time-zone', 'Europe/Berlin'];
    if (venueName) place.push('--venue-name', venueName);
    await this.command(['import', planFile, ...place]);
    await this.command(['event', 'create', eventFile]);
  }

  /** What no door of the house offers: rows that a test puts there itself. */
  async sql(text) {
    const socket = join(this.#data, 'socket');
    const { stdout } = await promisify(execFile)('psql', [
      ...['-h', socket, '-U', 'fullhouse', '-d', 'fullhouse', '-v', 'ON_ERROR_STOP=1'],
      ...['-qAtc', text],
    ]);
    return stdout.trim();
  }

  /** Its database answers nobody from now on (`SIGSTOP`), or goes on where it was (`SIGCONT`). */
  async database(signal) {
    const [pid] = (await readFile(join(this.#data, 'postgres', 'postmaster.pid'), 'utf8')).split(
      '\n',
    );
    // The postmaster first, so that it makes no more of them meanwhile.
    process.kill(Number(pid), signal);
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    for (const child of children.split(' ').filter(Boolean)) process.kill(Number(child), signal);
  }

  /** JSON from the public API, as anybody gets it. */
  async api(path) {
    const response = await fetch(this.url + path);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }
}

/** A browser of its own: another person, with nothing in common but the hub. */
export async function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox', // CI runs as root
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

let people = 0;

/** Signs up by the form, with an address that nobody had. */
export async function signUp(page, house, name = 'Ana Seat') {
  const email = `browser${process.pid}-${++people}@example.com`;
  await page.goto(`${house.url}/signin`);
  if (await page.getByTestId('signin-form').isVisible())
    await page.getByTestId('switch-signin').click();
  await page.getByTestId('name').fill(name);
  await page.getByTestId('email').fill(email);
  await page.getByTestId('password').fill('a long enough password');
  await page.getByTestId('submit-signin').click();
  await page.getByTestId('signout').waitFor();
  return email;
}

/** The demo's operator asks the staff's side of the API. */
export async function asOperator(chrome, house, method, path, body) {
  const context = await chrome.newContext();
  const page = await context.newPage();
  await page.goto(`${house.url}/signin`);
  await page.getByTestId('email').fill('operator@example.com');
  await page.getByTestId('password').fill('open the doors');
  await page.getByTestId('submit-signin').click();
  await page.getByTestId('signout').waitFor();
  const answer = await page.evaluate(
    async ([method, path, body]) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
      return { status: response.status, body: await response.text() };
    },
    [method, path, body],
  );
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
  await context.close();
}

/** The demo's operator asks the staff's side for something. */
export function operator(chrome, house, path, body) {
  return asOperator(chrome, house, 'POST', path, body);
}

/** The demo's operator calls an event off. */
export async function callOff(chrome, house, eventId) {
  const reason = 'the track is under water';
  await operator(chrome, house, `/api/staff/events/${eventId}/call-off`, { reason });
}

/**
 * Puts an event on that has a line before it: 32 chairs, or `rows` of `seats`. Joining begins at once (or
 * `opensInS` from now) and ends, and the sale begins, `joinS` later, or when a test says so (`opens`). `first` is
 * done with the event's number before it has its line. Answers that number.
 */
export async function putOnWithLine(chrome, house, slug, options = {}) {
  const { opensInS = 0, joinS = 3600, rate = 600, insideMax = 1, draw = {} } = options;
  const joinsAt = Date.now() + opensInS * 1000;
  const closesAt = joinsAt + joinS * 1000;
  const saleAt = closesAt + (options.waitS ?? 0) * 1000;
  const berlin = { timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'medium' };
  const onSale = new Date(Math.ceil(saleAt / 1000) * 1000);
  await house.putOn(
    {
      name: slug,
      size: { width: 400, height: 300 },
      categories: [{ name: 'Floor', color: '#cc3333' }],
      zones: [
        {
          name: 'Main',
          position: { x: 60, y: 90 },
          areas: [],
          rows: (options.rows ?? ['A', 'B', 'C', 'D']).map((row, y) => ({
            row_number: row,
            position: { x: 0, y: 40 * y },
            seats: Array.from({ length: options.seats ?? 8 }, (_, x) => ({
              seat_guid: `${row}-${x + 1}`,
              seat_number: String(x + 1),
              position: { x: 30 * x, y: 0 },
              category: 'Floor',
            })),
          })),
        },
      ],
    },
    {
      slug,
      name: 'The Long Wait',
      venue: 'aurora-hall',
      plan: slug,
      starts: '2099-01-20T20:00',
      on_sale: new Intl.DateTimeFormat('sv-SE', berlin).format(onSale).replace(' ', 'T'),
      currency: 'EUR',
      performers: [],
      fees: [],
      levels: [{ category: 'Floor', prices: [{ ticket_type: 'adult', amount_minor: 2000 }] }],
    },
    'Aurora Hall',
  );
  const { event } = await house.api(`/api/events/${slug}?seats=none`);
  await options.first?.(event.id);
  await asOperator(chrome, house, 'POST', `/api/staff/events/${event.id}/queue`, {
    joins_at: new Date(joinsAt).toISOString(),
    closes_at: new Date(closesAt).toISOString(),
    rate_minute_min: rate, // a busy machine must not make a test's line slower
    rate_minute_max: rate,
    inside_max: insideMax,
    ...draw,
  });
  return event.id;
}

/** Everybody who was to join has joined: the entries are fixed, and the sale opens, now. */
export async function opens(house, id) {
  await house.sql(`
    update event set on_sale_at = clock_timestamp() where id = ${id};
    update line set closes_at = clock_timestamp(), revision = revision + 1 where event_id = ${id};`);
}

/** Joins the line by the page, with an address that is checked by the link of the mail. */
export async function joinLine(page, house, slug) {
  await page.goto(`${house.url}/events/${slug}`);
  await shows(page, 'join-button');
  await page.getByTestId('join-button').click();
  await shows(page, 'waiting', 'address-link');
  if (await page.getByTestId('address-link').isVisible()) {
    await page.getByTestId('address-again').click();
    await shows(page, 'address-asked-again'); // whoever presses is answered
    const link = await page.getByTestId('address-link').getAttribute('href');
    const mail = await page.context().newPage();
    await mail.goto(link);
    await shows(mail, 'address-done');
    await mail.close();
  }
  await shows(page, 'waiting');
}

/** Waits until a page shows one of these; if it does not, the failure says what it shows instead. */
export async function shows(page, ...testIds) {
  const wanted = testIds.map((id) => page.getByTestId(id)).reduce((one, other) => one.or(other));
  try {
    await wanted.first().waitFor({ timeout: 3 * HUNG });
  } catch {
    const text = await page.locator('body').innerText();
    throw new Error(`${page.url()} does not show ${testIds.join(' or ')}, but: ${text}`);
  }
}

/** Opens an event's page, and waits until its map is live. */
export async function openEvent(page, house, slug) {
  await page.goto(`${house.url}/events/${slug}`);
  await page.waitForFunction(() => window.__fullhouse?.epoch() > 0, null, { timeout: 3 * HUNG });
  await page.locator('[data-testid=live-status][data-state=live]').waitFor();
}

/** Waits until a page shows a seat as this; `within` a time that counts as hung. */
export async function seatBecomes(page, seat, status, within = HUNG) {
  try {
    await page.waitForFunction(
      ([seat, status]) => window.__fullhouse?.status(seat) === status,
      [seat, status],
      {
        timeout: within,
        polling: 20,
      },
    );
  } catch {
    const is = await page.evaluate((seat) => window.__fullhouse?.status(seat), seat);
    throw new Error(`seat ${seat} is ${is} and does not become ${status}`);
  }
}

/** Numbers of seats that are free and ordinary, row by row as the plan has them. */
export async function freeSeats(house, event, count) {
  const { seats } = await house.api(`/api/events/${event}`);
  const free = seats.filter(
    (one) => one.status === 'available' && !one.accessible && !one.companion && !one.standing,
  );
  if (free.length < count) throw new Error(`only ${free.length} free seats are left`);
  return free.slice(0, count).map((one) => one.seat_no);
}

/** A real click where the map draws a seat, once that stays: what was picked before may have made the map smaller. */
export async function clickSeat(page, seat) {
  let [before, point] = [null, null];
  do {
    await page.waitForTimeout(50);
    before = point;
    point = await page.evaluate((seat) => window.__fullhouse.screenPoint(seat), seat);
    if (!point) throw new Error('there is no map');
  } while (point.x !== before?.x || point.y !== before?.y);
  await page.mouse.click(point.x, point.y);
}

/** Picks seats on the map and holds them. */
export async function holdSeats(page, seats) {
  for (const seat of seats) await clickSeat(page, seat);
  await page.getByTestId('hold-button').click();
  await page.getByTestId('hold-bar').waitFor();
}

/** In the provider's form: one of its test cards by the last digits, then the payment itself. */
export async function payWith(page, last4) {
  const form = page.frameLocator('[data-testid=card-form]');
  await form.locator('.cards button', { hasText: last4 }).click();
  await form.locator('button.go').click();
  await page.getByTestId('pay-button').click();
}

export const CARD = {
  good: '4242',
  declined: '0002',
  funds: '9995',
  challenge: '3220',
  slow: '3184',
  lost: '1001',
};
