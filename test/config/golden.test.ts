/** Every rule of the configuration, a file each: the comment at its head is what a person reads who breaks the rule. */
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatErrors, loadConfiguration } from '#config';
import { temporaryFiles } from '../support/temporary-files.ts';

const fixtures = fileURLToPath(new URL('../fixtures/config', import.meta.url));

/** The place of a file of each folder of fixtures in a configuration directory. */
const placeOf: Readonly<Record<string, (name: string) => string>> = {
  services: (name) => join('services', name),
  ratelimit: (name) => join('ratelimit', name),
  users: () => 'users.yaml',
  demo: () => 'demo.yaml',
};

/** The comment lines at the head of the file, without the `# `. */
function expectedErrors(file: string): string {
  const [head = ''] = readFileSync(file, 'utf8').split(/^(?!# )/m);
  return head.replace(/^# /gm, '').trimEnd();
}

/** Of a directory that has no other file. */
async function actualErrors(file: string, directory: string, place: string): Promise<string> {
  copyFileSync(file, join(directory, place));
  try {
    return formatErrors((await loadConfiguration(directory)).errors, directory);
  } finally {
    rmSync(join(directory, place));
  }
}

describe('a configuration that breaks a rule gives the file, the line, the record and the remedy', () => {
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
