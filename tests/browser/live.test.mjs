// The live map in a real browser: a page that slept, and a hall in which everything changes.

import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { after, before, test } from 'node:test';

import {
  browser,
  clickSeat,
  freeSeats,
  holdSeats,
  House,
  openEvent,
  seatBecomes,
  signUp,
} from './house.mjs';

const EVENT = 'lantern-cup-night-race'; // 62,000 seats
let house, chrome, wire;

/** A wire to the house that can go dead without a word, as a phone's does when it sleeps. */
class Wire {
  #pairs = new Set();

  async open(url) {
    const { port } = new URL(url);
    this.server = createServer((here) => {
      const there = connect(Number(port), '127.0.0.1');
      const pair = { here, there, dead: false };
      this.#pairs.add(pair);
      const pass = (from, to) => from.on('data', (bytes) => pair.dead || to.write(bytes));
      pass(here, there);
      pass(there, here);
      for (const [one, other] of [
        [here, there],
        [there, here],
      ]) {
        one.on('error', () => {});
        one.on('close', () => pair.dead || other.destroy());
      }
    });
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  /** Whatever is connected now gets nothing any more, and is not told. */
  goDead() {
    for (const pair of this.#pairs) pair.dead = true;
    this.#pairs.clear();
  }

  close() {
    this.goDead();
    this.server.close();
  }
}

before(async () => {
  house = await House.open();
  wire = await new Wire().open(house.url);
  chrome = await browser();
});

after(async () => {
  wire?.close();
  await chrome?.close();
  await house?.close();
});

/** The processes in which a browser runs its pages. */
async function renderers(chrome) {
  const cdp = await chrome.newBrowserCDPSession();
  const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
  await cdp.detach();
  return processInfo.filter((one) => one.type === 'renderer').map((one) => one.id);
}

test('a page that wakes is right within two seconds, though all its connections died asleep', async () => {
  const [seat] = await freeSeats(house, EVENT, 1);
  const bo = await chrome.newPage();
  await signUp(bo, house);
  await openEvent(bo, house, EVENT);
  const phones = await browser();
  try {
    const phone = await phones.newPage();
    await openEvent(phone, wire, EVENT);
    await seatBecomes(phone, seat, 'available');
    const asleep = await renderers(phones);
    for (const [sleptMs, sleep, wake] of [
      // The machine sleeps, and nobody tells the page when it goes on.
      [
        6_000,
        () => asleep.forEach((pid) => process.kill(pid, 'SIGSTOP')),
        () => asleep.forEach((pid) => process.kill(pid, 'SIGCONT')),
      ],
      // The page is told that it is shown again.
      [
        0,
        () => {},
        () => phone.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))),
      ],
    ]) {
      sleep();
      wire.goDead();
      const began = Date.now();
      await holdSeats(bo, [seat]);
      await seatBecomes(bo, seat, 'held');
      await new Promise((done) => setTimeout(done, Math.max(0, sleptMs - (Date.now() - began))));
      const woke = Date.now();
      await wake();
      await seatBecomes(phone, seat, 'held', 2_000);
      console.log(`right ${Date.now() - woke} ms after it woke`);
      await bo.getByTestId('release-button').click();
      await seatBecomes(bo, seat, 'available');
      await seatBecomes(phone, seat, 'available');
    }
  } finally {
    await phones.close();
  }
  await bo.close();
});

/** A frame as `protocol/PROTOCOL.md` has it. */
function delta({ event, epoch, frame, seatCount, seats, status }) {
  const bytes = Buffer.alloc(40 + 4 * seats.length);
  bytes.writeUInt8(1, 0);
  bytes.writeUInt8(1, 1);
  bytes.writeUInt16LE(seats.length, 2);
  bytes.writeUInt32LE(seatCount, 4);
  bytes.writeBigUInt64LE(BigInt(event), 8);
  bytes.writeBigUInt64LE(BigInt(epoch), 16);
  bytes.writeBigUInt64LE(BigInt(frame), 24);
  bytes.writeBigUInt64LE(BigInt(Date.now()), 32);
  seats.forEach((seat, index) => bytes.writeUInt32LE(((seat << 2) | status) >>> 0, 40 + 4 * index));
  return bytes;
}

test('500 changes a second are shown, and no click is lost', async () => {
  const { seats: all, event } = await house.api(`/api/events/${EVENT}`);
  const wanted = await freeSeats(house, EVENT, 4);
  const others = all.map((one) => one.seat_no).filter((seat) => !wanted.includes(seat));
  const page = await chrome.newPage();
  await signUp(page, house);
  let socket;
  // In the middle of the page's socket: the house is quiet, so what is said here follows on its last frame.
  await page.routeWebSocket(/\/live/, (page) => {
    const hub = page.connectToServer();
    hub.onMessage((message) => page.send(message));
    socket = page;
  });
  await openEvent(page, house, EVENT);
  const { searchParams: at } = new URL(socket.url());
  let [epoch, frame] = [Number(at.get('epoch')), Number(at.get('frame'))];
  const seatCount = Math.max(...all.map((one) => one.seat_no)) + 1;
  await page.evaluate(() => {
    window.__slow = [];
    new PerformanceObserver((list) =>
      window.__slow.push(...list.getEntries().map((one) => one.duration)),
    ).observe({
      type: 'event',
      durationThreshold: 16,
    });
  });
  let changes = 0;
  const pace = setInterval(() => {
    const seats = [];
    for (let n = 0; n < 50; n++) seats.push(others[(frame * 977 + n * 31) % others.length]);
    seats.sort((a, b) => a - b);
    frame++;
    socket.send(
      delta({
        event: event.id,
        epoch,
        frame,
        seatCount,
        seats: [...new Set(seats)],
        status: frame % 2,
      }),
    );
    changes += 50;
  }, 100);
  try {
    for (const seat of wanted) {
      await clickSeat(page, seat);
      await page.waitForFunction(() => true);
    }
    await page.mouse.wheel(0, 0);
    await new Promise((done) => setTimeout(done, 2_000));
  } finally {
    clearInterval(pace);
  }
  const last = others[((frame - 1) * 977) % others.length];
  await seatBecomes(page, last, frame % 2 === 1 ? 'held' : 'available');
  await page.getByTestId('hold-button').click();
  await page.getByTestId('hold-bar').waitFor();
  assert.deepEqual(
    (await page.evaluate(() => window.__fullhouse.mine())).sort((a, b) => a - b),
    wanted.sort((a, b) => a - b),
  );
  const slow = await page.evaluate(() => window.__slow);
  console.log(
    `${changes} changes; the slowest of ${slow.length} inputs over 16 ms took ${Math.max(0, ...slow)} ms`,
  );
  await page.close();
});
