/** Every rule of the configuration, a file each: the comment at its head is what a person reads who breaks the rule. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatErrors, loadConfiguration } from '#config';

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

async function actualErrors(file: string, place: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'frontdesk-'));
  try {
    mkdirSync(join(directory, 'services'));
    cpSync(file, join(directory, place));
    return formatErrors((await loadConfiguration(directory)).errors, directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe('a configuration that breaks a rule gives the file, the line, the record and the remedy', () => {
  for (const [folder, place] of Object.entries(placeOf)) {
    describe(folder, () => {
      for (const name of readdirSync(join(fixtures, folder))) {
        const file = join(fixtures, folder, name);
        it(name.replace('.yaml', '').replaceAll('-', ' '), async () => {
          assert.equal(await actualErrors(file, place(name)), expectedErrors(file));
        });
      }
    });
  }
});
