/** The first minute: `frontdesk init`, and then what it prints, word for word. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import request from 'supertest';
import { requireSettings } from '#config';
import { initialise } from '../../src/cli/init.ts';
import { freePort } from '../support/programs/free-port.ts';
import { runFrontdesk, runsTogether, type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const hasCurl = spawnSync('curl', ['--version']).status === 0;

/** The commands that are shown, by their first word. */
function shownCommands(text: string): Readonly<Record<string, string>> {
  const lines = text.match(/(?<=^ {2})(?:\w+=\S+ )?(?:npx frontdesk|curl) .*$/gm) ?? [];
  return Object.fromEntries(lines.map((line) => [/(?:frontdesk (\w+)|curl)/.exec(line)?.[1] ?? 'curl', line]));
}

describe('frontdesk init', function () {
  this.timeout(30_000);
  const writeFiles = temporaryFiles();
  const suite = testServers(after);
  let directory: string;
  let upstream: Upstream;
  let told: string;
  let server: Server;

  before(async () => {
    directory = await writeFiles();
    upstream = await startUpstream(suite);
    const env = { PORT: String(await freePort()) };
    const ended = await runFrontdesk(['init', '--service', upstream.origin], { cwd: directory, env });
    assert.deepEqual([ended.code, ended.stderr], [0, '']);
    told = ended.stdout;
    const args =
      shownCommands(told)
        ['serve']?.replace(/^npx frontdesk serve /, '')
        .split(' ') ?? [];
    server = await startServer(args, { cwd: directory, env });
    suite.later(server.stop);
  });

  it('tells what it wrote, the password, and what to type next', async () => {
    const files = told.match(/(?<=^ {2})config\/.*$/gm) ?? [];
    assert.deepEqual(files, ['config/services/app.yaml', 'config/ratelimit/gateway.yaml', 'config/users.yaml']);
    assert.deepEqual(Object.keys(shownCommands(told)).sort(), ['check', 'curl', 'serve']);
    const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')));
    const password = /has the password (\S{20})\n/.exec(told)?.[1] ?? assert.fail(told);
    assert.ok(!texts.join('').includes(password));
  });

  it('writes what the check that it names finds nothing wrong with', async () => {
    assert.equal(shownCommands(told)['check'], 'npx frontdesk check');
    const { code, stdout, stderr } = await runFrontdesk(['check'], { cwd: directory });
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, `/  ->  ${upstream.origin}  (Mapping app, config/services/app.yaml:4)\n`);
  });

  it('lets through who is named by the curl line that it shows', async function () {
    if (!hasCurl) this.skip();
    const { stdout } = await promisify(execFile)('sh', ['-c', shownCommands(told)['curl'] ?? '']);
    assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(stdout, /^RateLimit-Policy: "user";q=60;w=60\r$/im);
    assert.equal(upstream.reached.at(-1)?.headers['x-travel-user'], 'me');
  });

  it('lets nobody else in, and that user so often', async () => {
    const reached = upstream.reached.length;
    await request(server.gatewayUrl)
      .get('/any/path')
      .expect(401)
      .expect('WWW-Authenticate', /^Basic/);
    await request(server.gatewayUrl).get('/').auth('me', 'me').expect(401);
    assert.equal(upstream.reached.length, reached);
    const password = /has the password (\S+)/.exec(told)?.[1] ?? '';
    const ask = () => request(server.gatewayUrl).get('/any/path?x').auth('me', password);
    assert.equal((await ask()).headers['ratelimit'] !== undefined, true);
    // The minute may turn meanwhile, once.
    const statuses = new Set<number>();
    for (let sent = 0; sent < 121 && !statuses.has(429); sent += 1) statuses.add((await ask()).status);
    assert.deepEqual([...statuses], [200, 429]);
    assert.equal(upstream.reached.at(-1)?.url, '/any/path?x');
  });

  it('makes another password each time', async () => {
    const passwords = new Set<string>();
    for (const name of ['one', 'two']) {
      const text = await initialise(requireSettings({}), { directory: join(directory, name), service: 'shop' });
      passwords.add(/-u me:(\S+)/.exec(text)?.[1] ?? '');
    }
    assert.equal(passwords.size, 2);
  });

  it('names the directory in what to type next where it is another than the setting', async () => {
    const configDir = join(directory, 'set');
    const other = join(directory, "it's");
    const settings = requireSettings({ configDir, port: 9 });
    const text = await initialise(settings, { directory: other, service: 'shop' });
    const { check = '', curl = '' } = shownCommands(text);
    const { stdout } = await promisify(execFile)('sh', ['-c', `${check.replace('npx frontdesk check', 'env')}`]);
    assert.match(stdout, new RegExp(`^CONFIG_DIR=${other}$`, 'm'));
    assert.ok(curl.endsWith(' http://127.0.0.1:9/'));
    const same = await initialise(settings, { directory: undefined, service: 'shop' });
    assert.equal(shownCommands(same)['check'], 'npx frontdesk check');
  });
});

describe('frontdesk init, when it cannot', () => {
  const run = runsTogether();
  const writeFiles = temporaryFiles();
  let directory = '';
  let empty = '';

  const again = run(['init'], async () => {
    directory = await writeFiles({ 'config/users.yaml': 'mine' });
    return { cwd: directory };
  });

  const unnamed = run(['init', ''], async () => {
    empty = await writeFiles();
    return { cwd: empty };
  });

  const file = run(['init', 'there'], async () => ({ cwd: await writeFiles({ there: 'mine' }) }));

  it('says which file is there, writes nothing, and ends with 1', async () => {
    const { code, stdout, stderr } = again();
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, 'frontdesk: there is a configuration already, and nothing was written: config/users.yaml\n');
    assert.deepEqual(await readdir(join(directory, 'config')), ['users.yaml']);
  });
  it('writes nothing into the directory that it is run in when it is given an empty name', async () => {
    const { code, stdout, stderr } = unnamed();
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, 'frontdesk: "" is no directory to write to: write . for the one that you are in\n');
    assert.deepEqual(await readdir(empty), []);
  });

  it('asks for a directory when it is given a file', () => {
    const { code, stdout, stderr } = file();
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, 'frontdesk: cannot write there (ENOTDIR): name a directory that this user may write to\n');
  });
});
