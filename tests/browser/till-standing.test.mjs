// Standing room is kept back at a counter until the seats are sold; then it goes on sale by itself, and fans see it.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { HUNG, openEvent } from './house.mjs';
import { approve, CLERK, Counters, openShift, SUPERVISOR } from './till.mjs';

const [FREE, , , BLOCKED] = [0, 1, 2, 3];
const ODD = '<img src=x onerror=alert(1)>';
const SLUG = 'club-night';
let at;
/** A place to stand. */
let place;

/** Sixteen chairs, and twelve places to stand behind them. */
const PLAN = {
  name: 'Club',
  size: { width: 400, height: 300 },
  categories: [{ name: 'Floor', color: '#cc3333' }],
  zones: [
    {
      name: 'Chairs',
      position: { x: 60, y: 60 },
      rows: ['A', 'B'].map((row, y) => ({
        row_number: row,
        position: { x: 0, y: 40 * y },
        seats: Array.from({ length: 8 }, (_, x) => ({
          seat_guid: `${row}-${x + 1}`,
          seat_number: String(x + 1),
          position: { x: 30 * x, y: 0 },
          category: 'Floor',
        })),
      })),
      areas: [
        {
          shape: 'rectangle',
          uuid: 'pit',
          position: { x: 0, y: 100 },
          rectangle: { width: 240, height: 80 },
        },
      ],
    },
  ],
};
const STANDING = [{ id: 'pit', area: 'pit', name: 'Pit', category: 'Floor', capacity: 12 }];
const EVENT = {
  slug: SLUG,
  name: 'Club Night',
  venue: 'club',
  plan: 'Club',
  starts: '2099-01-20T20:00',
  on_sale: '2026-01-01T10:00',
  currency: 'EUR',
  performers: [],
  fees: [],
  levels: [{ category: 'Floor', prices: [{ ticket_type: 'adult', amount_minor: 2000 }] }],
};

before(async () => {
  at = await Counters.open(SLUG, (house) =>
    house.putOn(PLAN, EVENT, 'Club', { version: 1, standing: STANDING }),
  );
  const { seats } = await at.house.api(`/api/events/${SLUG}`);
  place = seats.find(({ standing }) => standing).seat_no;
});

after(() => at?.close());

afterEach(async () => assert.deepEqual(await at.leave(), []));

async function keepBack(reason) {
  await at.click('house');
  await at.page.getByTestId('house-section').selectOption('Pit');
  assert.ok(await at.page.getByTestId('section-wait').isDisabled(), 'not without a reason');
  await at.fill('block-reason', reason);
  await at.click('section-wait');
}

test('a clerk keeps standing room back with a supervisor’s word, and drops it by keyboard alone', async () => {
  await at.stand(CLERK);
  await keepBack(`seats first ${ODD}`);
  await approve(at.page, SUPERVISOR);
  await at.says('house-done', /wait until the others are sold/);
  await at.becomes(place, BLOCKED);
  await at.says('waits', /12 standing places\s+wait until the seats are sold:\s+16 seats left/);
  await at.says('waits', /seats first <img src=x/);

  await at.page.getByTestId('waits-open').focus();
  await at.page.keyboard.press('Tab');
  await at.page.keyboard.press('Enter');
  await at.shows('waits-end-dialog');
  await at.fill('waits-end-reason', 'no standing tonight'); // so fast, keys would be a scanner's
  await at.page.keyboard.press('Enter');
  await approve(at.page, SUPERVISOR);
  await at.page.getByTestId('waits').waitFor({ state: 'detached', timeout: HUNG });
  assert.equal(
    await at.house.sql(`select outcome || ' ' || ended_by from until_sold`),
    `dropped ${SUPERVISOR.name} at Counter 1`,
  );
});

test('a supervisor puts it on sale before the seats are sold', async () => {
  await at.stand(SUPERVISOR);
  await keepBack('seats first');
  await at.becomes(place, BLOCKED);
  await at.click('waits-open');
  await at.fill('waits-end-reason', 'a long queue');
  await at.page.keyboard.press('Enter');
  await at.page.getByTestId('waits').waitFor({ state: 'detached', timeout: HUNG });
  await at.becomes(place, FREE);
  assert.equal(
    await at.house.sql(
      `select outcome || ' ' || ended_by from until_sold where reason = 'seats first'`,
    ),
    `on_sale ${SUPERVISOR.name} at Counter 2`,
  );
});

test('once the seats are sold it goes on sale by itself, at the counter and on fans’ maps', async () => {
  await at.stand(SUPERVISOR);
  await openShift(at.page, '100', at.event.currency);
  await keepBack('seats first');
  await at.shows('waits');
  await at.click('house-end');
  const { seats } = await at.house.api(`/api/events/${at.slug}`);
  const plain = seats.filter((seat) => !seat.standing && !seat.accessible && !seat.companion);
  const [last] = plain.filter(({ status }) => status === 'available');
  await at.takeThese([last.seat_no]);
  // All others are blocked but the last, which lies in this customer's basket.
  await at.house.sql(`update event_seat set status = 3, version = version + 1
    where event_id = ${at.event.id} and status = 0`);
  const fan = await (await at.chrome.newContext()).newPage();
  await openEvent(fan, at.house, at.slug);
  await at.page.keyboard.press('F8');
  await at.click('cash-likely');
  await at.page.keyboard.press('Enter');
  await at.shows('sold');
  await at.becomes(place, FREE);
  await fan.getByTestId('standing-only').waitFor({ timeout: 3 * HUNG });
  await fan.context().close();
  await at.page.keyboard.press('Enter');
  await at.click('house');
  await at.says('waits-no-more', /The others are sold: 12 that waited are\s+on sale since/);
  assert.equal(
    await at.house.sql(
      `select actor || ': ' || reason from audit where verb = 'until_sold' and detail like '%at Counter 3%'`,
    ),
    'until sold: seats first',
  );
});
