/** Makes users: adds one to users.yaml, or prints the line with the hash of a password. */
import { hashPassword } from '#auth';
import { addUserToFile, type NewUser } from '#config';
import { readPassword } from './password.ts';

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
