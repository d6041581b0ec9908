// The same requests to the simulator and to stripe-stateful-mock: what each says about replays, mismatches and
// refunds of more than there is.
//
//     node stateful_mock.mjs SIMULATOR FOLDER_WITH_NODE_MODULES
//
// Compared is what a client acts on: the status, the type and code of an error, whether it is a replay, and the
// amounts. Ids, texts and the mock's dollars are its own.

import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [simulator, folder] = process.argv.slice(2);
const require = createRequire(
  resolve(folder, 'node_modules', 'stripe-stateful-mock', 'package.json'),
);
require('loglevel').setLevel('silent');
const { createExpressApp } = require('stripe-stateful-mock');
const server = createExpressApp().listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const mock = `http://127.0.0.1:${server.address().port}`;

async function send(base, path, params, key) {
  const headers = { authorization: 'Bearer sk_test_simulator' };
  if (key) headers['idempotency-key'] = key;
  const answer = await fetch(`${base}/v1/${path}`, {
    method: 'POST',
    headers,
    body: new URLSearchParams(params),
  });
  return {
    status: answer.status,
    replayed: answer.headers.get('idempotent-replayed'),
    body: await answer.json(),
  };
}

/** A charge of 1000 that was captured: the mock knows no intents, the simulator no charges by themselves. */
async function charge(base) {
  if (base === mock) {
    return (await send(mock, 'charges', { amount: 1000, currency: 'usd', source: 'tok_visa' })).body
      .id;
  }
  const params = { amount: 1000, currency: 'usd', payment_method: 'pm_card_visa', confirm: 'true' };
  return (await send(simulator, 'payment_intents', params)).body.latest_charge;
}

const charges = { [mock]: await charge(mock), [simulator]: await charge(simulator) };
const seen = { [mock]: {}, [simulator]: {} };

/** What a client acts on. The mock has no code for a refund that is too large; the provider's API has none either. */
function essence(base, { status, replayed, body }) {
  const ids = seen[base];
  if (body.error) {
    return {
      status,
      replayed,
      type: body.error.type,
      code: body.error.code ?? null,
      param: body.error.param ?? null,
    };
  }
  ids[body.id] ??= Object.keys(ids).length; // the same object again, or another one
  return {
    status,
    replayed,
    object: body.object,
    amount: body.amount,
    state: body.status,
    which: ids[body.id],
  };
}

const refund =
  (amount, more = {}) =>
  (base) => ({ charge: charges[base], ...(amount === null ? {} : { amount }), ...more });
const steps = [
  ['a refund', refund(300), 'key-1'],
  ['the same again', refund(300), 'key-1'],
  ['the same key, another amount', refund(301), 'key-1'],
  ['the same key, one parameter more', refund(300, { 'metadata[x]': '1' }), 'key-1'],
  ['the same amount under another key', refund(300), 'key-2'],
  ['more than is left', refund(401), 'key-3'],
  ['that again: a refusal is replayed too', refund(401), 'key-3', 'refusal'],
  ['an amount of 0', refund(0), 'key-4'],
  ['an amount below 0', refund(-5), 'key-5'],
  ['an amount beyond all', refund(100_000_000), 'key-6'],
  ['a charge that does not exist', () => ({ charge: 'ch_none', amount: 1 }), 'key-7'],
  ['the rest', refund(null), 'key-8'],
  ['nothing is left', refund(1), 'key-9'],
  ['nothing is left, of all', refund(null), 'key-10'],
  ['the first again, after all that', refund(300), 'key-1'],
];

let failed = 0;
for (const [what, params, key, special] of steps) {
  const [theirs, ours] = await Promise.all(
    [mock, simulator].map(async (base) =>
      essence(base, await send(base, 'refunds', params(base), key)),
    ),
  );
  // Where the two differ and we know why.
  if (special === 'refusal') {
    // The provider keeps no answer of a request that failed its validation; the mock keeps it. Both refuse again.
    theirs.replayed = ours.replayed = null;
  }
  if (what.startsWith('more than') || special === 'refusal') theirs.code = ours.code = null;
  // The parameter that is wrong is the request's; the mock names its own function's.
  if (what.startsWith('a charge that')) theirs.param = ours.param = null;
  const same = JSON.stringify(theirs) === JSON.stringify(ours);
  console.log(
    `${same ? 'ok' : 'FAILED'}: ${what}${same ? '' : `\n  mock      ${JSON.stringify(theirs)}\n  simulator ${JSON.stringify(ours)}`}`,
  );
  failed += same ? 0 : 1;
}
server.close();
console.log(`${steps.length - failed} of ${steps.length} the same`);
process.exit(failed ? 1 : 0);
