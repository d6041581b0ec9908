// The desktop app at a demo of its own, which begins and ends with it: `make box-office`, or `make box-office ROLE=kiosk`.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const role = process.argv[2] ?? 'counter';
if (!['counter', 'kiosk'].includes(role)) throw new Error(`ROLE is counter or kiosk, not ${role}`);

const built = join(process.env.CARGO_TARGET_DIR ?? 'target', 'debug');
const NAME = role === 'counter' ? 'Demo counter' : 'Demo kiosk';
const READER = role === 'counter' ? 'tmr_demo_counter' : 'tmr_demo_kiosk';
const PEOPLE = [
  { name: 'Cleo', role: 'clerk', pin: '471100' },
  { name: 'Sora', role: 'supervisor', pin: '582200' },
  { name: 'Mika', role: 'manager', pin: '693300' },
];
const PROVIDER_KEY = 'sk_test_demo';
const DECLINED = '4000000000000002';
const why = ['--reason', 'the demo', '--by', 'the demo'];

const demo = spawn(
  join(built, 'fullhouse'),
  ['demo', ...(process.env.LISTEN ? ['--listen', process.env.LISTEN] : [])],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, FULLHOUSE__PAYMENT__SECRET_KEY: PROVIDER_KEY },
  },
);
const told = {};
for await (const line of createInterface(demo.stdout)) {
  told.url ??= /is open: (\S+)/.exec(line)?.[1];
  told.data ??= /^ {2}data +(\S.*)$/.exec(line)?.[1];
  if (line.includes('Ctrl-C')) break;
  console.log(line);
}
if (!told.url || !told.data) throw new Error('the demo did not start');
demo.stdout.resume();

const database = `postgres://fullhouse@localhost/fullhouse?host=${encodeURIComponent(join(told.data, 'socket'))}`;
function fullhouse(args, input = '') {
  const env = { ...process.env, FULLHOUSE__DATABASE__URL: database };
  return execFileSync(join(built, 'fullhouse'), args, {
    env,
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

const home = join(told.data, `box-office-${role}`);
const args = ['--home', home, '--hub', told.url];
// Terminals have their names for good: each new one of a demo has its own.
const name = `${NAME} ${new Date().toISOString().slice(0, 19).replace('T', ' ')}`;
const fresh = !existsSync(join(home, 'terminal.json'));
if (fresh) {
  const code = fullhouse(['terminal', 'enrol', name, '--role', role, ...why]);
  args.push('--code', /[0-9A-Z]{5}-[0-9A-Z]{5}/.exec(code)[0]);
  const members = fullhouse(['staff', 'list'])
    .split('\n')
    .map((line) => line.split('\t')[0]);
  for (const { name, role, pin } of PEOPLE) {
    if (!members.includes(name))
      fullhouse(['staff', 'add', name, '--role', role, ...why], 'a long enough password\n');
    fullhouse(['staff', 'pin', name, ...why], `${pin}\n`);
  }
}

if (role === 'counter') {
  console.log('  sign in as');
  for (const { name, role, pin } of PEOPLE)
    console.log(`    ${name.padEnd(6)} PIN ${pin}   ${role}`);
}
console.log(
  '  Enter, here: a customer holds a card to the reader; no and Enter: one that is declined.\n' +
    '  Closing the window closes the demo.\n',
);

const app = spawn(join(built, 'box-office'), args, { stdio: ['ignore', 'inherit', 'inherit'] });

// A reader stands at a terminal that is there: once it is enrolled.
const place = setInterval(() => {
  if (!existsSync(join(home, 'terminal.json'))) return;
  clearInterval(place);
  if (fresh) fullhouse(['terminal', 'reader', name, READER]);
}, 300);

createInterface(process.stdin).on('line', async (line) => {
  const config = await (await fetch(`${told.url}/api/payment/config`)).json();
  const answer = await fetch(
    `${new URL(config.form_url).origin}/v1/test_helpers/terminal/readers/${READER}/present_payment_method`,
    {
      method: 'POST',
      headers: { authorization: `Bearer ${PROVIDER_KEY}` },
      body: new URLSearchParams(line ? { 'card_present[number]': DECLINED } : {}),
    },
  );
  console.log(answer.ok ? '  A card is at the reader.' : '  The reader does not wait for a card.');
});

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => app.kill());
app.on('exit', (code) => {
  clearInterval(place);
  demo.on('exit', () => process.exit(code ?? 1));
  demo.kill('SIGINT');
});
