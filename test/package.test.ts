/** The package that users install: `dist` is packed as it is. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { built } from './support/programs/built.ts';

const dist = dirname(built('index.js'));
const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });

describe('the package', () => {
  it('has programs, declarations, source maps, styles and licences, and nothing that only a build reads', () => {
    assert.deepEqual(
      names.filter((name) => name.includes('.') && !/\.(?:d\.ts|js|js\.map|css)$/.test(name)),
      [],
    );
  });
});
