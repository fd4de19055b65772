/** Adds a user to `users.yaml`: keeps the rest of the text, and replaces the file atomically. */
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isMap, isSeq, parseDocument, Scalar } from 'yaml';
import { codeOf, inheritOwner, makeFolders } from '#foundation';
import { readText } from './directory.ts';
import { formatErrors, writeError } from './errors.ts';
import { readUsers } from './users.ts';
import { readYaml } from './yaml.ts';

export interface NewUser {
  readonly name: string;
  readonly roles: readonly string[];
}

interface UserEntry extends NewUser {
  readonly passwordHash: string;
}

/** A placeholder to check the other fields before the password is requested. */
const placeholderHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/**
 * Adds a user and returns the name of the file. Calls `readHash` only when everything else is valid, so that the user
 * does not type a password in vain. Rejects with an Error for the terminal and leaves the file unchanged.
 */
export async function addUserToFile(
  directory: string,
  user: NewUser,
  readHash: () => Promise<string>,
): Promise<string> {
  const file = join(directory, 'users.yaml');
  textWith(file, { ...user, passwordHash: placeholderHash });
  const passwordHash = await readHash();
  // Reads the file again, because it may have changed in the meantime.
  await replace(file, () => textWith(file, { ...user, passwordHash }));
  return file;
}

/** Returns the text of the file with the user added, after checking it like any users.yaml. */
function textWith(file: string, user: UserEntry): string {
  const before = readText(file) ?? newFileText;
  const text = withUser(before, user, file);
  const { results, errors } = readYaml(text, { file, lineOf: (line) => line }, readUsers);
  const found = [...errors, ...results.flatMap((result) => result.errors)];
  if (found.length > 0) throw new Error(`nothing was written:\n${formatErrors(found, resolve('.'))}`);
  if (text === before) throw new Error(`${file} has several YAML documents: merge them, then add the user`);
  return text;
}

const passwordAdvice =
  'to change the password, replace password_hash with the line that frontdesk hash-password prints';

const newFileText = '# The users who may call the gateway. `frontdesk users add NAME` adds a user.\nusers: []\n';

/**
 * Adds the user to the text. Throws an Error for the terminal if it already has the user. Returns text that is not a
 * single document with a list of users unchanged, so that the caller reports why.
 */
function withUser(text: string, { name, passwordHash, roles }: UserEntry, file: string): string {
  const document = parseDocument(text, { logLevel: 'error' });
  if (document.contents === null) document.set('users', document.createNode([]));
  const users = document.errors.length === 0 ? document.get('users') : undefined;
  if (!isSeq(users)) return text;
  if (users.items.some((item) => isMap(item) && item.get('name') === name))
    throw new Error(`${file} already has a user named ${name}: ${passwordAdvice}`);
  const hash = new Scalar(passwordHash);
  hash.type = 'QUOTE_DOUBLE';
  const entry = document.createNode({ name, password_hash: hash, ...(roles.length > 0 && { roles }) });
  users.add(entry);
  // Turns `[]` into a block list, with one item per line.
  users.flow = users.flow === true && users.items.length > 1;
  // Without padding, because `frontdesk init` and config/README.md write `[admin]`, not `[ admin ]`.
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

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
