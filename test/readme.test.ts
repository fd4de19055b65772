/** The documentation pages: their tables match the code, their links work, and their commands exist. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { writeStarter } from '../src/cli/init.ts';
import { familiesOf } from '../src/metrics/metrics.ts';
import { attemptRules } from '../src/proxy/attempt-rules.ts';
import { problemTable } from '../src/server/problems.ts';
import { parts } from './metrics/metrics-parts.ts';
import { knownCommands } from './support/programs/frontdesk-process.ts';
import { temporaryFiles } from './support/temporary-files.ts';

const root = new URL('../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');
const manifest = JSON.parse(read('package.json'));

const pages = [
  'README.md',
  'config/README.md',
  'config/deploy/README.md',
  'config/recipes/README.md',
  'test/README.md',
  'src/README.md',
  ...readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
    .filter((name) => basename(name) === 'README.md' && name !== 'README.md')
    .map((name) => `src/${name.replaceAll('\\', '/')}`),
];

/** Returns the rows of the table under a heading, as lists of cells. */
function tableUnder(page: string, heading: string): string[][] {
  const section =
    read(page)
      .split(new RegExp(`^#+ ${heading}$`, 'm'))[1]
      ?.split(/^#/m)[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
}

const plain = (cells: readonly string[]) => cells.map((cell) => cell.replaceAll('`', ''));

describe('the tables of the pages', () => {
  it('list every problem with its status, meaning and remedy', () => {
    const rows = Object.entries(problemTable).map(([slug, { status, meaning, remedy }]) =>
      plain([slug, String(status), meaning, remedy]),
    );
    assert.deepEqual(tableUnder('src/http/README.md', 'Problems'), rows);
  });

  it('name `Retry-After` in the remedy of exactly the problems that have one, which include every 503', () => {
    for (const [slug, { status, remedy, retryAfterSeconds }] of Object.entries(problemTable)) {
      assert.equal(remedy.includes('`Retry-After`'), retryAfterSeconds !== undefined, slug);
      if (status === 503) assert.ok(retryAfterSeconds !== undefined, slug);
    }
  });

  it('list every metric with its type, labels and meaning', () => {
    const rows = familiesOf(parts).map(({ name, type, labels, help }) => plain([name, type, labels.join(', '), help]));
    assert.deepEqual(tableUnder('src/metrics/README.md', 'Metrics'), rows);
  });

  it('list every rule that allows another attempt at a service', () => {
    const rows = Object.entries(attemptRules).flatMap(([repeat, rules]) =>
      rules.map(({ name, after, failures, methods, body, unlessFollowed, where }) => {
        const failed = typeof failures === 'string' ? failures : failures.join(', ');
        return [repeat, name, after.join(', '), failed, methods, body, unlessFollowed.join(', ') || 'none', where];
      }),
    );
    assert.deepEqual(tableUnder('src/README.md', 'When a request is sent again'), rows);
  });

  it('list every folder of src in the code map', () => {
    const folders = readdirSync(new URL('src', root), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const listed = tableUnder('README.md', 'Code map').flatMap(([cell = '']) => cell.split(', '));
    assert.deepEqual(listed.sort(), folders.map(({ name }) => `src/${name}`).sort());
  });
});

describe('the pages', () => {
  const writeFiles = temporaryFiles();

  for (const page of pages) {
    const text = read(page);

    it(`${page}: links point to files and headings that the package contains`, () => {
      const links = [...text.matchAll(/\[[^\]]*\]\((?!https?:)([^)]+)\)/g)].map(([, link = '']) => link);
      const targets = links.map((link) => new URL(link, new URL(page, root)));
      assert.deepEqual(
        targets.filter((target) => !isThere(target) || !isPublished(target)),
        [],
      );
    });

    it(`${page}: commands and scripts exist`, () => {
      const scripts = [...text.matchAll(/npm (?:run ([\w:]+)|(test|start)\b)/g)].map(
        ([, run, short]) => run ?? short ?? '',
      );
      assert.deepEqual(
        scripts.filter((name) => !(name in { ...manifest.scripts })),
        [],
      );
      const commands = [...text.matchAll(/npx frontdesk ([a-z][\w-]*)/g)].map(([, name = '']) => name);
      assert.deepEqual(
        commands.filter((name) => !knownCommands.includes(name)),
        [],
      );
      const files = [...text.matchAll(/\b(?:test|src|config)\/[\w./-]+\.(?:ts|js|yaml|md|png)\b/g)].map(
        ([name]) => name,
      );
      const made = (name: string) => page.includes('recipes') && name.startsWith('config/');
      assert.deepEqual(
        files.filter((name) => !made(name) && !existsSync(new URL(name, root))),
        [],
      );
    });
  }

  it('README.md has at most 250 lines', () => {
    assert.ok(read('README.md').split('\n').length <= 251);
  });

  it('README.md says what to run on Windows instead of `npm start`, which needs a POSIX shell', () => {
    const scripts = Object.entries<string>(manifest.scripts);
    const needsShell = scripts.filter(([, script]) => /^\w+=|\bexec\b|[$`'";|<>()*]/.test(script));
    assert.deepEqual(
      needsShell.map(([name]) => name),
      ['start', 'start:split'],
    );
    const [, command = ''] = / exec (.*)$/.exec(manifest.scripts.start) ?? [];
    assert.ok(read('README.md').includes(`On Windows, run \`npx ${command}\` instead of \`npm start\``));
  });

  it('README.md shows the mapping that `init` writes', async () => {
    const [, shown = ''] = /^```yaml\n(.*?)^```$/ms.exec(read('README.md')) ?? [];
    const directory = await writeFiles();
    await writeStarter(directory, { service: 'http://127.0.0.1:3000', user: 'me', passwordHash: 'hash' });
    const [mapping = ''] = readFileSync(join(directory, 'services/app.yaml'), 'utf8').split(/^---$/m);
    assert.deepEqual(parse(shown), parse(mapping));
  });

  it('show the same instrumentation that the tests run', () => {
    assert.ok(read('src/tracing/README.md').includes(`\`\`\`js\n${read('config/recipes/instrumentation.js')}\`\`\``));
  });

  it('have a test for each recipe', () => {
    const tests = ['test/recipes', 'test/peers', 'test/apps'].flatMap((folder) =>
      readdirSync(new URL(folder, root)).map((file) => read(`${folder}/${file}`)),
    );
    const titles = [...read('config/recipes/README.md').matchAll(/^## (.*)$/gm)].map(([, title = '']) => title);
    assert.ok(titles.length > 0);
    assert.deepEqual(
      titles.filter(
        (title) =>
          !tests.some((text) => [`'${title}'`, `"${title}"`].some((name) => text.includes(`readRecipe(${name})`))),
      ),
      [],
    );
  });
});

/** Whether the file exists and contains the heading of the link's fragment, in GitHub's form. */
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

/** Whether `files` of package.json includes the file. npm always adds README.md. */
function isPublished(link: URL): boolean {
  const name = fileURLToPath(new URL(link.pathname, link)).slice(fileURLToPath(root).length);
  return ['README.md', ...manifest.files].some((entry: string) => name === entry || name.startsWith(`${entry}/`));
}
