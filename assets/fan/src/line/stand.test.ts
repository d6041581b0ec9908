// A fan in a line, against a hub that lives in the test.

import { beforeEach, describe, expect, it } from 'vitest';
import { ProblemError, UnknownOutcome } from '../../../hub-client/index.ts';
import type { Line, LineEntry, Pass } from '../../../protocol/index.ts';
import { Stand, type TurnEnd } from './stand.ts';

const T0 = Date.parse('2027-01-01T10:00:00Z');
const at = (ms: number) => new Date(T0 + ms).toISOString();

const baseLine: Line = {
  event_id: 7,
  state: 'joining',
  joins_at: at(-60_000),
  closes_at: at(60_000),
  opens_at: at(60_000),
  joined: 0,
  drawn_count: null,
  called_through: 0,
  called_last_minute: 0,
  called_last_5_minutes: 0,
  rate_minute: 100,
  inside: 0,
  inside_max: 50,
  seats_left: 1000,
  draw: { no: 1, kind: 'committed', commitment: '00' },
  show_s: 30,
  pass_s: 600,
  pass_max_s: 1800,
  grace_s: 600,
};
const entryOf = (number: number, place: number | null = null): LineEntry => ({
  number,
  place,
  state: 'waiting',
  ticket: `ticket-${number}`,
  entry_key: '00',
  joined_at: at(0),
  preferences: {},
});
const problem = (code: string) =>
  new ProblemError({ type: 'about:blank', code, title: code, status: 409 });

/** The hub and the world: what is asked is written down, and answered by what the test put there. */
function world() {
  let now = T0;
  let timers: { at: number; run: () => void }[] = [];
  const w = {
    asked: [] as string[],
    heard: [] as string[],
    ends: [] as TurnEnd[],
    visible: true,
    entry: (): LineEntry => {
      throw problem('entry_none');
    },
    comeIn: (): Pass => {
      throw problem('line_not_called');
    },
    renew: (): Pass => {
      throw problem('pass_expired');
    },
    goOut: (): void => {},
    placeFrom: (): number | null => null,
    /** Lets time pass, and everything that was due happen. */
    async pass(ms: number) {
      const until = now + ms;
      for (;;) {
        const due = timers.filter((one) => one.at <= until).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        timers = timers.filter((one) => one !== due);
        now = Math.max(now, due.at);
        due.run();
        for (let i = 0; i < 6; i++) await Promise.resolve();
      }
      now = until;
      for (let i = 0; i < 6; i++) await Promise.resolve();
    },
    /** A phone sleeps: time passes, and no timer runs. */
    sleep(ms: number) {
      now += ms;
    },
    get now() {
      return now;
    },
    stand: null as unknown as Stand,
  };
  const ask = async <T>(what: string, answer: () => T): Promise<T> => {
    w.asked.push(what);
    await Promise.resolve();
    return answer();
  };
  w.stand = new Stand(
    7,
    {
      hub: {
        entry: () => ask('entry', () => w.entry()),
        comeIn: () => ask('come', () => w.comeIn()),
        renewPass: (_event, pass) => ask(`renew ${pass}`, () => w.renew()),
        wish: (_event, preferences) => ask('wish', () => ({ ...w.stand.entry!, preferences })),
        leaveLine: () => ask('leave', () => undefined),
        goOut: () => ask('out', () => w.goOut()),
      },
      now: () => now,
      after: (ms, run) => {
        const timer = { at: now + ms, run };
        timers.push(timer);
        return () => (timers = timers.filter((one) => one !== timer));
      },
      random: () => 0.5,
      visible: () => w.visible,
      placeFrom: async () => w.placeFrom(),
    },
    {
      changed: () => {},
      called: () => w.heard.push('called'),
      inside: () => w.heard.push('inside'),
      turnOver: (end) => w.ends.push(end),
      signedOut: () => w.heard.push('signed out'),
      refused: () => w.heard.push('refused'),
    },
  );
  return w;
}

let w: ReturnType<typeof world>;
const line = (changes: Partial<Line> = {}) => w.stand.take({ ...baseLine, ...changes });
const passUntil = (ms: number, most = 1_800_000, name = 'p'): Pass => ({
  pass: name,
  expires_at: at(ms),
  renewable_until: at(most),
});

beforeEach(() => {
  w = world();
});

describe('a stand in the line', () => {
  it('goes from before the joining to a place', async () => {
    line({ state: 'soon' });
    expect(w.stand.stage).toBe('soon');
    line();
    await w.stand.read();
    expect(w.stand.known).toBe(true);
    expect(w.stand.stage).toBe('join');
    w.stand.stands(entryOf(41));
    expect(w.stand.stage).toBe('waiting');
    line({ state: 'closed', drawn_count: 90 });
    await w.pass(60_000);
    expect(w.stand.stage).toBe('waiting');
    expect(w.asked).toEqual(['entry']); // nobody asks for themselves while they wait
    w.entry = () => entryOf(41, 12);
    line({ state: 'open', drawn_count: 90 });
    await w.pass(1_000);
    expect(w.asked).toEqual(['entry', 'entry']);
    expect(w.stand.stage).toBe('placed');
    expect(w.stand.ahead).toBe(12);
    for (let i = 1; i <= 12; i++) line({ state: 'open', drawn_count: 90, called_through: i });
    await w.pass(60_000);
    expect(w.asked).toEqual(['entry', 'entry']);
    expect(w.stand.ahead).toBe(0);
  });

  it('computes its place from what was published, and asks nobody', async () => {
    w.stand.stands(entryOf(41));
    w.placeFrom = () => 3;
    line({ state: 'open', drawn_count: 500_000, draw: { ...baseLine.draw, secret: 'aa' } });
    await w.pass(1_000);
    expect(w.stand.entry?.place).toBe(3);
    expect(w.asked).toEqual([]);
  });

  it('spreads the question over time where half a million have it', async () => {
    w.stand.stands(entryOf(41));
    w.entry = () => entryOf(41, 12);
    line({ state: 'open', drawn_count: 400_000 });
    await w.pass(40_000);
    expect(w.asked).toEqual([]);
    await w.pass(20_000);
    expect(w.asked).toEqual(['entry']);
  });

  it('takes no state that is older than the one it has', () => {
    line({ state: 'open', called_through: 50 });
    expect(w.stand.take({ ...baseLine, called_through: 40 })).toBe(false);
    expect(w.stand.line?.called_through).toBe(50);
    line({ state: 'paused', called_through: 50, revision: 9 });
    expect(line({ state: 'open', called_through: 50, revision: 8 })).toBe(false);
    expect(w.stand.line?.state).toBe('paused');
  });

  it('that was taken after the draw has its number for a place', async () => {
    line({ state: 'open', drawn_count: 90, joined: 95 });
    w.stand.stands(entryOf(94));
    expect(w.stand.entry?.place).toBe(94);
    await w.pass(60_000);
    expect(w.asked).toEqual([]);
  });

  it('learns its place anew after a redraw', async () => {
    w.stand.stands(entryOf(4, 2));
    w.entry = () => entryOf(4, 8);
    line({ state: 'closed', drawn_count: 10 });
    const before = w.stand.name;
    line({
      state: 'closed',
      drawn_count: 10,
      draw: { ...baseLine.draw, no: 2, drawn_at: at(0) },
    });
    expect(w.stand.stage).toBe('waiting');
    await w.pass(1_000);
    expect(w.stand.entry?.place).toBe(8);
    expect(w.stand.name).not.toBe(before);
  });

  it('is not unlearnt by an answer from before the draw', () => {
    w.stand.stands(entryOf(4, 2));
    w.stand.stands(entryOf(4, null));
    expect(w.stand.entry?.place).toBe(2);
  });

  it('waits for the hub where there is no answer', async () => {
    line();
    w.entry = () => {
      throw new UnknownOutcome('no answer');
    };
    await w.stand.read();
    expect(w.stand.known).toBe(false);
    w.entry = () => entryOf(3);
    await w.pass(5_000);
    expect(w.stand.stage).toBe('waiting');
  });
});

describe('the turn', () => {
  beforeEach(() => {
    w.entry = () => ({ ...entryOf(4, 2), state: 'called' });
  });
  const open = (called: number) => line({ state: 'open', drawn_count: 90, called_through: called });

  it('comes by itself where the page is looked at', async () => {
    w.comeIn = () => passUntil(600_000);
    w.entry = () => ({ ...entryOf(4, 2), state: 'called' });
    w.stand.stands(entryOf(4, 2));
    open(2);
    expect(w.stand.stage).toBe('placed');
    open(3);
    expect(w.heard).toEqual(['called']);
    await w.pass(1_000);
    expect(w.heard).toEqual(['called', 'inside']);
    expect(w.stand.stage).toBe('inside');
    open(4);
    // It looks once more, whether another device of ours came in at the same moment.
    w.entry = () => ({ ...entryOf(4, 2), state: 'inside', inside_elsewhere: true });
    await w.pass(5_000);
    expect(w.asked).toEqual(['entry', 'come', 'entry']);
    expect(w.stand.stage).toBe('moved');
  });

  it('is not taken from another device of ours that came in a moment before', async () => {
    w.entry = () => ({ ...entryOf(4, 2), state: 'inside', inside_elsewhere: true });
    w.stand.stands(entryOf(4, 2));
    open(3);
    await w.pass(5_000);
    expect(w.asked).toEqual(['entry']);
    expect(w.stand.stage).toBe('moved');
  });

  it('waits for whoever looks elsewhere, and knows until when', async () => {
    w.visible = false;
    w.stand.stands(entryOf(4, 2));
    w.entry = () => ({ ...entryOf(4, 2), state: 'called', grace_until: at(600_000) });
    open(3);
    await w.pass(20_000);
    expect(w.asked).toEqual(['entry']);
    expect(w.stand.stage).toBe('called');
    expect(w.stand.entry?.grace_until).toBe(at(600_000));
    w.comeIn = () => passUntil(700_000);
    w.visible = true;
    w.stand.wake();
    await w.pass(1_000);
    expect(w.stand.stage).toBe('inside');
  });

  it('that was slept through within the grace is still ours; after it, it is not', async () => {
    w.stand.stands(entryOf(4, 2));
    open(1);
    w.sleep(3_600_000);
    open(90);
    w.comeIn = () => {
      throw problem('entry_lapsed');
    };
    await w.pass(1_500);
    expect(w.stand.stage).toBe('lapsed');
    await w.pass(60_000);
    expect(w.asked).toEqual(['entry', 'come']);
  });

  it('is tried again where the line says so and the hub not yet', async () => {
    w.stand.stands(entryOf(4, 2));
    open(3);
    await w.pass(1_000);
    expect(w.stand.stage).toBe('called');
    w.comeIn = () => passUntil(600_000);
    w.entry = () => ({ ...entryOf(4, 2), state: 'called' });
    await w.pass(2_500);
    w.entry = () => ({ ...entryOf(4, 2), state: 'inside', pass: passUntil(600_000) });
    await w.pass(7_500);
    expect(w.stand.stage).toBe('inside');
  });

  it('does not come while the line is paused', async () => {
    w.stand.stands(entryOf(4, 2));
    line({ state: 'paused', drawn_count: 90, called_through: 3 });
    await w.pass(5_000);
    expect(w.asked).toEqual([]);
    w.comeIn = () => passUntil(600_000);
    open(3);
    await w.pass(1_000);
    expect(w.stand.stage).toBe('inside');
  });

  it('that went to another device is not taken back unasked', async () => {
    w.stand.stands(entryOf(4, 2));
    w.comeIn = () => {
      throw problem('pass_moved');
    };
    open(3);
    await w.pass(2_000);
    expect(w.stand.stage).toBe('moved');
    w.comeIn = () => passUntil(600_000);
    open(4);
    w.stand.wake();
    await w.pass(60_000);
    expect(w.asked).toEqual(['entry', 'come']);
    await w.stand.comeIn(); // somebody pressed the button
    expect(w.stand.stage).toBe('inside');
  });
});

describe('a turn that is open on another device', () => {
  it('is left there until somebody wants it here', async () => {
    w.entry = () => ({ ...entryOf(4, 2), state: 'inside', inside_elsewhere: true });
    line({ state: 'open', drawn_count: 90, called_through: 3 });
    await w.stand.read();
    expect(w.stand.stage).toBe('moved');
    await w.pass(60_000);
    expect(w.asked).toEqual(['entry']);
    w.comeIn = () => passUntil(600_000);
    await w.stand.comeIn();
    expect(w.stand.stage).toBe('inside');
  });
});

describe('a pass', () => {
  beforeEach(() => {
    w.stand.stands({ ...entryOf(4, 2), state: 'inside', pass: passUntil(600_000) });
    line({ state: 'open', drawn_count: 90, called_through: 3 });
  });

  it('is there after a reload', () => {
    expect(w.stand.stage).toBe('inside');
    expect(w.stand.pass?.pass).toBe('p');
  });

  it('is renewed in the background, up to its maximum, and then ends', async () => {
    let until = 600_000;
    w.renew = () => {
      until = Math.min(1_800_000, w.now - T0 + 600_000);
      return passUntil(until, 1_800_000, `p${until}`);
    };
    await w.pass(1_790_000);
    expect(w.stand.stage).toBe('inside');
    expect(w.asked.filter((one) => one.startsWith('renew')).length).toBeLessThan(8);
    await w.pass(20_000);
    expect(w.ends).toEqual(['time']);
    expect(w.stand.stage).toBe('turn_over');
  });

  it('is not renewed by a page that nobody looks at', async () => {
    w.visible = false;
    w.stand.stands({ ...entryOf(4, 2), state: 'inside', pass: passUntil(700_000) });
    w.renew = () => passUntil(5_000_000);
    await w.pass(800_000);
    expect(w.asked).toEqual([]);
    expect(w.ends).toEqual(['time']);
  });

  it('ends at its time although the phone slept', async () => {
    w.sleep(700_000);
    await w.pass(600);
    expect(w.stand.stage).toBe('turn_over');
  });

  it('survives a renewal that nobody answered', async () => {
    w.renew = () => {
      throw new UnknownOutcome('no answer');
    };
    await w.pass(400_000);
    expect(w.stand.stage).toBe('inside');
    w.renew = () => passUntil(1_000_000);
    await w.pass(300_000);
    expect(w.stand.stage).toBe('inside');
  });

  it('ends by a press, also where it has ended already; not while nobody knows', async () => {
    w.goOut = () => {
      throw new UnknownOutcome('no answer');
    };
    await expect(w.stand.goOut()).rejects.toThrow();
    expect(w.stand.stage).toBe('inside');
    w.goOut = () => {
      throw problem('pass_over');
    };
    await w.stand.goOut();
    expect(w.stand.stage).toBe('turn_over');
    expect(w.ends).toEqual(['left']);
  });

  it('that was refused at the seats is looked at anew', async () => {
    w.stand.refusedPass('pass_over');
    expect(w.stand.stage).toBe('turn_over');
    // Joining again begins anew.
    w.stand.stands(entryOf(120, 120));
    expect(w.stand.stage).toBe('placed');
  });
});
