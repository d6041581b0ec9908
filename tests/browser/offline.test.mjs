// A counter whose network fails: seats that it leased before are sold for cash, and the hub hears of it afterwards. The
// journal, the lease and the printing are the desktop's own core, which stands behind the page.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { Cable } from './desk.mjs';
import { browser, House, HUNG } from './house.mjs';
import { CLERK, enrolled, hire, openHall, openShift, screensOf, signIn } from './till.mjs';

let house, cable, chrome, screens, page, event;
let counters = 0;

before(async () => {
  house = await House.open();
  cable = await Cable.to(house.url);
  chrome = await browser();
  screens = await screensOf(house, cable.url);
  await hire(house, CLERK, 'clerk');
  // A small hall: what its tickets say is read when its seats are leased.
  const { events } = await house.api('/api/events');
  const open = events.filter(({ sale, has_line }) => sale === 'on_sale' && !has_line);
  [event] = open.sort((a, b) => a.seats_total - b.seats_total);
});

after(async () => {
  await chrome?.close();
  await screens?.close();
  cable?.close();
  await house?.close();
});

afterEach(async () => {
  cable.plugIn();
  const errors = page?.errors ?? [];
  await page?.context().close();
  page = undefined;
  assert.deepEqual(errors, []);
});

const click = (id) => page.getByTestId(id).first().click();
const shows = (id, within = 3 * HUNG) => page.getByTestId(id).first().waitFor({ timeout: within });
const hides = (id) => page.getByTestId(id).waitFor({ state: 'detached', timeout: 3 * HUNG });
const says = (id, text) =>
  page
    .getByTestId(id)
    .filter({ hasText: text })
    .first()
    .waitFor({ timeout: 3 * HUNG });

/** Waits for what the hub's database says. */
async function settled(sql, wanted) {
  let found;
  for (const end = Date.now() + 3 * HUNG; Date.now() < end;) {
    found = await house.sql(sql);
    if (found === wanted) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal(found, wanted, sql);
}

/** A counter in a shift, with so many seats leased. */
async function leased(count) {
  const name = `Offline ${++counters}`;
  page = await enrolled(chrome, house, screens, name, 'counter');
  await signIn(page, CLERK);
  await openShift(page, '100', event.currency);
  await openHall(page, event.id);
  await click('reach');
  await shows('leases-dialog');
  await page.getByTestId('lease-count').fill(String(count));
  await click('lease-go');
  await says('lease-seats', `${count} of ${count}`);
  await click('leases-done');
  return name;
}

/** Sells so many seats without a network. */
async function sell(first = true) {
  if (first) await click('offline-best');
  await click('offline-cash');
  await page.getByTestId('cash-likely').first().click();
  await click('cash-sell');
  await shows('offline-sold');
}

test('two seats are sold for cash without a network, and settled when it is back', async () => {
  const name = await leased(6);
  const of = `from journal_entry e join terminal t on t.id = e.terminal_id where t.name = '${name}'`;
  cable.pull();
  await shows('no-network');
  await says('no-network', '6 leased seats');
  await click('offline-best');
  assert.equal(await page.getByTestId('offline-picked').count(), 2);
  await sell(false);
  assert.match(await page.getByTestId('offline-printed').innerText(), /^2 of 2/);
  await click('next');
  await says('lease-left', '4 seats left');
  await says('unsettled', '1 sale and 0');
  assert.equal(await house.sql(`select count(*) ${of}`), '0', 'nobody was told yet');
  cable.plugIn();
  await hides('no-network');
  await hides('unsettled');
  await settled(`select count(*) ${of} and e.order_id is not null`, '1');
  await settled(
    `select count(*) from tender d join shift s on s.id = d.shift_id
     where d.order_id = (select e.order_id ${of}) and s.closed_at is null`,
    '1',
  );
  // The shift can't close before the rest has gone back.
  await click('reach');
  await click('lease-close');
  await page.getByTestId('lease').waitFor({ state: 'detached', timeout: 3 * HUNG });
  await settled(
    `select count(*) from lease l join terminal t on t.id = l.terminal_id
     where t.name = '${name}' and l.state = 'closed'`,
    '1',
  );
  await settled(`select count(*) from event_seat where lease_id is not null`, '0');
});

test('a network that fails while the leases are looked at leaves a way back to selling', async () => {
  await leased(2);
  for (const back of [() => page.keyboard.press('Escape'), () => click('leases-done')]) {
    await click('reach');
    await shows('leases-dialog');
    cable.pull();
    await shows('no-network');
    await page.keyboard.press('F6');
    assert.equal(await page.getByTestId('offline-picked').count(), 0, 'nothing goes on behind it');
    await back();
    await hides('leases-dialog');
    cable.plugIn();
    await hides('no-network');
  }
});

test('without a lease nothing is sold, and it says so', async () => {
  page = await enrolled(chrome, house, screens, `Offline ${++counters}`, 'counter');
  await signIn(page, CLERK);
  await openHall(page, event.id);
  cable.pull();
  await says('no-network', 'Nothing can be sold');
  assert.ok(await page.getByTestId('best').isDisabled());
  assert.equal(await page.getByTestId('offline-best').count(), 0);
});

test('what was sold of a lease that somebody wrote off is shown to whoever stands there', async () => {
  const name = await leased(4);
  cable.pull();
  await shows('no-network');
  await sell();
  await click('next');
  const lease = await house.sql(
    `select l.id from lease l join terminal t on t.id = l.terminal_id where t.name = '${name}'`,
  );
  const by = ['--reason', 'not heard of', '--by', 'a test'];
  await house.command(['lease', 'write-off', lease, ...by]);
  // Somebody did something with the seats since: they are not the till's any more.
  await house.sql(
    `update event_seat set version = version + 1 where event_id = ${event.id} and seat_no in
     (select seat_no from lease_seat where lease_id = '${lease}')`,
  );
  cable.plugIn();
  await says('to-see-to', 'became none');
  await hides('no-network'); // the till may hear the hub before its screen does
  assert.equal(await page.getByTestId('offline-best').count(), 0);
});
