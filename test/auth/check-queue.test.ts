/** The queue of password checks: concurrency, order and bounds. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { createCheckQueue } from '../../src/auth/check-queue.ts';

/** Sets up checks that finish one after the other, and records the names of those that have started. */
function setUp(bounds: { runningMax: number; waitingMax: number; waitMsMax?: number }) {
  const { run } = createCheckQueue<string>({ waitMsMax: 10_000, ...bounds, refused: 'refused' });
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string, network: string, rank = 0) =>
    run({ network, rank }, async () => {
      started.push(name);
      await new Promise<void>((resolve) => ends.push(resolve));
      return name;
    });
  async function finishAll(): Promise<void> {
    for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
      end();
      await setImmediate();
    }
  }
  return { ask, started, finishAll };
}

describe('password checks', () => {
  it('run up to a maximum concurrently, and the others wait for their turn', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 2, waitingMax: 8 });
    const results = ['a', 'b', 'c', 'd'].map((name) => ask(name, name));
    assert.deepEqual(started, ['a', 'b']);
    await finishAll();
    assert.deepEqual(await Promise.all(results), ['a', 'b', 'c', 'd']);
  });

  it('of a newcomer run before the second one of a flooding network', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const flood of ['f1', 'f2', 'f3', 'f4']) void ask(flood, 'flood');
    void ask('newcomer', 'elsewhere');
    await finishAll();
    assert.deepEqual(started, ['f1', 'newcomer', 'f2', 'f3', 'f4']);
  });

  it('of a newcomer run before those of several flooding networks', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const flood of ['a', 'b', 'c', 'a', 'b', 'c']) void ask(flood, flood);
    void ask('newcomer', 'elsewhere');
    await finishAll();
    assert.deepEqual(started, ['a', 'newcomer', 'c', 'b', 'c', 'b', 'a']);
  });

  it('of a network whose earlier ones have ended run like those of a newcomer: the newest first', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const flood of ['f1', 'f2']) void ask(flood, 'flood');
    await finishAll();
    for (const name of ['running', 'newcomer']) void ask(name, name);
    void ask('f3', 'flood');
    await finishAll();
    assert.deepEqual(started, ['f1', 'f2', 'running', 'f3', 'newcomer']);
  });

  it('are refused when they have waited too long', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 8, waitMsMax: 1 });
    const [first, second] = [ask('a', 'a'), ask('b', 'b')];
    assert.equal(await second, 'refused');
    await finishAll();
    assert.deepEqual([await first, started], ['a', ['a']]);
  });

  it('run later the more logins have failed', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const [name, rank] of [
      ['running', 0],
      ['failed', 3],
      ['fresh', 0],
      ['proven', -Infinity],
    ] as const)
      void ask(name, name, rank);
    await finishAll();
    assert.deepEqual(started, ['running', 'proven', 'fresh', 'failed']);
  });

  it('push the oldest of the same priority out of a full queue, because its client is the least likely to wait', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 2 });
    const results = ['running', 'oldest', 'newer', 'newest'].map((name) => ask(name, name));
    assert.equal(await results[1], 'refused');
    await finishAll();
    assert.deepEqual(started, ['running', 'newest', 'newer']);
  });

  it('push one with a lower priority out of a full queue, or are refused if there is none', async () => {
    const { ask, started, finishAll } = setUp({ runningMax: 1, waitingMax: 2 });
    const flood = ['f1', 'f2', 'f3', 'f4'].map((name) => ask(name, 'flood'));
    assert.equal(flood[3], 'refused');
    const newcomer = ask('newcomer', 'elsewhere');
    assert.equal(await flood[2], 'refused');
    await finishAll();
    assert.deepEqual([await newcomer, started], ['newcomer', ['f1', 'newcomer', 'f2']]);
  });

  it('free their slot when they fail', async () => {
    const { run } = createCheckQueue<string>({ runningMax: 1, waitingMax: 1, waitMsMax: 10_000, refused: 'refused' });
    const failing = async () => {
      throw new Error('out of memory');
    };
    for (let time = 0; time < 3; time += 1)
      await assert.rejects(async () => run({ network: 'a', rank: 0 }, failing), /out of memory/);
    assert.equal(await run({ network: 'a', rank: 0 }, async () => 'fine'), 'fine');
  });
});
