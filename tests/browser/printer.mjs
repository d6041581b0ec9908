// A ticket printer without paper: what a till or kiosk prints lies in its folder as pictures, a sheet each.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { freePort } from './desk.mjs';
import { HUNG } from './house.mjs';

const BINARY = resolve(process.env.CARGO_TARGET_DIR ?? 'target', 'debug', 'paper-printer');

/** Waits for a state that nobody tells of: what `check` answers with, once it is something. */
export async function until(what, check) {
  for (const end = Date.now() + 3 * HUNG; ;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within half a minute: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** The terminal whose folder this is prints there from its next beginning on (`core/src/print/profile.rs`). */
async function connectTo(home, address) {
  const profile = {
    place: { kind: 'network', address },
    paper: 'mm80',
    code_page: 'pc858',
    confirms: 'jobs',
    cuts: true,
    own_qr: false,
    drawer: 'two',
  };
  await writeFile(join(home, 'printer.json'), JSON.stringify(profile));
}

export class Printer {
  /** What it said, a line each. */
  said = [];
  #child;
  #folder;

  /** Stands beside a terminal whose folder is `home`, which knows of it. `bytesASecond`: it is no faster. */
  static async beside(home, { bytesASecond } = {}) {
    const printer = new Printer();
    const address = `127.0.0.1:${await freePort()}`;
    printer.#folder = join(home, 'sheets');
    await mkdir(home, { mode: 0o700, recursive: true });
    const speed = bytesASecond ? ['--bytes-a-second', String(bytesASecond)] : [];
    const args = ['--listen', address, '--folder', printer.#folder, ...speed];
    printer.#child = spawn(BINARY, args);
    createInterface(printer.#child.stdout).on('line', (line) => printer.said.push(line));
    await until('the printer stands', () => printer.said.length > 0);
    await connectTo(home, address);
    return printer;
  }

  /** Waits for so many sheets; what its square says, of the last. */
  async sheet(number) {
    const file = join(this.#folder, `${number}.png`);
    await until(`sheet ${number}`, async () =>
      (await readdir(this.#folder)).includes(`${number}.png`),
    );
    const keep = process.env.PRINTED;
    if (keep) await copyFile(file, join(keep, `${number}.png`));
    const read = promisify(execFile)('zbarimg', ['--quiet', '--raw', file]);
    return (await read.catch(({ stdout }) => ({ stdout }))).stdout.trim();
  }

  async close() {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

/** One that answers how it is, takes a part of a job, and is gone. */
export async function brokenPrinter() {
  const WELL = 0x12;
  const TAKEN_BYTES_MAX = 6_000;
  const BREAKS_AFTER_MS = 3_000;
  const server = createServer((socket) => {
    let taken = 0;
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      for (let at = 0; at + 2 < bytes.length; at++)
        if (bytes[at] === 0x10 && bytes[at + 1] === 0x04) socket.write(Buffer.from([WELL]));
      taken += bytes.length;
      if (taken > TAKEN_BYTES_MAX) setTimeout(() => socket.destroy(), BREAKS_AFTER_MS);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  return {
    /** Beside the terminal whose folder this is. */
    standsAt: (home) => connectTo(home, `127.0.0.1:${server.address().port}`),
    close: () => server.close(),
  };
}
