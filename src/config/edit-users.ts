/** Changes users and API keys in `users.yaml`: keeps the rest of the text, and replaces the file atomically. */
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Document, isMap, isScalar, isSeq, parseDocument, Scalar, type YAMLMap, YAMLSeq } from 'yaml';
import { codeOf, inheritOwner, makeFolders } from '#foundation';
import { readText } from './directory.ts';
import { formatErrors, writeError } from './errors.ts';
import { readUsers, type User } from './users.ts';
import { readYaml } from './yaml.ts';

export interface NewUser {
  readonly name: string;
  readonly roles: readonly string[];
}

/** A placeholder to check everything else before the password is requested. */
const placeholderHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/**
 * The functions that change the file return its name. They reject with an Error for the terminal, and then leave the
 * file unchanged. `readHash` is called only when everything else is valid, so that the user does not type a password in
 * vain.
 */
export async function addUserToFile(
  directory: string,
  { name, roles }: NewUser,
  readHash: () => Promise<string>,
): Promise<string> {
  return editWithHash(directory, readHash, (users, hash) => {
    if (users.has(name)) throw new Error(`${users.file} already has a user named ${name}: ${passwordAdvice(name)}`);
    users.add({ name, password_hash: hash, ...(roles.length > 0 && { roles }) });
  });
}

export async function setPasswordInFile(
  directory: string,
  name: string,
  readHash: () => Promise<string>,
): Promise<string> {
  return editWithHash(directory, readHash, (users, hash) => {
    const user = users.find(name);
    const before = user.get('password_hash', true);
    // Changes the value alone, so that a comment behind it remains.
    if (isScalar(before)) Object.assign(before, { value: hash.value, type: hash.type });
    else user.set('password_hash', hash);
  });
}

export async function removeUserFromFile(directory: string, name: string): Promise<string> {
  return edit(directory, (users) => users.remove(name));
}

export interface NewKey {
  readonly user: string;
  /** @default `key-1`, or the next number that is free */
  readonly name?: string | undefined;
  readonly sha256: string;
  /** Adds the user, who then has no password. */
  readonly isNewUser: boolean;
}

/** Also returns the name of the key. */
export async function addKeyToFile(
  directory: string,
  { user: name, name: given, sha256, isNewUser }: NewKey,
): Promise<{ readonly file: string; readonly key: string }> {
  let key = '';
  const file = await edit(directory, (users) => {
    if (isNewUser && users.has(name)) throw new Error(`${users.file} already has a user named ${name}: omit --new`);
    const user = isNewUser ? users.add({ name }) : users.find(name);
    const keys = user.get('api_keys') ?? new YAMLSeq();
    if (!isSeq(keys)) throw new Error(`${users.file}: api_keys of the user ${name} is not a list: correct it first`);
    const taken = keyNames(keys);
    key = given ?? freeName(taken);
    if (taken.includes(key))
      throw new Error(`the user ${name} already has a key named ${key}: choose another name with --key-name`);
    user.set('api_keys', keys);
    users.addTo(keys, { name: key, sha256: quoted(sha256) });
  });
  return { file, key };
}

export async function removeKeyFromFile(directory: string, name: string, key: string): Promise<string> {
  return edit(directory, (users) => {
    const user = users.find(name);
    const keys = user.get('api_keys');
    const index = indexOfKey(isSeq(keys) ? keyNames(keys) : [], key);
    if (isSeq(keys)) {
      keys.delete(index);
      if (keys.items.length > 0) return;
    }
    user.delete('api_keys');
    if (!user.has('password_hash'))
      throw new Error(
        `this is the only key of ${name}, who has no password: add another key first, or remove the user with: frontdesk users remove ${name}`,
      );
  });
}

/** Does not repeat an unknown name, which may be the key. */
function indexOfKey(names: readonly string[], key: string): number {
  const index = names.indexOf(key);
  if (index >= 0) return index;
  const known = names.length === 0 ? 'the user has none' : `choose from ${names.join(', ')}`;
  throw new Error(`the user has no key with this name: ${known}`);
}

/** Rejects with an Error for the terminal if the file has errors. Without a file, there are no users. */
export async function usersInFile(directory: string): Promise<readonly User[]> {
  const file = fileOf(directory);
  const text = readText(file);
  return text === undefined ? [] : usersIn(text, file, 'correct the file first');
}

function fileOf(directory: string): string {
  return join(directory, 'users.yaml');
}

function passwordAdvice(name: string): string {
  return `to change the password: frontdesk users set-password ${name}`;
}

const newFileText = '# The users who may call the gateway. `frontdesk users add NAME` adds a user.\nusers: []\n';

function keyNames(keys: YAMLSeq): readonly string[] {
  return keys.items.map((item) => (isMap(item) ? String(item.get('name')) : ''));
}

function freeName(taken: readonly string[]): string {
  const free = (number: number): string => (taken.includes(`key-${number}`) ? free(number + 1) : `key-${number}`);
  return free(1);
}

function quoted(text: string): Scalar<string> {
  const scalar = new Scalar(text);
  scalar.type = 'QUOTE_DOUBLE';
  return scalar;
}

/** The users of a YAML document, as nodes that keep their comments. */
type UserNodes = ReturnType<typeof userNodes>;

type Edit = (users: UserNodes) => void;

async function editWithHash(
  directory: string,
  readHash: () => Promise<string>,
  change: (users: UserNodes, hash: Scalar<string>) => void,
): Promise<string> {
  const file = fileOf(directory);
  textAfter(file, (users) => change(users, quoted(placeholderHash)));
  const hash = await readHash();
  return edit(directory, (users) => change(users, quoted(hash)));
}

/** Reads the file while no other command changes it. */
async function edit(directory: string, change: Edit): Promise<string> {
  const file = fileOf(directory);
  await replace(file, () => textAfter(file, change));
  return file;
}

/** Returns the text of the file after the change, which is checked like any users.yaml. */
function textAfter(file: string, change: Edit): string {
  const before = readText(file) ?? newFileText;
  const document = parseDocument(before, { logLevel: 'error' });
  if (document.contents === null) document.set('users', document.createNode([]));
  const users = document.errors.length === 0 ? document.get('users') : undefined;
  if (!isSeq(users)) {
    // Reports what is wrong with the text.
    usersIn(before, file);
    throw new Error(`${file} has several YAML documents: merge them first`);
  }
  change(userNodes(users, document, file));
  const text = document.toString(styleOf(before));
  usersIn(text, file);
  return text;
}

function usersIn(text: string, file: string, consequence = 'nothing was written'): readonly User[] {
  const { results, errors } = readYaml(text, { file, lineOf: (line) => line }, readUsers);
  const found = [...errors, ...results.flatMap((result) => result.errors)];
  if (found.length > 0) throw new Error(`${consequence}:\n${formatErrors(found, resolve('.'))}`);
  return results.flatMap(({ kept }) => kept);
}

/** How the text writes lists and maps. Without padding by default, as in `[admin]` of `frontdesk init`. */
function styleOf(text: string) {
  return {
    lineWidth: 0,
    flowCollectionPadding: /[{[] +\S/.test(text),
    indentSeq: !/^users:[^\n]*\n(?:\s*#[^\n]*\n)*-/m.test(text),
  };
}

function userNodes(users: YAMLSeq, document: Document, file: string) {
  const indexOf = (name: string) => users.items.findIndex((item) => isMap(item) && item.get('name') === name);

  function find(name: string): YAMLMap {
    const user = users.items[indexOf(name)];
    if (isMap(user)) return user;
    const names = users.items.flatMap((item) => (isMap(item) ? [String(item.get('name'))] : []));
    const known = names.length === 0 ? 'there are no users' : `there are ${names.slice(0, namesMax).join(', ')}`;
    throw new Error(`${file} has no user with this name: ${known}${names.length > namesMax ? ', …' : ''}`);
  }

  function addTo<Fields extends object>(list: YAMLSeq, fields: Fields): YAMLMap {
    const entry = document.createNode(fields);
    if (!isMap(entry)) throw new TypeError('the entry is not a map');
    list.add(entry);
    // Turns `[]` into a block list, with one item per line.
    list.flow = list.flow === true && list.items.length > 1;
    return entry;
  }

  return {
    file,
    has: (name: string) => indexOf(name) >= 0,
    find,
    addTo,
    add: (fields: object) => addTo(users, fields),
    remove(name: string) {
      find(name);
      users.delete(indexOf(name));
    },
  };
}

/** In an error. */
const namesMax = 20;

/**
 * Replaces the file atomically, because a running frontdesk may read it. Follows a symbolic link. The file keeps its
 * owner, who must be able to read it even if root adds the user. A new file gets the owner of its folder. `change`
 * returns the new text, and runs while no other command changes the file.
 */
async function replace(link: string, change: () => string): Promise<void> {
  const file = await realpath(link).catch(() => link);
  const inWriting = (cause: unknown): never => {
    throw writeError(file, cause, 'give this user permission to write it, and make it the owner if the file exists');
  };
  // Also the lock: a second command waits until this file is renamed.
  const scratch = `${file}.lock`;
  await makeFolders(dirname(file)).catch(inWriting);
  await using written = (await createAlone(scratch).catch(inWriting)) ?? rejectLocked(scratch);
  try {
    const text = change();
    await fill(written, text, file).catch(inWriting);
    await rename(scratch, file).catch(inWriting);
  } catch (cause) {
    await rm(scratch, { force: true });
    throw cause;
  }
}

/** A command holds the lock for a few milliseconds. */
const lockAttemptsMax = 100;
const lockPauseMs = 10;

/** Creates a file that does not exist, and waits if it does. Undefined if it still exists after that. */
async function createAlone(file: string): Promise<FileHandle | undefined> {
  for (let attempts = 1; attempts <= lockAttemptsMax; attempts += 1) {
    try {
      return await open(file, 'wx', 0o600);
    } catch (cause) {
      if (codeOf(cause) !== 'EEXIST') throw cause;
      await setTimeout(lockPauseMs);
    }
  }
  return undefined;
}

function rejectLocked(lock: string): never {
  throw new Error(`another command is writing ${lock}: wait for it, or remove this file if it was left by a crash`);
}

async function fill(written: FileHandle, text: string, file: string): Promise<void> {
  await written.writeFile(text);
  const before = await stat(file).catch(() => undefined);
  if (before === undefined) await inheritOwner(dirname(file), written);
  else {
    await written.chown(before.uid, before.gid);
    await written.chmod(before.mode & 0o777);
  }
}
