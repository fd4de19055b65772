/** Whether a program of others is there for a test. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Looks on the PATH, as a shell does. To start the program would take a second of some, in each file that asks. */
export function isInstalled(command: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((directory) => isExecutable(join(directory, command)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
