/** The first minute: `frontdesk init`, and then what it prints, word for word. The recipe runs both as processes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { requireSettings } from '#config';
import { initialise } from '../../src/cli/init.ts';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

/** The commands that are shown, by their first word. */
function shownCommands(text: string): Readonly<Record<string, string>> {
  const lines = text.match(/(?<=^ {2})(?:\w+=\S+ )?(?:npx frontdesk|curl) .*$/gm) ?? [];
  return Object.fromEntries(lines.map((line) => [/(?:frontdesk (\w+)|curl)/.exec(line)?.[1] ?? 'curl', line]));
}

describe('frontdesk init', () => {
  const writeFiles = temporaryFiles();
  const suite = testServers(after);
  let directory: string;
  let upstream: Upstream;
  let printed: string;
  let gatewayUrl: string;

  before(async () => {
    directory = await writeFiles();
    upstream = await startUpstream(suite);
    const ended = await runCommand(['init', '--service', upstream.origin], { cwd: directory });
    assert.deepEqual([ended.code, ended.stderr], [0, '']);
    printed = ended.stdout;
    const { gateway } = await serveHere(suite, { cwd: directory });
    gatewayUrl = gateway?.url ?? '';
  });

  it('prints what it wrote, the password, and at its end the two lines to type next', async () => {
    const files = printed.match(/(?<=^ {2})config\/.*$/gm) ?? [];
    assert.deepEqual(files, [
      ...['config/services/app.yaml', 'config/ratelimit/gateway.yaml', 'config/users.yaml', 'config/settings.env'],
    ]);
    assert.match(printed, /\n {2}npx frontdesk serve\n {2}curl -i -u me:\S+ \S+\n$/);
    const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')));
    const password = /has the password (\S{20})\n/.exec(printed)?.[1] ?? assert.fail(printed);
    assert.ok(!texts.join('').includes(password));
  });

  for (const [service, isNamed] of [
    ['tickets', true],
    ['tickets:8000', false],
    ['http://tickets', false],
  ] as const) {
    it(`${isNamed ? 'says' : 'does not say'} how a program hands in the service ${service}`, async () => {
      const configDir = join(await writeFiles(), 'config');
      const text = await initialise(requireSettings({ configDir }), { directory: undefined, service });
      assert.equal(text.includes("\n  createFrontdesk({ services: { 'tickets': app } })\n"), isNamed);
      assert.match(text, /\n {2}npx frontdesk serve\n/);
    });
  }

  it('writes strict paths to the file of settings, which the server takes, and the environment goes before it', async () => {
    const guarded = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'open', prefix: '/open', bypass_auth: true };
    const file = join(directory, 'config/services/open.yaml');
    await writeFile(file, JSON.stringify({ ...guarded, service: upstream.origin }));
    await eventually(async () => assert.equal((await fetch(`${gatewayUrl}/open`)).status, 200));
    const refused = await fetch(`${gatewayUrl}/open%2Fx`);
    assert.match(await refused.text(), /other authentication/);
    const lenient = { cwd: directory, env: { STRICT_PATHS: 'false' } };
    const { stdout } = await runCommand(['explain', 'GET', '/open%2Fx'], lenient);
    assert.match(stdout, /open/);
    assert.doesNotMatch(stdout, /other authentication/);
    await rm(file);
  });

  it('starts the gateway in front of the service, and nothing of the demo', async () => {
    for (const path of ['/v1/messages/1', '/v2/', '/v1/hotels']) {
      const before = upstream.reached.length;
      assert.equal((await fetch(`${gatewayUrl}${path}`)).status, 401);
      assert.equal(upstream.reached.length, before);
    }
  });

  it('lets the user of its curl line through, 60 times a minute', async function () {
    if (!isInstalled('curl')) this.skip();
    const { curl = '' } = shownCommands(printed);
    const command = curl.replace('http://127.0.0.1:8080', gatewayUrl);
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(stdout, /^RateLimit-Policy: "user";q=60;w=60\r$/im);
    assert.equal(upstream.reached.at(-1)?.headers['x-travel-user'], 'me');
  });

  it('makes another password each time, and names the directory in what to type next where it is not the setting', async () => {
    const configDir = join(directory, 'set');
    const other = join(directory, "it's");
    const settings = requireSettings({ configDir, port: 9 });
    const text = await initialise(settings, { directory: other, service: 'shop' });
    const { serve = '', curl = '' } = shownCommands(text);
    const { stdout } = await promisify(execFile)('sh', ['-c', serve.replace('npx frontdesk serve', 'env')]);
    assert.match(stdout, new RegExp(`^CONFIG_DIR=${other}$`, 'm'));
    assert.ok(curl.endsWith(' http://127.0.0.1:9/'));
    const same = await initialise(settings, { directory: undefined, service: 'shop' });
    const { serve: inSetting, curl: ofSetting = '' } = shownCommands(same);
    assert.equal(inSetting, 'npx frontdesk serve');
    const passwordIn = (line: string) => /-u me:(\S+)/.exec(line)?.[1];
    assert.notEqual(passwordIn(curl), passwordIn(ofSetting));
  });
});
