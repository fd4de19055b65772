/** Windows in seconds, and how long a counter of each matters. */
import assert from 'node:assert/strict';
import type { Limit } from '#config';
import { memorySeconds, secondsMax, units, windowSeconds } from '../../src/config/window.ts';

describe('the window of a limit', () => {
  it('is as long as in envoyproxy/ratelimit', () => {
    assert.deepEqual(
      units.map((unit) => [unit, windowSeconds({ unit, unitMultiplier: 1 })]),
      [
        ['second', 1],
        ['minute', 60],
        ['hour', 3_600],
        ['day', 86_400],
        ['week', 604_800],
        ['month', 2_592_000],
        ['year', 31_536_000],
      ],
    );
    assert.equal(windowSeconds({ unit: 'second', unitMultiplier: 30 }), 30);
  });

  function check(more: Partial<Limit>, expected: number): void {
    const limit = { unit: 'minute', unitMultiplier: 1, requestsPerUnit: 10, algorithm: 'token_bucket' } as const;
    assert.equal(memorySeconds({ ...limit, burst: undefined, ...more }), expected);
  }

  it('is what a counter remembers, unless its bucket takes longer to fill up', () => {
    check({ algorithm: 'fixed_window' }, 60);
    check({}, 60);
    check({ burst: 5 }, 60);
    check({ burst: 20 }, 120);
    check({ unit: 'second', requestsPerUnit: 4_000_000_000 }, 4_000);
  });

  it('leaves the microseconds since the epoch exact', () => {
    assert.ok(Number.isSafeInteger(secondsMax * 1_000_000 + Date.UTC(2060, 0) * 1_000));
  });
});
