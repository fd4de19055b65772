/** A configuration to start from, on the disk: what it holds, and that it never takes anything's place. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfiguration } from '#config';
import { writeNewFiles } from '../../src/cli/new-files.ts';
import { writeStarter } from '../../src/cli/starter.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const passwordHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'B'.repeat(43)}`;
const options = { service: 'http://127.0.0.1:3000', user: 'me', passwordHash };
const written = ['services/app.yaml', 'ratelimit/gateway.yaml', 'users.yaml'];

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

  for (const gatewayDomain of ['gateway.local', 'getambassador.io']) {
    it(`writes what loads without error or notice where GATEWAY_DOMAIN is ${gatewayDomain}`, async () => {
      const directory = await writeFiles();
      assert.deepEqual(
        await writeStarter(directory, options),
        written.map((name) => join(directory, name)),
      );
      const { configuration, errors, notices } = await loadConfiguration(directory, { gatewayDomain });
      assert.deepEqual({ errors, notices }, { errors: [], notices: [] });
      const { mappings, authServices, rateLimitServices, limits, users, demo } = configuration;
      assert.deepEqual(
        mappings.map(({ prefix, service, bypassAuth }) => [prefix, service, bypassAuth]),
        [['/', 'http://127.0.0.1:3000', false]],
      );
      assert.deepEqual(
        [authServices, rateLimitServices].map((records) => records.length),
        [1, 1],
      );
      assert.deepEqual(
        limits.map(({ domain, descriptors }) => [domain, descriptors.map(({ key }) => key)]),
        [['gateway', ['user']]],
      );
      assert.deepEqual([users, demo], [[{ name: 'me', passwordHash }], {}]);
    });
  }

  it('makes the directories that are missing, and lets nobody else read the hash', async () => {
    const directory = join(await writeFiles(), 'deep/down');
    await writeStarter(directory, options);
    const modeOf = async (name: string) => (await stat(join(directory, name))).mode & 0o077;
    assert.equal(await modeOf('users.yaml'), 0);
    assert.notEqual(await modeOf('services/app.yaml'), 0);
  });

  it('takes a reference for a text, whatever YAML would make of it', async () => {
    const directory = await writeFiles();
    await writeStarter(directory, { ...options, service: 'true' });
    const { configuration, errors } = await loadConfiguration(directory);
    assert.deepEqual([configuration.mappings[0]?.service, errors], ['true', []]);
  });

  for (const service of ['', 'a b', 'ftp://a', 'http://a/path', 'grpc://a', 'a\nb: c', '"']) {
    it(`refuses a service that no mapping could name: ${JSON.stringify(service)}`, async () => {
      const directory = await writeFiles();
      await assert.rejects(writeStarter(directory, { ...options, service }), /is no service .* http:\/\/127/);
      assert.deepEqual(await readdir(directory), []);
    });
  }

  it('repeats no password of a service that it refuses', async () => {
    const service = 'http://ann:hunter2@127.0.0.1:3000/x';
    await assert.rejects(
      writeStarter(await writeFiles(), { ...options, service }),
      /^Error: "http:\/\/…@127\.0\.0\.1:3000\/x" is no service/,
    );
  });

  for (const name of [...written, 'services/other.yml', 'ratelimit/other.yaml', 'demo.yaml']) {
    it(`leaves a configuration alone that has ${name}, and names it`, async () => {
      const directory = await writeFiles({ [name]: 'mine' });
      await assertRefused(
        directory,
        new RegExp(`there is a configuration already, and nothing was written: .*/${name}$`),
      );
      assert.equal(await readFile(join(directory, name), 'utf8'), 'mine');
    });
  }

  it('minds nothing else that is in the directory', async () => {
    const directory = await writeFiles({ 'compose.yaml': '{}', 'services/README.md': 'mine' });
    await writeStarter(directory, options);
    assert.deepEqual((await loadConfiguration(directory)).errors, []);
  });

  it('writes through no link: not a file, not a folder, not the directory, be there something behind it or not', async () => {
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
        await assertRefused(holder, name === 'users.yaml' ? /already.*users\.yaml$/ : /is a link/, top);
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

  it('does not try for ever where the system makes no directories', async function () {
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
});
