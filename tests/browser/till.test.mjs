// A counter: who stands at it, whom it sells to, and what becomes of what was sold. The screens are the desktop's own.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { HUNG } from './house.mjs';
import {
  approve,
  CLERK,
  Counters,
  DECLINED,
  enrolled,
  holdCard,
  openHall,
  openShift,
  readerOf,
  signIn,
  SUPERVISOR,
  touchSeat,
} from './till.mjs';

const EVENT = 'lantern-cup-night-race';
let at;

before(async () => {
  at = await Counters.open(EVENT);
});

after(() => at?.close());

afterEach(async () => assert.deepEqual(await at.leave(), []));

test('a code makes a terminal once, and nothing is sold before somebody has signed in', async () => {
  at.page = await enrolled(at.chrome, at.house, at.screens, 'First', 'counter');
  await at.page.getByTestId('sign-in-form').waitFor({ timeout: HUNG });
  await at.page.getByTestId('staff-name').fill(CLERK.name);
  await at.page.getByTestId('staff-secret').fill('000000');
  await at.click('sign-in');
  await at.page.getByTestId('sign-in-message').waitFor();
  assert.match(await at.text('sign-in-message'), /wrong/);
  await signIn(at.page, CLERK);
  assert.equal(await at.text('who'), CLERK.name);
  await at.page.keyboard.press('F12');
  await at.page.getByTestId('sign-in-form').waitFor();
});

test('a wrong code is refused, and says so', async () => {
  at.page = await (await at.chrome.newContext()).newPage();
  await at.page.goto(at.screens.url);
  await at.page.getByTestId('enrol-code').fill('AAAAA-AAAAA');
  await at.click('enrol');
  await at.page.getByTestId('enrol-message').waitFor({ timeout: HUNG });
  assert.match(await at.text('enrol-message'), /code/);
});

test('seats that are touched on the map are paid by the card that is held to this counter’s reader', async () => {
  const name = await at.stand(CLERK);
  const { seats } = await at.sellByCard(name);
  for (const seat of seats)
    await at.page.waitForFunction((seat) => window.__fullhouse.status(seat) === 2, seat, {
      timeout: HUNG,
    });
  // Nothing of the last customer is left for the next.
  assert.equal(await at.page.getByTestId('total').count(), 0);
  assert.equal(await at.page.getByTestId('held-seat').count(), 0);
});

test('a reader that is stopped has charged nothing, and the seats stay the customer’s', async () => {
  await at.stand(SUPERVISOR);
  const seats = await at.take(1);
  await at.click('card');
  await at.click('stop-card');
  await at.page.getByTestId('total').waitFor({ timeout: 3 * HUNG });
  await at.click('release');
  await at.page.getByTestId('best').waitFor();
  await at.page.waitForFunction((seat) => window.__fullhouse.status(seat) === 0, seats[0], {
    timeout: HUNG,
  });
});

test('a machine whose clock is set keeps a customer’s seats for as long as the hub does', async () => {
  await at.stand(SUPERVISOR);
  await openShift(at.page, '10000', 'JPY');
  const [seat] = await at.take(1);
  const set = (wrong) => at.page.evaluate((wrong) => (globalThis.wrongByMs = wrong), wrong);
  const asked = at.page.waitForResponse((answer) => answer.url().endsWith('/quote'));
  await set(3_600_000);
  await asked; // before it says that the time is over
  await at.says('hold-left', /[67]:\d\d/);
  await at.shows('total');
  await set(-3_600_000);
  await at.click('type-1'); // any answer puts it right
  await at.says('hold-left', /held [67]:\d\d/);
  await at.becomes(seat, 1);
  await at.page.keyboard.press('F8');
  await at.click('cash-likely');
  await at.page.keyboard.press('Enter');
  await at.shows('sold');
});

test('a part is paid in cash and the rest by card, and the drawer has the cash once the card has paid', async () => {
  const name = await at.stand(SUPERVISOR);
  await openShift(at.page, '10000', 'JPY');
  await at.take(1);
  await at.page.keyboard.press('F8');
  await at.page.getByTestId('cash-received').fill('1000');
  const rest = await at.text('cash-rest');
  await at.page.keyboard.press('Enter');
  await at.page.getByTestId('card-waiting').waitFor({ timeout: HUNG });
  assert.match(await at.text('cash-beside'), /1,000 in cash/);
  await holdCard(at.house, name);
  await at.page.getByTestId('paid-split').waitFor({ timeout: 3 * HUNG });
  assert.ok((await at.text('paid-split')).includes(rest), 'what the card paid');
  await at.click('next');
  await at.page.keyboard.press('F3');
  await at.click('shift-read');
  await at.page.waitForFunction(
    () => /11,000/.test(document.querySelector('[data-testid=expected]')?.innerText ?? ''),
    undefined,
    { timeout: HUNG },
  );
});

test('a card reader that its provider does not reach is told at the counter', async () => {
  const name = await at.stand(CLERK);
  await at.says('reader-state', /Reader unknown/);
  await at.house.switchReader(readerOf(name), true);
  const asked = () =>
    at.page.evaluate(async () => {
      const authorization = `Bearer ${sessionStorage.getItem('fullhouse.till.terminal')}`;
      const headers = { authorization, 'content-type': 'application/json' };
      const health = { version: '1', paper: 'unknown', reader: 'unknown' };
      const said = { method: 'POST', headers, body: JSON.stringify(health) };
      await fetch('/api/box-office/health', said);
      const self = await (await fetch('/api/box-office/terminal', { headers })).json();
      return self.reader_states[0].state;
    });
  for (const end = Date.now() + HUNG; (await asked()) !== 'offline';) {
    assert.ok(Date.now() < end, 'nobody asks the provider');
    await at.page.waitForTimeout(100);
  }
  await at.page.reload();
  await at.says('reader-state', /offline/);
  await at.house.switchReader(readerOf(name), false);
});

test('seats for when the network fails are one key away', async () => {
  await at.stand(CLERK);
  await at.page.keyboard.press('F11');
  await at.shows('leases-dialog');
  await at.page.keyboard.press('F1');
  await at.shows('leases-dialog');
  await at.page.keyboard.press('Escape');
  await at.page.getByTestId('leases-dialog').waitFor({ state: 'detached' });
});

test('the best seats together are held by one key', async () => {
  await at.stand(SUPERVISOR);
  await at.page.keyboard.press('F6');
  await at.page.getByTestId('total').waitFor({ timeout: HUNG });
  assert.equal(await at.page.getByTestId('held-seat').count(), 2);
  await at.page.keyboard.press('Escape');
  await at.page.getByTestId('best').waitFor();
});

test('another ticket type is another price', async () => {
  await at.stand(SUPERVISOR);
  await at.take(1);
  const types = at.page.locator('[data-testid^=type-]');
  if ((await types.count()) < 2) return assert.fail('the event has one ticket type only');
  const before = await at.text('total');
  await types.nth(1).click();
  await at.page.waitForFunction(
    (before) => document.querySelector('[data-testid=total]').innerText !== before,
    before,
    {
      timeout: HUNG,
    },
  );
  await at.click('release');
});

test('a supervisor gives seats away with a reason', async () => {
  await at.stand(SUPERVISOR);
  await at.take(1);
  await at.page.keyboard.press('F10');
  await at.fill('comp-reason', 'press');
  await at.page.keyboard.press('Enter');
  await at.shows('sold');
  assert.match(await at.text('sold'), /free of charge/);
});

test('a voucher that a supervisor made gives its seats to whoever brings it, to any clerk, once', async () => {
  await at.stand(CLERK);
  await at.page.keyboard.press('F4');
  await at.click('voucher-new');
  await at.fill('voucher-recipient', '<b>The Gazette</b>');
  await at.fill('voucher-seats', '1');
  await at.fill('voucher-reason', 'press');
  await at.click('voucher-make');
  await approve(at.page, SUPERVISOR);
  const code = await at.text('voucher-made');
  assert.match(code, /^[0-9A-Z]{5}-[0-9A-Z]{5}$/);
  await at.click('voucher-done');
  const row = at.page.getByTestId('voucher').filter({ hasText: '<b>The Gazette</b>' });
  await row.waitFor();

  await at.page.keyboard.press('F1');
  await at.take(2);
  await at.page.keyboard.press('F10');
  await at.fill('voucher-code', code.toLowerCase());
  await at.page.keyboard.press('Enter');
  await at.says('voucher-wrong', /1 seat/);
  await at.page.keyboard.press('Escape');
  await at.click('release');

  await at.take(1);
  await at.page.keyboard.press('F10');
  await at.fill('voucher-code', 'AAAAA-AAAAA');
  await at.page.keyboard.press('Enter');
  await at.says('comp-message', /No voucher/);
  await at.fill('voucher-code', code.toLowerCase());
  await at.page.keyboard.press('Enter');
  await at.says('voucher-found', /<b>The Gazette<\/b>/);
  await at.page.keyboard.press('Enter');
  await at.shows('sold');
  assert.match(await at.text('sold'), /for a voucher/);
  await at.click('next');

  await at.take(1);
  await at.page.keyboard.press('F10');
  await at.fill('voucher-code', code);
  await at.page.keyboard.press('Enter');
  await at.says('voucher-wrong', /used/);
  await at.page.keyboard.press('Escape');
  await at.click('release');
  await at.page.keyboard.press('F4');
  await at.page.locator('[data-testid=voucher][data-state=used]').waitFor();
});

test('what takes a supervisor is approved by one, and the clerk sells on', async () => {
  await at.stand(CLERK);
  await at.take(1);
  await at.page.keyboard.press('F10');
  await at.fill('comp-reason', '<img src=x onerror=alert(1)>');
  await at.page.keyboard.press('Enter');
  await at.shows('approval');
  assert.match(await at.text('approval'), /<img src=x onerror=alert\(1\)>/);
  await approve(at.page, { ...SUPERVISOR, pin: '000000' });
  await at.says('approval-message', /wrong/);
  await approve(at.page, CLERK);
  await at.says('approval-message', /takes a supervisor/);
  await at.page.keyboard.press('Escape');
  await at.says('comp-message', /nobody approved/);
  await at.click('comp-go');
  await approve(at.page, SUPERVISOR);
  await at.shows('sold');
  assert.equal(await at.text('who'), CLERK.name);
  await at.click('next');
  await at.take(1);
  await at.page.keyboard.press('F10');
  await at.fill('comp-reason', 'another one');
  await at.page.keyboard.press('Enter');
  await at.shows('approval');
  await at.page.keyboard.press('Escape');
  await at.page.keyboard.press('Escape');
  await at.click('release');
  const written = await at.house.sql(
    `select s.name from audit a join staff s on s.id = a.staff_id where a.verb = 'sale_comp' and a.reason like '<img%'`,
  );
  assert.equal(written, SUPERVISOR.name, 'the books name whoever approved it');
});

test('an order is found by its code, and a seat of it goes back to the house', async () => {
  const name = await at.stand(SUPERVISOR);
  const { code, seats } = await at.sellByCard(name);
  await at.find(code);
  await at.click('mail-again');
  await at.says('order-message', /left no address/);
  await at.page.getByTestId('order-seat').first().click();
  await at.click('refund');
  assert.equal(await at.page.getByTestId('refund-message').count(), 0, 'that was about the mail');
  await at.click('become-house');
  await at.page.getByTestId('refund-reason').fill('ill');
  await at.click('refund-go');
  await at.page.getByTestId('order-done').waitFor({ timeout: HUNG });
  await at.page.keyboard.press('F1');
  await at.page.waitForFunction((seat) => window.__fullhouse.status(seat) === 3, seats[0], {
    timeout: HUNG,
  });
  assert.equal(await at.page.evaluate((seat) => window.__fullhouse.status(seat), seats[1]), 2);
});

test('a seat is exchanged for another one on the map', async () => {
  const name = await at.stand(SUPERVISOR);
  const { code, seats } = await at.sellByCard(name, 1);
  await at.find(code);
  await at.page.getByTestId('order-seat').first().click();
  await at.click('exchange-start');
  await at.page.getByTestId('exchange').waitFor();
  const [free] = await at.free(1);
  await touchSeat(at.page, free);
  await at.page.getByTestId('exchange-reason').fill('behind a pillar');
  await at.click('exchange-go');
  await at.page.getByTestId('exchange-done').waitFor({ timeout: HUNG });
  await at.page.waitForFunction(
    ([old, other]) =>
      window.__fullhouse.status(old) === 0 && window.__fullhouse.status(other) === 2,
    [seats[0], free],
    { timeout: HUNG },
  );
  await at.click('exchange-leave');
  await at.page.getByTestId('best').waitFor();
});

test('a dearer seat is paid at the reader, and a card that is declined changes nothing', async () => {
  const name = await at.stand(SUPERVISOR);
  const [cheap, dear] = await at.cheapAndDear();
  const { code } = await at.sellSeatsByCard(name, [cheap]);
  await at.beginExchange(code, dear, 'nearer');
  assert.match(await at.text('exchange-offer'), /To pay/);
  await at.click('exchange-card');
  await at.shows('card-waiting');
  await holdCard(at.house, name, DECLINED);
  await at.says('exchange-unpaid', /declined/);
  await at.becomes(cheap, 2);
  await at.becomes(dear, 1);
  await at.page.keyboard.press('F9');
  await at.shows('card-waiting');
  await holdCard(at.house, name);
  await at.shows('exchange-done', 3 * HUNG);
  await at.says('printed', /\b1 of 1\b/);
  await at.becomes(cheap, 0);
  await at.becomes(dear, 2);
  await at.click('exchange-leave');
  await at.shows('best');
});

test('a reader that is stopped leaves an exchange open: for cash, or for the old seat', async () => {
  const name = await at.stand(SUPERVISOR);
  await openShift(at.page, '10000', 'JPY');
  const [cheap, dear] = await at.cheapAndDear();
  const { code } = await at.sellSeatsByCard(name, [cheap]);
  const atReader = async () => {
    await at.beginExchange(code, dear, 'nearer');
    await at.click('exchange-card');
    await at.shows('card-waiting');
    await at.click('stop-card');
    await at.says('exchange-unpaid', /nothing was charged/);
  };
  await atReader();
  await at.click('exchange-cancel');
  await at.shows('best');
  await at.becomes(dear, 0);
  await at.becomes(cheap, 2);
  await atReader();
  await at.page.keyboard.press('F8');
  await at.fill('cash-received', '100000');
  await at.click('cash-sell');
  await at.says('exchange-done', /Hand back/);
  await at.becomes(cheap, 0);
  await at.becomes(dear, 2);
});

test('what goes back of a cheaper seat, and how, is said before it is exchanged', async () => {
  const name = await at.stand(SUPERVISOR);
  const [cheap, dear] = await at.cheapAndDear();
  const { code } = await at.sellSeatsByCard(name, [dear]);
  await at.beginExchange(code, cheap, 'further back');
  assert.match(await at.text('exchange-offer'), /Goes back/);
  assert.match(await at.text('exchange-back'), /to the card that paid/);
  await at.click('exchange-go');
  await at.says('exchange-done', /to the card that paid/);
  assert.doesNotMatch(await at.text('exchange-done'), /Hand back/);
});

test('seats that somebody else was faster to take are told, and nearby ones offered', async () => {
  await at.stand(SUPERVISOR);
  const [seat] = await at.free(1);
  const other = await enrolled(at.chrome, at.house, at.screens, 'Another counter', 'counter');
  await signIn(other, CLERK);
  await openHall(other, at.event.id);
  await touchSeat(at.page, seat);
  await at.page.route('**/api/box-office/holds', async (route) => {
    await touchSeat(other, seat);
    await other.getByTestId('take').click();
    await other.getByTestId('total').waitFor({ timeout: HUNG });
    await route.continue();
  });
  await at.click('take');
  await at.page.getByTestId('sale-message').waitFor({ timeout: HUNG });
  assert.match(await at.text('sale-message'), /taken/);
  await other.context().close();
});

test('within two seconds it says that the network is gone, and sells again when it is back', async () => {
  await at.stand(SUPERVISOR);
  await at.page.context().setOffline(true);
  await at.page.getByTestId('no-network').waitFor({ timeout: 2_000 + HUNG });
  assert.ok(await at.page.getByTestId('best').isDisabled());
  await at.page.context().setOffline(false);
  await at.page.getByTestId('no-network').waitFor({ state: 'detached', timeout: HUNG });
  await at.page.keyboard.press('F6');
  await at.page.getByTestId('total').waitFor({ timeout: HUNG });
  await at.page.keyboard.press('Escape');
});
