// Seats that a partner sells elsewhere: given by a supervisor, reported sold and back by a clerk, and paid.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { HUNG } from './house.mjs';
import { approve, CLERK, Counters, openShift, SUPERVISOR } from './till.mjs';

const [FREE, HELD, SOLD, BLOCKED] = [0, 1, 2, 3];
const ODD = '<img src=x onerror=alert(1)>';
let at;

before(async () => {
  at = await Counters.open('lantern-cup-night-race');
});

after(() => at?.close());

afterEach(async () => assert.deepEqual(await at.leave(), []));

test('a partner is given seats, reports some sold and some back, and pays what it owes', async () => {
  await at.stand(CLERK);
  await openShift(at.page, '100', at.event.currency);
  await at.click('house');
  const seats = await at.free(3);
  await at.touch(seats);
  await at.fill('block-reason', 'their spring tour');
  await at.click('consign');
  await at.fill('partner-name', `Atlas ${ODD}`);
  await at.fill('partner-code', 'atlas');
  await at.fill('partner-contact', '020 7946 0000');
  assert.equal(await at.page.getByTestId('consign-note').inputValue(), 'their spring tour');
  await at.click('consign-go');
  await approve(at.page, SUPERVISOR);
  await at.says('house-done', /3 seats with Atlas <img/);
  for (const seat of seats) await at.becomes(seat, HELD);
  await at.click('house-end');
  await at.touch([seats[0]]);
  await at.says('seat-consigned', /Consigned to Atlas <img/);

  await at.page.keyboard.press('F4');
  await at.fill('waiting-find', 'spring');
  await at.says('consignment', /3 open/);
  await at.click('consigned-sold');
  assert.ok(await at.page.getByTestId('reported-go').isDisabled(), 'which ones?');
  for (const index of [0, 1]) await at.page.getByTestId('reported-seat').nth(index).click();
  await at.click('reported-go');
  await at.says('reported-done', /on the account of\s+Atlas <img/);
  await at.click('reported-close');
  await at.says('consignment', /1 open\s+· 2 sold/);

  await at.click('consigned-back');
  await at.fill('reported-reason', 'a smaller group');
  await at.click('reported-go');
  await at.says('consignment', /0 open\s+· 2 sold · 1 back/);
  await at.click('consigned-account');
  const owed = (await at.text('account-owed')).replaceAll(/\D/g, '');
  await at.fill('account-amount', owed);
  await at.click('account-cash');
  await at.fill('account-reference', 'receipt 12');
  await at.click('account-pay');
  await at.says('account-owed', /^\D*0$/);
  await at.says('account-paid', /Cash: receipt 12/);

  // One of their guests is ill; what was paid for that seat is paid back.
  await at.click('account-order');
  await at.page.getByTestId('order-seat').first().click();
  await at.click('refund');
  await at.click('become-house');
  await at.fill('refund-reason', 'ill');
  await at.click('refund-go');
  await approve(at.page, SUPERVISOR);
  await at.page.getByTestId('order-done').waitFor({ timeout: HUNG });
  await at.page.keyboard.press('F4');
  await at.fill('waiting-find', 'spring');
  await at.click('consigned-account');
  await at.says('account-dialog', /The house owes/);
  const back = (await at.text('account-owed')).replaceAll(/\D/g, '');
  assert.ok(Number(back) > 0 && Number(back) < Number(owed));
  await at.fill('account-amount', `${back}0`);
  await at.click('account-cash');
  await at.fill('account-reference', 'receipt 13');
  await at.click('account-pay');
  await approve(at.page, SUPERVISOR);
  await at.says('account-message', /Less is owed/);
  await at.fill('account-amount', back);
  await at.click('account-pay');
  await approve(at.page, SUPERVISOR);
  await at.says('account-owed', /^\D*0$/);
  await at.says('account-paid', /Paid back: Cash: receipt 13/);
  await at.click('account-close');
  await at.page.keyboard.press('F3');
  await at.says('moved', /ATLAS Atlas <img.*receipt 13/);

  await at.page.keyboard.press('F1');
  await at.becomes(seats[0], BLOCKED);
  await at.becomes(seats[1], SOLD);
  await at.becomes(seats[2], FREE);
  const named = await at.house.sql(
    `select string_agg(distinct verb || ' ' || s.name, ', ' order by verb || ' ' || s.name) from audit a
     join staff s on s.id = a.staff_id where verb in ('partner_add', 'consign', 'sale_account', 'consign_return', 'partner_pay', 'partner_repay')`,
  );
  const [clerk, boss] = [CLERK.name, SUPERVISOR.name];
  assert.deepEqual(
    named.split(', ').toSorted(),
    [
      `consign ${boss}`,
      `consign_return ${clerk}`,
      `partner_add ${boss}`,
      `partner_pay ${clerk}`,
      `partner_repay ${boss}`,
      `sale_account ${clerk}`,
    ].toSorted(),
  );
});

test('a cut-off is moved by a supervisor’s word, and is told', async () => {
  await at.stand(CLERK);
  await at.click('house');
  const [seat] = await at.free(1);
  await at.touch([seat]);
  await at.click('consign');
  await at.fill('consign-note', 'a late coach');
  await at.page.getByTestId('consign-partner').selectOption({ index: 0 });
  await at.click('consign-go');
  await approve(at.page, SUPERVISOR);
  await at.becomes(seat, HELD);
  await at.page.keyboard.press('F4');
  await at.fill('waiting-find', 'late coach');
  await at.click('consigned-cut-off');
  assert.ok(await at.page.getByTestId('cut-off-go').isDisabled(), 'not without a reason');
  await at.fill('cut-off-until', '2001-01-01T10:00');
  await at.fill('cut-off-reason', 'it broke down');
  await at.page.keyboard.press('Enter');
  await approve(at.page, SUPERVISOR);
  await at.says('cut-off-message', /from a minute/);
  await at.click('cut-off-until-0');
  await at.click('cut-off-go');
  await approve(at.page, SUPERVISOR);
  await at.page.getByTestId('cut-off-dialog').waitFor({ state: 'detached', timeout: HUNG });
  const who = await at.house.sql(
    `select s.name || ': ' || reason from audit a join staff s on s.id = a.staff_id where verb = 'consign_cut_off'`,
  );
  assert.equal(who, `${SUPERVISOR.name}: it broke down`);
});

test('the cut-off that a clerk types is the hub’s to refuse, and is told', async () => {
  await at.stand(SUPERVISOR);
  await at.click('house');
  const [seat] = await at.free(1);
  await at.touch([seat]);
  await at.click('consign');
  await at.page
    .getByTestId('consign-partner')
    .locator('option')
    .nth(1)
    .waitFor({ state: 'attached', timeout: HUNG });
  await at.fill('consign-note', 'a school');
  await at.fill('consign-until', '2001-01-01T10:00');
  await at.click('consign-go');
  await at.says('consign-message', /cut-off|from a minute/);
  await at.click('consign-until-0');
  await at.click('consign-go');
  await at.becomes(seat, HELD);
});
