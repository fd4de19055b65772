/** The choice of a content coding by `Accept-Encoding`. */
import assert from 'node:assert/strict';
import { createChooseCoding } from '../../../src/http/compression/accept-encoding.ts';

describe('the content coding', () => {
  for (const [accepted, expected] of [
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br', 'br'],
    ['deflate, compress', undefined],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1, zstd;q=0.5', 'gzip'],
    ['gzip;q=0.5, br;q=0.8, zstd;q=0.2', 'br'],
    ['gzip;q=0', undefined],
    ['zstd;q=0, gzip', 'gzip'],
    ['identity;q=0, gzip', 'gzip'],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['*', 'gzip'],
    ['*;q=0', undefined],
    ['br;q=0.1, *;q=0', 'br'],
    ['gzip;q=0, *', undefined],
    ['gzip ; q = 0.5 , br', 'br'],
    ['gzip;q=0.12345', 'gzip'],
    ['gzip;q=2', undefined],
    ['gzip;q=x, br', 'br'],
    [',, gzip,', 'gzip'],
    [`gzip${', x'.repeat(500)}`, undefined],
  ] as const) {
    it(`for ${JSON.stringify(accepted?.slice(0, 40))} is ${expected ?? 'none'}`, () => {
      const choose = createChooseCoding();
      assert.equal(choose(accepted), expected);
      assert.equal(choose(accepted), expected, 'the remembered choice');
    });
  }
});
