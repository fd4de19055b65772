/** Whether a program of others is there for a test, and where. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Looks on the PATH, as a shell does. To start the program would take a second of some, in each file that asks. */
export function findProgram(command: string): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(delimiter);
  return directories.map((directory) => join(directory, command)).find(isExecutable);
}

export function isInstalled(command: string): boolean {
  return findProgram(command) !== undefined;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
