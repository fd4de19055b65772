/** Tests that the tables of config/README.md match the fields and settings in the source. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { listFields, listSettings } from '#config';

const page = readFileSync(new URL('../../config/README.md', import.meta.url), 'utf8');

function linesUnder(heading: string): readonly string[] {
  const section = page.split(new RegExp(`^#+ ${heading}$`, 'm'))[1]?.split(/^#/m)[0] ?? '';
  return section.split('\n').filter((line) => line.startsWith('| `'));
}

describe('config/README.md', () => {
  function check(heading: string, expected: readonly string[]): void {
    it(`lists ${heading} as the source defines it`, () => assert.deepEqual(linesUnder(heading), expected));
  }

  for (const kind of ['Mapping', 'AuthService', 'RateLimitService', 'Version'] as const)
    check(
      kind,
      listFields(kind).map((row) => `| \`${row.name}\` | ${row.type} | ${row.default} | ${row.docs} |`),
    );

  check(
    'Settings',
    listSettings().map(
      ({ variable, default: value, description }) =>
        `| \`${variable}\` | ${value === '' ? '' : `\`${value}\``} | ${description} |`,
    ),
  );
});
