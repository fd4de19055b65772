/** Each algorithm against a reference model: a plain list of the admitted hits, each with its time. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Algorithm } from '#config';
import { createMemoryCounters, type Hit, type HitResult } from '#ratelimit';

interface Admitted {
  readonly key: string;
  readonly atMs: number;
}

/** How many more hits fit now, from all hits of a key that were ever admitted. */
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
    // What is missing from the bucket shrinks with time and grows with every hit.
    let missing = 0;
    let lastMs = 0;
    for (const { atMs } of [...admitted, { atMs: nowMs }]) {
      missing = Math.max(0, missing - (atMs - lastMs) * 1_000) + interval;
      lastMs = atMs;
    }
    return Math.floor((burst * interval - (missing - interval)) / interval);
  },
};

function setUp(keysMax = 10_000) {
  const time = { nowMs: 1_800_000_000_000 };
  const counters = createMemoryCounters({ keysMax, clock: () => time.nowMs });
  return {
    time,
    counters,
    take: (...hits: Hit[]) => counters.take(hits),
    one: (hit: Hit) => only(counters.take([hit])),
  };
}

function only([count]: readonly HitResult[]): HitResult {
  assert.ok(count);
  return count;
}

const windowSeconds = 3;

function hitOf(algorithm: Algorithm, more: Partial<Hit> = {}): Hit {
  const limit = more.limit ?? 4;
  return { key: 'a', algorithm, windowSeconds, limit, burst: limit, hits: 1, shadow: false, ...more };
}

for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
  const burst = algorithm === 'token_bucket' ? 6 : 4;
  const hit = (more: Partial<Hit> = {}) => hitOf(algorithm, { burst, ...more });

  describe(`${algorithm}`, () => {
    // Steps that stay, that land on borders (3 s), a millisecond beside them, and on restored tokens (750 ms).
    const steps = fc.oneof(
      fc.nat(900),
      fc.constantFrom(0, 1, 749, 750, 751, 1_500, 2_999, 3_000, 3_001, 6_000),
      fc.nat(10_000),
    );
    const hits = fc.array(fc.record({ key: fc.constantFrom('a', 'b'), hits: fc.nat(5), shadow: fc.boolean() }), {
      minLength: 1,
      maxLength: 3,
    });
    const sequences = fc.array(fc.record({ passMs: steps, hits, countDenied: fc.boolean() }), { maxLength: 40 });

    it('agrees with a plain list of times, in what it admits and in what remains', () => {
      fc.assert(
        fc.property(sequences, (sequence) => {
          const { counters, time } = setUp();
          let admitted: readonly Admitted[] = [];
          for (const { passMs, hits: asked, countDenied } of sequence) {
            time.nowMs += passMs;
            // The limit decides whether a key is in shadow mode, not the request.
            const made = asked.map((one) => hit({ ...one, key: `${one.key}${one.shadow}` }));
            const expected = model(algorithm, admitted, made, time.nowMs, countDenied);
            admitted = expected.admitted;
            const counts = counters.take(made, { countDenied });
            assert.deepEqual(
              counts.map(({ over, remaining }) => ({ over, remaining })),
              expected.counts,
            );
          }
        }),
        { numRuns: 300 },
      );
    });

    it('gives the shortest wait, to the second', () => {
      fc.assert(
        fc.property(fc.array(fc.tuple(steps, fc.integer({ min: 1, max: 4 }))), (sequence) => {
          const { one, time } = setUp();
          for (const [passMs, weight] of sequence) {
            time.nowMs += passMs;
            const { over, resetSeconds } = one(hit({ hits: weight }));
            if (!over) continue;
            const stillOverAt = (ms: number) => {
              const again = replay(algorithm, sequence, time.nowMs);
              again.time.nowMs = time.nowMs + ms;
              return again.one(hit({ hits: weight, shadow: false })).over;
            };
            assert.equal(stillOverAt(resetSeconds * 1_000), false);
            if (resetSeconds > 1) assert.equal(stillOverAt((resetSeconds - 1) * 1_000), true);
            return;
          }
        }),
      );
    });

    it('is as good as new after the reset time of a hit of 0', () => {
      fc.assert(
        fc.property(fc.array(steps), (sequence) => {
          const { one, time } = setUp();
          for (const passMs of sequence) {
            time.nowMs += passMs;
            one(hit());
          }
          const { over, resetSeconds } = one(hit({ hits: 0 }));
          assert.equal(over, false);
          time.nowMs += resetSeconds * 1_000;
          assert.equal(one(hit({ hits: 0 })).remaining, burst);
        }),
      );
    });

    it('admits no more than its limit while the clock goes back and forth by less than a window', () => {
      const jumps = fc.array(fc.tuple(steps, fc.nat(2_999)), { minLength: 1, maxLength: 30 });
      fc.assert(
        fc.property(jumps, (sequence) => {
          const { one, time } = setUp();
          const startMs = time.nowMs;
          let farthestMs = startMs;
          const admittedMs: number[] = [];
          for (const [passMs, backMs] of sequence) {
            farthestMs += passMs;
            for (const nowMs of [farthestMs, farthestMs - backMs, farthestMs]) {
              time.nowMs = nowMs;
              if (!one(hit()).over) admittedMs.push(farthestMs);
            }
          }
          assertWithinLimit[algorithm](admittedMs, farthestMs - startMs);
        }),
      );
    });

    it('does not stay exhausted when the clock was a year ahead and is corrected', () => {
      const { one, time } = setUp();
      time.nowMs += 31_536_000_000;
      assert.equal(one(hit({ hits: burst })).remaining, 0);
      time.nowMs -= 31_536_000_000;
      assert.equal(one(hit()).over, false);
    });

    it('forgets expired counters, and keeps the others', () => {
      const { one, counters, time } = setUp(100);
      for (let index = 0; index < 100; index += 1) one(hit({ key: `early ${index}` }));
      time.nowMs += 60_000;
      one(hit({ key: 'late' }));
      assert.ok(counters.size() <= 100);
      for (let index = 0; index < 99; index += 1) one(hit({ key: `later ${index}` }));
      assert.equal(one(hit({ key: 'late', hits: 0 })).remaining, burst - 1);
    });
  });
}

function assertWithinWindows(admittedMs: readonly number[]): void {
  const windows = admittedMs.map((ms) => Math.floor(ms / (windowSeconds * 1_000)));
  for (const window of windows) assert.ok(windows.filter((other) => other === window).length <= 4);
}

/** The most hits that a limit of 4 in 3 seconds may have admitted, with a burst of 6. */
const assertWithinLimit: Readonly<Record<Algorithm, (admittedMs: readonly number[], passedMs: number) => void>> = {
  fixed_window: assertWithinWindows,
  sliding_window: assertWithinWindows,
  token_bucket: (admittedMs, passedMs) => assert.ok(admittedMs.length <= 6 + passedMs / 750),
};

/** The counters with the same hits behind them, up to the moment when the first one was over. */
function replay(algorithm: Algorithm, sequence: readonly (readonly [number, number])[], untilMs: number) {
  const again = setUp();
  for (const [passMs, weight] of sequence) {
    again.time.nowMs += passMs;
    if (again.time.nowMs > untilMs) break;
    const burst = algorithm === 'token_bucket' ? 6 : 4;
    if (again.one(hitOf(algorithm, { burst, hits: weight })).over) break;
  }
  return again;
}

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
    const over = hit.hits > fits;
    const spent = over && !hit.shadow && !countDenied ? 0 : Math.min(hit.hits, fits);
    const made = Array.from({ length: spent }, () => ({ key: hit.key, atMs: nowMs }));
    tried = [...tried, ...made];
    if (hit.shadow) kept = [...kept, ...made];
    return over;
  });
  const denied = !countDenied && hits.some((hit, index) => overs[index] && !hit.shadow);
  const result = denied ? kept : tried;
  return { admitted: result, counts: hits.map((hit, index) => ({ over: overs[index], remaining: room(result, hit) })) };
}

describe('the sliding window', () => {
  const hit = (more: Partial<Hit> = {}) =>
    hitOf('sliding_window', { windowSeconds: 10, limit: 10, burst: 10, ...more });

  it('does not admit twice the limit across a border', () => {
    const { one, time } = setUp();
    time.nowMs += 9_999;
    one(hit({ hits: 10 }));
    time.nowMs += 1;
    assert.deepEqual(one(hit()), { over: true, remaining: 0, resetSeconds: 1 });
    time.nowMs += 999;
    assert.equal(one(hit()).over, true);
    time.nowMs += 1;
    assert.equal(one(hit()).over, false);
  });

  it('counts a fraction of a hit as a whole one', () => {
    const { one, time } = setUp();
    one(hit({ hits: 1 }));
    time.nowMs += 19_999;
    assert.equal(one(hit({ hits: 0 })).remaining, 9);
    time.nowMs += 1;
    assert.equal(one(hit({ hits: 0 })).remaining, 10);
  });
});

describe('the token bucket', () => {
  const hit = (more: Partial<Hit> = {}) => hitOf('token_bucket', { windowSeconds: 10, limit: 10, burst: 3, ...more });

  it('restores one hit after another, evenly', () => {
    const { one, time } = setUp();
    assert.deepEqual(one(hit({ hits: 3 })), { over: false, remaining: 0, resetSeconds: 3 });
    time.nowMs += 999;
    assert.deepEqual(one(hit()), { over: true, remaining: 0, resetSeconds: 1 });
    time.nowMs += 1;
    assert.equal(one(hit()).over, false);
    assert.equal(one(hit()).over, true);
  });

  it('never holds more than its burst', () => {
    const { one, time } = setUp();
    one(hit());
    time.nowMs += 86_400_000;
    assert.deepEqual(one(hit({ hits: 4 })), { over: true, remaining: 3, resetSeconds: 1 });
  });

  it('rounds the time to restore a hit up, not down', () => {
    const { one, time } = setUp();
    const seventh = { windowSeconds: 1, limit: 7, burst: 7_000 };
    one(hit({ ...seventh, hits: 7_000 }));
    time.nowMs += 999_999;
    assert.ok(one(hit({ ...seventh, hits: 0 })).remaining < 7_000);
  });

  it('is not emptied further by a clock that steps back', () => {
    const { one, time } = setUp();
    one(hit({ hits: 3 }));
    time.nowMs -= 1_000;
    assert.deepEqual(one(hit({ hits: 4 })), { over: true, remaining: 0, resetSeconds: 3 });
  });

  it('is never faster than its limit when the interval is not a whole number', () => {
    const { one, time } = setUp();
    let admitted = 0;
    for (let ms = 0; ms < 60_000; ms += 1) {
      time.nowMs += 1;
      if (!one(hit({ windowSeconds: 1, limit: 7, burst: 1 })).over) admitted += 1;
    }
    assert.ok(admitted <= 7 * 60 + 1 && admitted >= 7 * 60 - 5, `${admitted}`);
  });
});
