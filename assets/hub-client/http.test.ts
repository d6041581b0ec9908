// Keys survive what is unknown and end with what is definite.

import { describe, expect, it } from 'vitest';
import { ServerClock } from './clock.ts';
import { Hub } from './http.ts';
import { KeyRing, type KeyStore } from './keys.ts';
import { ProblemError, UnknownOutcome } from './requests.ts';

type Answer = { status: number; body: unknown; headers?: Record<string, string> } | 'lost';

function made(answers: Answer[]) {
  const sent: {
    address: string;
    key: string | null;
    pass: string | null;
    body: string | undefined;
  }[] = [];
  const stored = new Map<string, string>();
  const store: KeyStore = {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, value) => void stored.set(key, value),
    removeItem: (key) => void stored.delete(key),
  };
  let fresh = 0;
  const fetch = async (address: string | URL | Request, init?: RequestInit) => {
    const headers = new Headers(init?.headers);
    sent.push({
      address: String(address),
      key: headers.get('idempotency-key'),
      pass: headers.get('fullhouse-pass'),
      body: init?.body as string,
    });
    const answer = answers.shift() ?? 'lost';
    if (answer === 'lost') throw new TypeError('network');
    return new Response(JSON.stringify(answer.body), {
      status: answer.status,
      headers: answer.headers,
    });
  };
  const hub = () =>
    new Hub(
      fetch,
      new ServerClock(),
      new KeyRing(store, () => `key-${++fresh}`),
      async () => {},
      () => 0.5,
    );
  return { hub, sent, stored };
}

const held = { status: 200, body: { hold: { id: 'h1', seats: [1] }, now: '2027-01-01T00:00:00Z' } };
const lostSeats = {
  status: 409,
  body: { code: 'seats_unavailable', title: 'gone', status: 409, lost: [1], offers: [[2]] },
};

describe('a write under a key', () => {
  it('is sent again under the same key until there is an answer', async () => {
    const { hub, sent, stored } = made(['lost', { status: 502, body: 'bad gateway' }, held]);
    await hub().hold(1, { seats: [1] });
    expect(sent.map((one) => one.key)).toEqual(['key-1', 'key-1', 'key-1']);
    expect(stored.size).toBe(0);
  });

  it('shows the pass of whoever was called, each time it is sent', async () => {
    const { hub, sent } = made(['lost', held, held]);
    await hub().hold(1, { seats: [1] }, 'a pass');
    await hub().hold(1, { seats: [2] });
    expect(sent.map((one) => one.pass)).toEqual(['a pass', 'a pass', null]);
  });

  it('keeps its key over a reload while the outcome is unknown', async () => {
    const { hub, sent } = made(['lost', 'lost', 'lost', 'lost', held]);
    await expect(hub().hold(1, { seats: [1] })).rejects.toBeInstanceOf(UnknownOutcome);
    await hub().hold(1, { seats: [1] });
    expect(new Set(sent.map((one) => one.key))).toEqual(new Set(['key-1']));
  });

  it('takes another key for another body, and after a refusal', async () => {
    const { hub, sent } = made([lostSeats, held, held]);
    const one = hub();
    const error = await one.hold(1, { seats: [1] }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ProblemError);
    expect((error as ProblemError).problem.offers).toEqual([[2]]);
    await one.hold(1, { seats: [1] });
    await one.hold(1, { seats: [2] });
    expect(sent.map((each) => each.key)).toEqual(['key-1', 'key-2', 'key-3']);
  });

  it('waits and repeats when the hub is busy, under the same key', async () => {
    const busy = {
      status: 503,
      body: { code: 'busy', title: 'busy', status: 503 },
      headers: { 'retry-after': '1' },
    };
    const { hub, sent } = made([busy, held]);
    await hub().hold(1, { seats: [1] });
    expect(sent.map((one) => one.key)).toEqual(['key-1', 'key-1']);
  });
});

describe('the clock of the hub', () => {
  it('believes the shortest round trip, and notices a jump', () => {
    let local = 1_000_000;
    const clock = new ServerClock(() => local);
    const at = (ms: number) => new Date(ms).toISOString();
    clock.sample(at(2_000_000), local, local + 2_000);
    clock.sample(at(2_000_950), local, local + 100);
    expect(clock.now()).toBe(2_000_900);
    clock.sample(at(2_001_500), local, local + 1_000);
    expect(clock.now()).toBe(2_000_900);
    local += 3_600_000;
    clock.sample(at(2_010_000), local, local + 200);
    expect(clock.now()).toBe(2_009_900);
  });
});

it('keeps its key while all it hears is "busy"', async () => {
  const busy = { status: 503, body: { code: 'busy', title: 'busy', status: 503 } };
  const { hub, sent } = made([busy, busy, busy, busy, held]);
  const one = hub();
  await expect(one.hold(1, { seats: [1] })).rejects.toBeInstanceOf(ProblemError);
  await one.hold(1, { seats: [1] });
  expect(new Set(sent.map((each) => each.key))).toEqual(new Set(['key-1']));
});
