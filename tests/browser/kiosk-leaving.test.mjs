// Somebody walks away from a kiosk, whenever that is hardest. Money ends as tickets or as nothing, or with staff; and the
// next person finds nothing of the last. Which screen follows which is searched in `box-office-app/core/src/kiosk/tests.rs`.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';

import { asOperator, HUNG } from './house.mjs';
import { Kiosks, nothingOf } from './kiosks.mjs';
import { brokenPrinter, Printer, until } from './printer.mjs';

/** A second of a kiosk that nobody stands at. */
const SHORT_MS = 120;
/** What a slow roll takes: a ticket is some 30 KB. */
const SLOW_BYTES_A_SECOND = 12_000;

/** A card is held to the reader and what it answers is lost; then the bank is silent: nobody can say how it ended. */
const asks = (reader = {}) => [
  {
    match: { op: 'process', first: 1 },
    effect: { network: 'timeout_after', reader: { tap_after_ms: 0, ...reader } },
  },
  { match: { op: 'get' }, effect: { network: 'timeout_before' } },
];

const NOTHING_CHARGED = { state: 'cancelled', printed: '0', captured: 0, authorised: 0 };
let at, untouched, ledger;

before(async () => {
  // A lost answer costs a test two seconds.
  at = await Kiosks.open({ env: { FULLHOUSE__PAYMENT__TIMEOUT_MS: '2000' } });
});

after(() => at?.close());

beforeEach(async () => {
  await at.house.rules([]);
  ledger = await at.house.ledger();
});

afterEach(() => at.leave());

/** A kiosk whose seconds are so short, as nobody has touched it: its name. */
async function stand(ms = SHORT_MS, prepare = async () => {}) {
  const name = await at.stand();
  await prepare(join(at.screens.folder, await at.id(name)));
  await at.hurry(ms);
  untouched = await at.kept();
  return name;
}

/** The bank speaks again; the hub hears of it as it does of everything. */
async function bankSpeaks() {
  await at.house.rules([]);
  await at.house.replay();
}

/** What a customer's money has come to: an order's state, its tickets that came out, and the provider's own books. */
async function money(code) {
  const [state, total] = (
    await at.house.sql(`select state, total_minor from "order" where code = '${code}'`)
  ).split('|');
  const printed = await at.house.sql(`select count(*) from ticket_print p
    join "order" o on o.id = p.order_id where o.code = '${code}' and p.state = 'printed'`);
  const now = await at.house.ledger();
  const moved = (what) => (now[what] - ledger[what]) / Number(total);
  return { state, printed, captured: moved('captured'), authorised: moved('authorised') };
}

/** Of the seats of an order how many are free, and how many sold. */
const seatsOf = (code) =>
  at.house.sql(`select count(*) filter (where s.status = 0), count(*) filter (where s.status = 2)
    from "order" o join order_line l on l.order_id = o.id
    join event_seat s on s.event_id = o.event_id and s.seat_no = l.seat_no where o.code = '${code}'`);

/** Of the order that this kiosk has made last, which its screen does not show yet. */
const latest = () =>
  at.house.sql(`select code from "order" where channel = 'kiosk' order by created_at desc limit 1`);

/** The next person comes to the first screen, in the first language, and nothing is left of the last. */
async function next(words) {
  await at.shows('kiosk-event');
  await at.page
    .getByTestId('house-name')
    .getByText(/^Tickets$/)
    .waitFor();
  nothingOf(words, await at.kept(), untouched);
  await at.enterSmall();
  assert.equal(await at.page.getByTestId('kiosk-take').count(), 0, 'no seat is theirs yet');
  nothingOf(words, await at.kept(), untouched);
}

/** What staff are called for at a terminal, as the hub has heard it. */
const called = (name) =>
  at.house.sql(`select health ->> 'detail' from terminal where name = '${name}'`);

test('while choosing: a customer who walks away is asked, and then their seats go back', async () => {
  const name = await at.stand();
  const profile = { profile: { idle_s: 40, languages: ['en', 'ko'] }, reason: 'a test' };
  const path = `/api/staff/terminals/${await at.id(name)}`;
  await asOperator(at.chrome, at.house, 'POST', path, profile);
  await at.hurry(250);
  await at.page.getByTestId('lang-ja').waitFor({ state: 'detached' }); // it knows its profile
  untouched = await at.kept();
  await at.click('lang-ko');
  const seats = await at.takeTwo();
  await at.shows('kiosk-idle');
  await at.click('kiosk-stay');
  await at.page.getByTestId('kiosk-idle').waitFor({ state: 'detached' });
  await at.shows('kiosk-held');
  const code = await latest();
  await next(seats); // by itself
  assert.equal(await seatsOf(code), '2|0');
});

test('at the reader: it is stopped, and nothing is charged', async () => {
  await stand();
  const seats = await at.toReader();
  const code = await latest();
  await next([code, ...seats]);
  assert.equal(await seatsOf(code), '2|0');
  assert.deepEqual(await money(code), NOTHING_CHARGED);
});

test('while the bank is asked, which says yes: the tickets lie in the tray', async () => {
  let printer;
  await stand(SHORT_MS, async (home) => (printer = await Printer.beside(home)));
  try {
    await at.house.rules(asks());
    const seats = await at.toReader();
    await at.stage('authorising');
    const code = await latest();
    assert.deepEqual(await money(code), {
      state: 'open',
      printed: '0',
      captured: 0,
      authorised: 1,
    });
    await bankSpeaks();
    await next([code, ...seats]);
    for (const number of [1, 2]) assert.match(await printer.sheet(number), /^[A-Z2-7]{149}$/);
    assert.equal(await seatsOf(code), '0|2');
    await until('the hub knows', async () => (await money(code)).printed === '2');
    assert.deepEqual(await money(code), {
      state: 'confirmed',
      printed: '2',
      captured: 1,
      authorised: 0,
    });
  } finally {
    await printer.close();
  }
});

test('while the bank is asked, which says no: nothing is charged, and the seats go back', async () => {
  await stand();
  await at.house.rules(asks({ decline: 'insufficient_funds' }));
  const seats = await at.toReader();
  await at.stage('authorising');
  const code = await latest();
  assert.equal(await seatsOf(code), '0|0', 'they are held meanwhile');
  await bankSpeaks();
  await at.shows('kiosk-message'); // whoever would still be there may try another card
  await next([code, ...seats]);
  assert.equal(await seatsOf(code), '2|0');
  assert.deepEqual(await money(code), NOTHING_CHARGED);
});

test('while the bank is asked, which says yes once nobody waits for it: staff have the order, no paper has it', async () => {
  let printer;
  const name = await stand(80, async (home) => (printer = await Printer.beside(home)));
  try {
    await at.house.rules(asks());
    const seats = await at.toReader();
    await at.shows('kiosk-staff');
    const code = await at.code();
    await at.shows('kiosk-closed');
    nothingOf([code, ...seats], await at.kept(), untouched);
    assert.deepEqual(await money(code), {
      state: 'open',
      printed: '0',
      captured: 0,
      authorised: 1,
    });
    await until('staff know of the doubt', async () =>
      (await called(name)).includes(`PaymentInDoubt ${code}`),
    );
    await bankSpeaks();
    await until('staff know that it is paid', async () =>
      (await called(name)).includes(`PaidUnattended ${code}`),
    );
    await until('it is charged', async () => (await money(code)).captured === 1);
    assert.deepEqual(await money(code), {
      state: 'confirmed',
      printed: '0',
      captured: 1,
      authorised: 0,
    });
    assert.equal(await seatsOf(code), '0|2');
    nothingOf([code, ...seats], await at.kept(), untouched);
    assert.equal(
      await at.page.getByTestId('kiosk-event').count(),
      0,
      'it serves nobody before staff came',
    );
    await at.staffCome();
    await next([code, ...seats]);
    await until('nobody is called any more', async () => (await called(name)) === '');
    assert.equal((await money(code)).printed, '0');
  } finally {
    await printer.close();
  }
});

test('a network that goes while the card is read ends with staff', async () => {
  await stand(80);
  const seats = await at.toReader();
  await at.page
    .locator('[data-testid=kiosk-pay-screen][data-ready=true]')
    .waitFor({ timeout: HUNG });
  at.cable.pull();
  let code;
  try {
    await at.shows('kiosk-staff');
    code = await at.code();
    await at.shows('kiosk-closed');
    nothingOf([code, ...seats], await at.kept(), untouched);
  } finally {
    at.cable.plugIn();
  }
  await at.staffCome();
  await at.shows('kiosk-event');
});

test('after they have paid: the screen clears itself', async () => {
  const name = await stand();
  const { code, seats } = await at.buy(name);
  await next([code, ...seats]);
  await until('it is charged', async () => (await money(code)).captured === 1);
  assert.deepEqual(await money(code), {
    state: 'confirmed',
    printed: '0',
    captured: 1,
    authorised: 0,
  });
});

test('while it is printed: the tickets come out, and the screen clears itself', async () => {
  let printer;
  const name = await stand(SHORT_MS, async (home) => {
    printer = await Printer.beside(home, { bytesASecond: SLOW_BYTES_A_SECOND });
  });
  try {
    const { code, seats } = await at.buy(name);
    await at.stage('printing');
    await until('the first ticket is on its way', async () => {
      const sent = await at.house.sql(`select count(*) from ticket_print p
        join "order" o on o.id = p.order_id where o.code = '${code}' and p.state = 'sent'`);
      return sent !== '0';
    });
    await at.stage('printing'); // and nobody is there any more
    await next([code, ...seats]);
    for (const number of [1, 2]) assert.match(await printer.sheet(number), /^[A-Z2-7]{149}$/);
    await until('the hub knows', async () => (await money(code)).printed === '2');
    assert.deepEqual(await money(code), {
      state: 'confirmed',
      printed: '2',
      captured: 1,
      authorised: 0,
    });
    assert.equal(await called(name), '');
  } finally {
    await printer.close();
  }
});

test('while it is printed, and the paper stops: it is said, mailed and told to staff; then nothing is left of whose it is', async () => {
  const printer = await brokenPrinter();
  const name = await stand(SHORT_MS, (home) => printer.standsAt(home));
  try {
    const { code, seats } = await at.buy(name);
    await at.stage('printing');
    await at.stage('unprinted');
    for (const key of 'ana@example.org') await at.click(`key-${key}`);
    await at.click('address-send');
    await at.shows('kiosk-mailed');
    await until('staff know of whom', async () =>
      (await called(name)).includes(`Unprinted ${code}`),
    );
    // They leave.
    await at.shows('kiosk-closed');
    nothingOf([code, 'ana@', 'example.org', ...seats], await at.kept(), untouched);
    await at.staffCome();
    await until('nobody is called any more', async () => (await called(name)) === '');
  } finally {
    printer.close();
  }
});
