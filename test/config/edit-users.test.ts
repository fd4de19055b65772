/** Changing users.yaml: what happens to the file, and when nothing is written. */
import assert from 'node:assert/strict';
import { chmod, chown, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  addKeyToFile,
  addUserToFile,
  loadConfiguration,
  removeKeyFromFile,
  removeUserFromFile,
  setPasswordInFile,
  usersInFile,
  writeError,
} from '#config';
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
    await assert.rejects(added, /users\.yaml has several YAML documents: merge them first$/);
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

describe('the other changes of users.yaml', () => {
  const writeFiles = temporaryFiles();
  const otherHash = phc.replace(/A{43}/, `${'B'.repeat(42)}A`);
  const sha256 = 'a'.repeat(64);

  /** Returns the text after the change of a file with this text, of which only `changed` may differ. */
  async function textAfter(text: string, change: (directory: string) => Promise<unknown>): Promise<string> {
    const directory = await writeFiles({ 'users.yaml': text });
    await change(directory);
    assert.deepEqual(await readdir(directory), ['users.yaml']);
    return readFile(join(directory, 'users.yaml'), 'utf8');
  }

  const head = '# who may call us\nusers:\n';
  const ann = `  # the boss\n  - name: ann\n    roles: [admin] # for now\n    password_hash: "${phc}" # since May\n`;
  const bob = `  - { name: bob, password_hash: "${phc}" }\n`;
  const bot = `  # the nightly job\n  - name: bot\n    api_keys:\n      - name: ci # of GitHub\n        sha256: "${sha256}"\n`;
  const all = head + ann + bot;

  it('set a password, and keep comments and formatting', async () => {
    const text = await textAfter(all, (directory) => setPasswordInFile(directory, 'ann', async () => otherHash));
    assert.equal(text, all.replace(phc, otherHash));
    const ofBot = await textAfter(all, (directory) => setPasswordInFile(directory, 'bot', async () => otherHash));
    assert.equal(ofBot, `${all}    password_hash: "${otherHash}"\n`);
  });

  it('remove a user with the comments above it, and keep the others', async () => {
    assert.equal(await textAfter(all, (directory) => removeUserFromFile(directory, 'bot')), head + ann);
    const padded = await textAfter(head + bob + bot, (directory) => removeUserFromFile(directory, 'bot'));
    assert.equal(padded, head + bob);
  });

  it('keep lists that are not indented', async () => {
    const text = `users:\n- name: bob\n  password_hash: "${phc}"\n# a program\n- name: bot\n  password_hash: "${phc}"\n`;
    const set = await textAfter(text, (directory) => setPasswordInFile(directory, 'bob', async () => otherHash));
    assert.equal(set, text.replace(phc, otherHash));
  });

  it('add keys with the next free name, and remove them', async () => {
    const key = (user: string, digit: string, name?: string) => (directory: string) =>
      addKeyToFile(directory, { user, name, sha256: digit.repeat(64), isNewUser: false });
    const added = await textAfter(head + ann, async (directory) => {
      assert.equal((await key('ann', 'b')(directory)).key, 'key-1');
      assert.equal((await key('ann', 'c')(directory)).key, 'key-2');
      assert.equal((await key('ann', 'd', 'laptop')(directory)).key, 'laptop');
    });
    const entry = (name: string, digit: string) => `      - name: ${name}\n        sha256: "${digit.repeat(64)}"\n`;
    const [first, second, third] = [entry('key-1', 'b'), entry('key-2', 'c'), entry('laptop', 'd')];
    assert.equal(added, `${head}${ann}    api_keys:\n${first}${second}${third}`);
    const removed = await textAfter(added, (directory) => removeKeyFromFile(directory, 'ann', 'key-2'));
    assert.equal(removed, `${head}${ann}    api_keys:\n${first}${third}`);
    const none = await textAfter(`${head}${ann}    api_keys:\n${first}`, (directory) =>
      removeKeyFromFile(directory, 'ann', 'key-1'),
    );
    assert.equal(none, head + ann);
  });

  it('add a user who has a key and no password, even to a new file', async () => {
    const directory = await writeFiles({});
    await addKeyToFile(directory, { user: 'bot', sha256, isNewUser: true });
    const [user] = await usersInFile(directory);
    assert.deepEqual(user, { name: 'bot', passwordHash: undefined, roles: [], apiKeys: [{ name: 'key-1', sha256 }] });
  });

  for (const [what, change, expected] of [
    [
      'an unknown user',
      (directory: string) => removeUserFromFile(directory, 'eve'),
      /no user with this name: there are ann, bot$/,
    ],
    [
      'an unknown key',
      (directory: string) => removeKeyFromFile(directory, 'bot', 'fd_hunter2'),
      /no key with this name: choose from ci$/,
    ],
    [
      'a key of a user without keys',
      (directory: string) => removeKeyFromFile(directory, 'ann', 'ci'),
      /no key with this name: the user has none$/,
    ],
    [
      'the only key of a user without a password',
      (directory: string) => removeKeyFromFile(directory, 'bot', 'ci'),
      /the only key of bot, .*: frontdesk users remove bot$/,
    ],
    [
      'a name that another key has',
      (directory: string) =>
        addKeyToFile(directory, { user: 'bot', name: 'ci', sha256: 'b'.repeat(64), isNewUser: false }),
      /already has a key named ci: choose another name with --key-name$/,
    ],
    [
      'a new user with the name of another',
      (directory: string) => addKeyToFile(directory, { user: 'ann', sha256: 'b'.repeat(64), isNewUser: true }),
      /already has a user named ann: omit --new$/,
    ],
    [
      'a bad name of a key',
      (directory: string) =>
        addKeyToFile(directory, { user: 'ann', name: 'c i', sha256: 'b'.repeat(64), isNewUser: false }),
      /^Error: nothing was written:\n.*api_keys\[0\]\.name is not a word/s,
    ],
    [
      'the password of an unknown user, before it is requested',
      (directory: string) => setPasswordInFile(directory, 'eve', () => assert.fail('requests a password')),
      /no user with this name/,
    ],
  ] as const)
    it(`say why nothing is written for ${what}`, async () => {
      const text = await textAfter(all, (directory) => assert.rejects(change(directory), expected));
      assert.equal(text, all);
    });
});
