/** The recipe "One part, without a gateway": compiles its programs and runs them unchanged, as an app that installs the package. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { runCommand } from '../support/programs/command.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { compileIn, installIn, moduleModes, programsIn } from './installed-app.ts';
import { readRecipe } from './page.ts';

const redisUrl = process.env['TEST_REDIS_URL'];

describe('the recipe: one part, without a gateway', () => {
  const writeFiles = temporaryFiles();
  const { files } = readRecipe('One part, without a gateway');
  let directory: string;
  const { start, serve } = programsIn(() => directory, files);

  before(async () => {
    const limits = files['config/ratelimit/shop.yaml']?.replace('unit: second', 'unit: hour');
    directory = await writeFiles({ 'config/users.yaml': 'users: []\n', 'config/ratelimit/shop.yaml': limits ?? '' });
    await installIn(directory, ['koa', 'express', 'fastify']);
    const added = await runCommand(['users', 'add', 'ann'], { cwd: directory, input: 'secret\n' });
    assert.equal(added.code, 0, added.stderr);
  });

  for (const mode of moduleModes)
    it(`compiles under strict TypeScript with moduleResolution ${mode.moduleResolution}`, async () => {
      const programs = Object.fromEntries(Object.entries(files).filter(([name]) => name.endsWith('.mjs')));
      assert.deepEqual(Object.keys(programs), ['express.mjs', 'fastify.mjs', 'koa.mjs', 'limits.mjs']);
      assert.equal(await compileIn(directory, programs, mode), '');
    });

  /** Starts a server with limits that no test outlasts, and returns a function that sends a request to it. */
  async function serveLimited(name: string) {
    const port = await serve(name, [["'minute'", "'day'"]]);
    return (headers: Readonly<Record<string, string>> = {}) => fetch(`http://127.0.0.1:${port}/`, { headers });
  }

  for (const name of ['express.mjs', 'fastify.mjs'])
    it(`limits a client to two requests a minute in ${name}`, async () => {
      const ask = await serveLimited(name);
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
    const ask = await serveLimited('koa.mjs');
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
