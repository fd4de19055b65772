/** In-memory counters: they count exactly, and when their table is full, the least useful counters give way. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createMemoryCounters, type Hit } from '#ratelimit';
import { createExactCounters } from '../../support/exact-counters.ts';
import { hitOfThree } from '../../support/limits.ts';

const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;

function setUp(keysMax = 1_000) {
  const time = { nowMs: 600_000 };
  let evictions = 0;
  const counters = createMemoryCounters({
    keysMax,
    clock: () => time.nowMs,
    seed: 'test',
    onEvicted() {
      evictions += 1;
    },
  });
  const take = (key: string, limit = 10, more: Partial<Hit> = {}) =>
    counters.take([hitOfThree({ key, limit, burst: limit, ...more })])[0];
  return {
    time,
    counters,
    take,
    evictions: () => evictions,
    over: (...hit: Parameters<typeof take>) => take(...hit)?.over,
    remaining: (...hit: Parameters<typeof take>) => take(...hit)?.remaining,
  };
}

/** A few keys, so that hits of a request often share one. All hits of a key agree in everything but these members. */
const hitOnOneOfMany = fc
  .record({
    key: fc.nat(11),
    hits: fc.constantFrom(1, 1, 1, 2, 3, 0, -1, -2, 4_294_967_296, -4_294_967_296),
    shadow: fc.boolean(),
    quota: fc.option(fc.nat(1), { nil: undefined, freq: 4 }),
  })
  .map(({ key, ...more }): Hit => {
    const algorithm = algorithms[key % 3] ?? 'fixed_window';
    const windowSeconds = [1, 60, 365 * 86_400 * 1_000][key % 4] ?? 86_400;
    const limit = [0, 1, 3, 4_294_967_295][(key >> 1) % 4] ?? 0;
    const burst = algorithm === 'token_bucket' ? limit + 2 : limit;
    return { key: `key ${key}`, algorithm, windowSeconds, limit, burst, ...more };
  });

const requests = fc.array(
  fc.record({
    passMs: fc.oneof(
      fc.constantFrom(0, 0, 1, 999, 1_000, -1, -1_500, 60_000),
      fc.integer({ min: -70_000, max: 200_000 }),
    ),
    hits: fc.array(hitOnOneOfMany, { minLength: 1, maxLength: 6 }),
    countDenied: fc.boolean(),
  }),
  { maxLength: 60 },
);

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

describe('memory counters, beside exact ones', () => {
  it('have the same results for any requests, whatever the limits and the time between them', () => {
    fc.assert(
      fc.property(requests, (sequence) => {
        const { time, counters } = setUp();
        time.nowMs = Date.UTC(2026, 0, 1);
        const exact = createExactCounters(() => time.nowMs);
        for (const { passMs, hits, countDenied } of sequence) {
          time.nowMs += passMs;
          assert.deepEqual(counters.take(hits, { countDenied }), exact.take(hits, { countDenied }));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('never admit less, even if counters are evicted', () => {
    const hits = fc.array(fc.tuple(fc.nat(150), fc.nat(20_000)), { maxLength: 600, size: 'max' });
    fc.assert(
      fc.property(hits, (sequence) => {
        const { time, counters } = setUp(1);
        const exact = createExactCounters(() => time.nowMs);
        for (const [key, pauseMs] of sequence) {
          time.nowMs += Math.max(0, pauseMs - 19_000);
          const hit = hitOfThree({ key: `client ${key}` });
          const [[found], [expected]] = [counters.take([hit]), exact.take([hit])];
          assert.ok((found?.remaining ?? -1) >= (expected?.remaining ?? 3));
          assert.ok(!found?.over || expected?.over);
        }
      }),
      { numRuns: 100 },
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
  const flood = (take: ReturnType<typeof setUp>['take'], keys: number, ...[limit, more]: Flood) => {
    for (let index = 0; index < keys; index += 1) take(`flood ${index}`, limit, more);
  };
  type Flood = [limit?: number, more?: Partial<Hit>];
  const keysOf = (count: number) => Array.from({ length: count }, (_, index) => `client ${index}`);

  for (const algorithm of algorithms)
    it(`still deny all of many exhausted keys after a flood of thirty times as many keys as fit, ${algorithm}`, () => {
      const { take, over } = setUp();
      const clients = keysOf(200);
      for (const client of clients) take(client, 10, { algorithm, hits: 10 });
      flood(take, 30_000, 10, { algorithm });
      assert.deepEqual(
        clients.filter((client) => !over(client, 10, { algorithm })),
        [],
      );
    });

  it('still deny nineteen of twenty when as many keys as fit are exhausted', () => {
    const { take, over } = setUp();
    const clients = keysOf(1_000);
    for (const client of clients) take(client, 10, { hits: 10 });
    flood(take, 30_000);
    const admitted = clients.filter((client) => !over(client));
    assert.ok(admitted.length <= 50, `${admitted.length}`);
  });

  for (const algorithm of algorithms)
    for (const limit of [1, 6])
      it(`admit every new client after a flood of thirty times as many keys, limit ${limit}, ${algorithm}`, () => {
        const { take } = setUp(100);
        for (const hits of [1, limit]) flood(take, 3_000, limit, { algorithm, hits });
        for (const client of keysOf(300)) {
          const { over, remaining } = take(client, limit, { algorithm }) ?? {};
          assert.deepEqual({ over, remaining }, { over: false, remaining: limit - 1 });
        }
      });

  it('count a new client even when all others are being denied', () => {
    const { take, remaining } = setUp(100);
    for (const client of keysOf(3_000)) for (const _ of [1, 2]) take(client, 1);
    for (const expected of [9, 8, 7]) assert.equal(remaining('new'), expected);
  });

  it('forget an exhausted key only for keys that have used about as many hits', () => {
    const { take, over } = setUp();
    const clients = keysOf(200);
    for (const client of clients) take(client, 10, { hits: 10 });
    for (const limit of [1, 2, 4]) flood(take, 10_000, limit, { hits: limit });
    flood(take, 10_000, 1_000, { hits: 80 });
    assert.deepEqual(
      clients.filter((client) => !over(client)),
      [],
    );
    flood(take, 10_000, 20, { hits: 20 });
    assert.ok(clients.filter((client) => !over(client)).length > 190);
  });

  it('forget, among equals, those that are not denied, and then those that were used longest ago', () => {
    const { take, time, over } = setUp();
    const clients = keysOf(3_000);
    for (const client of clients) {
      time.nowMs += 10;
      take(client, 1);
      if (client === 'client 5') take(client, 1);
    }
    const isForgotten = (client: string) => !over(client, 1, { hits: 0 });
    assert.equal(isForgotten('client 5'), false);
    assert.deepEqual(clients.slice(-500).filter(isForgotten), []);
    assert.ok(clients.slice(0, 1_000).filter(isForgotten).length > 900);
  });

  for (const algorithm of algorithms)
    it(`use the room of expired counters before they forget any, ${algorithm}`, () => {
      const { take, time, remaining, evictions } = setUp(100);
      for (let index = 0; index < 3_000; index += 1) take(`short ${index}`, 1, { algorithm, windowSeconds: 1 });
      const whenFull = evictions();
      assert.notEqual(whenFull, 0);
      time.nowMs += 2_000;
      for (const client of keysOf(30)) take(client, 10, { algorithm });
      for (const client of keysOf(30)) assert.equal(remaining(client, 10, { algorithm }), 8);
      assert.equal(evictions(), whenFull);
    });

  it('report each counter that is evicted, and evict none for a request that is denied', () => {
    const { take, counters, evictions } = setUp(1);
    take('exhausted', 10, { hits: 10 });
    flood(take, 500);
    assert.equal(evictions(), 501 - 32);
    for (const client of keysOf(50))
      counters.take([hitOfThree({ key: client }), hitOfThree({ key: 'exhausted', limit: 10, burst: 10 })]);
    assert.equal(evictions(), 501 - 32);
  });

  it('count all hits of a request, even if it has more keys than fit', () => {
    const { counters } = setUp(1);
    const results = counters.take(keysOf(100).map((key) => hitOfThree({ key })));
    assert.deepEqual(new Set(results.map(({ over, remaining }) => `${over} ${remaining}`)), new Set(['false 2']));
  });
});
