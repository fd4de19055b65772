/** The README's tables say what the code says, in both directions. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { listSettings } from '#config';
import { problems } from '#http';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

/** The rows of the table under a heading, as their cells. */
function tableUnder(heading: string): string[][] {
  const section = readme.split(new RegExp(`^#+ ${heading}$`, 'm'))[1]?.split(/^#/m)[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
}

describe('README', () => {
  it('lists every problem with its status, meaning and remedy, and no other', () => {
    const expected = Object.entries(problems).map(([slug, { status, meaning, remedy }]) =>
      [slug, String(status), meaning, remedy].map((cell) => cell.replaceAll('`', '')),
    );
    assert.deepEqual(tableUnder('Problems'), expected);
  });

  it('lists every setting with its default and description, and no other', () => {
    const expected = listSettings().map(({ variable, default: value, description }) =>
      [variable, value, description].map((cell) => cell.replaceAll('`', '')),
    );
    assert.deepEqual(tableUnder('Settings'), expected);
  });
});
