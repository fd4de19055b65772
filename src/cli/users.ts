/** The `users add` and `hash-password` commands: prompt for a password, then update users.yaml or print the hash. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { hashPassword } from '#auth';
import { addUserToFile, type NewUser } from '#config';

/**
 * Resolves to the text to print, which ends with a line break. Writes nothing when it rejects, with a user-facing Error.
 */
export async function addUser(directory: string, user: NewUser): Promise<string> {
  const file = await addUserToFile(directory, user, readHash);
  return `Added the user ${user.name} to ${file}. A running frontdesk picks up the change.\n`;
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
