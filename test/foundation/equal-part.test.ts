/** Bounds that several threads of a process share. */
import assert from 'node:assert/strict';
import { equalPart } from '#foundation';

it('equalPart divides a bound, and gives each thread at least 1', () => {
  assert.deepEqual(
    [1, 2, 3, 20].map((count) => equalPart(10, count)),
    [10, 5, 4, 1],
  );
});
