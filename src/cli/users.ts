/** Makes users: asks for a password, and adds a user to users.yaml or prints the line with the hash. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { hashPassword } from '#auth';
import { addUserToFile, type NewUser } from '#config';

/** Gives the text to print, with a line break at its end. Rejects with an Error fit for a terminal; then nothing is written. */
export async function addUser(directory: string, user: NewUser): Promise<string> {
  const file = await addUserToFile(directory, user, readHash);
  return `${file} has the user ${user.name} now; a running frontdesk takes it over.\n`;
}

export async function printPasswordHash(): Promise<void> {
  process.stdout.write(`    password_hash: "${await readHash()}"\n`);
}

async function readHash(): Promise<string> {
  return hashPassword(await readPassword({ input: process.stdin, output: process.stderr }));
}

export interface PasswordStreams {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** For the prompts. */
  readonly output: NodeJS.WritableStream;
}

/**
 * Reads a new password: at a terminal without echo and twice, otherwise the first line of standard input. On the command
 * line it would be in the process list and in the shell's history. Rejects with an Error fit for a terminal.
 */
export async function readPassword({ input, output }: PasswordStreams): Promise<string> {
  const password = input.isTTY === true ? await askTwice(input, output) : await firstLine(input);
  if (password === undefined || password === '') throw new Error('there was no password on standard input');
  // Node decodes bytes that are not UTF-8 to this. The auth service refuses such bytes, so nobody could sign in.
  if (password.includes('\uFFFD'))
    throw new Error('the password is not text in UTF-8: choose another, or set the terminal to UTF-8');
  return password;
}

async function firstLine(input: NodeJS.ReadableStream): Promise<string | undefined> {
  for await (const line of createInterface({ input })) return line;
  return undefined;
}

/** Undefined: the terminal was closed, or Ctrl-C pressed. */
async function askTwice(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Promise<string | undefined> {
  // The editor of lines echoes into nothing; in its raw mode the terminal echoes nothing either.
  const lines = createInterface({
    input,
    output: new Writable({ write: (_chunk, _encoding, done) => done() }),
    terminal: true,
  });
  const answers: string[] = [];
  output.write('Password: ');
  for await (const line of lines) {
    answers.push(line);
    output.write(answers.length === 1 && line !== '' ? '\nAgain: ' : '\n');
    if (answers.length === 2 || line === '') break;
  }
  const [password, again] = answers;
  if (answers.length === 2 && password !== again) throw new Error('the two passwords differ: nothing was written');
  return answers.length === 2 ? password : undefined;
}
