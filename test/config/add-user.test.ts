/** Adding users to users.yaml: what happens to the file, and when nothing is written. */
import assert from 'node:assert/strict';
import { chmod, chown, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addUserToFile, loadConfiguration, writeError } from '#config';
import { temporaryFiles } from '../support/temporary-files.ts';

const phc = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

describe('addUserToFile', () => {
  const writeFiles = temporaryFiles();
  const add = (directory: string, name = 'ann') => addUserToFile(directory, { name, roles: [] }, async () => phc);

  it('loses no user when several commands run at the same time', async () => {
    const directory = await writeFiles({ 'users.yaml': 'users: []\n' });
    const names = Array.from({ length: 8 }, (_, index) => `user${index}`);
    await Promise.all(names.map((name) => add(directory, name)));
    const { configuration } = await loadConfiguration(directory);
    assert.deepEqual(configuration.users.map(({ name }) => name).sort(), names);
    assert.deepEqual(await readdir(directory), ['users.yaml']);
  });

  it('leaves the file unlocked when the user already exists', async () => {
    const directory = await writeFiles({ 'users.yaml': 'users: []\n' });
    const both = await Promise.allSettled([add(directory), add(directory)]);
    const rejected = both.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    assert.match(rejected.join(), /^Error: [^,]*users\.yaml already has a user named ann: /);
    await add(directory, 'bob');
  });

  it('says what to do about a lock that a crash has left', async () => {
    const directory = await writeFiles({ 'users.yaml': 'users: []\n', 'users.yaml.lock': '' });
    const message =
      /another command is writing .*users\.yaml\.lock: wait for it, or remove this file if it was left by/;
    await assert.rejects(add(directory), message);
    assert.deepEqual(await readdir(directory), ['users.yaml', 'users.yaml.lock']);
  });

  it('adds none when the directory cannot be created', async function () {
    if (process.platform !== 'linux') this.skip();
    await assert.rejects(
      add('/proc/nowhere/deep'),
      /^Error: cannot write \/proc\/nowhere\/deep\/users.yaml \(ENOENT\)/,
    );
  });

  it('adds none to a file with several YAML documents, before a password is requested', async () => {
    const text = 'users: []\n---\nusers: []\n';
    const directory = await writeFiles({ 'users.yaml': text });
    const added = addUserToFile(directory, { name: 'ann', roles: [] }, () => assert.fail('requests a password'));
    await assert.rejects(added, /users\.yaml has several YAML documents: merge them, then add the user$/);
    assert.equal(await readFile(join(directory, 'users.yaml'), 'utf8'), text);
  });

  it('adds none to a file in Latin-1, whose characters would be lost', async () => {
    const directory = await writeFiles({});
    const file = join(directory, 'users.yaml');
    const bytes = Buffer.from('users: []\n# Zo\xeb\n', 'latin1');
    await writeFile(file, bytes);
    await assert.rejects(add(directory), /^Error: .*users\.yaml:2 {2}this is not valid UTF-8\n/);
    assert.deepEqual(await readFile(file), bytes);
  });

  it('adds a user through a link to a file, but does not replace a link to nothing', async () => {
    const directory = await writeFiles({ 'real.yaml': 'users: []\n' });
    const [file, target] = [join(directory, 'users.yaml'), join(directory, 'real.yaml')];
    await symlink('real.yaml', file);
    await add(directory);
    assert.match(await readFile(target, 'utf8'), /name: ann/);
    await rm(target);
    await assert.rejects(
      add(directory),
      /^Error: .*users\.yaml {2}the file cannot be read: it does not exist\n {4}Correct the link/,
    );
    assert.equal(await readlink(file), 'real.yaml');
  });

  it('adds a user to a file that keeps its mode and owner, whoever adds them', async function () {
    if (process.getuid?.() !== 0) return this.skip();
    const directory = await writeFiles({ 'users.yaml': 'users: []\n' });
    const file = join(directory, 'users.yaml');
    await chown(file, 1234, 2345);
    await chmod(file, 0o640);
    await add(directory);
    const { uid, gid, mode } = await stat(file);
    assert.deepEqual([uid, gid, mode & 0o777], [1234, 2345, 0o640]);
    assert.match(await readFile(file, 'utf8'), /name: ann/);
  });

  it('adds a user to a new file and folder that belong to the owner of the folder above', async function () {
    if (process.getuid?.() !== 0) return this.skip();
    const directory = await writeFiles({});
    await chown(directory, 1234, 2345);
    await add(join(directory, 'config'));
    for (const [name, expected] of [
      ['config', 0o755],
      ['config/users.yaml', 0o600],
    ] as const) {
      const { uid, gid, mode } = await stat(join(directory, name));
      assert.deepEqual([uid, gid, mode & 0o777], [1234, 2345, expected & ~process.umask()]);
    }
  });

  for (const [what, code, expected] of [
    ['the disk is full', 'ENOSPC', /\(ENOSPC\): free some space on its disk$/],
    ['the file system is read-only', 'EROFS', /\(EROFS\): its file system is read-only: remount it as writable, or /],
  ] as const)
    it(`adds none when ${what}, and the error has a remedy`, async () => {
      const cause = Object.assign(new Error(what), { code });
      assert.match(writeError('users.yaml', cause, 'let this user write it').message, expected);
    });
});
