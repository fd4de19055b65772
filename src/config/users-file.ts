/** Adds a user to users.yaml, whose comments and other users stay as they are. */
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isSeq, parseDocument, Scalar } from 'yaml';
import { formatErrors, systemCode } from './errors.ts';
import { readUsers } from './users.ts';
import { readYaml } from './yaml.ts';

export interface NewUser {
  readonly name: string;
  readonly roles: readonly string[];
}

interface UserEntry extends NewUser {
  readonly passwordHash: string;
}

/** In place of the one that is not asked for yet. */
const anyHash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/**
 * Gives the name of the file. `readHash` is called when nothing else is wrong, so that nobody types a password in vain.
 * Rejects with an Error fit for a terminal, and then the file is as it was.
 */
export async function addUserToFile(
  directory: string,
  user: NewUser,
  readHash: () => Promise<string>,
): Promise<string> {
  const file = join(directory, 'users.yaml');
  await textWith(file, { ...user, passwordHash: anyHash });
  const passwordHash = await readHash();
  await replace(file, await textWith(file, { ...user, passwordHash }));
  return file;
}

/** The whole file with the user in it, checked as it is when it is read. */
async function textWith(file: string, user: UserEntry): Promise<string> {
  const text = withUser(await readOrBegin(file), user);
  const { results, errors } = readYaml(text, { file, lineOf: (line) => line }, readUsers);
  const found = [...errors, ...results.flatMap((result) => result.errors)];
  if (found.length > 0) throw new Error(`nothing was written:\n${formatErrors(found, resolve('.'))}`);
  return text;
}

const beginning = '# Who may call. `frontdesk users add NAME` adds a user.\nusers: []\n';

async function readOrBegin(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return beginning;
    throw new Error(`cannot read ${file} (${systemCode(cause)})`, { cause });
  }
}

/** A text that is no list of users is given back with the user nowhere, for the check to say what is wrong with it. */
function withUser(text: string, { name, passwordHash, roles }: UserEntry): string {
  const document = parseDocument(text, { logLevel: 'error' });
  if (document.contents === null) document.set('users', document.createNode([]));
  const users = document.errors.length === 0 ? document.get('users') : undefined;
  if (!isSeq(users)) return text;
  const hash = new Scalar(passwordHash);
  hash.type = 'QUOTE_DOUBLE';
  const entry = document.createNode({ name, password_hash: hash, ...(roles.length > 0 && { roles }) });
  users.add(entry);
  // `[]` becomes a list of lines.
  users.flow = users.flow === true && users.items.length > 1;
  return document.toString({ lineWidth: 0 });
}

/** Whole or not at all, since a running frontdesk reads it; what a link leads to is replaced, and not the link. */
async function replace(link: string, text: string): Promise<void> {
  const file = await realpath(link).catch(() => link);
  const scratch = `${file}.${randomUUID()}.new`;
  try {
    const { mode } = await stat(file).catch(() => ({ mode: 0o600 }));
    await mkdir(dirname(file), { recursive: true });
    await writeFile(scratch, text, { flag: 'wx', mode: 0o600 });
    await chmod(scratch, mode & 0o777);
    await rename(scratch, file);
  } catch (cause) {
    await rm(scratch, { force: true });
    throw new Error(`cannot write ${file} (${systemCode(cause)}): let this user write it`, { cause });
  }
}
