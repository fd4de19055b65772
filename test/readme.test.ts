/** The README's tables say what the code says, in both directions. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { problems } from '#http';
import { familiesOf } from '../src/metrics/metrics.ts';
import { parts } from './metrics/metrics-parts.ts';

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

  it('lists every metric with its type, labels and meaning, and no other', () => {
    const expected = familiesOf(parts).map(({ name, type, labels, help }) => [
      ...[name, type, labels.join(', ')],
      help.replaceAll('`', ''),
    ]);
    assert.deepEqual(tableUnder('Metrics'), expected);
  });

  it('shows the instrumentation as the tests run it', () => {
    const file = readFileSync(new URL('./examples/instrumentation.js', import.meta.url), 'utf8');
    assert.ok(readme.includes(`\`\`\`js\n${file}\`\`\``));
  });
});

describe('the pages', () => {
  const recipes = readFileSync(new URL('examples/recipes.md', import.meta.url), 'utf8');

  for (const [name, text] of Object.entries({ 'README.md': readme, 'test/examples/recipes.md': recipes })) {
    it(`${name} leads to files and headings that are there`, () => {
      const here = new URL(`../${name}`, import.meta.url);
      const links = [...text.matchAll(/(?<!!)\[[^\]]+\]\((?!https?:)([^)]+)\)/g)].map(([, link = '']) => link);
      assert.ok(links.length > 0);
      assert.deepEqual(
        links.filter((link) => !isThere(new URL(link, here))),
        [],
      );
    });
  }

  it('have a test for each recipe', () => {
    const tests = ['recipes', 'proxies'].flatMap((folder) =>
      readdirSync(new URL(folder, import.meta.url)).map((file) =>
        readFileSync(new URL(`${folder}/${file}`, import.meta.url), 'utf8'),
      ),
    );
    const titles = [...recipes.matchAll(/^## (.*)$/gm)].map(([, title = '']) => title);
    assert.ok(titles.length > 0);
    assert.deepEqual(
      titles.filter((title) => !tests.some((text) => text.includes(`readRecipe('${title}')`))),
      [],
    );
  });
});

/** Whether there is a file and, where the link names one, a heading in it, by the name that GitHub gives it. */
function isThere(link: URL): boolean {
  const file = new URL(link.pathname, link);
  if (!existsSync(file)) return false;
  if (link.hash === '') return true;
  const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
  return headings.includes(link.hash.slice(1));
}
