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

  /** Keys are those of the hits. */
  function store(hits: readonly Hit[], results: readonly SharedResult[]): void {
    cache.store(
      hits.map(({ key }) => key),
      hits,
      results,
      nowMs,
    );
  }

  function lookUp(hits: readonly Hit[], countDenied = false) {
    return cache.lookUp(
      hits.map(({ key }) => key),
      hits,
      countDenied,
    );
  }

  it('denies an exhausted limit until its reset, and not a millisecond longer', () => {
    store([hit()], [exhausted]);
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 10, fromCache: true }]);
    nowMs += 9_998;
    assert.deepEqual(lookUp([hit()]), [{ over: true, remaining: 0, resetSeconds: 1, fromCache: true }]);
    nowMs += 1;
    assert.equal(lookUp([hit()]), undefined);
  });

  it('stores no admitted hit', () => {
    store([hit()], [free]);
    assert.equal(lookUp([hit()]), undefined);
  });

  it('returns the last known numbers of the other limits of a denied request', () => {
    const hits = [hit({ key: 'exhausted' }), hit({ key: 'free' })];
    store(hits, [exhausted, free]);
    assert.deepEqual(lookUp(hits), [
      { over: true, remaining: 0, resetSeconds: 10, fromCache: true },
      { over: false, remaining: 2, resetSeconds: 10 },
    ]);
  });

  it('asks about a limit that it does not know, although another is over', () => {
    store([hit()], [exhausted]);
    assert.equal(lookUp([hit(), hit({ key: 'unseen' })]), undefined);
  });

  it('never admits: a hit that fits must be counted', () => {
    store([hit({ key: 'exhausted' }), hit({ key: 'free' })], [exhausted, free]);
    assert.equal(lookUp([hit({ key: 'free' })]), undefined);
  });

  it('asks about fewer hits than were over, unless they do not fit either', () => {
    store([hit({ hits: 3 })], [{ over: true, remaining: 1, resetMs: 10_000 }]);
    assert.equal(lookUp([hit({ hits: 1 })]), undefined);
    assert.equal(lookUp([hit({ hits: 2 })])?.[0]?.over, true);
    assert.equal(lookUp([hit({ hits: 4 })])?.[0]?.over, true);
  });

  it('asks about other numbers of hits where an algorithm restores hits little by little', () => {
    for (const algorithm of ['sliding_window', 'token_bucket'] as const) {
      store([hit({ algorithm, hits: 3 })], [exhausted]);
      for (const hits of [1, 2, 4]) assert.equal(lookUp([hit({ algorithm, hits })]), undefined);
      assert.equal(lookUp([hit({ algorithm, hits: 3 })])?.[0]?.over, true);
    }
  });

  it('asks when a hit takes what it can and something may be left', () => {
    const three = hit({ hits: 3, algorithm: 'token_bucket' });
    store([three], [exhausted]);
    assert.equal(lookUp([three], true), undefined);
    assert.equal(lookUp([{ ...three, shadow: true }]), undefined);
    store([hit()], [exhausted]);
    assert.equal(lookUp([hit()], true)?.[0]?.over, true);
    assert.equal(lookUp([hit({ shadow: true })])?.[0]?.over, true);
  });

  it('asks when only a shadow limit would deny', () => {
    store([hit({ key: 'shadow', shadow: true }), hit({ key: 'exhausted' })], [exhausted, exhausted]);
    store([hit({ key: 'exhausted' }), hit({ key: 'free' })], [exhausted, free]);
    assert.equal(lookUp([hit({ key: 'shadow', shadow: true }), hit({ key: 'free' })]), undefined);
  });

  it('asks about two hits on one key', () => {
    store([hit()], [exhausted]);
    assert.equal(lookUp([hit(), hit()]), undefined);
  });

  it('ignores entries when the limit has changed, or the clock was set back', () => {
    store([hit()], [exhausted]);
    assert.equal(lookUp([hit({ limit: 4 })]), undefined);
    assert.equal(lookUp([hit({ burst: 4 })]), undefined);
    nowMs -= 1;
    assert.equal(lookUp([hit()]), undefined);
  });

  it('drops its oldest entry when it is full', () => {
    for (const key of ['a', 'b', 'c', 'a', 'd']) store([hit({ key })], [exhausted]);
    const known = ['a', 'b', 'c', 'd'].filter((key) => lookUp([hit({ key })]) !== undefined);
    assert.deepEqual(known, ['a', 'c', 'd']);
  });

  it('stores nothing with a size of 0', () => {
    cache = createOverLimitCache({ entriesMax: 0, clock: () => nowMs });
    store([hit()], [exhausted]);
    assert.equal(lookUp([hit()]), undefined);
  });
});
