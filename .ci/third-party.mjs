// Whose work is in what we ship: the packages in the binary (cargo) and in the page's bundle (npm),
// with the licence of each, its copyright lines, and the texts that have to travel with it.
//
//   node .ci/third-party.mjs          writes THIRD-PARTY.md anew
//   node .ci/third-party.mjs --check  compares; exit code 1 if it is not what the lock files say
//
// Where a package leaves the choice, it is used under Apache-2.0, whose text is LICENSE, else under MIT.
// A licence that is not among ACCEPTED stops this: somebody has to read it first.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'vite';

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'));
const OUT = 'THIRD-PARTY.md';
/** What is shipped is built for this; packages for other systems are not in it. */
const TARGET = 'x86_64-unknown-linux-gnu';
const ACCEPTED = new Set(
  [
    'Apache-2.0',
    'MIT',
    'MIT-0',
    '0BSD',
    'BSD-2-Clause',
    'BSD-3-Clause',
    'ISC',
    'Zlib',
    'BSL-1.0',
  ].concat([
    'Unicode-3.0',
    'CC0-1.0',
    'Unlicense',
    'Apache-2.0 WITH LLVM-exception',
    'CDLA-Permissive-2.0',
    // Used as it was published, and only in the desktop app; its sources are told below.
    'MPL-2.0',
  ]),
);

/** The packages that are linked into a binary: what `root` depends on, build scripts and macros left out. */
function cratesShipped(root, manifest) {
  const args = ['metadata', '--format-version', '1', '--filter-platform', TARGET];
  args.push('--manifest-path', manifest);
  if (process.argv.includes('--check')) args.push('--locked');
  const metadata = JSON.parse(
    execFileSync('cargo', args, { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  const packages = new Map(metadata.packages.map((one) => [one.id, one]));
  const nodes = new Map(metadata.resolve.nodes.map((one) => [one.id, one]));
  const isMacro = (id) => packages.get(id).targets.some(({ kind }) => kind.includes('proc-macro'));
  const seen = new Set();
  const walk = (id) => {
    if (seen.has(id) || isMacro(id)) return;
    seen.add(id);
    for (const { pkg, dep_kinds } of nodes.get(id).deps)
      if (dep_kinds.some(({ kind }) => kind === null)) walk(pkg);
  };
  walk(metadata.packages.find(({ name, source }) => name === root && source === null).id);
  return [...seen]
    .map((id) => packages.get(id))
    .filter(({ source }) => source !== null)
    .map(({ name, version, license, manifest_path }) => ({
      name,
      version,
      license,
      folder: dirname(manifest_path),
    }));
}

/** The packages whose modules are in a bundle, its workers' included: asked of the build itself. */
async function packagesBundled(configFile) {
  const folders = new Set();
  const collect = {
    name: 'collect-packages',
    generateBundle(_, output) {
      for (const chunk of Object.values(output)) {
        for (const id of Object.keys(chunk.modules ?? {})) {
          const folder = /^(?:\0)?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
          if (folder) folders.add(folder);
        }
      }
    },
  };
  await build({
    configFile,
    logLevel: 'error',
    build: { write: false },
    plugins: [collect],
    worker: { plugins: () => [collect] },
  });
  return [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    );
    return { name, version, license, folder };
  });
}

/** `MIT OR Apache-2.0`, `A AND (B OR C)`, and the old `MIT/Apache-2.0`: what it is used under. */
function used(expression) {
  const chosen = expression
    .replaceAll('/', ' OR ')
    .replace(/\(([^()]*)\)/g, (_, inner) => choice(inner))
    .split(' AND ')
    .map(choice);
  return [...new Set(chosen)];
}

function choice(alternatives) {
  const options = alternatives.split(' OR ').map((one) => one.trim());
  const accepted = options.filter((one) => ACCEPTED.has(one));
  if (accepted.length === 0) throw new Error(`nobody has accepted the licence ${alternatives} yet`);
  return ['Apache-2.0', 'MIT'].find((one) => accepted.includes(one)) ?? accepted[0];
}

const COPYRIGHT = /^\W*(?:copyright|©|\(c\))\s.*\d{4}.*$|^\W*copyright (?:\(c\)|©).*$/i;

/** A package's licence files: its copyright lines, and what is left of each text. */
function texts({ folder }, licences) {
  const found = readdirSync(folder)
    .filter(
      (file) =>
        /^(licen[cs]e|copying|copyright|notice)/i.test(file) &&
        statSync(join(folder, file)).isFile(),
    )
    .sort();
  // Of several files, those of the licence that was chosen; `LICENSE` alone may hold any.
  const named = {
    'Apache-2.0': /apache/i,
    MIT: /mit/i,
    ISC: /isc/i,
    Zlib: /zlib/i,
    Unlicense: /unlicense/i,
  };
  const wanted = found.filter((file) => {
    const of = Object.entries(named)
      .filter(([, pattern]) => pattern.test(file))
      .map(([licence]) => licence);
    return of.length === 0 || of.some((one) => licences.includes(one));
  });
  const copyrights = [];
  const bodies = [];
  for (const file of wanted) {
    const lines = readFileSync(join(folder, file), 'utf8').replaceAll('\r', '').split('\n');
    if (
      lines.some((line) => /Apache License/.test(line)) &&
      lines.some((line) => /TERMS AND CONDITIONS/.test(line))
    ) {
      continue; // LICENSE
    }
    copyrights.push(...lines.filter((line) => COPYRIGHT.test(line)).map((line) => line.trim()));
    const body = lines
      .filter((line) => !COPYRIGHT.test(line))
      .map((line) => line.trim())
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
    if (body && !/^apache-2\.0$/i.test(body)) bodies.push(body);
  }
  return { copyrights: [...new Set(copyrights)], bodies };
}

function section(title, packages, groups) {
  const lines = [
    `## ${title}`,
    '',
    '| package | its licence | used under |',
    '| --- | --- | --- |',
  ];
  for (const one of packages.sort((a, b) => (a.name + a.version < b.name + b.version ? -1 : 1))) {
    if (!one.license) throw new Error(`${one.name} states no licence`);
    const licences = used(one.license);
    lines.push(`| ${one.name} ${one.version} | ${one.license} | ${licences.join(', ')} |`);
    const { copyrights, bodies } = texts(one, licences);
    const isApacheOnly = licences.every((licence) => licence === 'Apache-2.0');
    for (const body of isApacheOnly
      ? bodies.filter((text) => /notice/i.test(text.slice(0, 200)))
      : bodies) {
      const key = body.replace(/\s+/g, ' ').toLowerCase();
      const group = groups.get(key) ?? { body, of: [] };
      group.of.push(
        `${one.name} ${one.version}${copyrights.length ? `: ${copyrights.join('; ')}` : ''}`,
      );
      groups.set(key, group);
    }
  }
  return [...lines, ''];
}

const groups = new Map();
const lines = [
  '# What was made by others',
  '',
  'Written by `make third-party` from the lock files; do not edit it. Plans and other files are named in NOTICE.',
  '',
  ...section('In the binary', cratesShipped('fullhouse', 'Cargo.toml'), groups),
  ...section('In the page', await packagesBundled('assets/fan/vite.config.ts'), groups),
  ...section(
    'In the desktop app',
    cratesShipped('fullhouse-box-office-shell', 'box-office-app/src-tauri/Cargo.toml'),
    groups,
  ),
  ...section('In its screens', await packagesBundled('box-office-app/ui/vite.config.ts'), groups),
  '## Texts',
  '',
  'The text of Apache-2.0 is in LICENSE. The sources of what is used under MPL-2.0 are, unchanged, at',
  '`https://crates.io/crates/NAME/VERSION`.',
  '',
];
for (const { body, of } of groups.values()) {
  lines.push(...of.map((one) => `- ${one}`), '', '```text', body, '```', '');
}
const fresh = `${lines.join('\n').trimEnd()}\n`;
if (!process.argv.includes('--check')) {
  writeFileSync(OUT, fresh);
} else if (!existsSync(OUT) || readFileSync(OUT, 'utf8') !== fresh) {
  console.error(`${OUT} is not what the lock files say: run \`make third-party\` and commit it`);
  process.exit(1);
}
