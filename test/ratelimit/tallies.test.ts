/** How full a limit is, as its fullest counter tells. */
import assert from 'node:assert/strict';
import { createLimiter, createMemoryCounters, createTallies } from '#ratelimit';
import { descriptor, domain, limit, node } from '../support/limits.ts';

describe('the fullness of a limit', () => {
  function setUp(requestsPerUnit: number) {
    let nowMs = 0;
    const clock = () => nowMs;
    const tallies = createTallies({ clock });
    const limiter = createLimiter({
      limits: [domain('d', node('k', limit(requestsPerUnit)))],
      counters: createMemoryCounters({ clock }),
      observer: { counted: tallies.count, failed: () => assert.fail() },
    });
    return {
      hit: (value: string) => void limiter.shouldRateLimit({ domain: 'd', descriptors: [descriptor(`k=${value}`)] }),
      fullness: () => [...tallies.all()].map((one) => one.fullness()),
      at: (ms: number) => {
        nowMs = ms;
      },
    };
  }

  it('is that of the fullest counter, and 1 when one is over', () => {
    const { hit, fullness } = setUp(4);
    assert.deepEqual(fullness(), []);
    hit('a');
    hit('a');
    hit('b');
    assert.deepEqual(fullness(), [0.5]);
    for (let sent = 0; sent < 3; sent += 1) hit('a');
    hit('b');
    assert.deepEqual(fullness(), [1]);
  });

  it('is nothing once the window has ended, and then begins anew', () => {
    const { hit, fullness, at } = setUp(4);
    for (let sent = 0; sent < 3; sent += 1) hit('a');
    at(60_000);
    assert.deepEqual(fullness(), [0]);
    hit('b');
    assert.deepEqual(fullness(), [0.25]);
  });

  it('is 1 for a limit that admits nobody', () => {
    const { hit, fullness } = setUp(0);
    hit('a');
    assert.deepEqual(fullness(), [1]);
  });
});
