/** Tests of the queue of writes: how many run at once, that each key waits once, and the delays after failures. */
import assert from 'node:assert/strict';
import { createWriteQueue, type WriteOutcome } from '../../../src/kubernetes/reports/write-queue.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';

describe('the queue of writes', () => {
  it('runs a few at once, and all of them', async () => {
    const queue = createWriteQueue({ atOnceMax: 5, pauseMs: 0 });
    let [running, most, done] = [0, 0, 0];
    const write = async (): Promise<WriteOutcome> => {
      running += 1;
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= 1;
      done += 1;
      return 'done';
    };
    for (let index = 0; index < 100; index += 1) queue.add(`key ${index}`, write);
    await eventually(() => assert.equal(done, 100));
    assert.equal(most, 5);
    assert.equal(queue.waiting(), 0);
    await queue.close();
  });

  it('keeps only the latest write of a key, and never runs two of a key at once', async () => {
    const queue = createWriteQueue({ pauseMs: 0 });
    const release = createDeferred();
    const ran: string[] = [];
    const write = (name: string) => async (): Promise<WriteOutcome> => {
      ran.push(name);
      await release.promise;
      return 'done';
    };
    for (const name of ['first', 'second', 'third']) queue.add('key', write(name));
    queue.add('other', write('other'));
    assert.deepEqual(ran, ['first', 'other']);
    release.resolve();
    await eventually(() => assert.deepEqual(ran, ['first', 'other', 'third']));
    await queue.close();
  });

  it('repeats a write that the server could not take, and lets the others wait in the meantime', async () => {
    const queue = createWriteQueue({ atOnceMax: 1, pauseMs: 0, firstBackoffMs: 20, random: () => 1 });
    const ran: string[] = [];
    let outcome: WriteOutcome = { retryAfterMs: undefined };
    const write = (name: string) => async (): Promise<WriteOutcome> => {
      ran.push(name);
      const result = outcome;
      outcome = 'done';
      return result;
    };
    queue.add('one', write('one'));
    queue.add('two', write('two'));
    await eventually(() => assert.deepEqual(ran.toSorted(), ['one', 'one', 'two']));
    assert.equal(ran[0], 'one');
    await queue.close();
  });

  it('waits as long as the server asks for', async () => {
    const queue = createWriteQueue({ pauseMs: 0, firstBackoffMs: 0 });
    let runs = 0;
    queue.add('key', async () => {
      runs += 1;
      return { retryAfterMs: 3_600_000 };
    });
    queue.add('other', async () => 'done');
    await eventually(() => assert.equal(queue.waiting(), 1));
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    assert.equal(runs, 1);
    await queue.close();
  });

  it('does not repeat a write that was dropped while it ran', async () => {
    const queue = createWriteQueue({ pauseMs: 0, firstBackoffMs: 1 });
    const release = createDeferred();
    let runs = 0;
    queue.add('key', async () => {
      runs += 1;
      await release.promise;
      return { retryAfterMs: undefined };
    });
    queue.drop('key');
    release.resolve();
    await new Promise(setImmediate);
    assert.equal(queue.waiting(), 0);
    assert.equal(runs, 1);
    await queue.close();
  });

  it('drops what waits when it is closed', async () => {
    const queue = createWriteQueue({ atOnceMax: 1, pauseMs: 60_000 });
    const ran: string[] = [];
    for (const name of ['one', 'two'])
      queue.add(name, async () => {
        ran.push(name);
        return 'done';
      });
    await queue.close();
    queue.add('three', async () => 'done');
    assert.deepEqual(ran, ['one']);
    assert.equal(queue.waiting(), 0);
  });
});
