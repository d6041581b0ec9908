// A ticket printer without paper: what a till or kiosk prints lies in its folder as pictures, a sheet each.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
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

export class Printer {
  /** What it said, a line each. */
  said = [];
  #child;
  #folder;

  /** Stands beside a terminal whose folder is `home`, which knows of it. */
  static async beside(home) {
    const printer = new Printer();
    const address = `127.0.0.1:${await freePort()}`;
    printer.#folder = join(home, 'sheets');
    await mkdir(home, { mode: 0o700, recursive: true });
    printer.#child = spawn(BINARY, ['--listen', address, '--folder', printer.#folder]);
    createInterface(printer.#child.stdout).on('line', (line) => printer.said.push(line));
    await until('the printer stands', () => printer.said.length > 0);
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
