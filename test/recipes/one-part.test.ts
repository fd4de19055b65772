/** The recipe "One part, without a gateway": compiles its programs and runs them unchanged, as an app that installs the package. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { built } from '../support/programs/built.ts';
import { runCommand } from '../support/programs/command.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type Program, startProgram } from '../support/programs/frontdesk-process.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { readRecipe } from './page.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const redisUrl = process.env['TEST_REDIS_URL'];

describe('the recipe: one part, without a gateway', () => {
  const writeFiles = temporaryFiles();
  const { files } = readRecipe('One part, without a gateway');
  const programs: Program[] = [];
  let directory: string;

  before(async () => {
    built('index.js');
    const limits = files['config/ratelimit/shop.yaml']?.replace('unit: second', 'unit: hour');
    directory = await writeFiles({ 'config/users.yaml': 'users: []\n', 'config/ratelimit/shop.yaml': limits ?? '' });
    await mkdir(join(directory, 'node_modules'));
    await symlink(repository, join(directory, 'node_modules/frontdesk'));
    for (const name of ['koa', 'express', 'fastify', '@types'])
      await symlink(join(repository, 'node_modules', name), join(directory, 'node_modules', name));
    const added = await runCommand(['users', 'add', 'ann'], { cwd: directory, input: 'secret\n' });
    assert.equal(added.code, 0, added.stderr);
  });

  afterEach(async () => {
    for (const program of programs.splice(0)) {
      program.signal('SIGKILL');
      await program.ended;
    }
  });

  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const)
    it(`compiles under strict TypeScript with moduleResolution ${moduleResolution}`, async () => {
      const names = Object.keys(files).filter((name) => name.endsWith('.mjs'));
      assert.deepEqual(names, ['express.mjs', 'fastify.mjs', 'koa.mjs', 'limits.mjs']);
      for (const name of names) await writeFile(join(directory, name.replace('.mjs', '.mts')), files[name] ?? '');
      const strict = { strict: true, noImplicitReturns: true, exactOptionalPropertyTypes: true, skipLibCheck: true };
      const compilerOptions = { ...strict, target: 'es2023', module, moduleResolution, types: ['node'], noEmit: true };
      await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ include: ['*.mts'], compilerOptions }));
      const tsc = join(repository, 'node_modules/.bin/tsc');
      const errors = await promisify(execFile)(tsc, ['-p', directory]).then(
        () => '',
        ({ stdout }) => stdout,
      );
      assert.equal(errors, '');
    });

  /** Starts a program of the recipe on a free port, with limits that no test outlasts. */
  async function start(name: string, changes: readonly (readonly [string, string])[]): Promise<Program> {
    const text = changes.reduce((before, [from, to]) => before.replace(from, to), files[name] ?? '');
    const file = join(directory, `started-${name}`);
    await writeFile(file, text);
    const program = startProgram(file, { cwd: directory });
    programs.push(program);
    return program;
  }

  /** Starts a server, and returns a function that sends a request to it as soon as it listens. */
  async function serve(name: string) {
    const port = await freePort();
    await start(name, [
      ['3000', String(port)],
      ["'minute'", "'day'"],
    ]);
    return (headers: Readonly<Record<string, string>> = {}) =>
      eventually(() => fetch(`http://127.0.0.1:${port}/`, { headers }), 50);
  }

  for (const name of ['express.mjs', 'fastify.mjs'])
    it(`limits a client to two requests a minute in ${name}`, async () => {
      const ask = await serve(name);
      for (const left of [1, 0]) {
        const allowed = await ask();
        assert.deepEqual([allowed.status, await allowed.text()], [200, 'Hello.\n']);
        assert.match(allowed.headers.get('ratelimit') ?? '', new RegExp(`^"client";r=${left};t=\\d+$`));
      }
      const denied = await ask();
      assert.equal(denied.status, 429);
      assert.ok(Number(denied.headers.get('retry-after')) > 0);
      assert.match(
        JSON.parse(await denied.text()).error,
        /^The limit "client" of 2 requests in 86400 seconds is exhausted\./,
      );
    });

  it('asks for the password of users.yaml in koa.mjs, and counts the requests of each user', async () => {
    const ask = await serve('koa.mjs');
    const unknown = await ask();
    assert.deepEqual(
      [unknown.status, unknown.headers.get('www-authenticate')],
      [401, 'Basic realm="tickets", charset="UTF-8"'],
    );
    const credentials = { Authorization: `Basic ${btoa('ann:secret')}` };
    const known = await ask(credentials);
    assert.deepEqual([known.status, await known.text()], [200, 'Hello ann.\n']);
    assert.equal(known.headers.get('ratelimit-policy'), '"user";q=2;w=86400');
    assert.deepEqual([(await ask(credentials)).status, (await ask(credentials)).status], [200, 429]);
  });

  it('applies the limits of a file by the entries of the key in limits.mjs, counted in Redis', async function () {
    if (redisUrl === undefined) return this.skip();
    const { ended } = await start('limits.mjs', [
      ['redis://127.0.0.1:6379', redisUrl],
      ["'ann'", `'${randomUUID()}'`],
    ]);
    const { code, stdout, stderr } = await ended;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.equal(stdout, '/search true\n/search false\n/ true\n');
  });
});
