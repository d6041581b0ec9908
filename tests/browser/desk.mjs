// The desktop app as it is used: its real window, on a screen without a monitor, driven by WebDriver.

import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { HUNG } from './house.mjs';

const BINARY = resolve(process.env.CARGO_TARGET_DIR ?? 'target', 'debug', 'box-office');
const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
const STARTS_WITHIN_MS = 60_000;

/** The numbers by which X knows keys, from the row of digits down. */
const ROWS = [
  [10, '1234567890-'],
  [24, 'qwertyuiop'],
  [38, "asdfghjkl:'"],
  [52, 'zxcvbnm,./'],
];
const [ENTER, SHIFT] = [36, 50];

function keycode(letter) {
  if (letter === '\n') return ENTER;
  const [first, row] = ROWS.find(([, row]) => row.includes(letter)) ?? [];
  if (!row) throw new Error(`no key for ${letter}`);
  return first + row.indexOf(letter);
}

/** Letters have edges of many shades; a window that is not drawn yet has one or two colours. */
const A_BLANK_WINDOW = 16;
/** Longer than any movement of a page pauses. */
const A_MOMENT_MS = 500;

/** A port that nobody listens on now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export class Desk {
  #child;
  #driver;
  #size;
  #said = '';

  /** `monitors`: a second one can be plugged in, beside the first. */
  static async open({ size = '1280x800', monitors = false } = {}) {
    const desk = new Desk();
    desk.#size = size;
    desk.home = await mkdtemp(join(tmpdir(), 'fullhouse-browser-desk-'));
    const port = await freePort();
    desk.#driver = `http://127.0.0.1:${port}`;
    desk.#child = spawn(
      'timeout',
      [
        ...[
          '-k',
          '5',
          '600',
          'dbus-run-session',
          '--',
          'tests/browser/desk.sh',
          String(port),
          size,
        ],
        ...(monitors ? ['monitors'] : []),
      ],
      {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: {
          ...process.env,
          HOME: desk.home,
          XDG_DATA_HOME: join(desk.home, 'data'),
          XDG_CACHE_HOME: join(desk.home, 'cache'),
          XDG_CONFIG_HOME: join(desk.home, 'config'),
          XDG_RUNTIME_DIR: desk.home,
          NO_AT_BRIDGE: '1', // accessibility's own bus outlives a session
        },
      },
    );
    desk.#child.stderr.on('data', (text) => (desk.#said += text));
    const ready = new Promise((done, failed) => {
      createInterface(desk.#child.stdout).on('line', (line) => {
        const [, display] = /^ready \d+ (:\d+)$/.exec(line) ?? [];
        if (display) done(display);
      });
      desk.#child.on('exit', (code) =>
        failed(new Error(`the desk ended with ${code}: ${desk.#said}`)),
      );
      setTimeout(
        () => failed(new Error(`the desk does not stand: ${desk.#said}`)),
        STARTS_WITHIN_MS,
      ).unref();
    });
    desk.display = await ready;
    await desk.#until('the driver answers', async () => {
      const answer = await fetch(`${desk.#driver}/status`).catch(() => null);
      return answer?.ok;
    });
    return desk;
  }

  async close() {
    if (this.#child.exitCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.stdin.end();
      await ended;
    }
    await rm(this.home, { recursive: true, force: true });
  }

  /** Starts the app; it lives as long as the window that this answers. `folder` is the terminal's own. */
  async start({ folder = 'terminal', args = [] } = {}) {
    const options = { binary: BINARY, args: ['--home', join(this.home, folder), ...args] };
    const capabilities = { alwaysMatch: { 'webkitgtk:browserOptions': options } };
    const { sessionId } = await this.#ask('POST', '/session', { capabilities });
    return new AppWindow((method, path, body) =>
      this.#ask(method, `/session/${sessionId}${path}`, body),
    );
  }

  /** Starts the app as somebody who has no driver does: how it ended, and what it said. */
  async launch(folder) {
    const env = { ...process.env, DISPLAY: this.display, XDG_RUNTIME_DIR: this.home };
    const child = spawn(BINARY, ['--home', join(this.home, folder)], { env });
    let said = '';
    child.stderr.on('data', (text) => (said += text));
    const hung = setTimeout(() => child.kill('SIGKILL'), STARTS_WITHIN_MS);
    const [code] = await once(child, 'close');
    clearTimeout(hung);
    return { code, said };
  }

  /** Waits until a terminal has kept who it is, and answers with what it has kept. */
  async enrolled(folder = 'terminal') {
    let kept = '';
    await this.#until('the terminal is enrolled', async () => {
      kept = await readFile(join(this.home, folder, 'terminal.json'), 'utf8').catch(() => '');
      return kept !== '' && !(kept.includes('"kiosk"') && kept.includes('"exit_pin": null'));
    });
    return kept;
  }

  /** Ends an app whose window is not the one that was driven, or that no driver may close. */
  async end(folder, window) {
    await window.close().catch(() => {}); // the driver has one session at a time
    for (const pid of await this.#programs(folder)) process.kill(pid);
    await this.#until('the app has ended', async () => (await this.#programs(folder)).length === 0);
  }

  /** What the screen shows, into a PNG. */
  async picture(file) {
    const run = promisify(execFile);
    await run('import', ['-display', this.display, '-window', 'root', file], { timeout: HUNG });
  }

  /** A second monitor is plugged in, on the right of the first; where its middle is. */
  async plug() {
    await this.#run('xrandr', ['--addmode', 'DUMMY1', '800x600']);
    const [width] = this.#size.split('x').map(Number);
    await this.#run('xrandr', ['--output', 'DUMMY1', '--mode', '800x600', '--pos', `${width}x0`]);
    await this.#run('xrandr', ['--query']); // the driver calls it connected when it is asked next
    return { x: width + 400, y: 300 };
  }

  async unplug() {
    await this.#run('xrandr', ['--output', 'DUMMY1', '--off']);
  }

  /** A finger comes down on the screen and goes up again: through the X server, as a real one does. `title`: of a
   * window that does not fill the screen, within which it is. */
  async touch({ x, y }, title) {
    const at = [x, y].map((one) => String(Math.round(one)));
    const within = title ? ['--window', (await this.#called(title))[0]] : [];
    await this.#run('xdotool', ['mousemove', ...within, ...at, 'click', '1']);
  }

  /** The same with another button of a mouse; 4 and 5 turn its wheel. */
  async press(button, { x, y }, keys = []) {
    const [down, up] = ['keydown', 'keyup'].map((how) => keys.flatMap((key) => [how, key]));
    const at = [x, y].map(String);
    await this.#run('xdotool', ['mousemove', ...at, ...down, 'click', String(button), ...up]);
  }

  /** A finger that stays down, goes somewhere else, and is lifted. */
  async drag(from, to) {
    const [a, b] = [from, to].map(({ x, y }) => ['mousemove', String(x), String(y)]);
    await this.#run('xdotool', [...a, 'mousedown', '1', ...b, 'mouseup', '1']);
  }

  /** A finger goes down or is lifted where it is. */
  async finger(down) {
    await this.#run('xdotool', [down ? 'mousedown' : 'mouseup', '1']);
  }

  /** Keys at once, by their names: `ctrl+alt+Left`. */
  async keys(names) {
    await this.#run('xdotool', ['key', names]);
  }

  /** What the whole screen shows, as a number: the same one is the same picture. */
  async look() {
    return createHash('sha256')
      .update(await this.#pixels('root'))
      .digest('hex');
  }

  /** Waits until the screen has come to rest, and answers with what it shows: twice the same, a moment apart. */
  async rest() {
    let now = await this.look();
    await this.#until('the screen comes to rest', async () => {
      const before = now;
      await new Promise((done) => setTimeout(done, A_MOMENT_MS));
      now = await this.look();
      return now === before;
    });
    return now;
  }

  /** The colour of a dot of the screen's, or of a window's. */
  async colour({ x, y }, title) {
    const [left, top] = [x, y].map(Math.round);
    const window = title ? (await this.#called(title))[0] : 'root';
    return (await this.#pixels(window, `1x1+${left}+${top}`)).toString('hex');
  }

  /** What a window shows, by its number, or a part of it: three bytes a pixel. */
  async #pixels(window, part) {
    const crop = part ? ['-crop', part] : [];
    const args = ['-display', this.display, '-window', window, ...crop, '-depth', '8', 'rgb:-'];
    const options = { encoding: 'buffer', maxBuffer: 1 << 26, timeout: HUNG };
    const { stdout } = await promisify(execFile)('import', args, options);
    return stdout;
  }

  /** Waits until so many windows of this title are on the screen. */
  async windows(title, count) {
    await this.#until(
      `${count} windows called ${title}`,
      async () => (await this.#called(title)).length === count,
    );
  }

  async #called(title) {
    const env = { ...process.env, DISPLAY: this.display };
    const search = ['search', '--onlyvisible', '--name', `^${title}$`];
    const found = promisify(execFile)('xdotool', search, { env, timeout: HUNG });
    const { stdout } = await found.catch(() => ({ stdout: '' })); // none is an error there
    return stdout.split('\n').filter(Boolean);
  }

  /** Waits until a window shows words that it did not show before, and answers with its picture, as a number. */
  async changes(title, before) {
    let now;
    await this.#until(`another picture in ${title}`, async () => {
      const pixels = await this.#pixels((await this.#called(title))[0]);
      const colours = new Set();
      for (let at = 0; at + 2 < pixels.length; at += 3) colours.add(pixels.readUIntBE(at, 3));
      now = createHash('sha256').update(pixels).digest('hex');
      return colours.size > A_BLANK_WINDOW && now !== before;
    });
    return now;
  }

  /** Processes of an app's, by what they are called. */
  async processes(folder, name) {
    return found('-P', (await this.#programs(folder)).join(','), name);
  }

  /** A machine that is suspended, or wakes: the app, its pages, all of its processes (`SIGSTOP`, `SIGCONT`). */
  async signalAll(folder, signal) {
    const programs = await this.#programs(folder);
    for (const pid of [...programs, ...(await found('-P', programs.join(',')))])
      process.kill(pid, signal);
  }

  #programs(folder) {
    return found('-f', `box-office --home ${join(this.home, folder)}`);
  }

  /**
   * Keys of the keyboard itself go down and up, as a scanner sends them that is set to a US keyboard. A scanner does not
   * pause because a machine is busy, and a pause is a hand's: so it goes before everything else, where that is allowed.
   */
  async scan(text) {
    const presses = [...text, '\n'].flatMap((letter) => {
      const key = ['key', '--delay', '1', String(keycode(letter.toLowerCase()))];
      const shifted = /[A-Z:]/.test(letter);
      return shifted ? ['keydown', String(SHIFT), ...key, 'keyup', String(SHIFT)] : key;
    });
    await this.#run('nice', ['-n', '-15', 'xdotool', ...presses]);
  }

  /** A hand types: a key after the other, with time between them. */
  async typeByHand(text) {
    await this.#run('xdotool', ['type', '--delay', '80', text]);
  }

  /** The system's own layout, such as `fr`, and whether Caps Lock is on from now on. */
  async layout(name, { capsLock = false } = {}) {
    await this.#run('setxkbmap', [name]);
    if (capsLock) await this.#run('xdotool', ['key', 'Caps_Lock']);
  }

  async #run(program, args) {
    const env = { ...process.env, DISPLAY: this.display };
    await promisify(execFile)(program, args, { env, timeout: HUNG });
  }

  async #ask(method, path, body) {
    const response = await fetch(this.#driver + path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: method === 'POST' ? JSON.stringify(body ?? {}) : undefined,
      signal: AbortSignal.timeout(STARTS_WITHIN_MS),
    });
    const { value } = await response.json();
    if (!response.ok)
      throw new Error(`${method} ${path}: ${value.error}: ${value.message}`, {
        cause: value.error,
      });
    return value;
  }

  async #until(what, check) {
    for (const end = Date.now() + STARTS_WITHIN_MS; Date.now() < end;) {
      if (await check()) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not within a minute: ${what}; ${this.#said}`);
  }
}

/** Processes, as `pgrep` finds them. */
async function found(...args) {
  const { stdout } = await promisify(execFile)('pgrep', args).catch(() => ({ stdout: '' }));
  return stdout.split('\n').filter(Boolean).map(Number);
}

/** The way to a hub, which can be pulled out of the wall: what is sent then is lost, and nobody is told. */
export class Cable {
  /** What was asked over it, as `GET /healthz`. */
  asked = [];
  #pairs = new Set();
  #pulled = false;

  static async to(url) {
    const cable = new Cable();
    const { port } = new URL(url);
    cable.server = createServer((here) => {
      const there = connect(Number(port), '127.0.0.1');
      const pair = [here, there];
      cable.#pairs.add(pair);
      here.on('data', (bytes) => {
        const [asked] = /^[A-Z]+ \/\S*/.exec(bytes.toString('latin1', 0, 1_000)) ?? [];
        if (asked) cable.asked.push(asked);
      });
      for (const [from, to] of [pair, [there, here]]) {
        from.on('data', (bytes) => cable.#pulled || to.write(bytes));
        from.on('error', () => {});
        from.on('close', () => {
          to.destroy();
          cable.#pairs.delete(pair);
        });
      }
    }).listen(0, '127.0.0.1');
    await once(cable.server, 'listening');
    cable.url = `http://127.0.0.1:${cable.server.address().port}`;
    return cable;
  }

  pull() {
    this.#pulled = true;
  }

  /** Connections of before are dead. */
  plugIn() {
    this.#pulled = false;
    for (const pair of this.#pairs) for (const end of pair) end.destroy();
  }

  close() {
    this.plugIn();
    this.server.close();
  }
}

/** The app's window, by the test ids of what is in it. */
class AppWindow {
  #ask;

  constructor(ask) {
    this.#ask = ask;
  }

  close() {
    return this.#ask('DELETE', '');
  }

  /** Closes it as a browser's tab is closed, past its page. */
  closeTab() {
    return this.#ask('DELETE', '/window');
  }

  /** Waits until there is no window any more. */
  async gone() {
    for (const end = Date.now() + HUNG; Date.now() < end;) {
      const there = await this.#ask('GET', '/title').then(
        () => true,
        () => false,
      );
      if (!there) return;
      await new Promise((done) => setTimeout(done, 30));
    }
    throw new Error('the window is still there');
  }

  /** Runs in the window: `script` is the body of a function. */
  run(script, ...args) {
    return this.#ask('POST', '/execute/sync', { script, args });
  }

  /** The same, for what answers later: awaits what the body returns; errors come back as `{error}`. */
  later(script, ...args) {
    const body = `const done = arguments[arguments.length - 1];
      (async () => { ${script} })().then(
        (value) => done({ value }),
        (error) => done({ error: typeof error === 'string' ? error : (error?.code ?? String(error)) }));`;
    return this.#ask('POST', '/execute/async', { script: body, args });
  }

  async find(testid) {
    const value = `[data-testid="${testid}"]`;
    const found = await fresh(() =>
      this.#ask('POST', '/elements', { using: 'css selector', value }),
    );
    return found[0]?.[ELEMENT];
  }

  /** Waits until it is there. */
  async shows(testid, within = HUNG) {
    for (const end = Date.now() + within; ;) {
      const element = await this.find(testid);
      if (element) return element;
      if (Date.now() > end)
        throw new Error(`no ${testid}, but: ${await this.run('return document.body.innerText')}`);
      await new Promise((done) => setTimeout(done, 30));
    }
  }

  /** Waits until it is there no more. */
  async hides(testid, within = HUNG) {
    for (const end = Date.now() + within; await this.find(testid);) {
      if (Date.now() > end) throw new Error(`${testid} is still there`);
      await new Promise((done) => setTimeout(done, 30));
    }
  }

  async text(testid) {
    return fresh(async () => this.#ask('GET', `/element/${await this.shows(testid)}/text`));
  }

  /** Waits until it says so. */
  async says(testid, pattern, within = HUNG) {
    let text = '';
    for (const end = Date.now() + within; Date.now() < end;) {
      text = await this.text(testid);
      if (pattern.test(text)) return text;
      await new Promise((done) => setTimeout(done, 30));
    }
    throw new Error(`${testid} says ${JSON.stringify(text)}, not ${pattern}`);
  }

  async click(testid) {
    await fresh(async () => this.#ask('POST', `/element/${await this.shows(testid)}/click`));
  }

  async type(testid, text) {
    const element = await this.shows(testid);
    await this.#ask('POST', `/element/${element}/clear`);
    await this.#ask('POST', `/element/${element}/value`, { text });
  }
}

/** Something of a page may go while the driver looks at it: then it is looked at anew. */
async function fresh(look) {
  for (const end = Date.now() + HUNG; ;) {
    try {
      return await look();
    } catch (error) {
      if (error.cause !== 'stale element reference' || Date.now() > end) throw error;
    }
  }
}
