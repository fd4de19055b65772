/** The cache of exhausted limits: which hits it can deny, and which Redis must decide. */
import assert from 'node:assert/strict';
import type { Hit } from '../../../src/ratelimit/counters/counters.ts';
import {
  createOverLimitCache,
  type OverLimitCache,
  type SharedResult,
} from '../../../src/ratelimit/counters/over-limit-cache.ts';
import { hitOfThree as hit } from '../../support/limits.ts';

const exhausted: SharedResult = { over: true, remaining: 0, resetMs: 10_000 };
const free: SharedResult = { over: false, remaining: 2, resetMs: 10_000 };

describe('the over-limit cache', () => {
  let nowMs: number;
  let cache: OverLimitCache;

  beforeEach(() => {
    nowMs = 1_000;
    cache = createOverLimitCache({ entriesMax: 3, clock: () => nowMs });
  });

  const keysOf = (hits: readonly Hit[]) => hits.map(({ key }) => key);
  const store = (hits: readonly Hit[], results: readonly SharedResult[]) =>
    cache.store(keysOf(hits), hits, results, nowMs);
  const lookUp = (hits: readonly Hit[], countDenied = false) => cache.lookUp(keysOf(hits), hits, countDenied);

  const defers = (...hits: readonly Hit[]) => assert.equal(lookUp(hits), undefined);
  const denies = (one: Hit, countDenied = false) => assert.equal(lookUp([one], countDenied)?.[0]?.over, true);

  it('denies hits on an exhausted limit until it resets, and not a millisecond longer', () => {
    store([hit()], [{ ...exhausted, resetMs: 1_500 }]);
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 2, fromCache: true }]);
    nowMs += 1_498;
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 1, fromCache: true }]);
    nowMs += 1;
    defers(hit());
  });

  it('asks Redis again after two seconds, because the counter may have been reset or lost', () => {
    store([hit()], [exhausted]);
    nowMs += 1_999;
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 9, fromCache: true }]);
    nowMs += 1;
    defers(hit());
  });

  it('defers hits that are given back to Redis, and forgets their limit', () => {
    store([hit(), hit({ key: 'other' })], [exhausted, exhausted]);
    defers(hit({ key: 'unseen' }), hit({ hits: -1 }), hit({ key: 'other' }));
    defers(hit());
    denies(hit({ key: 'other' }));
    store([hit()], [exhausted]);
    store([hit({ hits: -1 }), hit({ key: 'other' })], [free, exhausted]);
    defers(hit());
    denies(hit({ key: 'other' }));
  });

  it('returns the last known remainders of the other limits of a denied request', () => {
    const hits = [hit({ key: 'exhausted' }), hit({ key: 'free' })];
    store(hits, [exhausted, free]);
    assert.deepEqual(lookUp(hits), [
      { over: true, remaining: 0, resetSeconds: 10, fromCache: true },
      { over: false, remaining: 2, resetSeconds: 10 },
    ]);
  });

  it('defers hits that fit, hits on unknown limits, and two hits on one key to Redis', () => {
    store([hit({ key: 'fits' })], [free]);
    defers(hit({ key: 'fits' }));
    store([hit(), hit({ key: 'free' })], [exhausted, free]);
    defers(hit({ key: 'free' }));
    defers(hit(), hit({ key: 'unseen' }));
    defers(hit(), hit());
  });

  it('defers smaller hits than the one that was over, unless those do not fit either', () => {
    store([hit({ hits: 3 })], [{ over: true, remaining: 1, resetMs: 10_000 }]);
    defers(hit({ hits: 1 }));
    for (const hits of [2, 4]) denies(hit({ hits }));
  });

  it('defers hits of any other size if the algorithm restores hits gradually', () => {
    for (const algorithm of ['sliding_window', 'token_bucket'] as const) {
      store([hit({ algorithm, hits: 3 })], [exhausted]);
      for (const hits of [1, 2, 4]) defers(hit({ algorithm, hits }));
      denies(hit({ algorithm, hits: 3 }));
    }
  });

  it('defers hits that may be counted in part', () => {
    const three = hit({ hits: 3, algorithm: 'token_bucket' });
    store([three], [exhausted]);
    assert.equal(lookUp([three], true), undefined);
    defers({ ...three, shadow: true });
    store([hit()], [exhausted]);
    assert.equal(lookUp([hit()], true), undefined);
    denies(hit({ shadow: true }));
  });

  it('defers requests that only a shadow limit would deny', () => {
    store([hit({ key: 'shadow', shadow: true }), hit({ key: 'exhausted' })], [exhausted, exhausted]);
    store([hit({ key: 'exhausted' }), hit({ key: 'free' })], [exhausted, free]);
    defers(hit({ key: 'shadow', shadow: true }), hit({ key: 'free' }));
  });

  it('defers requests that pass because one of their quotas is in shadow mode, so that the other is counted', () => {
    const hits = [hit({ key: 'shadow', shadow: true, quota: 0 }), hit({ key: 'left', hits: 3, quota: 1 })];
    store(hits, [exhausted, { over: true, remaining: 2, resetMs: 10_000 }]);
    defers(...hits);
    denies(hit({ key: 'left', hits: 3, quota: 1 }));
  });

  it('ignores entries if the limit has changed or the clock was set back', () => {
    store([hit()], [exhausted]);
    for (const change of [{ limit: 4 }, { burst: 4 }]) defers(hit(change));
    nowMs -= 1;
    defers(hit());
  });

  it('evicts its oldest entry when full', () => {
    for (const key of ['a', 'b', 'c', 'a', 'd']) store([hit({ key })], [exhausted]);
    const known = ['a', 'b', 'c', 'd'].filter((key) => lookUp([hit({ key })]) !== undefined);
    assert.deepEqual(known, ['a', 'c', 'd']);
  });
});
