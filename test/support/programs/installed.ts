/** Finds third-party programs that tests need. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Searches the PATH like a shell. Starting the program instead could take a second in each test file. */
export function findProgram(command: string): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(delimiter);
  return directories.map((directory) => join(directory, command)).find(isExecutable);
}

export function isInstalled(command: string): boolean {
  return findProgram(command) !== undefined;
}

/** A `describe` that is pending if the program is not installed. */
export function describeWith(program: string, title: string, body: (this: Mocha.Suite) => void): void {
  describe(title, function describeInstalled() {
    if (isInstalled(program)) body.call(this);
    else it(`needs ${program} on the PATH`);
  });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
