/** Counters in memory: exact at the borders, all or nothing, and bounded without forgetting who is over. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createMemoryCounters, type Hit } from '#ratelimit';

const hit = (key: string, limit = 10, hits = 1, windowSeconds = 60): Hit => ({
  key,
  algorithm: 'fixed_window',
  windowSeconds,
  limit,
  burst: limit,
  hits,
  shadow: false,
});

function setUp(keysMax = 1_000) {
  const time = { nowMs: 600_000 };
  const counters = createMemoryCounters({ keysMax, clock: () => time.nowMs });
  const take = (...asked: Parameters<typeof hit>[]) => counters.take(asked.map((one) => hit(...one)));
  const over = (...one: Parameters<typeof hit>) => take(one)[0]?.over;
  return { time, counters, take, over };
}

describe('memory counters', () => {
  it('let in exactly the limit, and say what remains', () => {
    const { take } = setUp();
    assert.deepEqual(take(['a', 2]), [{ over: false, remaining: 1, resetSeconds: 60 }]);
    assert.deepEqual(take(['a', 2]), [{ over: false, remaining: 0, resetSeconds: 60 }]);
    assert.deepEqual(take(['a', 2]), [{ over: true, remaining: 0, resetSeconds: 60 }]);
  });

  it('start anew on the border of the window, not a millisecond earlier', () => {
    const { take, over, time } = setUp();
    take(['a', 1]);
    time.nowMs += 59_999;
    assert.deepEqual(take(['a', 1]), [{ over: true, remaining: 0, resetSeconds: 1 }]);
    time.nowMs += 1;
    assert.equal(over('a', 1), false);
  });

  it('let nobody in twice when the clock steps back over the border', () => {
    const { over, time } = setUp();
    assert.equal(over('a', 1), false);
    time.nowMs -= 1;
    assert.equal(over('a', 1), true);
    time.nowMs += 1;
    assert.equal(over('a', 1), true);
  });

  it('do not stay spent when the clock was a year ahead and is put right', () => {
    const { over, time } = setUp();
    time.nowMs += 31_536_000_000;
    over('a', 1);
    time.nowMs -= 31_536_000_000;
    assert.equal(over('a', 1), false);
  });

  it('count nothing of a request that one limit denies', () => {
    const { take } = setUp();
    take(['spent', 1]);
    const denied = take(['free', 5], ['spent', 1]);
    assert.deepEqual(
      denied.map(({ over, remaining }) => [over, remaining]),
      [
        [false, 5],
        [true, 0],
      ],
    );
    assert.equal(take(['free', 5])[0]?.remaining, 4);
  });

  it('see the first of two hits on one key when they weigh the second', () => {
    const { take } = setUp();
    assert.deepEqual(
      take(['a', 1], ['a', 1]).map(({ over }) => over),
      [false, true],
    );
    assert.deepEqual(
      take(['a', 2], ['a', 2]).map(({ remaining }) => remaining),
      [0, 0],
    );
  });

  it('keep what a shadow hit took of a key whose other hit was denied', () => {
    for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
      const { counters } = setUp();
      const one = { ...hit('a', 5), algorithm };
      const denied = counters.take([{ ...one, hits: 2 }, { ...one, shadow: true }, hit('b', 0)]);
      assert.deepEqual(
        denied.map(({ over, remaining }) => [over, remaining]),
        [
          [false, 4],
          [false, 4],
          [true, 0],
        ],
        algorithm,
      );
    }
  });

  it('weigh hits of more than one, and take none of them when there is room for a part', () => {
    const { take } = setUp();
    assert.equal(take(['a', 10, 8])[0]?.remaining, 2);
    assert.deepEqual(take(['a', 10, 3]), [{ over: true, remaining: 2, resetSeconds: 60 }]);
    assert.equal(take(['a', 10, 2])[0]?.remaining, 0);
  });

  it('deny everybody at a limit of 0', () => {
    const { over } = setUp();
    assert.equal(over('a', 0), true);
  });

  it('agree with a plain list of times', () => {
    const steps = fc.record({
      passMs: fc.nat(700),
      hits: fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits: fc.integer({ min: 1, max: 3 }) }), {
        minLength: 1,
        maxLength: 3,
      }),
    });
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 40 }), (journey) => {
        const { take, time } = setUp();
        const admitted: { key: string; atMs: number }[] = [];
        for (const { passMs, hits } of journey) {
          time.nowMs += passMs;
          const pending: typeof admitted = [];
          const windowMs = Math.floor(time.nowMs / 1_000) * 1_000;
          const expected = hits.map(({ key, hits: weight }) => {
            const used = [...admitted, ...pending].filter((one) => one.key === key && one.atMs >= windowMs).length;
            const over = used + weight > 4;
            if (!over) for (let count = 0; count < weight; count += 1) pending.push({ key, atMs: time.nowMs });
            return over;
          });
          if (!expected.includes(true)) admitted.push(...pending);
          const counts = take(...hits.map(({ key, hits: weight }) => [key, 4, weight, 1] as Parameters<typeof hit>));
          assert.deepEqual(
            counts.map(({ over }) => over),
            expected,
          );
        }
      }),
    );
  });
});

describe('memory counters that are full', () => {
  function flood(over: ReturnType<typeof setUp>['over'], count: number, limit = 10): void {
    for (let index = 0; index < count; index += 1) over(`flood ${index}`, limit);
  }

  it('never hold more keys than they may', () => {
    const { counters, over } = setUp(100);
    flood(over, 1_000);
    assert.equal(counters.size(), 100);
  });

  it('never hold more keys than they may, although a bucket that nothing flows into is asked', () => {
    const { counters } = setUp(100);
    const bucket = { algorithm: 'token_bucket' as const, burst: 5 };
    for (let index = 0; index < 1_000; index += 1) {
      counters.take([{ ...hit('closed', 0), ...bucket }]);
      counters.take([{ ...hit(`key ${index}`, 5), ...bucket }]);
    }
    assert.equal(counters.size(), 100);
  });

  it('still deny who is over, after a flood of a million keys', () => {
    const { over, counters } = setUp(10_000);
    for (let count = 0; count < 11; count += 1) over('denied');
    for (let count = 0; count < 10; count += 1) over('spent');
    flood(over, 1_000_000);
    assert.equal(counters.size(), 10_000);
    assert.equal(over('denied'), true);
    assert.equal(over('spent'), true);
  }).timeout(30_000);

  it('still deny who is over, when every key of the flood uses up its limit', () => {
    const { over } = setUp(100);
    over('denied', 1);
    over('denied', 1);
    flood(over, 10_000, 1);
    assert.equal(over('denied', 1), true);
  });

  it('let go of who was seen once before who was seen again', () => {
    const { over, take } = setUp(100);
    over('again');
    over('again');
    over('once');
    flood(over, 200);
    assert.equal(take(['again'])[0]?.remaining, 7);
    assert.equal(take(['once'])[0]?.remaining, 9);
  });

  it('let go of who may come again before who has used up the limit', () => {
    const { over } = setUp(100);
    over('spent', 2);
    over('spent', 2);
    for (let index = 0; index < 500; index += 1) for (let count = 0; count < 2; count += 1) over(`flood ${index}`);
    assert.equal(over('spent', 2), true);
  });

  it('let go of what has ended before anything that has not', () => {
    const { over, take, counters, time } = setUp(100);
    over('long', 10, 1, 3_600);
    for (let index = 0; index < 99; index += 1) over(`short ${index}`, 1, 1, 1);
    time.nowMs += 1_000;
    over('new', 10, 1, 60);
    assert.equal(counters.size(), 2);
    assert.equal(take(['long', 10, 1, 3_600])[0]?.remaining, 8);
  });

  it('count a newcomer even when everybody else is being denied', () => {
    const { over, take } = setUp(100);
    for (let index = 0; index < 100; index += 1) for (let count = 0; count < 2; count += 1) over(`client ${index}`, 1);
    over('newcomer');
    over('another');
    assert.equal(take(['newcomer'])[0]?.remaining, 8);
  });

  it('work with room for a single key', () => {
    const { take, counters } = setUp(1);
    assert.deepEqual(
      take(['a', 1], ['b', 1]).map(({ over }) => over),
      [false, false],
    );
    assert.equal(counters.size(), 1);
  });
});
