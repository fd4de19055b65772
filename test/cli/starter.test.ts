/** A configuration to start from, on the disk: what it holds, and that it never overwrites a file. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadConfiguration } from '#config';
import { writeNewFiles } from '../../src/cli/new-files.ts';
import { writeStarter } from '../../src/cli/starter.ts';
import { frontdeskCommand } from '../support/programs/frontdesk-process.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const passwordHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
const options = { service: 'http://127.0.0.1:3000', user: 'me', passwordHash };
const written = ['services/app.yaml', 'ratelimit/gateway.yaml', 'users.yaml', 'settings.env'];

describe('writeStarter', () => {
  const writeFiles = temporaryFiles();

  /** Every name below the directory. */
  async function namesBelow(directory: string): Promise<readonly string[]> {
    return (await readdir(directory, { recursive: true })).sort();
  }

  async function assertRefused(directory: string, message: RegExp, top = directory): Promise<void> {
    const before = await namesBelow(top);
    await assert.rejects(writeStarter(directory, options), message);
    assert.deepEqual(await namesBelow(top), before);
  }

  it('writes what loads without error or notice under any GATEWAY_DOMAIN', async () => {
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
      assert.deepEqual([users, demo], [[{ name: 'me', passwordHash, roles: ['admin'] }], {}]);
    }
  });

  it('makes the directories that are missing, and lets no other user read the hash', async () => {
    const directory = join(await writeFiles(), 'deep/down');
    await writeStarter(directory, options);
    const modeOf = async (name: string) => (await stat(join(directory, name))).mode & 0o077;
    assert.equal(await modeOf('users.yaml'), 0);
    assert.notEqual(await modeOf('services/app.yaml'), 0);
  });

  it('writes a reference that YAML would read as a boolean so that it stays text', async () => {
    const directory = await writeFiles();
    await writeStarter(directory, { ...options, service: 'true' });
    const { configuration, errors } = await loadConfiguration(directory);
    assert.deepEqual([configuration.mappings[0]?.service, errors], ['true', []]);
  });

  it('refuses a service that no mapping could name, and repeats no password of it', async () => {
    const directory = await writeFiles();
    for (const service of ['', 'a b', 'ftp://a', 'http://a/path', 'grpc://a', 'a\nb: c', '"'])
      await assert.rejects(writeStarter(directory, { ...options, service }), /is no service .* http:\/\/127/, service);
    await assert.rejects(
      writeStarter(directory, { ...options, service: 'http://ann:hunter2@127.0.0.1:3000/x' }),
      /^Error: "http:\/\/…@127\.0\.0\.1:3000\/x" is no service/,
    );
    assert.deepEqual(await readdir(directory), []);
  });

  it('leaves a configuration alone that has any file of one, and names it', async () => {
    for (const name of [...written, 'services/other.yml', 'ratelimit/other.yaml', 'demo.yaml']) {
      const directory = await writeFiles({ [name]: 'mine' });
      const message = new RegExp(
        `there is a configuration already, and nothing was written: .*/${name}\\. Name another directory: `,
      );
      await assertRefused(directory, message);
      assert.equal(await readFile(join(directory, name), 'utf8'), 'mine');
    }
  });

  it('ignores other files in the directory', async () => {
    const directory = await writeFiles({ 'compose.yaml': '{}', 'services/README.md': 'mine' });
    await writeStarter(directory, options);
    assert.deepEqual((await loadConfiguration(directory)).errors, []);
  });

  it('writes through no link, dangling or not: not a file, not a folder, not the directory', async () => {
    const top = await writeFiles({ 'elsewhere/kept': '' });
    const elsewhere = join(top, 'elsewhere');
    for (const [index, target] of [elsewhere, join(elsewhere, 'new')].entries()) {
      const directory = join(top, `link-${index}`);
      await symlink(target, directory);
      await assertRefused(directory, /link-\d is a link/, top);
      await assertRefused(`${directory}/`, /link-\d\/ is a link/, top);
      for (const name of ['services', 'ratelimit', 'users.yaml']) {
        const holder = join(top, `${index}-${name}`);
        await mkdir(holder);
        await symlink(target, join(holder, name));
        await assertRefused(holder, name === 'users.yaml' ? /already.*users\.yaml\. Name/ : /is a link/, top);
      }
    }
  });

  it('says in one line what cannot be written', async () => {
    const directory = await writeFiles({ file: '', 'inside/services': '' });
    await assertRefused(
      join(directory, 'file'),
      /^Error: cannot write .*file \(ENOTDIR\): name a directory [^\n]*$/,
      directory,
    );
    await assertRefused(join(directory, 'file/below'), /cannot write .* \(ENOTDIR\)/, directory);
    await assertRefused(join(directory, 'inside'), /cannot write .*services \(ENOTDIR\)/, directory);
  });

  it('refuses a directory without a name, as of a variable that is not set', async () => {
    await assert.rejects(writeStarter('', options), /^Error: "" is no directory to write to: write \. for /);
  });

  it('gives up where the system makes no directories', async function () {
    if (process.platform !== 'linux') this.skip();
    await assert.rejects(writeStarter('/proc/frontdesk', options), /cannot write \/proc\/frontdesk\/.*\(ENOENT\)/);
  });

  it('is written once by several at the same time, whole', async () => {
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

  it('leaves nothing behind when one of several cannot be written, and keeps what was there', async () => {
    const directory = await writeFiles({ 'there/kept': 'mine' });
    const file = (name: string) => ({ name, text: 'new', isSecret: false });
    const files = ['new/one', 'there/two', 'there/kept', 'three'].map(file);
    await assert.rejects(writeNewFiles(directory, files), /cannot write .*there\/kept \(EEXIST\)/);
    assert.deepEqual((await readdir(directory, { recursive: true })).sort(), ['there', 'there/kept']);
    assert.equal(await readFile(join(directory, 'there/kept'), 'utf8'), 'mine');
  });

  it('leaves nothing behind where there is no room for what it writes', async function () {
    if (process.platform !== 'linux') return this.skip();
    const directory = await writeFiles();
    // A limit stands for the disk, with EFBIG in place of ENOSPC.
    const init = `ulimit -f 0; exec ${frontdeskCommand} init ${directory}/config`;
    await assert.rejects(promisify(execFile)('sh', ['-c', init]), /cannot write .*app\.yaml \(EFBIG\)/);
    assert.deepEqual(await readdir(directory), []);
  });
});
