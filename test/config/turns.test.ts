/** Long work lets requests run in between. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { mapInTurns } from '#config';

describe('mapping items in turns', () => {
  async function turnsOf(count: number, work: () => void): Promise<number> {
    let mapped: readonly number[] | undefined;
    let turns = 0;
    const numbers = Array.from({ length: count }, (_, index) => index);
    const mapping = mapInTurns(numbers, (one) => {
      work();
      return one;
    });
    void mapping.then((found) => {
      mapped = found;
    });
    for (; mapped === undefined; turns += 1) await nextTurn();
    assert.deepEqual(mapped, numbers);
    return turns;
  }

  it('lets others run after a hundred items', async () => {
    const turns = await turnsOf(1000, () => {});
    assert.ok(turns >= 10, `${turns} turns`);
  });

  it('lets others run after each item that takes long', async () => {
    const turns = await turnsOf(5, () => {
      for (const untilMs = performance.now() + 11; performance.now() < untilMs; );
    });
    assert.ok(turns >= 5, `${turns} turns`);
  });
});
