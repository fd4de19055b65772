/** Tests the parsing of durations and names in records. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseDuration, singleLine } from '../../../src/config/fields/values.ts';

describe('a duration', () => {
  it('is a number with a unit, or several of them in a row', () => {
    const written = ['250ms', '1s', '1.5s', '0.15s', '1m30s', '2h'];
    assert.deepEqual(written.map(parseDuration), [250, 1000, 1500, 150, 90_000, 7_200_000]);
    for (const other of ['250', '-1s', '1 s', '.5s', '1d', '']) assert.equal(parseDuration(other), undefined);
  });

  it('is the sum of its parts', () => {
    const count = fc.integer({ min: 0, max: 100_000 });
    fc.assert(
      fc.property(count, count, count, (minutes, seconds, ms) => {
        assert.equal(parseDuration(`${minutes}m${seconds}s${ms}ms`), minutes * 60_000 + seconds * 1000 + ms);
      }),
    );
  });
});

it('a name is on a single line and not blank', () => {
  const valid = ['a', ' a b ', 'é', '', ' ', 'a\nb', 'a\0', 'a\x7f'].filter(
    (name) => singleLine().safeParse(name).success,
  );
  assert.deepEqual(valid, ['a', ' a b ', 'é']);
});
