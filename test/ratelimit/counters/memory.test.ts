/** Counters in memory: bounded, and eviction never forgets a client that is being denied. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createMemoryCounters, type Hit } from '#ratelimit';
import { hitOfThree } from '../../support/limits.ts';

const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;

function setUp(keysMax = 1_000) {
  const time = { nowMs: 600_000 };
  const counters = createMemoryCounters({ keysMax, clock: () => time.nowMs });
  const take = (key: string, limit = 10, more: Partial<Hit> = {}) =>
    counters.take([hitOfThree({ key, limit, burst: limit, ...more })])[0];
  return {
    time,
    counters,
    over: (...hit: Parameters<typeof take>) => take(...hit)?.over,
    remaining: (...hit: Parameters<typeof take>) => take(...hit)?.remaining,
  };
}

describe('memory counters', () => {
  for (const algorithm of algorithms)
    it(`keep what a shadow hit took from a key whose other hit was denied, ${algorithm}`, () => {
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

describe('memory counters that are full', () => {
  it('keep to their number of keys, although a token bucket with a limit of 0 is hit', () => {
    const { counters, over } = setUp(100);
    const bucket = { algorithm: 'token_bucket', burst: 5 } as const;
    for (let index = 0; index < 1_000; index += 1) {
      over('closed', 0, bucket);
      over(`key ${index}`, 5, bucket);
    }
    assert.equal(counters.size(), 100);
  });

  function flood(over: ReturnType<typeof setUp>['over'], limit: number, more: Partial<Hit>): void {
    for (let index = 0; index < 5_000; index += 1) over(`flood ${index}`, limit, more);
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

  it('evict the oldest key of the lowest priority: seen once, seen again, exhausted, over the limit', () => {
    const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 60 });
    fc.assert(
      fc.property(keys, fc.integer({ min: 1, max: 5 }), (sequence, keysMax) => {
        const { counters, over } = setUp(keysMax);
        const model = createModel(keysMax);
        for (const key of sequence) {
          assert.equal(over(key, 3), model.over(key), `${key} of ${sequence}`);
          assert.equal(counters.size(), model.size());
        }
      }),
      { numRuns: 500 },
    );
  });
});

/** Counters with a limit of 3, as a list in the order in which each got its priority. */
function createModel(keysMax: number) {
  interface Entry {
    readonly key: string;
    readonly hits: number;
  }
  let stored: readonly Entry[] = [];
  const priorityOf = ({ hits }: Entry) => [0, 0, 1, 2][hits] ?? 3;

  function without(key: string): readonly Entry[] {
    return stored.filter((one) => one.key !== key);
  }

  function withRoom(): readonly Entry[] {
    const lowest = Math.min(...stored.map(priorityOf));
    const evicted = stored.find((one) => priorityOf(one) === lowest);
    return stored.length < keysMax || evicted === undefined ? stored : without(evicted.key);
  }

  return {
    size: () => stored.length,
    over(key: string): boolean {
      const known = stored.find((one) => one.key === key);
      const next = { key, hits: (known?.hits ?? 0) + 1 };
      if (known === undefined) stored = [...withRoom(), next];
      else if (priorityOf(next) > priorityOf(known)) stored = [...without(key), next];
      else stored = stored.map((one) => (one === known ? next : one));
      return next.hits > 3;
    },
  };
}
