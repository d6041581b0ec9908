// The operators' page of a line: what they see of it and turn about it, and what comes of that at the fans' pages.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { browser, House, joinLine, opens, putOnWithLine, shows, signUp } from './house.mjs';

let house, chrome;

before(async () => {
  house = await House.open();
  chrome = await browser();
});

after(async () => {
  await chrome?.close();
  await house?.close();
});

async function visitor(t, options = {}) {
  const context = await chrome.newContext({ locale: 'en-GB', ...options });
  t.after(() => context.close());
  return context.newPage();
}

/** Signed in at the page itself. */
async function operatorAt(t, slug, options) {
  const page = await visitor(t, options);
  await page.goto(`${house.url}/staff/lines/${slug}`);
  await shows(page, 'staff-signin');
  assert.equal(await page.getByTestId('switch-signin').count(), 0, 'staff do not sign up');
  await page.getByTestId('email').fill('operator@example.com');
  await page.getByTestId('password').fill('open the doors');
  await page.getByTestId('submit-signin').click();
  await shows(page, 'staff-line');
  return page;
}

/** What can be turned is a tab each. */
const tab = (page, name) => page.getByTestId(`tab-${name}`).click();

async function does(page, act, reason) {
  await page.getByTestId(`act-${act}`).waitFor();
  const form = page.locator('form').filter({ has: page.getByTestId(`act-${act}`) });
  await form.locator('[data-testid^=reason-]').fill(reason);
  await page.getByTestId(`act-${act}`).click();
}

const state = (page, wanted) =>
  page.locator(`[data-testid=staff-line][data-state=${wanted}]`).waitFor();
/** A row of the log, and the words that it is in. */
async function logged(page, what, words) {
  await tab(page, 'log');
  const row = page.locator(`[data-testid=staff-log] li[data-what=${what}]`).first();
  await row.getByText(words).waitFor();
  assert.doesNotMatch(await row.innerText(), /[{}"]|_/, 'codes');
}
const figure = (page, name, text) =>
  page.getByTestId(`staff-${name}`).getByText(text, { exact: true }).waitFor({ timeout: 30_000 });

describe("the operators' page of a line", () => {
  test('it is for operators alone, and lists the lines', async (t) => {
    const fan = await visitor(t);
    await signUp(fan, house);
    await fan.goto(`${house.url}/staff`);
    await shows(fan, 'staff-none');
    await putOnWithLine(chrome, house, 'listed');
    assert.equal(await fan.locator('header a[href="/staff"]').count(), 0);
    const page = await operatorAt(t, 'listed');
    await page.goto(house.url);
    await page.locator('header a[href="/staff"]').click();
    await shows(page, 'staff-lines');
    await page.locator('a[href="/staff/lines/listed"]').click();
    await shows(page, 'staff-line');
    await page.goto(`${house.url}/staff/lines/no-such-event`);
    await page.getByRole('alert').first().waitFor();
  });

  test('it follows the line, turns its pace, pauses it in three languages, and goes on', async (t) => {
    const page = await operatorAt(t, await lineOf('turned'));
    const [fan, other] = [await visitor(t), await visitor(t, { locale: 'ko-KR' })];
    for (const one of [fan, other]) {
      await signUp(one, house);
      await joinLine(one, house, 'turned');
    }
    await figure(page, 'joined', '2');
    await page.locator('[data-testid=staff-live][data-state=live]').waitFor();

    // The pace: two at once, a rate by hand; a number out of bounds is refused in words, and nothing changes.
    await tab(page, 'pace');
    await page.getByTestId('pace-inside').fill('2');
    await page.getByTestId('pace-holds').fill('50');
    await page.getByTestId('pace-min').fill('60');
    await page.getByTestId('by-hand').check();
    await page.getByTestId('pace-fixed').fill('300');
    await does(page, 'pace', 'two at once will do');
    await shows(page, 'done-pace');
    await figure(page, 'inside', '0 / 2');
    await logged(page, 'holds_live_max', 'Live holds, at most: no limit → 50');
    await tab(page, 'pace');
    await page.getByTestId('pace-min').fill('900000');
    await does(page, 'pace', 'too much');
    await shows(page, 'failed-pace');
    await page.reload();
    await shows(page, 'staff-line');
    await tab(page, 'pace');
    assert.equal(await page.getByTestId('pace-fixed').inputValue(), '300');
    assert.equal(await page.getByTestId('pace-holds').inputValue(), '50');
    assert.notEqual(await page.getByTestId('pace-min').inputValue(), '900000');

    // Paused before it opens: everybody reads it in their language.
    await tab(page, 'pause');
    await page.getByTestId('message-en').fill('A short break.');
    await page.getByTestId('message-ja').fill('少々お待ちください。');
    await page.getByTestId('message-ko').fill('잠시만 기다려 주세요.');
    await does(page, 'pause', 'the printer is on fire');
    await shows(page, 'done-pause');
    await page.getByTestId('staff-state').getByText('People join · Paused').waitFor();
    await fan.getByTestId('operator-word').getByText('A short break.').waitFor();
    await other.getByTestId('operator-word').getByText('잠시만 기다려 주세요.').waitFor();
    const id = await house.sql("select id from event where slug = 'turned'");
    await opens(house, id);
    await state(page, 'paused');
    await does(page, 'resume', 'it is out');
    await state(page, 'open');
    await Promise.all(
      [fan, other].map((one) => one.getByTestId('turn').waitFor({ timeout: 60_000 })),
    );
    await figure(page, 'inside', '2 / 2');
    await page.getByTestId('staff-rate').getByText('by hand').waitFor();
    await tab(page, 'log');
    const whats = await page
      .locator('[data-testid=staff-log] li')
      .evaluateAll((rows) => rows.map((row) => row.dataset.what));
    assert.ok(
      whats.at(-1) === 'opened' && whats.includes('paused') && whats.includes('rate_fixed'),
      whats.join(),
    );

    // Somebody's turn is ended, by their name; it is asked twice.
    const email = await house.sql(
      `select a.email from pass p join account a on a.id = p.account_id where p.event_id = ${id} and p.ended_at is null limit 1`,
    );
    await tab(page, 'inside');
    const people = page.locator('[data-testid=inside-list] li');
    await people.nth(1).waitFor();
    await page.getByTestId('find-inside').fill('nobody of this name');
    await shows(page, 'inside-none');
    await page.getByTestId('find-inside').fill(email);
    await people.filter({ hasText: email }).getByRole('radio').check();
    assert.equal(await people.count(), 1);
    await does(page, 'revoke', 'a farm of accounts');
    assert.equal(
      await house.sql(`select count(*) from pass where event_id = ${id} and ended_why = 'revoked'`),
      '0',
    );
    await page.getByTestId('act-revoke').click();
    await shows(page, 'done-revoke');
    await figure(page, 'inside', '1 / 2');
    await page.getByTestId('find-inside').fill('');
    await people.first().waitFor();
    await people.filter({ hasText: email }).waitFor({ state: 'detached' });
    await logged(page, 'revoked', 'Ended the turn of account');
  });

  test('a draw is made anew with a public value, gets it, and the page of the draw calls it verifiable', async (t) => {
    const slug = await lineOf('drawn-anew');
    const page = await operatorAt(t, slug, { timezoneId: 'UTC' });
    const fan = await visitor(t);
    await signUp(fan, house);
    await joinLine(fan, house, slug);
    const id = await house.sql(`select id from event where slug = '${slug}'`);
    // The entries are fixed; the sale is far enough away.
    await house.sql(
      `update line set closes_at = clock_timestamp(), revision = revision + 1 where event_id = ${id}`,
    );
    await tab(page, 'draw');
    await shows(page, 'staff-root');
    // A browser writes no seconds where there are none.
    const due = new Date(Date.now() + 90_000).toISOString().slice(0, 19).replace(/:00$/, '');
    await page.getByTestId('redraw-source').fill('a beacon');
    await page.getByTestId('redraw-round').fill('8');
    await page.getByTestId('redraw-due').fill(due);
    await does(page, 'redraw', 'a value that nobody can choose was asked for');
    await page.getByTestId('act-redraw').click();
    await page.locator('[data-testid=staff-draw][data-kind=verifiable]').waitFor();
    await shows(page, 'public-value');
    await page.getByTestId('public-value').fill('c0ffee');
    await page.locator('[data-testid=act-value]:enabled').waitFor();
    await does(page, 'value', 'it is said to be out');
    await page.getByTestId('failed-value').getByText('not due').waitFor();
    await house.sql(
      `set session_replication_role = replica; update draw set value_due_at = clock_timestamp() where event_id = ${id} and draw_no = 2`,
    );
    await does(page, 'value', 'it is out');
    await page.getByTestId('staff-value').getByText('c0ffee').waitFor();
    await page.locator('[data-testid=act-reveal]:enabled').waitFor();
    await does(page, 'reveal', 'for who does not want to wait');
    await shows(page, 'staff-secret');
    assert.equal(await page.getByTestId('act-reveal').count(), 0, 'what is out is not asked for');
    assert.equal(await page.getByTestId('reason-reveal').count(), 0);
    await fan.goto(`${house.url}/events/${slug}/draw`);
    await fan
      .locator('[data-testid=verdict][data-verdict=verifiable]')
      .waitFor({ timeout: 30_000 });
    assert.equal(await fan.getByTestId('computed-place').getAttribute('data-place'), '1');
    const command = `fullhouse verify-draw ${slug} --hub ${house.url}`;
    assert.equal((await fan.getByTestId('verify-command').innerText()).trim(), command);
  });

  for (const [locale, title] of [
    ['ja-JP', '順番待ちの管理'],
    ['ko-KR', '대기열 관리'],
  ]) {
    test(`it speaks ${locale}, and fits a phone`, async (t) => {
      const terminal = `A kiosk whose name is long, ${locale}`;
      await house.command(['terminal', 'add', terminal, '--role', 'kiosk']);
      const slug = await lineOf(`words-${locale.slice(0, 2)}`);
      const page = await operatorAt(t, slug, { locale, viewport: { width: 390, height: 844 } });
      await page.getByText(title).first().waitFor();
      for (const name of ['pause', 'pace', 'draw', 'inside', 'log']) {
        await tab(page, name);
        const words = await page.locator('main').innerText();
        assert.doesNotMatch(words, /\b(line|staff|draw)\.[a-z_]+/, 'a text is missing');
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${wide} px too wide`);
      }
      await page.goto(`${house.url}/staff`);
      const said = page
        .getByTestId('staff-terminal')
        .filter({ hasText: terminal })
        .locator('.said');
      const { width } = await said.boundingBox();
      assert.ok(width > 250, `what a terminal says of itself has ${width} px beside its long name`);
    });
  }
});

/** A line of two who may be inside, by its slug. */
async function lineOf(slug) {
  await putOnWithLine(chrome, house, slug, { insideMax: 1 });
  return slug;
}
