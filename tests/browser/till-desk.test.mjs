// What a counter does for people besides selling at once: other prices, seats put aside, seats of the house, whose a
// seat is, tickets for those who come later, and a scanner that opens orders.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { clickSeat, HUNG, openEvent } from './house.mjs';
import {
  approve,
  CLERK,
  Counters,
  holdCard,
  MANAGER,
  openShift,
  scan,
  SUPERVISOR,
} from './till.mjs';

const [FREE, HELD, SOLD, BLOCKED] = [0, 1, 2, 3];
const ODD = '<img src=x onerror=alert(1)>';
let at;

before(async () => {
  at = await Counters.open('lantern-cup-night-race');
});

after(() => at?.close());

afterEach(async () => assert.deepEqual(await at.leave(), []));

test('another price has a reason and a supervisor’s word, and the clerk sells at it', async () => {
  await at.stand(CLERK);
  await openShift(at.page, '100', at.event.currency);
  await at.take(2);
  const before = await at.text('total');
  await at.click('held-price');
  await at.fill('price-amount', '7');
  await at.fill('price-reason', `a pillar ${ODD}`);
  await at.page.keyboard.press('Enter');
  await approve(at.page, SUPERVISOR);
  await at.page.getByTestId('price-dialog').waitFor({ state: 'detached', timeout: HUNG });
  await at.page.waitForFunction(
    (before) => document.querySelector('[data-testid=total]').innerText !== before,
    before,
    { timeout: HUNG },
  );
  assert.match(await at.text('held-price'), /7/);
  await at.page.keyboard.press('F8');
  await at.click('cash-likely');
  await at.page.keyboard.press('Enter');
  await at.shows('sold');
  const sold = await at.house.sql(
    `select s.name, l.amount_minor, l.price_reason from order_line l join tender t using (order_id)
     join staff s on s.id = t.staff_id where l.price_reason is not null`,
  );
  assert.equal(sold, `${CLERK.name}|7|a pillar ${ODD}`, 'the clerk sold it');
});

test('the list’s price comes back', async () => {
  await at.stand(SUPERVISOR);
  await at.take(1);
  const list = await at.text('total');
  await at.click('held-price');
  await at.fill('price-amount', '2');
  await at.fill('price-reason', 'a mistake');
  await at.click('price-set');
  await at.says('total', /^\D*2$/);
  await at.click('held-price');
  await at.click('price-list');
  await at.page.waitForFunction(
    (list) => document.querySelector('[data-testid=total]').innerText === list,
    list,
    { timeout: HUNG },
  );
  await at.click('release');
});

test('seats wait for somebody under a name, and another counter sells them', async () => {
  await at.stand(CLERK);
  const seats = await at.free(2);
  await at.touch(seats);
  await at.page.keyboard.press('F7');
  await at.fill('aside-name', ODD);
  await at.click('aside-until-0');
  await at.fill('aside-note', 'comes at six');
  await at.click('aside-go');
  await at.says('aside-done', /Put aside/);
  await at.becomes(seats[0], HELD);
  await at.leave();
  const name = await at.stand(CLERK);
  await at.page.keyboard.press('F4');
  await at.fill('waiting-find', 'six');
  assert.equal(await at.page.getByTestId('aside-hold').count(), 1);
  await at.click('aside-sell');
  await at.says('held-for', /onerror/);
  await at.shows('total');
  // Whoever goes away again finds them waiting.
  await at.page.keyboard.press('Escape');
  await at.shows('best');
  await at.touch([seats[0]]);
  await at.says('seat-customer', /onerror/);
  await at.click('seat-sell');
  await at.shows('total');
  await at.click('card');
  await holdCard(at.house, name);
  await at.shows('sold', 3 * HUNG);
  await at.becomes(seats[1], SOLD);
});

test('what somebody else put aside goes back on sale by a supervisor', async () => {
  await at.stand(SUPERVISOR);
  const [seat] = await at.free(1);
  await at.touch([seat]);
  await at.click('aside');
  await at.fill('aside-name', 'Mrs Lovelace');
  await at.page.keyboard.press('Enter');
  await at.becomes(seat, HELD);
  await at.leave();
  await at.stand(CLERK);
  await at.page.keyboard.press('F4');
  await at.fill('waiting-find', 'lovelace');
  await at.click('aside-release');
  await at.fill('let-go-reason', 'she called');
  await at.click('let-go-go');
  await approve(at.page, SUPERVISOR);
  await at.page.getByTestId('aside-hold').waitFor({ state: 'detached', timeout: HUNG });
  await at.page.keyboard.press('F1');
  await at.becomes(seat, FREE);
});

test('house seats are blocked, moved, put back on sale and given up for good, with a reason', async () => {
  await at.stand(SUPERVISOR);
  await at.click('house');
  const [seat, other] = await at.free(2);
  await at.touch([seat]);
  assert.ok(await at.page.getByTestId('block').isDisabled(), 'not without a reason');
  await at.fill('block-reason', 'camera');
  await at.click('block');
  await at.says('house-done', /1 seat blocked/);
  await at.becomes(seat, BLOCKED);
  await at.touch([seat, other]);
  await at.click('move-seats');
  await at.says('house-done', /moved/);
  await at.becomes(seat, FREE);
  await at.becomes(other, BLOCKED);
  await at.touch([other]);
  await at.click('unblock');
  await at.becomes(other, FREE);
  await at.touch([other]);
  await at.click('kill');
  await at.says('house-done', /given up/);
  await at.becomes(other, BLOCKED);
  await at.touch([other]);
  await at.click('unblock');
  await at.says('house-message', /for good/);
  await at.click('house-story');
  await at.says('seat-status', /Given up/);
  await at.says('seat-happened', /camera/);
  await at.page.keyboard.press('Escape');
  await at.click('revive');
  await approve(at.page, MANAGER);
  await at.becomes(other, FREE);
});

test('what seats are for one performance is changed with a supervisor’s word, and a fan who looks reads it', async () => {
  await at.stand(CLERK);
  const [seat, other] = await at.free(2);
  const fan = await at.chrome.newPage();
  await openEvent(fan, at.house, at.slug);
  await clickSeat(fan, seat);
  const line = fan.getByTestId('picked-seat');
  await line.waitFor();
  assert.doesNotMatch(await line.innerText(), /loudspeaker/);

  await at.click('house');
  await at.touch([seat, other]);
  await at.click('house-traits');
  await at.page.getByTestId('traits-restricted_view').check();
  await at.fill('traits-note', `a loudspeaker ${ODD}`);
  await at.fill('traits-reason', 'the rig hangs lower');
  await at.click('traits-go');
  await approve(at.page, SUPERVISOR);
  await at.says('house-done', /2 seats changed for this performance/);
  // The fan's page is read again while something is picked; nobody has to reload it.
  await line
    .filter({ hasText: `restricted view · a loudspeaker ${ODD}` })
    .waitFor({ timeout: 3 * HUNG });
  await fan.close();

  await at.click('house-end');
  await at.takeThese([seat]);
  assert.match(await at.text('held-traits'), /restricted view · a loudspeaker/);
  await at.page.keyboard.press('Escape');
  await at.becomes(seat, FREE);

  await at.click('house');
  await at.touch([seat]);
  await at.click('house-story');
  await at.says('seat-traits', /restricted view/);
  await at.says('seat-happened', /the rig hangs lower/);
  await at.click('seat-change');
  await at.page.getByTestId('traits-restricted_view').uncheck();
  await at.fill('traits-note', '');
  await at.fill('traits-reason', 'the rig was moved');
  await at.click('traits-go');
  await approve(at.page, SUPERVISOR);
  await at.says('seat-changed', /1 seat changed/);
  await at.page.getByTestId('seat-traits').waitFor({ state: 'detached', timeout: HUNG });
  const left = await at.house.sql('select string_agg(seat_no::text, $$,$$) from seat_trait');
  assert.equal(left, String(other), 'what is as the plan has it is not said');
});

test('a whole section is blocked and put back, and what is sold of it stays', async () => {
  const name = await at.stand(SUPERVISOR);
  const { seats } = await at.sellByCard(name, 1);
  const [sold] = seats;
  const free = await at.page.evaluate(() => window.__fullhouse.statuses());
  await at.touch([sold]);
  await at.shows('seat-owner');
  await at.page.keyboard.press('Escape');
  await at.click('house');
  await at.fill('block-reason', 'rain');
  const options = await at.page.getByTestId('house-section').locator('option').allInnerTexts();
  const { section } = await ask(`/api/box-office/events/${at.event.id}/seats/${sold}`);
  assert.ok(options.includes(section), section);
  await at.page.getByTestId('house-section').selectOption(section);
  await at.click('section-block');
  await at.says('house-done', /stay as they are/);
  await at.page.waitForFunction((free) => window.__fullhouse.statuses() < free, free, {
    timeout: HUNG,
  });
  await at.becomes(sold, SOLD);
  await at.click('section-unblock');
  await at.page.waitForFunction((free) => window.__fullhouse.statuses() === free, free, {
    timeout: HUNG,
  });
});

test('a sold seat tells whose it is, and opens its order', async () => {
  const name = await at.stand(CLERK);
  const { code, seats } = await at.sellByCard(name, 1);
  await at.touch(seats);
  await at.says('seat-order', code);
  await at.says('seat-happened', /sold/);
  await at.click('seat-order');
  await at.shows('order');
  assert.match(await at.text('order'), new RegExp(code));
});

test('a scan of a ticket opens its order, whatever has the focus and under Caps Lock', async () => {
  const name = await at.stand(CLERK);
  const { code } = await at.sellByCard(name, 1);
  const ticket = await ticketOf(code);
  await at.page.keyboard.press('F4');
  await at.page.getByTestId('waiting-find').focus();
  await scan(at.page, ticket);
  await at.shows('order');
  assert.match(await at.text('order'), new RegExp(code));
  // Another one, into the field that looks orders up: it is not mixed with what stands there.
  await at.fill('find', 'Ana');
  await at.page.getByTestId('find').focus();
  await scan(at.page, ticket.toLowerCase());
  await at.page.waitForFunction(
    (ticket) => document.querySelector('[data-testid=find]').value === ticket,
    ticket,
    { timeout: HUNG },
  );
  // A hand types as ever.
  await at.fill('find', '');
  await at.page.getByTestId('find').pressSequentially('Ana Seat', { delay: 60 });
  await at.page.waitForFunction(
    () => document.querySelector('[data-testid=find]').value === 'Ana Seat',
    null,
    { timeout: HUNG },
  );
});

test('a scan in the middle of a question changes nothing', async () => {
  await at.stand(CLERK);
  await openShift(at.page, '100', at.event.currency);
  await at.take(1);
  await at.page.keyboard.press('F8');
  await at.shows('cash-dialog');
  await scan(at.page, 'ABCDEF123456');
  await at.says('counter-message', /Finish this first/);
  assert.equal(await at.page.getByTestId('cash-received').inputValue(), '');
  await at.page.keyboard.press('Escape');
  await at.click('release');
});

test('tickets are printed once; again only with a reason, and the old code dies', async () => {
  const name = await at.stand(CLERK);
  const { code } = await at.sellByCard(name, 1);
  const old = await ticketOf(code);
  await at.find(code);
  await at.click('reprint');
  await at.fill('reprint-reason', 'it got wet');
  await at.click('reprint-go');
  await at.says('printed', /1 of 1/);
  const fresh = await ticketOf(code);
  assert.notEqual(fresh, old);
  const reason = await at.house.sql(
    `select a.reason from audit a where a.verb = 'order_reissue' and a.detail like 'order ${code}%'`,
  );
  assert.match(reason, /it got wet/);
});

test('who comes for tickets is found by name, and many are printed at once', async () => {
  const name = await at.stand(CLERK);
  const codes = [];
  for (let i = 0; i < 2; i++) codes.push((await at.sellByCard(name, 1)).code);
  // Sold at a counter they are printed at once: as if bought on the web, they were not yet.
  await at.house.sql(
    `delete from ticket_print p using "order" o where o.id = p.order_id and o.code in ('${codes.join("','")}')`,
  );
  await at.page.keyboard.press('F4');
  for (const code of codes) {
    await at.fill('waiting-find', code);
    await at.page.getByTestId('will-call-choose').check();
  }
  await at.fill('waiting-find', '');
  await at.click('will-call-print');
  await at.says('will-call-printed', /2 tickets/);
  for (const code of codes)
    await at.page.getByTestId('waiting').getByText(code).waitFor({ state: 'detached' });
});

test('a manager reads what people did, by person and kind; what they wrote is text', async () => {
  await at.stand(SUPERVISOR);
  assert.equal(await at.page.getByTestId('tab-log').count(), 0, 'not a supervisor');
  await at.click('house');
  const [seat] = await at.free(1);
  await at.touch([seat]);
  await at.fill('block-reason', ODD);
  await at.click('block');
  await at.becomes(seat, BLOCKED);
  await at.leave();
  await at.stand(MANAGER);
  await at.page.keyboard.press('F5');
  await at.fill('log-person', 'sora');
  await at.page.getByTestId('log-verb').selectOption('seat_block');
  await at.page.getByTestId('log-event').check();
  await at.click('log-read');
  // Until the answer is there the list is of everything.
  await at.page.waitForFunction(
    () => {
      const lines = [...document.querySelectorAll('[data-testid=logged]')];
      return lines.length > 0 && lines.every((line) => /blocked[^]*Sora/.test(line.innerText));
    },
    null,
    { timeout: HUNG },
  );
  await at.says('logged', ODD);
  await at.fill('log-person', 'nobody of this name');
  await at.page.keyboard.press('Enter');
  await at.page.getByTestId('logged').first().waitFor({ state: 'detached', timeout: HUNG });
});

test('an operator sees which counters and kiosks need a hand', async () => {
  const name = await at.stand(CLERK);
  const told = await at.page.evaluate(async () => {
    const token = sessionStorage.getItem('fullhouse.till.terminal');
    const health = { version: '9.8.7', paper: 'out', reader: 'none' };
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = JSON.stringify(health);
    return (await fetch('/api/box-office/health', { method: 'POST', headers, body })).status;
  });
  assert.equal(told, 204);
  const page = await (await at.chrome.newContext({ locale: 'en-GB' })).newPage();
  await page.goto(`${at.house.url}/staff`);
  await page.getByTestId('email').fill('operator@example.com');
  await page.getByTestId('password').fill('open the doors');
  await page.getByTestId('submit-signin').click();
  const terminal = page.getByTestId('staff-terminal').filter({ hasText: name });
  await terminal.waitFor({ timeout: HUNG });
  assert.equal(await terminal.getAttribute('data-state'), 'bad');
  assert.match(await terminal.innerText(), /No paper[^]*9\.8\.7/);
  await page.context().close();
});

/** What this terminal and whoever stands there are answered by the hub. */
async function ask(path) {
  return at.page.evaluate(async (path) => {
    const headers = {
      authorization: `Bearer ${sessionStorage.getItem('fullhouse.till.terminal')}`,
      'fullhouse-staff': sessionStorage.getItem('fullhouse.till.staff'),
    };
    return (await fetch(path, { headers })).json();
  }, path);
}

/** The code of an order's only valid ticket, as a door reads it. */
async function ticketOf(code) {
  const { orders } = await ask(`/api/staff/orders?q=${code}`);
  const { order } = await ask(`/api/staff/orders/${orders[0].order_id}`);
  return order.tickets.find(({ state }) => state === 'valid').code;
}
