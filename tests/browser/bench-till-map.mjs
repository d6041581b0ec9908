// `make bench-till-map`: a stadium's map in the desktop's real window, drawn by software: script time a frame while it is
// panned, with seats that change, and whether a click gets lost meanwhile. The last line is JSON.
//
// Frames are timed where the page asks for them (`requestAnimationFrame`), by a clock of WebKit's that counts whole
// milliseconds: a median may be off by one. What the compositor does after the script is in the frames' distance only.
// Changes are given to the map as a frame of the feed gives them, ten times a second; clicks come from the X server.

import { execFile } from 'node:child_process';
import { loadavg } from 'node:os';
import { promisify } from 'node:util';

import { Desk } from './desk.mjs';
import { House, HUNG } from './house.mjs';
import { CLERK, codeFor, hire } from './till.mjs';

const SECONDS = Number(process.env.SECONDS ?? 8);
const CHANGES_A_SECOND = 500;
const CLICKS = 60;
const SEATS_MIN = 60_000;

const run = promisify(execFile);
const house = await House.open();
const desk = await Desk.open();
try {
  const stadium = (await house.api('/api/events')).events.find(
    ({ seats_total }) => seats_total >= SEATS_MIN,
  );
  const window = await open(stadium.id);
  const figures = {
    seats_total: stadium.seats_total,
    size: await window.run('return [innerWidth, innerHeight]'),
  };
  for (const [name, scale, changes] of [
    ['the whole hall', null, 0],
    ['dots', 4, 0],
    ['seats', 20, 0],
    [`seats, ${CHANGES_A_SECOND} changes a second`, 20, CHANGES_A_SECOND],
    [`the whole hall, ${CHANGES_A_SECOND} changes a second`, null, CHANGES_A_SECOND],
  ]) {
    figures[name] = await panned(window, scale, changes);
    console.log(name, JSON.stringify(figures[name]));
  }
  figures.clicks = await clicked(window);
  figures.load = loadavg().map((one) => Number(one.toFixed(1)));
  console.log(JSON.stringify(figures));
} finally {
  await desk.close();
  await house.close();
}

/** A counter with a clerk behind it, which shows the event. */
async function open(event) {
  const code = await codeFor(house, 'Bench', 'counter');
  await house.sql(`update terminal set attended = false`);
  const first = await desk.start({ folder: 'bench', args: ['--hub', house.url] });
  await first.type('enrol-code', code);
  await first.click('enrol');
  await desk.enrolled('bench');
  await desk.end('bench', first);
  await hire(house, CLERK, 'clerk');
  const window = await desk.start({ folder: 'bench' });
  await window.type('staff-name', CLERK.name);
  await window.type('staff-secret', CLERK.pin);
  await window.click('sign-in');
  const select = await window.shows('event-select', 3 * HUNG);
  await window.run(
    `arguments[0].value = String(arguments[1]); arguments[0].dispatchEvent(new Event('change'));`,
    { 'element-6066-11e4-a52e-4f735466cecf': select },
    event,
  );
  const { value } = await window.later(
    `for (const end = Date.now() + 20000; Date.now() < end; await new Promise((d) => setTimeout(d, 50)))
       if (globalThis.__fullhouse?.event === arguments[0] && __fullhouse.map() && __fullhouse.statuses() > 0) return true;
     return false;`,
    event,
  );
  if (!value) throw new Error('the map does not come');
  return window;
}

/** Pans for some seconds, at so many pixels a seat (null: all of the hall), with so many changes a second. */
async function panned(window, pixels, changes) {
  const { value, error } = await window.later(
    `const [pixels, changes, seconds] = arguments;
     const map = __fullhouse.map(), canvas = map.canvas, plan = map.plan;
     const pause = (ms) => new Promise((done) => setTimeout(done, ms));
     map.showAll(false);
     await pause(500);
     if (pixels) {
       const box = canvas.getBoundingClientRect();
       // Where most people sit: zoom in on a seat in the middle of the numbers.
       for (let i = 0; i < 40; i++) {
         const [ax] = map.pointOf(0), seat = Math.floor(plan.x.length / 2);
         const diameter = plan.radius * 2 * map.pilot.camera.scale;
         if (diameter >= pixels) break;
         map.pilot.go(map.pilot.centredOn(plan.x[seat], plan.y[seat], map.pilot.scaleOf(pixels)), false);
         await pause(50);
       }
       await pause(500);
     }
     const own = globalThis.requestAnimationFrame, script = [], apart = [];
     let last = 0, spent = 0;
     globalThis.requestAnimationFrame = (callback) => own((now) => {
       const begin = performance.now();
       callback(now);
       spent += performance.now() - begin;
     });
     const box = canvas.getBoundingClientRect();
     const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
     const at = (type, dx, dy) => canvas.dispatchEvent(new PointerEvent(type, {
       bubbles: true, pointerId: 7, pointerType: 'mouse', button: 0, buttons: 1, clientX: x + dx, clientY: y + dy }));
     let applied = 0;
     const changing = changes > 0 && setInterval(() => {
       const begin = performance.now();
       const some = Array.from({ length: changes / 10 }, () => Math.floor(Math.random() * plan.x.length));
       map.apply(some, some.map(() => Math.floor(Math.random() * 3)), Date.now());
       applied += some.length;
       spent += performance.now() - begin;
     }, 100);
     at('pointerdown', 0, 0);
     const begun = performance.now();
     for (let n = 0; performance.now() - begun < seconds * 1000; n++) {
       const now = await new Promise(own);
       if (last) { apart.push(now - last); script.push(spent); }
       last = now;
       spent = 0;
       const begin = performance.now();
       const turn = n / 25;
       at('pointermove', 160 * Math.sin(turn), 90 * Math.sin(turn * 0.7));
       spent += performance.now() - begin;
       // A hand that rests now and then: the sharp picture is made while it does.
       if (n % 90 === 89) { await pause(350); last = 0; spent = 0; }
     }
     at('pointerup', 0, 0);
     if (changing) clearInterval(changing);
     globalThis.requestAnimationFrame = own;
     const share = (values, part) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))];
     const of = (values) => ({ p50: share(values, 0.5), p95: share(values, 0.95), max: Math.max(...values) });
     return { frames: script.length, script_ms: of(script), frame_ms: of(apart), sharp_ms: map.timings.sharp,
       changes_a_second: Math.round(applied / seconds) };`,
    pixels,
    changes,
    SECONDS,
  );
  if (error) throw new Error(error);
  return value;
}

/** Clicks of the X server, while seats change: how many of them the page saw. */
async function clicked(window) {
  await window.run(`
    const map = __fullhouse.map(), plan = map.plan;
    map.showAll(false);
    globalThis.__seen = 0;
    map.canvas.addEventListener('pointerup', () => globalThis.__seen++);
    globalThis.__changing = setInterval(() => {
      const some = Array.from({ length: ${CHANGES_A_SECOND / 10} }, () => Math.floor(Math.random() * plan.x.length));
      map.apply(some, some.map(() => Math.floor(Math.random() * 3)), Date.now());
    }, 100);`);
  const env = { ...process.env, DISPLAY: desk.display };
  for (let n = 0; n < CLICKS; n++) {
    const [x, y] = [200 + ((n * 37) % 400), 250 + ((n * 53) % 300)];
    await run('xdotool', ['mousemove', String(x), String(y), 'click', '1'], { env });
    await new Promise((done) => setTimeout(done, 80));
  }
  await new Promise((done) => setTimeout(done, 500));
  const seen = await window.run('clearInterval(globalThis.__changing); return globalThis.__seen');
  return { sent: CLICKS, seen };
}
