/** In-memory counters: their number is bounded, and eviction restores no quota. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createMemoryCounters, type Hit } from '#ratelimit';
import type { MemoryCountersOptions } from '../../../src/ratelimit/counters/memory.ts';
import { hitOfThree } from '../../support/limits.ts';

const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;

function setUp(keysMax = 1_000, options: MemoryCountersOptions = {}) {
  const time = { nowMs: 600_000 };
  const counters = createMemoryCounters({ keysMax, clock: () => time.nowMs, seed: 'test', ...options });
  const take = (key: string, limit = 10, more: Partial<Hit> = {}) =>
    counters.take([hitOfThree({ key, limit, burst: limit, ...more })])[0];
  return {
    time,
    counters,
    take,
    over: (...hit: Parameters<typeof take>) => take(...hit)?.over,
    remaining: (...hit: Parameters<typeof take>) => take(...hit)?.remaining,
  };
}

/** Asserts that a small store counts every hit like a large one. Half of the hits follow without a pause. */
function checkQuota(algorithm: Hit['algorithm']) {
  return (sequence: readonly (readonly [number, number, number])[], keysMax: number): void => {
    const [small, large] = [setUp(keysMax), setUp()];
    for (const [index, hits, pauseMs] of sequence) {
      for (const { time } of [small, large]) time.nowMs += Math.max(0, pauseMs - 20_000);
      const key = `client ${index % (keysRemembered * keysMax)}`;
      const [found, expected] = [small, large].map(({ take }) => take(key, 3, { algorithm, hits }));
      assert.deepEqual(found, expected, `${key} of ${sequence.join(' ')}`);
    }
    assert.ok(small.counters.size() <= keysMax);
  };
}

/** Up to this many keys for each one that fits, no count is forgotten. */
const keysRemembered = 16;

describe('memory counters', () => {
  for (const algorithm of algorithms)
    it(`keep the shadow hit on a key when another hit on it is undone, ${algorithm}`, () => {
      const five = { algorithm, limit: 5, burst: 5 };
      const closed = hitOfThree({ key: 'b', limit: 0 });
      const hits = [hitOfThree({ ...five, hits: 2 }), hitOfThree({ ...five, shadow: true }), closed];
      const results = setUp().counters.take(hits);
      assert.deepEqual(
        results.map(({ over, remaining }) => `${over} ${remaining}`),
        ['false 4', 'false 4', 'true 0'],
      );
    });
});

describe('memory counters that count denied requests', () => {
  it('count them beyond a fixed window, so that a proxy may give their hits back as well', () => {
    const { counters } = setUp();
    const isOver = (hits: number) => counters.take([hitOfThree({ hits })], { countDenied: true })[0]?.over;
    assert.deepEqual([isOver(3), isOver(1), isOver(1)], [false, true, true]);
    assert.deepEqual([isOver(-2), isOver(1)], [false, true], 'the hits of the denied requests are given back');
    assert.deepEqual([isOver(-1), isOver(-1), isOver(1)], [false, false, false], 'one of three has ended');
  });
});

describe('full memory counters', () => {
  it('stay within their number of keys, even if a token bucket with a limit of 0 is hit', () => {
    const { counters, over } = setUp(100);
    const bucket = { algorithm: 'token_bucket', burst: 5 } as const;
    for (let index = 0; index < 1_000; index += 1) {
      over('closed', 0, bucket);
      over(`key ${index}`, 5, bucket);
    }
    assert.equal(counters.size(), 100);
  });

  function flood(over: ReturnType<typeof setUp>['over'], limit: number, more: Partial<Hit>): void {
    for (let index = 0; index < 2_000; index += 1) over(`flood ${index}`, limit, more);
  }

  for (const algorithm of algorithms)
    it(`still deny an exhausted key after a flood of new keys, ${algorithm}`, () => {
      const { over, counters } = setUp(100);
      for (let count = 0; count < 11; count += 1) over('denied', 10, { algorithm });
      over('exhausted', 10, { algorithm, hits: 10 });
      flood(over, 10, { algorithm });
      assert.equal(counters.size(), 100);
      assert.deepEqual([over('denied', 10, { algorithm }), over('exhausted', 10, { algorithm })], [true, true]);
      flood(over, 1, { algorithm });
      assert.equal(over('denied', 10, { algorithm }), true, 'after a flood of keys that exhaust their limit');
    });

  for (const algorithm of algorithms)
    it(`drop expired windows before anything else, ${algorithm}`, () => {
      const { over, remaining, counters, time } = setUp(100);
      const long = { algorithm, windowSeconds: 3_600 };
      over('long', 10, long);
      for (let index = 0; index < 99; index += 1) over(`short ${index}`, 1, { algorithm, windowSeconds: 1 });
      time.nowMs += 2_000;
      over('new', 10, { algorithm });
      assert.equal(counters.size(), 2);
      assert.equal(remaining('long', 10, long), 8);
    });

  it('count a new client even when all others are being denied', () => {
    const { over, remaining } = setUp(100);
    for (let index = 0; index < 100; index += 1) for (let count = 0; count < 2; count += 1) over(`client ${index}`, 1);
    over('new');
    over('another');
    assert.equal(remaining('new'), 8);
  });

  for (const algorithm of algorithms)
    it(`neither restore nor take quota by eviction, whatever the keys and times of hits, ${algorithm}`, () => {
      const hits = fc.constantFrom(1, 1, 1, 2, 3, 0, -1, -2);
      const keys = fc.array(fc.tuple(fc.nat(99), hits, fc.nat(40_000)), { maxLength: 120 });
      const check = checkQuota(algorithm);
      fc.assert(fc.property(keys, fc.integer({ min: 1, max: 5 }), check), { numRuns: 500 });
    });

  it('retain the exact count of a key that has used most of its limit', () => {
    const { over, remaining } = setUp(100);
    over('busy', 10, { hits: 8 });
    for (const _ of [1, 2]) flood(over, 1_000, {});
    assert.equal(remaining('busy'), 1);
  });

  it('retain the exact count of a key that was denied, even if a later hit fits', () => {
    const { over, remaining } = setUp(100);
    for (const hits of [6, 5, 1]) over('denied', 10, { hits });
    for (const _ of [1, 2]) flood(over, 1_000, { hits: 9 });
    assert.equal(remaining('denied'), 2);
  });

  for (const algorithm of algorithms)
    for (const limit of [1, 6])
      it(`admit every new client after a flood of many times as many keys, limit ${limit}, ${algorithm}`, () => {
        const { take } = setUp(100);
        for (let index = 0; index < 6_000; index += 1) take(`flood ${index}`, limit, { algorithm });
        for (let index = 0; index < 300; index += 1) {
          const { over, remaining } = take(`new ${index}`, limit, { algorithm }) ?? {};
          assert.deepEqual({ over, remaining }, { over: false, remaining: limit - 1 });
        }
      });

  for (const algorithm of algorithms)
    it(`return the quota of few keys to a flood of thirty times as many keys, ${algorithm}`, () => {
      const { over } = setUp(100);
      const keys = Array.from({ length: 3_000 }, (_, index) => `flood ${index}`);
      for (const key of keys) over(key, 2, { algorithm, hits: 2 });
      const admitted = keys.filter((key) => over(key, 2, { algorithm }) === false);
      assert.ok(admitted.length < keys.length / 50, `${admitted.length} of ${keys.length}`);
    });

  it('forget the keys that have used the least first, during a flood of even more keys', () => {
    const { over, remaining } = setUp(10);
    for (let index = 0; index < 50; index += 1) for (const hits of [6, 5]) over(`denied ${index}`, 6, { hits });
    for (let index = 0; index < 50; index += 1) over(`busy ${index}`, 6, { hits: 4 });
    for (let index = 0; index < 5_000; index += 1) over(`flood ${index}`, 6);
    for (let index = 0; index < 50; index += 1) {
      assert.equal(over(`denied ${index}`, 6), true);
      assert.equal(remaining(`busy ${index}`, 6), 1);
    }
  });

  it('remember what is left after hits of an evicted key are given back', () => {
    const { over, remaining } = setUp(10);
    over('busy', 10, { hits: 5 });
    flood(over, 10, {});
    assert.equal(remaining('busy', 10, { hits: -3 }), 8);
    flood(over, 10, {});
    assert.equal(remaining('busy', 10, { hits: 0 }), 8);
  });

  it('report each counter that is evicted', () => {
    let evicted = 0;
    const { over } = setUp(3, {
      onEvicted() {
        evicted += 1;
      },
    });
    for (let index = 0; index < 5; index += 1) over(`client ${index}`);
    assert.equal(evicted, 2);
  });
});
