/** The table of problems: slugs, statuses, titles and texts that follow the same rules. */
import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { problems, problemTitle } from '#http';
import { problemTable } from '../../src/server/problems.ts';

const rows = Object.entries(problemTable);

describe('problems', () => {
  it('have a slug in kebab-case, and an error status with a reason phrase', () => {
    for (const [slug, { status }] of rows) {
      assert.match(slug, /^[a-z]+(?:-[a-z]+)*$/);
      assert.ok(status >= 400 && status <= 599 && STATUS_CODES[status] !== undefined, slug);
    }
  });

  it('say what happened and what to do in whole sentences, each with a different meaning', () => {
    for (const [slug, { meaning, remedy }] of rows)
      for (const sentence of [meaning, remedy]) {
        assert.match(sentence, /^[A-Z][^\n]*[^\s.]\.$/, slug);
        assert.equal((sentence.match(/`/g) ?? []).length % 2, 0, slug);
      }
    assert.equal(new Set(rows.map(([, { meaning }]) => meaning)).size, rows.length);
  });

  it('have different titles of a few words', () => {
    const titles = rows.map(([slug, kind]) => problemTitle(slug, kind));
    for (const title of titles) assert.match(title, /^[A-Z][a-z]+(?: [a-z]+){0,4}$/);
    assert.equal(new Set(titles).size, rows.length);
    assert.deepEqual(
      (['not-found', 'internal'] as const).map((slug) => problemTitle(slug, problems[slug])),
      ['Not found', 'Internal error'],
    );
  });

  it('are in the order of their status', () => {
    const statuses = rows.map(([, { status }]) => status);
    const inOrder = statuses.toSorted((one, other) => one - other);
    assert.deepEqual(statuses, inOrder);
  });
});
