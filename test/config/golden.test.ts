/** Golden tests: one file for each rule of the configuration, starting with a comment that is the expected error. */
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatErrors, loadConfiguration } from '#config';
import { temporaryFiles } from '../support/temporary-files.ts';

const fixtures = fileURLToPath(new URL('../fixtures/config', import.meta.url));

/** Maps a fixture, by its folder, to its place in a configuration directory. */
const placeOf: Readonly<Record<string, (name: string) => string>> = {
  services: (name) => join('services', name),
  ratelimit: (name) => join('ratelimit', name),
  users: () => 'users.yaml',
  demo: () => 'demo.yaml',
};

/** Returns the comment lines at the top of the file, without the `# `. */
function expectedErrors(file: string): string {
  const [head = ''] = readFileSync(file, 'utf8').split(/^(?!# )/m);
  return head.replace(/^# /gm, '').trimEnd();
}

/** Loads the directory with the file as the only one under test, and returns its errors. */
async function actualErrors(file: string, directory: string, place: string): Promise<string> {
  copyFileSync(file, join(directory, place));
  try {
    return formatErrors((await loadConfiguration(directory)).errors, directory);
  } finally {
    rmSync(join(directory, place));
  }
}

describe('an invalid configuration gets an error with file, line, record and remedy', () => {
  const writeFiles = temporaryFiles();
  let directory: string;

  before(async () => {
    directory = await writeFiles({ 'services/none.yaml': '', 'ratelimit/none.yaml': 'domain: none' });
  });

  for (const [folder, place] of Object.entries(placeOf)) {
    describe(folder, () => {
      for (const name of readdirSync(join(fixtures, folder))) {
        const file = join(fixtures, folder, name);
        it(name.replace('.yaml', '').replaceAll('-', ' '), async () => {
          assert.equal(await actualErrors(file, directory, place(name)), expectedErrors(file));
        });
      }
    });
  }
});
