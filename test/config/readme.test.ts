/** Tests that the tables of config/README.md match the fields and settings in the source. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { listSettings } from '#config';
import { groupByTopic, settingTable } from '#server/product';
import { fieldTables } from './field-tables.ts';

const page = readFileSync(new URL('../../config/README.md', import.meta.url), 'utf8');

function linesUnder(heading: string): readonly string[] {
  const section = page.split(new RegExp(`^#+ ${heading}$`, 'm'))[1]?.split(/^#/m)[0] ?? '';
  return section.split('\n').filter((line) => line.startsWith('| `'));
}

function formatDefault(value: unknown): string {
  if (value === undefined) return 'none';
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

describe('config/README.md', () => {
  function check(heading: string, expected: readonly string[]): void {
    it(`lists ${heading} as the source defines it`, () => assert.deepEqual(linesUnder(heading), expected));
  }

  for (const [kind, { name: _name, ...fields }] of Object.entries(fieldTables))
    check(
      kind,
      Object.values(fields).map((row) => {
        const whenMissing = row.shownDefault ?? ('default' in row ? formatDefault(row.default) : 'required');
        return `| \`${row.name}\` | ${row.type} | ${whenMissing} | ${row.docs} |`;
      }),
    );

  check(
    'Settings',
    listSettings(settingTable).map(
      ({ variable, default: value, description }) =>
        `| \`${variable}\` | ${value === '' ? '' : `\`${value}\``} | ${description} |`,
    ),
  );

  it('groups the settings by the topics of `frontdesk help settings`', () => {
    const section = page.split(/^## Settings$/m)[1]?.split(/^#/m)[0] ?? '';
    const names = Array.from(
      section.matchAll(/^\| (?:\*\*([\w-]+)\*\*|`(\w+)`) \|/gm),
      ([, topic, name]) => topic ?? name,
    );
    const expected = Array.from(groupByTopic(settingTable), ([topic, table]) => [topic, ...listSettings(table)]).flat();
    assert.deepEqual(
      names,
      expected.map((one) => (typeof one === 'string' ? one : one.variable)),
    );
  });
});
