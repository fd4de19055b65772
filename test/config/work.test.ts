/** Tests that work in parts returns the same results and lets other work run in between. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { finish, finishInTurns, flatMapInParts, forEachInParts, mapInParts, sortInParts } from '#config';

describe('work in parts', () => {
  const numbers = fc.array(fc.integer({ min: 0, max: 20 }), { size: 'large' });

  it('maps and sorts like arrays do, including a stable order of equal items', () => {
    fc.assert(
      fc.property(numbers, (list) => {
        const twice = (one: number) => [one, one];
        assert.deepEqual(finish(mapInParts(list, twice)), list.map(twice));
        assert.deepEqual(finish(flatMapInParts(list, twice)), list.flatMap(twice));
        const entries = [...list.entries()];
        const byValue = ([, one]: [number, number], [, other]: [number, number]) => one - other;
        assert.deepEqual(finish(sortInParts(entries, byValue)), entries.toSorted(byValue));
      }),
    );
  });

  it('lets other work run before it starts and repeatedly in between', async () => {
    let done = 0;
    const items = Array.from({ length: 2000 }, (_, index) => index);
    const work = finishInTurns(
      forEachInParts(items, () => {
        const endMs = performance.now() + 0.1;
        while (performance.now() < endMs);
        done += 1;
      }),
    );
    const seen: number[] = [];
    while (done < items.length) {
      seen.push(done);
      await nextTurn();
    }
    await work;
    assert.equal(seen[0], 0);
    assert.ok(seen.length > 5, `other work ran ${seen.length} times`);
  });

  it('rejects with the error that the work throws', async () => {
    const failing = forEachInParts([1], () => {
      throw new Error('no');
    });
    await assert.rejects(finishInTurns(failing), /^Error: no$/);
  });
});
