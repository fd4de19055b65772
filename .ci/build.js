/**
 * Builds dist: compiles the sources, copies the static files of the pages, documents the options and records, and joins
 * the files that the programs load. Writes the JSON Schemas into schema.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

/** The files that run as a process or a thread of their own. */
const programs = ['main.js', 'cli/thread.js', 'config/watch/read-thread.js'];
/** The libraries that consist of hundreds of small files, of which a start needs most. */
const joinedLibraries = ['kysely', 'zod', 'zod-openapi'];

const began = new Date();
rmSync('dist', { recursive: true, force: true });
// `npm run check` reports type errors. With several threads, each would infer the types of the libraries again.
// Not `tsc` of the PATH: on Windows that is a script, which only a shell can start.
execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'src', '--noCheck', '--singleThreaded'], {
  stdio: 'inherit',
});
cpSync('src', 'dist', { recursive: true, filter: (file) => !/\.(?:ts|json|md)$/.test(file) });
await documentSettings('dist/server/product/index.d.ts');
await documentRecords('dist/config/records/input.d.ts');
await writeSchemas('schema');
await joinPrograms();
// npm makes main.js executable when it installs the package, but not when the build runs again in a linked checkout.
// Tests rebuild when main.js is older than a source file or is not executable.
utimesSync('dist/main.js', began, began);
chmodSync('dist/main.js', 0o755);

/**
 * Joins the files of each program into a few in dist/programs, because finding and linking hundreds of files takes a
 * third of a start. Apps that import the package get the single files, and share its libraries.
 */
async function joinPrograms() {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  const libraries = Object.keys({ ...dependencies, ...peerDependencies });
  await build({
    entryPoints: programs.map((name) => join('dist', name)),
    outdir: 'dist/programs',
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    // Otherwise it would follow the paths of the sources.
    tsconfigRaw: {},
    external: libraries.filter((name) => !joinedLibraries.includes(name)),
    plugins: [{ name: 'own-urls', setup: keepOwnUrls }],
    logLevel: 'warning',
  });
  for (const name of programs) {
    const { length } = name.split('/');
    const start = `${'../'.repeat(length - 1) || './'}programs/${name.split('/').at(-1)}`;
    const interpreter = name === 'main.js' ? '#!/usr/bin/env node\n' : '';
    writeFileSync(join('dist', name), `${interpreter}import '${start}';\n`);
  }
  const licences = joinedLibraries.map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8')}`);
  writeFileSync('dist/programs/LICENSES', licences.join('\n'));
}

/** Lets a file find the files beside it. */
function keepOwnUrls({ onLoad }) {
  onLoad({ filter: /\.js$/ }, ({ path }) => {
    const name = relative(resolve('dist'), path);
    if (name.startsWith('..')) return undefined;
    const url = `new URL(${JSON.stringify(`../${name}`)}, import.meta.url).href`;
    return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url) };
  });
}

/** Adds the settings to the interface of the options, with doc comments that call settings by the names of options. */
async function documentSettings(file) {
  const { settingTable: table } = await import('../dist/server/product/index.js');
  const { variables } = await import('../dist/config/settings/gateway-settings.js');
  const options = new Map(variables(table));
  const withOptions = (text) =>
    text.replace(/[A-Z_]+/g, (word) => (options.has(word) ? `\`${options.get(word)}\`` : word));
  const type = 'SettingOptionsOf<typeof settingTable>';
  const fields = Object.entries(table)
    .filter(([option]) => option !== 'configDir' && option !== 'threads')
    .map(([option, { description, expectsValue, default: value }]) =>
      field(`${option}?`, `${type}['${option}']`, `${withOptions(description)} Takes ${expectsValue}.`, shown(value)),
    );
  addFields(file, `Omit<${type}, 'configDir' | 'threads'>`, fields);
}

/** Adds the fields of each kind of record to its interface, with doc comments from its table. */
async function documentRecords(file) {
  const { plainText } = await import('../dist/config/fields/json-schema.js');
  for (const [, table, source] of readFileSync(file, 'utf8').matchAll(
    /import type { (\w+Fields) } from '\.\/(.+)\.ts'/g,
  )) {
    const { [table]: rows } = await import(`../dist/config/records/${source}.js`);
    const type = `InputOf<typeof ${table}>`;
    const fields = Object.values(rows).map(({ name, docs, shownDefault, ...row }) =>
      field(
        `${name}${'default' in row ? '?' : ''}`,
        `${type}['${name}']`,
        plainText(docs),
        shownDefault ?? shown(row.default),
      ),
    );
    addFields(file, type, fields);
  }
}

/** Writes the JSON Schemas, which editors read, from the tables that check the configuration. */
async function writeSchemas(folder) {
  const { schemaFiles } = await import('../dist/config/index.js');
  const { settingTable } = await import('../dist/server/product/index.js');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [name, schema] of Object.entries(schemaFiles(settingTable)))
    writeFileSync(join(folder, name), `${JSON.stringify(schema, undefined, 2)}\n`);
}

function field(name, type, text, defaultValue) {
  const defaultTag = defaultValue === undefined ? '' : ` @default ${defaultValue}`;
  return `    /** ${text}${defaultTag} */\n    readonly ${name}: ${type};\n`;
}

function shown(value) {
  return value === undefined ? undefined : JSON.stringify(value);
}

/** Adds fields to the interface that extends `type`. Editors show no comments for the properties of mapped types. */
function addFields(file, type, fields) {
  const [before, after] = readFileSync(file, 'utf8').split(`${type} {\n`);
  if (after === undefined) throw new Error(`${file} has no interface that extends ${type}`);
  writeFileSync(file, [before, `${type} {\n`, ...fields, after].join(''));
}
