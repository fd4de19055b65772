/** Which hits the cache of exhausted limits answers, and which must be asked of Redis. */
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

  const asks = (...hits: readonly Hit[]) => assert.equal(lookUp(hits), undefined);
  const denies = (one: Hit, countDenied = false) => assert.equal(lookUp([one], countDenied)?.[0]?.over, true);

  it('denies an exhausted limit until its reset, and not a millisecond longer', () => {
    store([hit()], [exhausted]);
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 10, fromCache: true }]);
    nowMs += 9_998;
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 1, fromCache: true }]);
    nowMs += 1;
    asks(hit());
  });

  it('returns the last known numbers of the other limits of a denied request', () => {
    const hits = [hit({ key: 'exhausted' }), hit({ key: 'free' })];
    store(hits, [exhausted, free]);
    assert.deepEqual(lookUp(hits), [
      { over: true, remaining: 0, resetSeconds: 10, fromCache: true },
      { over: false, remaining: 2, resetSeconds: 10 },
    ]);
  });

  it('asks about hits that fit, about a limit that it does not know, and about two hits on one key', () => {
    store([hit({ key: 'fits' })], [free]);
    asks(hit({ key: 'fits' }));
    store([hit(), hit({ key: 'free' })], [exhausted, free]);
    asks(hit({ key: 'free' }));
    asks(hit(), hit({ key: 'unseen' }));
    asks(hit(), hit());
  });

  it('asks about fewer hits than were over, unless they do not fit either', () => {
    store([hit({ hits: 3 })], [{ over: true, remaining: 1, resetMs: 10_000 }]);
    asks(hit({ hits: 1 }));
    for (const hits of [2, 4]) denies(hit({ hits }));
  });

  it('asks about other numbers of hits where an algorithm restores hits little by little', () => {
    for (const algorithm of ['sliding_window', 'token_bucket'] as const) {
      store([hit({ algorithm, hits: 3 })], [exhausted]);
      for (const hits of [1, 2, 4]) asks(hit({ algorithm, hits }));
      denies(hit({ algorithm, hits: 3 }));
    }
  });

  it('asks when a hit takes what it can and something may be left', () => {
    const three = hit({ hits: 3, algorithm: 'token_bucket' });
    store([three], [exhausted]);
    assert.equal(lookUp([three], true), undefined);
    asks({ ...three, shadow: true });
    store([hit()], [exhausted]);
    denies(hit(), true);
    denies(hit({ shadow: true }));
  });

  it('asks when only a shadow limit would deny', () => {
    store([hit({ key: 'shadow', shadow: true }), hit({ key: 'exhausted' })], [exhausted, exhausted]);
    store([hit({ key: 'exhausted' }), hit({ key: 'free' })], [exhausted, free]);
    asks(hit({ key: 'shadow', shadow: true }), hit({ key: 'free' }));
  });

  it('asks when a quota takes what is left because only a shadow limit keeps the request from being denied', () => {
    const hits = [hit({ key: 'shadow', shadow: true, quota: 0 }), hit({ key: 'left', hits: 3, quota: 1 })];
    store(hits, [exhausted, { over: true, remaining: 2, resetMs: 10_000 }]);
    asks(...hits);
    denies(hit({ key: 'left', hits: 3, quota: 1 }));
  });

  it('ignores entries when the limit has changed, or the clock was set back', () => {
    store([hit()], [exhausted]);
    for (const change of [{ limit: 4 }, { burst: 4 }]) asks(hit(change));
    nowMs -= 1;
    asks(hit());
  });

  it('drops its oldest entry when it is full', () => {
    for (const key of ['a', 'b', 'c', 'a', 'd']) store([hit({ key })], [exhausted]);
    const known = ['a', 'b', 'c', 'd'].filter((key) => lookUp([hit({ key })]) !== undefined);
    assert.deepEqual(known, ['a', 'c', 'd']);
  });
});
