/** Turns: calls with the same name run one after the other, and a call that waits too long gives up. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { StorageUnavailable } from '#storage';
import { createTurns } from '../../src/storage/turns.ts';
import { createDeferred } from '../support/waiting.ts';

describe('turns', () => {
  it('run calls with the same name in order, also after one that fails, and other calls at once', async () => {
    const inTurn = createTurns(60_000);
    const ran: string[] = [];
    const run = (name: string) => async () => void ran.push(name);
    const first = createDeferred();
    const calls = [
      inTurn('a', () => first.promise.then(run('first'))),
      assert.rejects(
        inTurn('a', async () => assert.fail('lost')),
        /lost/,
      ),
      inTurn('a', run('third')),
      inTurn('b', run('other')),
    ];
    await calls[3];
    first.resolve();
    await Promise.all(calls);
    assert.deepEqual(ran, ['other', 'first', 'third']);
  });

  it('make a call wait for the one before it, even if an earlier one has ended since', async () => {
    const inTurn = createTurns(60_000);
    const [first, second] = [createDeferred(), createDeferred()];
    const ran: string[] = [];
    const calls = [inTurn('a', () => first.promise), inTurn('a', () => second.promise.then(() => ran.push('second')))];
    first.resolve();
    await calls[0];
    await setImmediate();
    calls.push(inTurn('a', async () => ran.push('third')));
    second.resolve();
    await Promise.all(calls);
    assert.deepEqual(ran, ['second', 'third']);
  });

  it('reject a call that waits too long, without letting the next one overtake those before it', async () => {
    const inTurn = createTurns(1);
    const first = createDeferred();
    const slow = inTurn('a', () => first.promise);
    const late = () => inTurn('a', async () => assert.fail('overtook'));
    await assert.rejects(late(), StorageUnavailable);
    await assert.rejects(late(), StorageUnavailable);
    first.resolve();
    await slow;
    assert.equal(await inTurn('a', async () => 'next'), 'next');
  });
});
