import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import * as http from '#http';

describe('the http module', () => {
  it('has a test for each of its files', () => {
    const namesIn = (folder: string) => readdirSync(new URL(folder, import.meta.url));
    const tests = namesIn('.');
    assert.deepEqual(
      namesIn('../../src/http').filter((name) => !tests.includes(name.replace(/\.ts$/, '.test.ts'))),
      [],
    );
  });

  it('gives out only what is there', () => {
    for (const [name, value] of Object.entries(http)) assert.notEqual(value, undefined, name);
  });
});
