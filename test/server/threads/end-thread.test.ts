/** Ending a thread of the server, even if the order to end is lost. */
import assert from 'node:assert/strict';
import { endThread } from '../../../src/server/threads/end-thread.ts';

describe('a thread that is to end', () => {
  it('is told so again if it has not heard the first order', async () => {
    let end = (_code: number) => {};
    const ended = new Promise<number>((resolve) => {
      end = resolve;
    });
    let orders = 0;
    await endThread({
      terminate() {
        orders += 1;
        if (orders === 2) end(1);
        return ended;
      },
    });
    assert.equal(orders, 2);
  });
});
