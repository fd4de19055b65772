/** Decisions that share a script call have the same results as decisions made one after the other. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Hit, type HitResult, isDenied, type TakeOptions } from '../../../src/ratelimit/counters/counters.ts';
import { createMemoryCounters } from '../../../src/ratelimit/counters/memory.ts';
import { describeWithRedis } from '../../support/redis-counters.ts';

interface Turn {
  readonly pauseMs: number;
  readonly decisions: readonly Decision[];
}

/** `index` selects a key. `reloaded` is the limit of each key after a reload, or null if it did not change. */
interface Decision {
  readonly hits: readonly ({ readonly index: number } & Pick<Hit, 'hits' | 'shadow' | 'quota'>)[];
  readonly reloaded: readonly (Pick<Hit, 'limit' | 'burst'> | null)[];
  readonly countDenied: boolean;
}

describeWithRedis('decisions that share a script call', (redis) => {
  let nowMs: number;
  const clock = () => nowMs;
  const open = (overLimitCacheMax: number) => redis.open({ overLimitCacheMax, clock });

  beforeEach(() => {
    nowMs = startMs;
  });

  it('count like consecutive decisions in memory', async () => {
    const redis = await open(0);
    await assertEach(fc.nat(2_000_000), async (turns, kinds) => {
      nowMs = startMs;
      const memory = createMemoryCounters({ clock });
      for (const { pauseMs, decisions: decisionsOfTurn } of turns) {
        nowMs += pauseMs;
        const calls = decisionsOfTurn.map(callOf(kinds, 'windows'));
        const expected = calls.map((call) => memory.take(...call));
        assert.deepEqual(await Promise.all(calls.map((call) => redis.take(...call))), expected);
      }
    });
  });

  it('count like separate calls, even if the clock steps back or limits are reloaded', async () => {
    const [together, alone] = [await open(0), await open(0)];
    await assertEach(fc.integer({ min: -1_000_000, max: 2_000_000 }), async (turns, kinds) => {
      nowMs = startMs;
      for (const { pauseMs, decisions: decisionsOfTurn } of turns) {
        nowMs += pauseMs;
        const calls = decisionsOfTurn.map(callOf(kinds, 'all'));
        const expected: (readonly HitResult[])[] = [];
        for (const call of calls) expected.push(await alone.take(...call));
        assert.deepEqual(await Promise.all(calls.map((call) => together.take(...call))), expected);
      }
    });
  });

  it('deny like decisions in memory, even from the cache', async () => {
    const redis = await open(10_000);
    let cached = 0;
    await assertEach(fc.constant(0), async (turns, kinds) => {
      const memory = createMemoryCounters({ clock });
      for (const { decisions: decisionsOfTurn } of turns) {
        const calls = decisionsOfTurn.map(callOf(kinds, 'windows'));
        const expected = calls.map((call) => memory.take(...call));
        const counted = await Promise.all(calls.map((call) => redis.take(...call)));
        const isCached = counted.map((counts) => counts.some(({ fromCache }) => fromCache));
        cached += isCached.filter(Boolean).length;
        // The remainders of a cached denial may be older than decisions of the same turn.
        const comparable = (counts: readonly HitResult[], index: number) =>
          isCached[index] && calls.length > 1
            ? isDenied(calls[index]?.[0] ?? [], counts)
            : counts.map(({ over, remaining, resetSeconds }) => ({ over, remaining, resetSeconds }));
        assert.deepEqual(counted.map(comparable), expected.map(comparable));
      }
    });
    assert.notEqual(cached, 0);
  });
});

/** Not close to the border of any window. */
const startMs = Date.UTC(2026, 0, 1) + 1_234_567;

let run = 0;

type Kind = Pick<Hit, 'key' | 'algorithm' | 'windowSeconds' | 'limit' | 'burst'>;

/** Every run uses new keys. */
async function assertEach(
  pauseMs: fc.Arbitrary<number>,
  check: (turns: readonly Turn[], kinds: readonly Kind[]) => Promise<void>,
): Promise<void> {
  const kinds = fc.array(kindOfKey, { minLength: 3, maxLength: 3 });
  const turns = fc.array(fc.record({ pauseMs, decisions }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(kinds, turns, async (chosen, taken) => {
      run += 1;
      const keyed = chosen.map((kind, index) => ({ ...kind, key: `${run}:${index}` }));
      await check(taken, keyed);
    }),
    { numRuns: 70 },
  );
}

// Windows are long, because keys expire by the clock of Redis, which keeps running.
const kindOfKey = fc
  .record({
    algorithm: fc.constantFrom('fixed_window' as const, 'sliding_window' as const, 'token_bucket' as const),
    windowSeconds: fc.constantFrom(600, 1_800, 36_000),
    limit: numberTo(7),
    burst: fc.integer({ min: 1, max: 9 }),
  })
  .map((kind) => (kind.algorithm === 'token_bucket' ? kind : { ...kind, burst: kind.limit }));

const reloaded = fc.record({ limit: numberTo(7), burst: fc.integer({ min: 1, max: 9 }) });

/** Few are given back, because those make the cache forget what it could deny. */
const someHits = fc.oneof(
  { weight: 12, arbitrary: numberTo(4) },
  { weight: 1, arbitrary: fc.constantFrom(-1, -2, -4, -(2 ** 32)) },
);

const decisions = fc.array(
  fc.record({
    hits: fc.array(
      fc.record({
        index: fc.nat(2),
        hits: someHits,
        shadow: fc.boolean(),
        quota: fc.option(fc.nat(1), { nil: undefined }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    reloaded: fc.array(fc.option(reloaded, { freq: 4 }), { minLength: 3, maxLength: 3 }),
    countDenied: fc.boolean(),
  }),
  { minLength: 1, maxLength: 8 },
);

/** Small numbers and, occasionally, the largest allowed. */
function numberTo(max: number): fc.Arbitrary<number> {
  const largest = { weight: 1, arbitrary: fc.constant(4_294_967_295) };
  return fc.oneof({ weight: 15, arbitrary: fc.nat(max) }, largest);
}

/** Builds the arguments of `take`. When its limit changes, a token bucket starts anew in memory but not in Redis. */
function callOf(kinds: readonly Kind[], reloads: 'windows' | 'all') {
  return (decision: Decision): [readonly Hit[], TakeOptions] => {
    const hits: Hit[] = [];
    for (const { index, ...rest } of decision.hits) {
      const kind = kinds[index];
      assert.ok(kind);
      hits.push({ ...kind, ...limitOf(kind, decision.reloaded[index] ?? kind, reloads), ...rest });
    }
    return [hits, { countDenied: decision.countDenied }];
  };
}

function limitOf(kind: Kind, { limit, burst }: Pick<Hit, 'limit' | 'burst'>, reloads: 'windows' | 'all') {
  if (kind.algorithm !== 'token_bucket') return { limit, burst: limit };
  return reloads === 'all' ? { limit, burst } : {};
}
