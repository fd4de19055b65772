/** `frontdesk init`: the files that it writes, and the commands that it prints. test/recipes runs them as processes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadConfiguration, requireSettings } from '#config';
import { settingTable } from '#server/product';
import { initialise, writeNewFiles, writeStarter } from '../../src/cli/init.ts';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { frontdeskCommand } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

/** Finds the printed commands: `curl`, and those of frontdesk by name. */
function shownCommands(text: string): Readonly<Record<string, string>> {
  const lines = text.match(/(?<=^ {2})(?:\w+=\S+ )?(?:npx frontdesk|curl) .*$/gm) ?? [];
  return Object.fromEntries(lines.map((line) => [/(?:frontdesk (\w+)|curl)/.exec(line)?.[1] ?? 'curl', line]));
}

/** Returns the schemas in the modelines of a text. */
function schemasNamedIn(text: string): readonly string[] {
  return Array.from(text.matchAll(/^# yaml-language-server: \$schema=(.+)$/gm), ([, url = '']) => url);
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
    gatewayUrl = gateway.url;
  });

  it('prints the written files, the password and the next two commands', async () => {
    const files = printed.match(/(?<=^ {2})config\/.*$/gm) ?? [];
    assert.deepEqual(files, [
      'config/services/app.yaml',
      'config/ratelimit/gateway.yaml',
      'config/users.yaml',
      'config/settings.env',
    ]);
    assert.match(printed, /\n {2}npx frontdesk serve\n {2}curl -i -u me:\S+ \S+\n$/);
    const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')));
    const password = /has the password (\S{20})\n/.exec(printed)?.[1] ?? assert.fail(printed);
    assert.ok(!texts.join('').includes(password));
  });

  it('names the JSON Schema of each document, and those of all files for VS Code', async () => {
    const text = await readFile(join(directory, 'config/services/app.yaml'), 'utf8');
    assert.equal(schemasNamedIn(text).length, text.split(/^---$/m).length);
    const { 'yaml.schemas': schemas } = JSON.parse(await readFile(join(directory, '.vscode/settings.json'), 'utf8'));
    assert.deepEqual(Object.values(schemas), [
      'config/services/*.yaml',
      'config/ratelimit/*.yaml',
      'config/users.yaml',
      'config/demo.yaml',
    ]);
    for (const url of [...schemasNamedIn(text), ...Object.keys(schemas)])
      assert.match(JSON.parse(await readFile(new URL(url), 'utf8')).title, /^frontdesk: /);
    assert.match(printed, /^ {2}\.vscode\/settings\.json$/m);
  });

  it('names the schemas of the package that the project has installed, by relative paths', async () => {
    const project = await writeFiles({ 'node_modules/frontdesk/schema/records.json': '{}' });
    const { code } = await runCommand(['init', 'deploy/gateway'], { cwd: project });
    assert.equal(code, 0);
    const [first] = schemasNamedIn(await readFile(join(project, 'deploy/gateway/services/app.yaml'), 'utf8'));
    assert.equal(first, '../../../node_modules/frontdesk/schema/records.json');
    assert.deepEqual(schemasNamedIn(await readFile(join(project, 'deploy/gateway/users.yaml'), 'utf8')), [
      '../../node_modules/frontdesk/schema/users.json',
    ]);
    const { 'yaml.schemas': schemas } = JSON.parse(await readFile(join(project, '.vscode/settings.json'), 'utf8'));
    assert.equal(schemas['./node_modules/frontdesk/schema/limits.json'], 'deploy/gateway/ratelimit/*.yaml');
  });

  it('leaves settings of VS Code as they are, and shows what to add', async () => {
    const project = await writeFiles({ '.vscode/settings.json': '{ "mine": 1 }' });
    const { stdout } = await runCommand(['init'], { cwd: project });
    assert.equal(await readFile(join(project, '.vscode/settings.json'), 'utf8'), '{ "mine": 1 }');
    assert.match(stdout, /\.vscode\/settings\.json exists.+:\n {2}"yaml\.schemas": \{\n.+config\/services\/\*\.yaml"/);
  });

  it('writes no settings of VS Code outside of the working directory', async () => {
    const [project, other] = [await writeFiles(), await writeFiles()];
    await runCommand(['init', join(other, 'config')], { cwd: project });
    assert.deepEqual([await readdir(project), await readdir(other)], [[], ['config']]);
  });

  for (const [service, isNamed] of [
    ['tickets', true],
    ['tickets:8000', false],
    ['http://tickets', false],
  ] as const) {
    it(`${isNamed ? 'shows' : 'does not show'} how a program provides the service ${service}`, async () => {
      const configDir = join(await writeFiles(), 'config');
      const text = await initialise(requireSettings(settingTable, { configDir }), { directory: undefined, service });
      assert.equal(text.includes("\n  createFrontdesk({ services: { 'tickets': app } })\n"), isNamed);
      assert.equal(text.includes('\n  service: http://127.0.0.1:3000\n'), isNamed);
      const start = isNamed ? 'Run your program, or if tickets is a host, start the gateway' : 'Start the gateway';
      assert.match(text, new RegExp(`only its hash\\. ${start}, then call it .*:\\n {2}npx frontdesk serve\\n`));
    });
  }

  it('offers the address of a service of which only the port is given', async () => {
    const configDir = join(await writeFiles(), 'config');
    const settings = requireSettings(settingTable, { configDir });
    await assert.rejects(initialise(settings, { directory: undefined, service: '8000' }), {
      message: '"8000" is not the address of an HTTP service: write it as http://127.0.0.1:8000',
    });
  });

  for (const [settings, url] of [
    [{ port: 0 }, 'http://127.0.0.1:PORT/'],
    [{ host: '::1', port: 9 }, 'http://[::1]:9/'],
    [{ host: '0.0.0.0', tlsCert: 'cert.pem', tlsKey: 'key.pem' }, 'https://127.0.0.1:8080/'],
  ] as const)
    it(`prints the URL ${url} for the settings ${JSON.stringify(settings)}`, async () => {
      const configDir = join(await writeFiles(), 'config');
      const text = await initialise(requireSettings(settingTable, { ...settings, configDir }), {
        directory: undefined,
        service: 'a:1',
      });
      assert.ok(text.endsWith(` ${url}\n`), text);
      assert.equal(text.includes('with the port that it prints:'), url.includes('PORT'));
    });

  it('rejects ambiguous paths unless STRICT_PATHS is false', async () => {
    const guarded = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'open', prefix: '/open', bypass_auth: true };
    const file = join(directory, 'config/services/open.yaml');
    await writeFile(file, JSON.stringify({ ...guarded, service: upstream.origin }));
    await eventually(async () => assert.equal((await fetch(`${gatewayUrl}/open`)).status, 200));
    const refused = await fetch(`${gatewayUrl}/open%2Fx`);
    assert.match(await refused.text(), /protected differently/);
    const lenient = { cwd: directory, env: { STRICT_PATHS: 'false' } };
    const { stdout } = await runCommand(['explain', 'GET', '/open%2Fx'], lenient);
    assert.match(stdout, /open/);
    assert.doesNotMatch(stdout, /protected differently/);
    await rm(file);
  });

  it('starts the gateway without the services of the demo', async () => {
    for (const path of ['/v1/messages/1', '/v2/', '/v1/hotels']) {
      const before = upstream.reached.length;
      assert.equal((await fetch(`${gatewayUrl}${path}`)).status, 401);
      assert.equal(upstream.reached.length, before);
    }
  });

  it('prints a curl command that is authenticated and limited to 600 requests a minute', async function () {
    if (!isInstalled('curl')) this.skip();
    const { curl = '' } = shownCommands(printed);
    const command = curl.replace('http://127.0.0.1:8080', gatewayUrl);
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(stdout, /^RateLimit-Policy: "user";q=600;w=60\r$/im);
    assert.equal(upstream.reached.at(-1)?.headers['x-travel-user'], 'me');
  });

  it('writes a limit that a browser does not reach when it opens a page with many files, and says what it counts', async () => {
    const [, password = ''] = /-u me:(\S+)/.exec(shownCommands(printed)['curl'] ?? '') ?? [];
    const headers = { Authorization: `Basic ${Buffer.from(`me:${password}`).toString('base64')}` };
    const files = Array.from({ length: 300 }, (_, file) => fetch(`${gatewayUrl}/static/${file}.js`, { headers }));
    assert.deepEqual(new Set((await Promise.all(files)).map(({ status }) => status)), new Set([200]));
    const limits = await readFile(join(directory, 'config/ratelimit/gateway.yaml'), 'utf8');
    assert.match(limits, /# .*Every request counts/);
  });

  it('generates a new password each time, and sets CONFIG_DIR in the next command when necessary', async () => {
    const configDir = join(directory, 'set');
    const other = join(directory, "it's");
    const settings = requireSettings(settingTable, { configDir, port: 9 });
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

const passwordHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
const options = { service: 'http://127.0.0.1:3000', user: 'me', passwordHash };
const written = ['services/app.yaml', 'ratelimit/gateway.yaml', 'users.yaml', 'settings.env'];

describe('writeStarter', () => {
  const writeFiles = temporaryFiles();

  /** Lists everything below the directory. */
  async function namesBelow(directory: string): Promise<readonly string[]> {
    return (await readdir(directory, { recursive: true })).sort();
  }

  async function assertRefused(directory: string, message: RegExp, top = directory): Promise<void> {
    const before = await namesBelow(top);
    await assert.rejects(writeStarter(directory, options), message);
    assert.deepEqual(await namesBelow(top), before);
  }

  it('writes a configuration without errors and notices under any GATEWAY_DOMAIN', async () => {
    for (const gatewayDomain of ['gateway.local', 'getambassador.io']) {
      const directory = await writeFiles();
      const paths = written.map((name) => join(directory, name));
      assert.deepEqual(await writeStarter(directory, options), paths);
      const { configuration, errors, notices } = await loadConfiguration(directory, { gatewayDomain });
      assert.deepEqual({ errors, notices }, { errors: [], notices: [] });
      const { mappings, authServices, rateLimitServices, limits, users, demo } = configuration;
      const [{ prefix, service, bypassAuth } = assert.fail(), ...others] = mappings;
      assert.deepEqual([prefix, service, bypassAuth, others], ['/', options.service, false, []]);
      assert.deepEqual([authServices.length, rateLimitServices.length], [1, 1]);
      const [{ domain, descriptors } = assert.fail(), ...otherLimits] = limits;
      assert.deepEqual([domain, descriptors.map(({ key }) => key), otherLimits], ['gateway', ['user'], []]);
      assert.deepEqual([users, demo], [[{ name: 'me', passwordHash, roles: ['admin'], apiKeys: [] }], {}]);
    }
  });

  it('writes a line that allows WebSockets when its comment is removed', async () => {
    const target = join(await writeFiles(), 'config');
    await writeStarter(target, options);
    const file = join(target, 'services/app.yaml');
    await writeFile(file, (await readFile(file, 'utf8')).replace('# allow_upgrade:', 'allow_upgrade:'));
    const { configuration, errors } = await loadConfiguration(target);
    assert.deepEqual([errors, configuration.mappings[0]?.allowUpgrade], [[], ['websocket']]);
  });

  it('creates missing directories, and keeps the hash and the settings, which may have passwords, unreadable for other users', async () => {
    const directory = join(await writeFiles(), 'deep/down');
    await writeStarter(directory, options);
    const modeOf = async (name: string) => (await stat(join(directory, name))).mode & 0o077;
    for (const name of ['users.yaml', 'settings.env']) assert.equal(await modeOf(name), 0);
    assert.notEqual(await modeOf('services/app.yaml'), 0);
  });

  it('quotes a service name that YAML would read as a boolean', async () => {
    const directory = await writeFiles();
    await writeStarter(directory, { ...options, service: 'true' });
    const { configuration, errors } = await loadConfiguration(directory);
    assert.deepEqual([configuration.mappings[0]?.service, errors], ['true', []]);
  });

  it('rejects an invalid service reference without repeating its password', async () => {
    const directory = await writeFiles();
    for (const service of ['', 'a b', 'ftp://a', 'http://a/path', 'grpc://a', 'a\nb: c', '"'])
      await assert.rejects(
        writeStarter(directory, { ...options, service }),
        /is not the address .* http:\/\/127/,
        service,
      );
    await assert.rejects(
      writeStarter(directory, { ...options, service: 'http://ann:hunter2@127.0.0.1:3000/x' }),
      /^Error: "http:\/\/…@127\.0\.0\.1:3000\/x" is not the address/,
    );
    assert.deepEqual(await readdir(directory), []);
  });

  it('writes nothing when any file of a configuration exists, and names the file', async () => {
    for (const name of [...written, 'services/other.yml', 'ratelimit/other.yaml', 'demo.yaml']) {
      const directory = await writeFiles({ [name]: 'mine' });
      const message = new RegExp(
        `a configuration already exists, so nothing was written: .*/${name}\\. Choose another directory: `,
      );
      await assertRefused(directory, message);
      assert.equal(await readFile(join(directory, name), 'utf8'), 'mine');
    }
  });

  it('ignores unrelated files in the directory', async () => {
    const directory = await writeFiles({ 'compose.yaml': '{}', 'services/README.md': 'mine' });
    await writeStarter(directory, options);
    assert.deepEqual((await loadConfiguration(directory)).errors, []);
  });

  it('does not follow links, dangling or not, for a file, a folder or the directory', async () => {
    const top = await writeFiles({ 'elsewhere/kept': '' });
    const elsewhere = join(top, 'elsewhere');
    for (const [index, target] of [elsewhere, join(elsewhere, 'new')].entries()) {
      const directory = join(top, `link-${index}`);
      await symlink(target, directory);
      await assertRefused(directory, /link-\d is a symbolic link/, top);
      await assertRefused(`${directory}/`, /link-\d\/ is a symbolic link/, top);
      for (const name of ['services', 'ratelimit', 'users.yaml']) {
        const holder = join(top, `${index}-${name}`);
        await mkdir(holder);
        await symlink(target, join(holder, name));
        await assertRefused(holder, name === 'users.yaml' ? /already.*users\.yaml\. Choose/ : /symbolic link/, top);
      }
    }
  });

  it('reports in one line which path cannot be written', async () => {
    const directory = await writeFiles({ file: '', 'inside/services': '' });
    await assertRefused(
      join(directory, 'file'),
      /^Error: cannot write .*file \(ENOTDIR\): choose a directory [^\n]*$/,
      directory,
    );
    await assertRefused(join(directory, 'file/below'), /cannot write .* \(ENOTDIR\)/, directory);
    await assertRefused(join(directory, 'inside'), /cannot write .*services \(ENOTDIR\)/, directory);
  });

  it('fails when the system does not allow new directories', async function () {
    if (process.platform !== 'linux') this.skip();
    await assert.rejects(writeStarter('/proc/frontdesk', options), /cannot write \/proc\/frontdesk\/.*\(ENOENT\)/);
  });

  it('writes one complete configuration when called several times concurrently', async () => {
    const directory = join(await writeFiles(), 'config');
    const users = ['a', 'b', 'c', 'd'];
    const settled = await Promise.allSettled(users.map((user) => writeStarter(directory, { ...options, user })));
    const winners = users.filter((_, index) => settled[index]?.status === 'fulfilled');
    const { configuration, errors } = await loadConfiguration(directory);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      configuration.users.map(({ name }) => name),
      winners,
    );
  });
});

describe('writeNewFiles', () => {
  const writeFiles = temporaryFiles();

  it('removes the new files when one cannot be written, and keeps existing ones', async () => {
    const directory = await writeFiles({ 'there/kept': 'mine' });
    const file = (name: string) => ({ name, text: 'new', isSecret: false });
    const files = ['new/one', 'there/two', 'there/kept', 'three'].map(file);
    await assert.rejects(writeNewFiles(directory, files), /cannot write .*there\/kept \(EEXIST\)/);
    assert.deepEqual((await readdir(directory, { recursive: true })).sort(), ['there', 'there/kept']);
    assert.equal(await readFile(join(directory, 'there/kept'), 'utf8'), 'mine');
  });

  it('makes the owner of the folder the owner of the new files when run as root', async function () {
    if (process.getuid?.() !== 0) return this.skip();
    const directory = await writeFiles();
    await chown(directory, 1234, 2345);
    await writeNewFiles(directory, [{ name: 'new/one', text: '', isSecret: true }]);
    for (const name of ['new', 'new/one']) {
      const { uid, gid } = await stat(join(directory, name));
      assert.deepEqual([uid, gid], [1234, 2345]);
    }
  });

  it('leaves nothing behind when the disk is full', async function () {
    if (process.platform !== 'linux') return this.skip();
    const directory = await writeFiles();
    // A limit on the file size simulates a full disk, with EFBIG instead of ENOSPC.
    const init = `ulimit -f 0; exec ${frontdeskCommand} init ${directory}/config`;
    await assert.rejects(promisify(execFile)('sh', ['-c', init]), /cannot write .*app\.yaml \(EFBIG\)/);
    assert.deepEqual(await readdir(directory), []);
  });
});
