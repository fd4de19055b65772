/** Durations as records write them. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseDuration } from '../../../src/config/fields/values.ts';

function check(written: string, expected: number | undefined): void {
  it(`${JSON.stringify(written)} is ${expected ?? 'none'}`, () => assert.equal(parseDuration(written), expected));
}

describe('a duration', () => {
  check('250ms', 250);
  check('1s', 1000);
  check('1.5s', 1500);
  check('0.15s', 150);
  check('1m30s', 90_000);
  check('2h', 7_200_000);
  check('250', undefined);
  check('-1s', undefined);
  check('1 s', undefined);
  check('.5s', undefined);
  check('1d', undefined);
  check('', undefined);

  it('is the sum of its parts', () => {
    const count = fc.integer({ min: 0, max: 100_000 });
    fc.assert(
      fc.property(count, count, count, (minutes, seconds, ms) => {
        assert.equal(parseDuration(`${minutes}m${seconds}s${ms}ms`), minutes * 60_000 + seconds * 1000 + ms);
      }),
    );
  });
});
