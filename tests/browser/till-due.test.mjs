// Money that is due at a counter: a card that fails after its seats were sold, and an exchange that waits to be paid. Any
// counter takes it, in cash or at its own reader.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { HUNG } from './house.mjs';
import {
  CLERK,
  Counters,
  DECLINED,
  holdCard,
  openHall,
  openShift,
  signIn,
  SUPERVISOR,
} from './till.mjs';

const [FREE, HELD, SOLD] = [0, 1, 2];
let at;

before(async () => {
  at = await Counters.open('lantern-cup-night-race');
});

after(() => at?.close());

afterEach(async () => {
  await at.house.rules([]);
  assert.deepEqual(await at.leave(), []);
});

/** The card is approved, and can't be charged after its seats were sold. */
const CAPTURE_FAILS = {
  match: { op: 'capture', first: 1 },
  effect: { outcome: { kind: 'capture_fails' } },
};

/** Sells a seat whose card can't be charged; answers with its order's code. */
async function sellUnpaid(name) {
  await at.house.rules([CAPTURE_FAILS]);
  await at.take(1);
  await at.click('card');
  await at.shows('card-waiting');
  await holdCard(at.house, name);
  await at.shows('payment-due', 3 * HUNG);
  return at.text('order-code');
}

test('a card that fails after the sale is followed by another one at the reader', async () => {
  const name = await at.stand(CLERK);
  const code = await sellUnpaid(name);
  await at.click('to-due');
  await at.says('order', code);
  await at.click('pay-due-card');
  await at.shows('card-waiting');
  await holdCard(at.house, name, DECLINED);
  await at.shows('due-declined');
  await at.click('pay-due-card');
  await at.shows('card-waiting');
  await holdCard(at.house, name);
  await at.says('order-done', /^Paid\.$/);
  await at.click('print');
  await at.says('printed', /\b1 of 1\b/);
  const kept = await at.house.sql(
    `select o.state, sum(a.captured_minor) = o.total_minor from "order" o
     join tender t on t.order_id = o.id join attempt a on a.tender_id = t.id where o.code = '${code}' group by o.id`,
  );
  assert.equal(kept, 'confirmed|t');
});

test('a counter that is left alone locks itself, but not while a card is at its reader', async () => {
  const name = await at.stand(CLERK);
  await at.house.sql(
    `update terminal set profile = profile || '{"lock_after_s": 30}' where name = '${name}'`,
  );
  await at.page.keyboard.press('F12');
  await at.page.reload();
  await signIn(at.page, CLERK);
  await openHall(at.page, at.event.id);
  const code = await sellUnpaid(name);
  await at.click('to-due');
  await at.says('order', code);
  await at.click('pay-due-card');
  await at.shows('card-waiting');
  await at.page.evaluate(() => (globalThis.wrongByMs = 60_000)); // nobody has touched it for so long
  await at.page.waitForTimeout(2_500); // it looks each second
  assert.ok(await at.page.getByTestId('card-waiting').isVisible());
  await holdCard(at.house, name);
  await at.shows('sign-in-form', 3 * HUNG);
  const state = await at.house.sql(`select state from "order" where code = '${code}'`);
  assert.equal(state, 'confirmed', 'it was paid before');
});

test('a reader that is stopped leaves it due, and another counter takes cash', async () => {
  const code = await sellUnpaid(await at.stand(CLERK));
  await at.leave();
  await at.stand(CLERK);
  await openShift(at.page, '100', at.event.currency);
  await at.find(code);
  await at.click('pay-due-card');
  await at.shows('card-waiting');
  await at.click('stop-card');
  await at.page.getByTestId('pay-due').waitFor({ timeout: 3 * HUNG });
  await at.click('pay-due');
  await at.fill('cash-received', '100000');
  await at.click('cash-sell');
  await at.says('order-done', /Hand back/);
  await at.page.getByTestId('due').waitFor({ state: 'detached', timeout: HUNG });
});

test('an exchange that waits to be paid is paid at another counter, or given up there', async () => {
  const [cheap, dear, code] = await waitingExchange();
  await at.stand(CLERK);
  await at.find(code);
  await at.says('due', /has the old ones/);
  await at.click('due-keep-old');
  await at.says('order-done', /old seats are kept/);
  await at.page.keyboard.press('F1');
  await at.becomes(dear, FREE);
  await at.becomes(cheap, SOLD);
  await at.leave();

  const [old, fresh, again] = await waitingExchange();
  const name = await at.stand(CLERK);
  await at.becomes(fresh, HELD);
  await at.find(again);
  await at.click('pay-due-card');
  await at.shows('card-waiting');
  await holdCard(at.house, name);
  await at.says('order-done', /^Paid\.$/);
  await at.page.keyboard.press('F1');
  await at.becomes(old, FREE);
  await at.becomes(fresh, SOLD);
});

/** A dearer seat for a cheap one, whose reader was stopped: the seats, and the new seat's order. */
async function waitingExchange() {
  const name = await at.stand(SUPERVISOR);
  const [cheap, dear] = await at.cheapAndDear();
  const { code } = await at.sellSeatsByCard(name, [cheap]);
  await at.beginExchange(code, dear, 'nearer');
  await at.click('exchange-card');
  await at.shows('card-waiting');
  await at.click('stop-card');
  await at.says('exchange-unpaid', /nothing was charged/);
  await at.leave();
  const waits = await at.house.sql(
    `select n.code from "order" n where n.state = 'open' and n.credit_minor > 0`,
  );
  return [cheap, dear, waits];
}
