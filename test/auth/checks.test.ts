/** The queue of password checks: how many run, and who is next. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { createChecks } from '../../src/auth/checks.ts';

/** Checks that end in turn, and the names of those that have begun. */
function setUp(bounds: { runningMax: number; waitingMax: number; waitMsMax?: number }) {
  const { run } = createChecks<string>({ waitMsMax: 10_000, ...bounds, refused: 'refused' });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string, network: string, rank = 0) =>
    run({ network, rank }, async () => {
      begun.push(name);
      await new Promise<void>((resolve) => ends.push(resolve));
      return name;
    });
  async function finishAll(): Promise<void> {
    for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
      end();
      await setImmediate();
    }
  }
  return { ask, begun, finishAll };
}

describe('password checks', () => {
  it('run so many at once, and all of those that wait get their result', async () => {
    const { ask, begun, finishAll } = setUp({ runningMax: 2, waitingMax: 8 });
    const results = ['a', 'b', 'c', 'd'].map((name) => ask(name, name));
    assert.deepEqual(begun, ['a', 'b']);
    await finishAll();
    assert.deepEqual(await Promise.all(results), ['a', 'b', 'c', 'd']);
  });

  it('of a newcomer come before the second one of a network that floods', async () => {
    const { ask, begun, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const flood of ['f1', 'f2', 'f3', 'f4']) void ask(flood, 'flood');
    void ask('newcomer', 'elsewhere');
    await finishAll();
    assert.deepEqual(begun, ['f1', 'newcomer', 'f2', 'f3', 'f4']);
  });

  it('of a newcomer come before those of networks that flood together, and do not fail yet', async () => {
    const { ask, begun, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const flood of ['a', 'b', 'c', 'a', 'b', 'c']) void ask(flood, flood);
    void ask('newcomer', 'elsewhere');
    await finishAll();
    assert.deepEqual(begun, ['a', 'newcomer', 'c', 'b', 'c', 'b', 'a']);
  });

  it('wait so long, and are refused then', async () => {
    const { ask, begun, finishAll } = setUp({ runningMax: 1, waitingMax: 8, waitMsMax: 1 });
    const [first, second] = [ask('a', 'a'), ask('b', 'b')];
    assert.equal(await second, 'refused');
    await finishAll();
    assert.deepEqual([await first, begun], ['a', ['a']]);
  });

  it('come later the more logins have failed', async () => {
    const { ask, begun, finishAll } = setUp({ runningMax: 1, waitingMax: 8 });
    for (const [name, rank] of [
      ['running', 0],
      ['failed', 3],
      ['fresh', 0],
      ['proven', -Infinity],
    ] as const)
      void ask(name, name, rank);
    await finishAll();
    assert.deepEqual(begun, ['running', 'proven', 'fresh', 'failed']);
  });

  it('that find the queue full push out the last one of a worse place, or are refused', async () => {
    const { ask, begun, finishAll } = setUp({ runningMax: 1, waitingMax: 2 });
    const flood = ['f1', 'f2', 'f3', 'f4'].map((name) => ask(name, 'flood'));
    assert.equal(flood[3], 'refused');
    const newcomer = ask('newcomer', 'elsewhere');
    assert.equal(await flood[2], 'refused');
    await finishAll();
    assert.deepEqual([await newcomer, begun], ['newcomer', ['f1', 'newcomer', 'f2']]);
  });

  it('free their place when they fail', async () => {
    const { run } = createChecks<string>({ runningMax: 1, waitingMax: 1, waitMsMax: 10_000, refused: 'refused' });
    const failing = async () => {
      throw new Error('out of memory');
    };
    for (let time = 0; time < 3; time += 1)
      await assert.rejects(async () => run({ network: 'a', rank: 0 }, failing), /out of memory/);
    assert.equal(await run({ network: 'a', rank: 0 }, async () => 'fine'), 'fine');
  });
});
