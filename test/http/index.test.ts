import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';

describe('the http module', () => {
  it('has a test for each of its files', () => {
    const filesIn = (folder: string) =>
      readdirSync(new URL(folder, import.meta.url), { recursive: true, encoding: 'utf8' });
    const tests = filesIn('.');
    const sources = filesIn('../../src/http').filter((name) => name.endsWith('.ts'));
    assert.deepEqual(
      sources.filter((name) => !tests.includes(name.replace(/\.ts$/, '.test.ts'))),
      [],
    );
  });
});
