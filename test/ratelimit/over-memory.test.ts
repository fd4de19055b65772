import assert from 'node:assert/strict';
import type { Hit } from '../../src/ratelimit/counters/counters.ts';
import { createOverMemory, type OverMemory, type SharedCount } from '../../src/ratelimit/over-memory.ts';
import { hitOfThree as hit } from '../support/limits.ts';

const spent: SharedCount = { over: true, remaining: 0, resetMs: 10_000 };
const free: SharedCount = { over: false, remaining: 2, resetMs: 10_000 };

describe('the memory of what is over', () => {
  let nowMs: number;
  let memory: OverMemory;

  beforeEach(() => {
    nowMs = 1_000;
    memory = createOverMemory({ entriesMax: 3, clock: () => nowMs });
  });

  /** Keys are those of the hits. */
  function learn(hits: readonly Hit[], counts: readonly SharedCount[]): void {
    memory.learn(
      hits.map(({ key }) => key),
      hits,
      counts,
      nowMs,
    );
  }

  function recall(hits: readonly Hit[], countDenied = false) {
    return memory.recall(
      hits.map(({ key }) => key),
      hits,
      countDenied,
    );
  }

  it('denies what is over until the reset, and not a millisecond longer', () => {
    learn([hit()], [spent]);
    assert.deepEqual(recall([hit()]), [{ over: true, remaining: 0, resetSeconds: 10, fromCache: true }]);
    nowMs += 9_998;
    assert.deepEqual(recall([hit()]), [{ over: true, remaining: 0, resetSeconds: 1, fromCache: true }]);
    nowMs += 1;
    assert.equal(recall([hit()]), undefined);
  });

  it('knows nothing of what was admitted', () => {
    learn([hit()], [free]);
    assert.equal(recall([hit()]), undefined);
  });

  it('tells of the other limits of a denied request what was last seen of them', () => {
    const hits = [hit({ key: 'spent' }), hit({ key: 'free' })];
    learn(hits, [spent, free]);
    assert.deepEqual(recall(hits), [
      { over: true, remaining: 0, resetSeconds: 10, fromCache: true },
      { over: false, remaining: 2, resetSeconds: 10 },
    ]);
  });

  it('asks about a limit that it has not seen, although another is over', () => {
    learn([hit()], [spent]);
    assert.equal(recall([hit(), hit({ key: 'unseen' })]), undefined);
  });

  it('admits nobody: what is not over must be counted', () => {
    learn([hit({ key: 'spent' }), hit({ key: 'free' })], [spent, free]);
    assert.equal(recall([hit({ key: 'free' })]), undefined);
  });

  it('asks about fewer hits than were over, unless there is no room for them either', () => {
    learn([hit({ hits: 3 })], [{ over: true, remaining: 1, resetMs: 10_000 }]);
    assert.equal(recall([hit({ hits: 1 })]), undefined);
    assert.equal(recall([hit({ hits: 2 })])?.[0]?.over, true);
    assert.equal(recall([hit({ hits: 4 })])?.[0]?.over, true);
  });

  it('asks about other numbers of hits than were over where room comes back little by little', () => {
    for (const algorithm of ['sliding_window', 'token_bucket'] as const) {
      learn([hit({ algorithm, hits: 3 })], [spent]);
      for (const hits of [1, 2, 4]) assert.equal(recall([hit({ algorithm, hits })]), undefined);
      assert.equal(recall([hit({ algorithm, hits: 3 })])?.[0]?.over, true);
    }
  });

  it('asks when a hit takes what it can and there may be something to take', () => {
    const three = hit({ hits: 3, algorithm: 'token_bucket' });
    learn([three], [spent]);
    assert.equal(recall([three], true), undefined);
    assert.equal(recall([{ ...three, shadow: true }]), undefined);
    learn([hit()], [spent]);
    assert.equal(recall([hit()], true)?.[0]?.over, true);
    assert.equal(recall([hit({ shadow: true })])?.[0]?.over, true);
  });

  it('asks when a request would be denied only by a shadow', () => {
    learn([hit({ key: 'shadow', shadow: true }), hit({ key: 'spent' })], [spent, spent]);
    learn([hit({ key: 'spent' }), hit({ key: 'free' })], [spent, free]);
    assert.equal(recall([hit({ key: 'shadow', shadow: true }), hit({ key: 'free' })]), undefined);
  });

  it('leaves two hits on one key to those who count', () => {
    learn([hit()], [spent]);
    assert.equal(recall([hit(), hit()]), undefined);
  });

  it('forgets when the limit has changed, or the clock was set back', () => {
    learn([hit()], [spent]);
    assert.equal(recall([hit({ limit: 4 })]), undefined);
    assert.equal(recall([hit({ burst: 4 })]), undefined);
    nowMs -= 1;
    assert.equal(recall([hit()]), undefined);
  });

  it('forgets what it learned first when it is full', () => {
    for (const key of ['a', 'b', 'c', 'a', 'd']) learn([hit({ key })], [spent]);
    const known = ['a', 'b', 'c', 'd'].filter((key) => recall([hit({ key })]) !== undefined);
    assert.deepEqual(known, ['a', 'c', 'd']);
  });

  it('remembers nothing when it may not', () => {
    memory = createOverMemory({ entriesMax: 0, clock: () => nowMs });
    learn([hit()], [spent]);
    assert.equal(recall([hit()]), undefined);
  });
});
