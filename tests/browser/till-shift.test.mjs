// The drawer of a counter: from the float to the Z report, and the books of the day.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { HUNG } from './house.mjs';
import { approve, CLERK, Counters, MANAGER, openShift, scan, SUPERVISOR } from './till.mjs';

const TEST_CODE = 'FULLHOUSE:0123456789-AQWZYM';
let at;

before(async () => {
  at = await Counters.open('lantern-cup-night-race');
});

after(() => at?.close());

afterEach(async () => assert.deepEqual(await at.leave(), []));

const shift = () => at.page.keyboard.press('F3');

async function move(kind, amount, reason) {
  await at.click(`move-${kind}`);
  await at.fill('move-amount', amount);
  await at.fill('move-reason', reason);
  await at.click('move');
}

test('cash needs an open shift, and says how to open one', async () => {
  await at.stand(CLERK);
  await at.take(1);
  await at.page.keyboard.press('F8');
  await at.click('cash-likely');
  await at.page.keyboard.press('Enter');
  await at.says('cash-message', /F3/);
  await at.page.keyboard.press('Escape');
  await at.click('release');
});

test('a shift goes from its float to a Z report, which is printed again as it was', async () => {
  await at.stand(CLERK);
  await shift();
  await at.shows('shift-open-form');
  const proposed = await at.page.getByTestId('shift-currency').inputValue();
  assert.equal(proposed, at.event.currency, 'the drawer is for what is sold here');
  await openShift(at.page, '100', at.event.currency);
  await at.take(1);
  const price = Number((await at.text('total')).replaceAll(/\D/g, '')); // yen have no digits behind the point
  await at.page.keyboard.press('F8');
  await at.page.getByTestId('cash-likely').nth(1).click();
  await at.page.keyboard.press('Enter');
  await at.shows('change');
  await at.click('receipt');
  await at.page.getByTestId('papers').filter({ hasText: 'Change' }).waitFor({ state: 'attached' });
  await at.page.keyboard.press('Enter');
  await shift();
  await at.shows('x-report');
  await move('drop', '50', 'too much in it');
  await at.says('moved', /too much in it/);
  await move('pay_in', '20', 'coins');
  await at.says('moved', /coins/);
  await move('pay_out', '5', `milk <img src=x onerror=alert(1)>`);
  await approve(at.page, SUPERVISOR);
  await at.says('moved', /milk <img/);
  await move('drop', '999999', 'more than there is');
  await at.says('shift-message', /not that much/);
  const expected = 100 + price - 50 + 20 - 5;
  await at.says('expected', new RegExp(expected.toLocaleString('en')));
  await at.click('print-report');
  await at.page.getByTestId('papers').filter({ hasText: 'X' }).waitFor({ state: 'attached' });

  await at.click('shift-count');
  await at.page.keyboard.type('0');
  for (const kind of [5000, 100]) await at.fill(`count-${kind}`, kind === 5000 ? '1' : '7');
  await at.fill('count-100', 'seven');
  await at.shows('count-unread');
  await at.fill('count-100', '7');
  const shown = () => at.text('count-form').then((text) => text.replaceAll(/\D/g, ''));
  assert.ok(!(await shown()).includes(String(expected)), 'whoever counts is not told before');
  assert.equal(await at.page.getByTestId('variance').count(), 0);
  await at.click('shift-close');
  await at.says('told-expected', new RegExp(expected.toLocaleString('en')));
  await at.says('variance', /missing/);
  assert.ok(await at.page.getByTestId('shift-close').isDisabled(), 'a variance has its reason');
  await at.click('count-again');
  assert.equal(await at.page.getByTestId('told-expected').count(), 0);
  for (const kind of [5000, 100]) await at.fill(`count-${kind}`, kind === 5000 ? '1' : '7');
  await at.click('shift-close');
  await at.fill('variance-why', 'I do not know');
  await at.click('shift-close');
  await at.shows('z-report');
  const variance = await at.text('z-variance');
  assert.match(await at.text('z-report'), /I do not know/);
  await at.click('shift-next');
  await at.shows('shift-open-form');
  await at.click('past-shift');
  await at.shows('z-report');
  assert.equal(await at.text('z-variance'), variance);
  await at.click('print-report');
  await at.page
    .getByTestId('papers')
    .filter({ hasText: 'I do not know' })
    .waitFor({ state: 'attached' });
});

test('a test page is printed, and the scanner has to read it', async () => {
  await at.stand(CLERK);
  await openShift(at.page, '10', at.event.currency);
  await shift();
  await at.click('test-print');
  await at.shows('test-waiting');
  await scan(at.page, 'ABCDEF123456');
  await at.says('test-scan', /another code/);
  await at.says('check-printer', /Test page printed .*Cleo/);
  await scan(at.page, TEST_CODE);
  await at.says('test-scan', /reads what is printed/);
  await at.says('check-scanner', /Test page scanned .*Cleo/);
  assert.equal(await at.page.getByTestId('move-amount').inputValue(), '');
});

test('a scanner that is missing is skipped with a reason, and the reports say so', async () => {
  await at.stand(CLERK);
  await openShift(at.page, '0', at.event.currency);
  await shift();
  await at.says('test-paper', /Before the first customer/);
  await at.click('skip-scanner');
  assert.ok(await at.page.getByTestId('skip-check-go').isDisabled(), 'there is a reason');
  await at.fill('skip-check-reason', 'its cable is broken <img>');
  await at.click('skip-check-go');
  await at.says('check-scanner', /not scanned: its cable is broken <img>, Cleo/);
  await at.says('check-printer', /Print a test page/);
  await at.click('print-report');
  const papers = at.page.getByTestId('papers');
  await papers.filter({ hasText: 'its cable is broken' }).waitFor({ state: 'attached' });
  assert.match(await papers.innerText().catch(() => papers.textContent()), /No test page/);
  await at.click('shift-count');
  await at.click('shift-close');
  await at.says('z-report', /not scanned: its cable is broken/);
});

test('a manager counts the drawer of a terminal that was revoked, at another counter', async () => {
  const gone = await at.stand(CLERK);
  await openShift(at.page, '100', at.event.currency);
  await at.leave();
  const why = ['--reason', 'it was stolen', '--by', 'a test'];
  await at.house.command(['terminal', 'revoke', gone, ...why]);
  await at.stand(SUPERVISOR);
  await shift();
  await at.shows('day-lock');
  assert.equal(await at.page.getByTestId('stopped-shift').count(), 0, 'not a supervisor');
  await at.leave();
  await at.stand(MANAGER);
  await shift();
  await at.says('stopped-shift', new RegExp(`open[^]*${gone}: ${CLERK.name}[^]*Count`));
  await at.click('stopped-shift');
  await at.says('count-form', new RegExp(`Count the drawer of ${gone}`));
  await at.fill('count-50', '1');
  await at.click('shift-close');
  await at.says('variance', /50 missing/);
  await at.fill('variance-why', 'a note is gone with it');
  await at.click('shift-close');
  await at.says('z-report', new RegExp(`${gone}[^]*a note is gone with it`));
  await at.click('print-report');
  const papers = at.page.getByTestId('papers').filter({ hasText: 'a note is gone with it' });
  await papers.waitFor({ state: 'attached' });
  await at.click('shift-next');
  await at.says('stopped-shift', /Z 1/);
  const logged = await at.house.sql(
    `select actor, reason from audit where verb = 'shift_close' and detail like '%of ${gone},%'`,
  );
  assert.match(logged, /^Mika Manager at .*\|a note is gone with it$/);
});

test('the books of a day close once every shift of it is closed, by a manager', async () => {
  await at.stand(CLERK);
  await shift();
  await at.shows('day-lock');
  await openShift(at.page, '10', at.event.currency);
  await shift();
  await at.shows('past-shift');
  await at.page.waitForFunction(
    () => document.querySelector('[data-testid=day-lock-date]').value !== '',
    null,
    { timeout: HUNG },
  );
  await at.click('day-lock-go');
  await approve(at.page, MANAGER);
  await at.says('past-message', /still open/);
  await at.says('shifts-open', CLERK.name);
});
