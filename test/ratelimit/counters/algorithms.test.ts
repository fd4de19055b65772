/** Each algorithm, compared with a reference model that lists the times of all admitted hits. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createMemoryCounters, type Hit, type HitResult } from '#ratelimit';
import type { Algorithm } from '#ratelimit/limit';

interface Admitted {
  readonly key: string;
  readonly atMs: number;
}

/** Computes how many more hits fit now from all admitted hits of a key. */
type Available = (admitted: readonly Admitted[], nowMs: number, hit: Hit) => number;

const models: Readonly<Record<Algorithm, Available>> = {
  fixed_window: (admitted, nowMs, { windowSeconds, limit }) => {
    const startMs = nowMs - (nowMs % (windowSeconds * 1_000));
    return limit - admitted.filter(({ atMs }) => atMs >= startMs).length;
  },
  sliding_window: (admitted, nowMs, { windowSeconds, limit }) => {
    const windowMs = windowSeconds * 1_000;
    const startMs = nowMs - (nowMs % windowMs);
    const current = admitted.filter(({ atMs }) => atMs >= startMs).length;
    const previous = admitted.filter(({ atMs }) => atMs < startMs && atMs >= startMs - windowMs).length;
    return limit - current - Math.ceil((previous * (startMs + windowMs - nowMs)) / windowMs);
  },
  token_bucket: (admitted, nowMs, { windowSeconds, limit, burst }) => {
    const interval = Math.ceil((windowSeconds * 1_000_000) / limit);
    // The missing part of the bucket shrinks with time and grows with every hit.
    let missing = 0;
    let lastMs = 0;
    for (const { atMs } of [...admitted, { atMs: nowMs }]) {
      missing = Math.max(0, missing - (atMs - lastMs) * 1_000) + interval;
      lastMs = atMs;
    }
    return Math.floor((burst * interval - (missing - interval)) / interval);
  },
};

const windowSeconds = 3;

function setUp(algorithm: Algorithm, kind: Partial<Hit> = {}) {
  const time = { nowMs: 1_800_000_000_000 };
  const counters = createMemoryCounters({ clock: () => time.nowMs });
  const burst = algorithm === 'token_bucket' ? 6 : 4;
  const common: Hit = { key: 'a', algorithm, windowSeconds, limit: 4, burst, hits: 1, shadow: false, ...kind };
  const hit = (more: Partial<Hit> = {}): Hit => ({ ...common, ...more });
  const one = (hits = 1): HitResult => counters.take([hit({ hits })])[0] ?? assert.fail('there is no result');
  return { time, counters, burst, hit, one };
}

for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
  describe(`${algorithm}`, () => {
    // Includes standing still, window borders (3 s), a millisecond to either side, and restored tokens (750 ms).
    const steps = fc.oneof(
      fc.nat(900),
      fc.constantFrom(0, 1, 749, 750, 751, 1_500, 2_999, 3_000, 3_001, 6_000),
      fc.nat(10_000),
    );

    it('admits the same hits as the model and reports the same remainder', () => {
      const one = fc.record({ key: fc.constantFrom('a', 'b'), hits: fc.nat(5), shadow: fc.boolean() });
      const hits = fc.array(one, { minLength: 1, maxLength: 3 });
      const sequences = fc.array(fc.record({ passMs: steps, hits, countDenied: fc.boolean() }), {
        maxLength: 40,
      });
      fc.assert(
        fc.property(sequences, (sequence) => {
          const { counters, time, hit } = setUp(algorithm);
          let admitted: readonly Admitted[] = [];
          for (const { passMs, hits: generated, countDenied } of sequence) {
            time.nowMs += passMs;
            // Shadow mode belongs to the limit rather than the hit, so it is part of the key.
            const batch = generated.map((one) => hit({ ...one, key: `${one.key}${one.shadow}` }));
            const expected = model(algorithm, admitted, batch, time.nowMs, countDenied);
            admitted = expected.admitted;
            const results = counters.take(batch, { countDenied });
            assert.deepEqual(
              results.map(({ over, remaining }) => ({ over, remaining })),
              expected.results,
            );
          }
        }),
        { numRuns: 300 },
      );
    });

    it('gives back what a hit has taken, and never more than was taken', () => {
      const sequences = fc.array(fc.tuple(steps, fc.nat(5), fc.boolean()), { maxLength: 40 });
      fc.assert(
        fc.property(sequences, (sequence) => {
          const { one, time, burst } = setUp(algorithm);
          for (const [passMs, hits, isGivenBack] of sequence) {
            time.nowMs += passMs;
            const before = one(0).remaining;
            const { over } = one(hits);
            if (isGivenBack && !over && hits > 0)
              assert.deepEqual([one(-hits).over, one(0).remaining], [false, before]);
          }
          const { over, remaining } = one(-(2 ** 32));
          assert.deepEqual([over, remaining], [false, burst]);
        }),
      );
    });

    it('reports the shortest sufficient wait, to the second', () => {
      fc.assert(
        fc.property(fc.array(fc.tuple(steps, fc.nat(4))), (sequence) => {
          const { one, time } = setUp(algorithm);
          for (const [passMs, hits] of sequence) {
            time.nowMs += passMs;
            const { over, resetSeconds } = one(hits);
            if (!over) continue;
            // Denied hits are not counted.
            time.nowMs += (resetSeconds - 1) * 1_000;
            if (resetSeconds > 1) assert.equal(one(hits).over, true);
            time.nowMs += 1_000;
            assert.equal(one(hits).over, false);
          }
        }),
      );
    });

    it('is back in its initial state after the reset time of a hit of 0', () => {
      fc.assert(
        fc.property(fc.array(steps), (sequence) => {
          const { one, time, burst } = setUp(algorithm);
          for (const passMs of sequence) {
            time.nowMs += passMs;
            one();
          }
          const { over, remaining, resetSeconds } = one(0);
          assert.equal(over, remaining === 0);
          if (over) return;
          time.nowMs += resetSeconds * 1_000;
          assert.equal(one(0).remaining, burst);
        }),
      );
    });

    it('never exceeds its limit while the clock jumps back and forth by less than a window', () => {
      const jumps = fc.array(fc.tuple(steps, fc.nat(2_999)), { minLength: 1, maxLength: 30 });
      fc.assert(
        fc.property(jumps, (sequence) => {
          const { one, time } = setUp(algorithm);
          const startMs = time.nowMs;
          let farthestMs = startMs;
          const admittedMs: number[] = [];
          for (const [passMs, backMs] of sequence) {
            farthestMs += passMs;
            for (const nowMs of [farthestMs, farthestMs - backMs, farthestMs]) {
              time.nowMs = nowMs;
              if (!one().over) admittedMs.push(farthestMs);
            }
          }
          assertWithinLimit[algorithm](admittedMs, farthestMs - startMs);
        }),
      );
    });

    it('does not stay exhausted when a clock that was a year ahead is corrected', () => {
      const { one, time, burst } = setUp(algorithm);
      time.nowMs += 31_536_000_000;
      assert.equal(one(burst).remaining, 0);
      time.nowMs -= 31_536_000_000;
      assert.equal(one().over, false);
    });
  });
}

function assertWithinWindows(admittedMs: readonly number[]): void {
  const windows = admittedMs.map((ms) => Math.floor(ms / (windowSeconds * 1_000)));
  for (const window of windows) assert.ok(windows.filter((other) => other === window).length <= 4);
}

/** Asserts that no more hits were admitted than a limit of 4 in 3 seconds, with a burst of 6, allows. */
const assertWithinLimit: Readonly<Record<Algorithm, (admittedMs: readonly number[], passedMs: number) => void>> = {
  fixed_window: assertWithinWindows,
  sliding_window: assertWithinWindows,
  token_bucket: (admittedMs, passedMs) => assert.ok(admittedMs.length <= 6 + passedMs / 750),
};

function model(
  algorithm: Algorithm,
  admitted: readonly Admitted[],
  hits: readonly Hit[],
  nowMs: number,
  countDenied: boolean,
) {
  const room = (list: readonly Admitted[], hit: Hit) =>
    Math.max(
      0,
      models[algorithm](
        list.filter(({ key }) => key === hit.key),
        nowMs,
        hit,
      ),
    );
  let tried = admitted;
  let kept = admitted;
  const overs = hits.map((hit) => {
    const fits = room(tried, hit);
    const over = Math.max(1, hit.hits) > fits;
    const spent = over && !hit.shadow && !countDenied ? 0 : Math.min(hit.hits, fits);
    const added = Array.from({ length: spent }, () => ({ key: hit.key, atMs: nowMs }));
    tried = [...tried, ...added];
    if (hit.shadow) kept = [...kept, ...added];
    return over;
  });
  const denied = !countDenied && hits.some((hit, index) => overs[index] && !hit.shadow);
  const result = denied ? kept : tried;
  return {
    admitted: result,
    results: hits.map((hit, index) => ({ over: overs[index], remaining: room(result, hit) })),
  };
}

describe('an algorithm', () => {
  /** The time in milliseconds after the start, the number of hits, and the expected result. */
  type Step = readonly [number, number, string];

  function check(algorithm: Algorithm, kind: Partial<Hit>, ...expected: readonly Step[]): void {
    const { one, time } = setUp(algorithm, kind);
    const startMs = time.nowMs;
    const found = expected.map(([atMs, hits]): Step => {
      time.nowMs = startMs + atMs;
      const { over, remaining, resetSeconds } = one(hits);
      return [atMs, hits, `${over ? 'over' : 'ok'}, ${remaining} left, reset in ${resetSeconds}`];
    });
    assert.deepEqual(found, expected);
  }

  for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
    it(`with a limit of 0 denies every hit except one of 0: ${algorithm}`, () => {
      const { one } = setUp(algorithm, { limit: 0, burst: 0 });
      assert.deepEqual([one(1).over, one(0).over], [true, false]);
    });

    it(`keeps its count when its limit is raised or lowered: ${algorithm}`, () => {
      const { counters, hit } = setUp(algorithm);
      const take = (limit: number, hits: number) => counters.take([hit({ limit, burst: limit, hits })])[0];
      assert.equal(take(2, 2)?.remaining, 0);
      assert.equal(take(1, 1)?.over, true);
      if (algorithm !== 'token_bucket') assert.equal(take(4, 1)?.remaining, 1);
    });
  }

  const sliding = { windowSeconds: 10, limit: 10, burst: 10 };
  const bucket = { windowSeconds: 10, limit: 10, burst: 3 };

  it('starts a fixed window exactly at its border', () =>
    check(
      'fixed_window',
      {},
      [0, 4, 'ok, 0 left, reset in 3'],
      [2_999, 1, 'over, 0 left, reset in 1'],
      [3_000, 1, 'ok, 3 left, reset in 3'],
    ));

  it('gives back hits of the previous window of a sliding window', () =>
    check(
      'sliding_window',
      sliding,
      [9_999, 10, 'ok, 0 left, reset in 11'],
      [10_000, -4, 'ok, 4 left, reset in 10'],
      [10_000, 5, 'over, 4 left, reset in 2'],
      [10_000, -7, 'ok, 10 left, reset in 1'],
    ));

  it('does not admit twice the limit across the border of a sliding window', () =>
    check(
      'sliding_window',
      sliding,
      [9_999, 10, 'ok, 0 left, reset in 11'],
      [10_000, 1, 'over, 0 left, reset in 1'],
      [10_999, 1, 'over, 0 left, reset in 1'],
      [11_000, 1, 'ok, 0 left, reset in 19'],
    ));

  it('counts a fraction of a hit in a sliding window as a whole hit', () =>
    check(
      'sliding_window',
      sliding,
      [0, 1, 'ok, 9 left, reset in 20'],
      [19_999, 0, 'ok, 9 left, reset in 1'],
      [20_000, 0, 'ok, 10 left, reset in 1'],
    ));

  it('restores the hits of a token bucket one by one, at a steady rate, up to the burst', () =>
    check(
      'token_bucket',
      bucket,
      [0, 3, 'ok, 0 left, reset in 3'],
      [999, 1, 'over, 0 left, reset in 1'],
      [1_000, 1, 'ok, 0 left, reset in 3'],
      [1_000, 1, 'over, 0 left, reset in 1'],
      [86_400_000, 4, 'over, 3 left, reset in 1'],
    ));

  it('does not drain a token bucket further when the clock steps back', () =>
    check('token_bucket', bucket, [0, 3, 'ok, 0 left, reset in 3'], [-1_000, 4, 'over, 0 left, reset in 3']));

  it('rounds the time to restore a hit up to a whole microsecond', () =>
    check(
      'token_bucket',
      { windowSeconds: 1, limit: 7, burst: 7_000 },
      [0, 7_000, 'ok, 0 left, reset in 1001'],
      [999_999, 0, 'ok, 6999 left, reset in 1'],
      [1_000_006, 0, 'ok, 7000 left, reset in 1'],
    ));
});
