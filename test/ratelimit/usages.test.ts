/** What came of each limit of the files, as whoever knows the files asks for it. */
import assert from 'node:assert/strict';
import { createLimiter, createMemoryCounters, createTallies, readUsages, type UsageOf } from '#ratelimit';
import { descriptor, domain, limit, node, unlimited } from '../support/limits.ts';

const [small, large] = [limit(4), limit(8, 'hour', { name: 'large' })];

describe('the usages of limits', () => {
  const clock = () => 0;
  const tallies = createTallies({ clock });
  const below = { ...node('path=/v1', limit(2)), detailedMetric: true };
  const limiter = createLimiter({
    limits: [domain('d', node('user', [small, large], below), node('free', unlimited))],
    counters: createMemoryCounters({ clock }),
    observer: { counted: tallies.count, failed: () => assert.fail() },
  });
  const hit = (...entries: string[]) =>
    void limiter.shouldRateLimit({ domain: 'd', descriptors: [descriptor(...entries)] });
  let usageOf: UsageOf;

  before(() => {
    for (let sent = 0; sent < 5; sent += 1) hit('user=ann');
    for (const user of ['ann', 'ann', 'ann', 'bob']) hit(`user=${user}`, 'path=/v1');
    hit('free=x');
    usageOf = readUsages(tallies.all());
  });

  it('tell several limits of one descriptor apart, by name or by number', () => {
    assert.deepEqual(usageOf('d', 'user', small), { hits: 5, over: 1, fullness: 1 });
    assert.deepEqual(usageOf('d', 'user', large), { hits: 5, over: 0, fullness: 0.5 });
  });

  it('are one for all the values that a detailed metric tells apart', () => {
    assert.deepEqual(usageOf('d', 'user › path=/v1', limit(2)), { hits: 4, over: 1, fullness: 1 });
  });

  it('are not there for what nobody asked about, or nobody counts', () => {
    assert.equal(usageOf('d', 'free', unlimited), undefined);
    assert.equal(usageOf('other', 'user', small), undefined);
  });
});
