/** The npm package: the contents of `dist`, its declarations, and the packages that they depend on. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { configurationFrom, listSettings, schemaFiles } from '#config';
import { settingTable } from '#server/product';
import { fieldTables } from './config/field-tables.ts';
import { exampleConfiguration } from './support/documented-examples.ts';
import { built } from './support/programs/built.ts';
import { scratch, startProgram } from './support/programs/frontdesk-process.ts';
import { temporaryFiles } from './support/temporary-files.ts';
import { untyped } from './support/untyped.ts';
import { eventually } from './support/waiting.ts';

const dist = dirname(built('index.js'));
const root = dirname(dist);
const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });

describe('the package', () => {
  const writeFiles = temporaryFiles();

  it('contains programs, declarations, source maps, styles and licences, but no files that only a build uses', () => {
    assert.deepEqual(
      names.filter((name) => name.includes('.') && !/\.(?:d\.ts|js|js\.map|css)$/.test(name)),
      [],
    );
  });

  it('documents each option with its values and its default in the declarations', () => {
    const texts = commentsIn('server/product/index.d.ts', 'SettingOptions');
    assert.deepEqual(
      Object.keys(texts).map(variableOf),
      listSettings(settingTable).flatMap(({ variable }) =>
        ['CONFIG_DIR', 'THREADS'].includes(variable) ? [] : variable,
      ),
    );
    assert.match(
      String(texts['drainMs']),
      /^How long a shutdown keeps serving .+ Takes a whole number of milliseconds .+ @default 0$/,
    );
    assert.match(String(texts['trustedProxies']), / Takes a list of addresses .+ @default \[\]$/);
    assert.match(String(texts['tlsCert']), /requires `tlsKey`/);
    assert.doesNotMatch(String(texts['tlsCert']), /@default/);
  });

  it('documents each field of a record in the declarations, with its default', () => {
    for (const [kind, table] of Object.entries(fieldTables)) {
      const texts = commentsIn('config/records/input.d.ts', `${kind}Input`);
      assert.deepEqual(
        Object.keys(texts),
        Object.values(table).map(({ name }) => name),
      );
    }
    const { host, method_regex, path_readings, timeout_ms } = commentsIn('config/records/input.d.ts', 'MappingInput');
    assert.equal(host, 'The host that the client requests, without port. @default any');
    assert.match(String(timeout_ms), /^How long to wait for the service's response headers, .+ @default `UPSTREAM_T/);
    // What only a table in Markdown needs is left out.
    assert.match(String(method_regex), / `GET\|HEAD`\. @default false$/);
    assert.match(String(path_readings), / See ambiguous paths\. @default \[\]$/);
  });

  it('documents each field of limits and users in the declarations', () => {
    for (const [file, name, configuration] of [
      ['limits/domains', 'LimitDomainInput', { limits: [{ domain: 'd', unknown: 1 }] }],
      ['limits/domains', 'DescriptorInput', { limits: [{ domain: 'd', descriptors: [{ key: 'k', unknown: 1 }] }] }],
      [
        'limits/limit',
        'RateLimitInput',
        { limits: [{ domain: 'd', descriptors: [{ key: 'k', rate_limit: { x: 1 } }] }] },
      ],
      ['users', 'UserInput', { users: [{ name: 'ann', password_hash: '', unknown: 1 }] }],
    ] as const) {
      const { errors } = configurationFrom(untyped({ records: [], ...configuration }));
      const known = errors.flatMap(({ remedy }) => /keys are (.+)\.$/.exec(remedy)?.[1]?.split(', ') ?? []);
      assert.deepEqual(Object.keys(commentsIn(`config/${file}.d.ts`, name)), known);
    }
  });

  it('contains the JSON Schemas that the tables of fields and settings say', () => {
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    assert.ok(files.includes('schema'));
    const expected = schemaFiles(settingTable);
    assert.deepEqual(readdirSync(join(root, 'schema')), Object.keys(expected).sort());
    for (const [name, schema] of Object.entries(expected))
      assert.deepEqual(
        JSON.parse(readFileSync(join(root, 'schema', name), 'utf8')),
        JSON.parse(JSON.stringify(schema)),
      );
  });

  describe('in a program under strict TypeScript', () => {
    const program = `
      import * as frontdesk from 'frontdesk';
      import * as api from 'frontdesk/api';
      import * as basic from 'frontdesk/auth';
      import * as ratelimit from 'frontdesk/ratelimit';
      import { pino } from './node_modules/frontdesk/node_modules/pino/pino.js';
      export const addresses = frontdesk.createAddresses({ trustedProxies: ['10.0.0.0/8'] });
      frontdesk.createRequestContext(addresses);
      export const users = frontdesk.createUsers([]);
      export const authenticator = frontdesk.createAuthenticator({ users });
      export const auth = frontdesk.createAuthService({ authenticator });
      export const counters = frontdesk.createMemoryCounters();
      export const limiter = frontdesk.createLimiter({ limits: [], counters });
      export const server = await frontdesk.serveRateLimit({ limiter, port: 0, logger: console });
      export const client = frontdesk.connectRateLimit({ target: () => [], timeoutMs: 1 });
      export const limits = await ratelimit.loadLimits('./config');
      export const decide = ratelimit.createRateLimit({ requestsPerUnit: 1, unit: 'day' });
      export const decision = await decide('ann');
      export const redis = await ratelimit.openRedisCounters({ url: 'redis://127.0.0.1' });
      export const records = await basic.loadUsers('./config');
      export const resolve = frontdesk.createResolve({ isLocal: () => false, listenerOf: () => undefined, addresses: {} });
      export const loaded = frontdesk.configurationFrom({ records: [] });
      export const { configuration } = loaded;
      export const gateway = frontdesk.createGateway({ configuration, resolve, services: {} });
      // @ts-expect-error: its lists are passed as a whole, because some have no effect alone.
      frontdesk.createGateway({ ...configuration, resolve, services: {} });
      export const representations = frontdesk.createRepresentations();
      export const desk = await frontdesk.createFrontdesk({ logger: pino() });
      export const { explain, upgradesThrough } = desk;
      export const listener = desk.upgradesThrough();
      export const shop = api.defineProblems({ sold: { status: 409, meaning: 'Sold.', remedy: 'Wait.' } });
      export const view = api.createView<{ id: string }>({ key: 'id', fields: { id: { column: 'id', schema: api.z.string() } } });
      export const docs = { operationId: 'listIds', summary: 'List' };
      export const schema = api.z.object({ id: api.z.string() });
      export const list = api.collection({ docs, path: '/', title: '', view, find: (_ctx, query) => api.pageOf([], query) });
      export const add = api.createItem({ docs, path: '/', title: '', view, schema, create: (_ctx, { once }) => once(() => ({ id: '' })) });
      api.createVersions({ v1: api.createResourceApp({ routes: [list, add], problems: shop }) });
    `;
    const examples = exampleConfiguration();
    const data = `
      import type { ConfigurationRecords, LimitDomainInput, RecordInput, UserInput } from 'frontdesk';
      ${examples.records.map((one) => `(${JSON.stringify(one)}) satisfies RecordInput;`).join('\n')}
      ${examples.limits.map((one) => `(${JSON.stringify(one)}) satisfies LimitDomainInput;`).join('\n')}
      ${examples.users.map((one) => `(${JSON.stringify(one)}) satisfies UserInput;`).join('\n')}
      export const demo: ConfigurationRecords['demo'] = ${JSON.stringify(examples.demo)};
    `;
    let compiled: ReturnType<typeof compile>;

    before(async function () {
      this.timeout(60_000);
      const files = { 'package.json': '{ "type": "module" }', 'program.ts': program, 'data.ts': data };
      compiled = compile(await writeFiles(files));
    });

    it('exports the types of its results, so that a project with declarations can export such values', () => {
      assert.equal(compiled.stdout, '');
      assert.match(compiled.declaration, /users: frontdesk\.UserStore;/);
    });

    it('accepts every example in the documentation and the demo as data', () => {
      assert.ok(examples.records.length > 20 && examples.limits.length > 5 && examples.users.length > 1);
      assert.equal(compiled.stdout, '');
    });
  });

  it('depends on the types of every package that its declarations import', () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = packagesIn(names.filter((name) => name.endsWith('.d.ts')));
    assert.ok(packages.includes('koa'));
    assert.deepEqual(
      packages.map(typesOf).filter((name) => !Object.hasOwn({ ...dependencies, ...peerDependencies }, name)),
      [],
    );
  });

  it('keeps compiled code in its directory from the first start, even if the process is killed', async () => {
    const folder = await copyPackage();
    const server = startServe(folder);
    await eventually(() => assert.notDeepEqual(filesIn(join(folder, '.cache')), []));
    server.signal('SIGKILL');
    assert.equal((await server.ended).stderr, '');
  });

  it('starts where it cannot keep compiled code', async () => {
    const folder = await copyPackage({ '.cache': 'a file' });
    const server = startServe(folder);
    await server.waitForOutput(/is ready/);
    server.signal('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('starts a server from few files: no single file of ours, of kysely or of zod, of which there are hundreds', async () => {
    const server = startServe(await copyPackage(), { NODE_OPTIONS: `--import ${reportLoads}` });
    await server.waitForOutput(/is ready/);
    server.signal('SIGTERM');
    const { stderr } = await server.ended;
    const loaded = stderr.split('\n').filter((line) => /\/(?:kysely|zod)\/|^(?!.*node_modules).*\/dist\//.test(line));
    assert.notDeepEqual(loaded, []);
    assert.deepEqual(
      loaded.filter((file) => !/\/dist\/(?:programs\/[^/]+|main)\.js$/.test(file)),
      [],
    );
  });

  async function copyPackage(files: Readonly<Record<string, string>> = {}): Promise<string> {
    const program = "process.argv.push('serve'); await import('./dist/main.js');";
    const folder = await writeFiles({ ...files, 'program.js': program });
    cpSync(dist, join(folder, 'dist'), { recursive: true });
    for (const name of ['package.json', 'node_modules', 'proto', 'config']) {
      symlinkSync(join(root, name), join(folder, name));
    }
    return folder;
  }
});

/** A module that makes a process print each file that it loads to standard error. */
const reportLoads = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  registerHooks({
    load(url, context, next) {
      writeSync(2, url + '\\n');
      return next(url, context);
    },
  });
`)}`;

function startServe(folder: string, more: Readonly<Record<string, string>> = {}) {
  const env = { ...scratch, NODE_COMPILE_CACHE: '', CONFIG_DIR: join(folder, 'config'), ...more };
  return startProgram(join(folder, 'program.js'), { env });
}

function filesIn(directory: string): readonly string[] {
  return existsSync(directory)
    ? readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((file) =>
        file.isFile() ? file.name : [],
      )
    : [];
}

/** Compiles program.ts and data.ts against the package. Returns the compiler's output and the declaration it wrote. */
function compile(folder: string): { readonly stdout: string; readonly declaration: string } {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/frontdesk'));
  const options = '--strict --module nodenext --target es2023 --declaration --preserveSymlinks --types node'.split(' ');
  const typeRoots = ['--typeRoots', join(root, 'node_modules/@types')];
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { stdout } = spawnSync(tsc, [...options, ...typeRoots, 'program.ts', 'data.ts'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const declaration = readFileSync(join(folder, 'program.d.ts'), 'utf8');
  return { stdout, declaration };
}

/** Returns the doc comments in an interface of a declaration file, by property. */
function commentsIn(file: string, name: string): Readonly<Record<string, string>> {
  const [, body = ''] = readFileSync(join(dist, file), 'utf8').split(`interface ${name} `);
  const [properties = ''] = body.split('\n}\n');
  const commented = properties.matchAll(/^ *\/\*\* (.+) \*\/\n *readonly (\w+)\??: /gm);
  return Object.fromEntries([...commented].map(([, text = '', property = '']) => [property, text]));
}

/** Converts `drainMs` to `DRAIN_MS`. */
function variableOf(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital}`).toUpperCase();
}

/** Lists the imported packages, without Node's own modules: users choose the types of those themselves. */
function packagesIn(declarations: readonly string[]): readonly string[] {
  const specifiers = declarations
    .flatMap((name) => [...readFileSync(join(dist, name), 'utf8').matchAll(/(?:from |import\()["']([^"']+)["']/g)])
    .map(([, specifier = '']) => specifier)
    .filter((specifier) => !/^(?:[.#]|node:)/.test(specifier));
  return [...new Set(specifiers.map(packageOf))];
}

/** The package name in a specifier: `zod` in `zod/v4/core`, and all of `@grpc/grpc-js`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The package with the types: DefinitelyTyped's if there is one, otherwise the package itself. */
function typesOf(name: string): string {
  return existsSync(join(root, 'node_modules/@types', name)) ? `@types/${name}` : name;
}
