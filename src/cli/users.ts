/** The `users` and `hash-password` commands: change or list users.yaml, and prompt for passwords. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { createApiKey, hashPassword } from '#auth';
import {
  addKeyToFile,
  addUserToFile,
  type NewKey,
  type NewUser,
  removeKeyFromFile,
  removeUserFromFile,
  setPasswordInFile,
  type User,
  usersInFile,
} from '#config';

// The functions that change the file resolve to the text to print, which ends with a line break. They write nothing when
// they reject, with a user-facing Error.

export async function addUser(directory: string, user: NewUser): Promise<string> {
  const file = await addUserToFile(directory, user, readHash);
  return `Added the user ${user.name} to ${file}. ${pickedUp}\n`;
}

export async function setPassword(directory: string, name: string): Promise<string> {
  const file = await setPasswordInFile(directory, name, readHash);
  return `Changed the password of ${name} in ${file}. ${pickedUp}\n`;
}

export async function removeUser(directory: string, name: string): Promise<string> {
  const file = await removeUserFromFile(directory, name);
  return `Removed the user ${name} from ${file}. ${pickedUp}\n`;
}

/** Returns the key apart from the message, so that a program can read it alone. */
export async function addKey(
  directory: string,
  choice: Omit<NewKey, 'sha256'>,
): Promise<{ readonly key: string; readonly message: string }> {
  const { key, sha256 } = createApiKey();
  const { file, key: name } = await addKeyToFile(directory, { ...choice, sha256 });
  const message = `Added the key ${name} of ${choice.user} to ${file}, and printed it: it cannot be shown again. ${pickedUp}\n`;
  return { key, message };
}

export async function removeKey(directory: string, name: string, key: string): Promise<string> {
  const file = await removeKeyFromFile(directory, name, key);
  return `Removed the key ${key} of ${name} from ${file}. ${pickedUp}\n`;
}

const pickedUp = 'A running frontdesk picks up the change.';

/** Shows names only: neither hashes nor digests. */
export async function listUsers(directory: string): Promise<string> {
  const users = await usersInFile(directory);
  if (users.length === 0) return 'There are no users. Add one with: frontdesk users add NAME\n';
  const rows = [['NAME', 'ROLES', 'PASSWORD', 'API KEYS'], ...users.map(rowOf)];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`).join('');
}

function rowOf({ name, roles, passwordHash, apiKeys }: User): string[] {
  const keys = apiKeys.map((key) => key.name).join(', ');
  return [name, roles.join(', ') || '-', passwordHash === undefined ? 'no' : 'yes', keys || '-'];
}

export async function printPasswordHash(): Promise<void> {
  process.stdout.write(`    password_hash: "${await readHash()}"\n`);
}

async function readHash(): Promise<string> {
  const password = await readPassword({ input: process.stdin, output: process.stderr });
  // Otherwise the process would wait for the end of its input, which may never come: `ssh host frontdesk users add ann`.
  process.stdin.destroy();
  return hashPassword(password);
}

export interface PasswordStreams {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** Where prompts are written. */
  readonly output: NodeJS.WritableStream;
  /** Asks for a new password twice. @default true */
  readonly isNew?: boolean;
}

/**
 * Reads a password: from a terminal without echo, otherwise from the first line of standard input. An argument would
 * show up in the process list and the shell's history. Rejects with a user-facing Error.
 */
export async function readPassword({ input, output, isNew = true }: PasswordStreams): Promise<string> {
  const password = input.isTTY === true ? await ask(input, output, isNew ? 2 : 1) : await firstLine(input);
  if (password === undefined || password === '') throw new Error('no password was entered');
  // Node replaces invalid UTF-8 with this character. The auth service rejects such bytes, so the user could not sign in.
  if (password.includes('\uFFFD'))
    throw new Error('the password is not valid UTF-8: choose another one, or set your terminal to UTF-8');
  return password;
}

async function firstLine(input: NodeJS.ReadableStream): Promise<string | undefined> {
  for await (const line of createInterface({ input })) return line;
  return undefined;
}

/** Undefined when the terminal was closed or Ctrl-C pressed. */
async function ask(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  times: 1 | 2,
): Promise<string | undefined> {
  // readline echoes into a stream that discards everything, and its raw mode turns off the terminal's own echo.
  const lines = createInterface({
    input,
    output: new Writable({ write: (_chunk, _encoding, done) => done() }),
    terminal: true,
  });
  const answers: string[] = [];
  output.write('Password: ');
  for await (const line of lines) {
    answers.push(line);
    output.write(answers.length < times && line !== '' ? '\nRepeat password: ' : '\n');
    if (answers.length === times || line === '') break;
  }
  const [password, again = password] = answers;
  if (password !== again) throw new Error('the passwords do not match: try again');
  return answers.length === times ? password : undefined;
}
