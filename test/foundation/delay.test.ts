/** Tests of changes that take turns. */
import assert from 'node:assert/strict';
import { createTurns } from '#foundation';

describe('changes that take turns', () => {
  it('run one after the other, in their order, also after one that fails', async () => {
    const inTurn = createTurns();
    const steps: string[] = [];
    const change = (name: string) => async () => {
      steps.push(`${name} begins`);
      await Promise.resolve();
      steps.push(`${name} ends`);
      if (name === 'first') throw new Error('first fails');
      return name;
    };
    const [first, second] = await Promise.allSettled([inTurn(change('first')), inTurn(change('second'))]);
    assert.equal(first.status, 'rejected');
    assert.deepEqual(second, { status: 'fulfilled', value: 'second' });
    assert.deepEqual(steps, ['first begins', 'first ends', 'second begins', 'second ends']);
  });
});
