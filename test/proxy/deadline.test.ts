/** Waiting for another service ends: with its answer, at the deadline, or when the client leaves. */
import assert from 'node:assert/strict';
import { EventEmitter, getEventListeners } from 'node:events';
import type { Context } from 'koa';
import { type GiveUpSignal, hasLeft, underDeadline } from '../../src/proxy/deadline.ts';

function contextOf({ destroyed = false } = {}) {
  const res = Object.assign(new EventEmitter(), { destroyed });
  return { ctx: { res } as unknown as Context, res };
}

/** Never answers by itself. */
const waiting = (signal: GiveUpSignal) =>
  new Promise<never>((_, reject) => signal.once('abort', () => reject(signal.reason)));

describe('a deadline', () => {
  it('gives the answer that comes in time, and leaves nothing behind', async () => {
    const { ctx, res } = contextOf();
    let asked: GiveUpSignal | undefined;
    const answer = await underDeadline(ctx, 50, async (signal) => {
      asked = signal;
      return 'answer';
    });
    assert.equal(answer, 'answer');
    assert.equal(getEventListeners(res, 'close').length, 0);
    res.emit('close');
    assert.equal(asked?.aborted, false);
  });

  it('passes on what the service itself fails with, and leaves nothing behind', async () => {
    const { ctx, res } = contextOf();
    const failure = new Error('refused');
    await assert.rejects(
      underDeadline(ctx, 50, () => Promise.reject(failure)),
      failure,
    );
    assert.equal(getEventListeners(res, 'close').length, 0);
  });

  it('gives up when the time is over', async () => {
    const { ctx } = contextOf();
    await assert.rejects(underDeadline(ctx, 1, waiting), { name: 'GivenUp', code: 'ETIMEDOUT' });
  });

  it('gives up when the client leaves', async () => {
    const { ctx, res } = contextOf();
    const answer = underDeadline(ctx, 60_000, waiting);
    res.emit('close');
    await assert.rejects(answer, { name: 'GivenUp', code: 'ECONNRESET' });
  });

  it('does not ask for a client that has left already', async () => {
    const { ctx } = contextOf({ destroyed: true });
    assert.ok(hasLeft(ctx));
    await assert.rejects(
      underDeadline(ctx, 60_000, () => assert.fail('asked')),
      { code: 'ECONNRESET' },
    );
  });
});
