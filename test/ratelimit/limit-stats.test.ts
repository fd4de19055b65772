/** Statistics of each limit: sums of hits in a bounded number of series, and fullness. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { LimitDomain } from '#config';
import {
  type Counters,
  createLimiter,
  createLimitStats,
  createMemoryCounters,
  type LimitStatsOptions,
} from '#ratelimit';
import type { Limit } from '#ratelimit/limit';
import { descriptor, domain, limit, node, unlimited } from '../support/limits.ts';

function setUp(descriptors: LimitDomain['descriptors'], options: LimitStatsOptions & { counters?: Counters } = {}) {
  const time = { nowMs: 0 };
  const clock = () => time.nowMs;
  const stats = createLimitStats({ clock, ...options });
  const counters = options.counters ?? createMemoryCounters({ clock });
  const limiter = createLimiter({ limits: [domain('d', ...descriptors)], counters, stats });
  const hit = (...entries: string[]) =>
    void limiter.shouldRateLimit({ domain: 'd', descriptors: [descriptor(...entries)] });
  const totals = () => [...stats.all()].map(({ labels, sums }) => [labels.domain, labels.descriptor, sums.total]);
  return { time, stats, limiter, hit, totals };
}

describe('limit stats', () => {
  it('sum the hits of each limit: in total, within, near (from 80 %) and over', () => {
    const { hit, stats } = setUp([node('k', limit(10)), node('x', limit(1))]);
    for (let sent = 0; sent < 12; sent += 1) hit('k=v');
    const [stat, ...others] = stats.all();
    assert.deepEqual(stat?.labels, { domain: 'd', descriptor: 'k', limit: '10/60s' });
    assert.deepEqual(stat?.sums, {
      total: 12,
      within: 10,
      near: 3,
      over: 2,
      overFromCache: 0,
      shadow: 0,
      givenBack: 0,
    });
    assert.deepEqual(others, []);
  });

  it('separate the limits of a descriptor, by name if they have one, and count hits in shadow mode', () => {
    const { hit, stats } = setUp([node('k', [limit(1, 'minute', { shadowMode: true, name: 'try' }), limit(5)])]);
    hit('k=v');
    hit('k=v');
    assert.deepEqual(
      [...stats.all()].map(({ labels, sums }) => [labels.limit, sums.within, sums.over, sums.shadow]),
      [
        ['try', 1, 1, 1],
        ['5/60s', 2, 0, 0],
      ],
    );
  });

  it('sum the hits that are given back separately, for each value with detailed_metric', () => {
    const { limiter, hit, stats } = setUp([{ ...node('k', limit(2)), detailedMetric: true }]);
    for (const entry of ['k=a', 'k=b']) hit(entry);
    const returned = { ...descriptor('k=a'), hitsAddend: 5, isNegativeHits: true };
    void limiter.shouldRateLimit({ domain: 'd', descriptors: [returned] });
    assert.deepEqual(
      [...stats.all()].map(({ labels, sums }) => [labels.descriptor, sums.total, sums.within, sums.givenBack]),
      [
        ['k=a', 1, 1, 5],
        ['k=b', 1, 1, 0],
      ],
    );
  });

  it('count hits that were denied from the cache, and decisions for which counters failed', () => {
    const counters: Counters = {
      take: (hits) => hits.map(() => ({ over: true, remaining: 0, resetSeconds: 1, fromCache: true })),
    };
    const { hit, stats } = setUp([node('k', limit(1))], { counters });
    hit('k=v');
    stats.failed();
    assert.deepEqual([[...stats.all()][0]?.sums.overFromCache, stats.failures()], [1, 1]);
  });

  it('merge values that metrics would render alike', () => {
    const { hit, totals } = setUp([{ ...node('k', limit(9)), detailedMetric: true }]);
    for (const loneSurrogate of ['\ud800', '\udc00']) hit(`k=${loneSurrogate}`);
    assert.deepEqual(totals(), [['d', 'k=\ufffd', 2]]);
  });

  it('never merge different descriptors, whatever their values, and bound their length', () => {
    const value = fc.string({ unit: fc.constantFrom('a', 'b=', '=', ' › ', '"', '\\', '…', 'x'.repeat(256), '😀') });
    const values = fc.array(value, { minLength: 1, maxLength: 2 });
    const detailed = (key: string, ...below: LimitDomain['descriptors']) => ({
      ...node(key, limit(9), ...below),
      detailedMetric: true,
    });
    const check = (one: readonly string[], other: readonly string[]) => {
      const { limiter, totals } = setUp([detailed('a', detailed('b'))]);
      for (const sent of [one, other]) {
        const entries = sent.map((value, index) => ({ key: index === 0 ? 'a' : 'b', value }));
        void limiter.shouldRateLimit({ domain: 'd', descriptors: [{ entries }] });
      }
      assert.equal(totals().length, JSON.stringify(one) === JSON.stringify(other) ? 1 : 2);
      for (const [, label] of totals()) assert.ok(String(label).length < 300);
    };
    check(['a › b=a'], ['a', 'a']);
    check(['a › b=a'], ['"a', 'a"']);
    fc.assert(fc.property(values, values, check));
  });

  it('survive a reload, and create no series for values, domains and limits that clients make up', () => {
    const { hit, limiter, totals } = setUp([node('k', limit(10))]);
    for (let value = 0; value < 50; value += 1) {
      if (value === 25) limiter.reload([domain('d', node('k', limit(10)))]);
      hit(`k=${value}`);
      const own = { ...descriptor('k=v'), limit: { requestsPerUnit: value, unit: 'hour' as const } };
      void limiter.shouldRateLimit({ domain: `domain ${value}`, descriptors: [own] });
    }
    assert.deepEqual(totals(), [
      ['d', 'k', 50],
      ['*', '*', 50],
    ]);
  });

  it('separate values with detailed_metric, up to a bound, until a reload removes or changes their limit', () => {
    const detailed = (perMinute: number) => ({ ...node('k', limit(perMinute)), detailedMetric: true });
    const { hit, limiter, totals } = setUp([detailed(10), node('x', limit(1), node('y', limit(1)))], { detailsMax: 2 });
    for (const entries of [['k=a'], ['k=b'], ['k=c'], ['x=1'], ['x=1', 'y=1']]) hit(...entries);
    const own = { ...descriptor('k=v'), limit: { requestsPerUnit: 1, unit: 'hour' as const } };
    void limiter.shouldRateLimit({ domain: 'd', descriptors: [own] });
    limiter.reload([domain('d', detailed(20), node('x', [], node('y', limit(1))))]);
    for (const value of ['b', 'c', 'd']) hit(`k=${value}`);
    assert.deepEqual(totals(), [
      ['d', 'x › y', 1],
      ['*', '*', 1],
      ['d', 'k=b', 1],
      ['d', 'k=c', 1],
      ['d', 'k', 1],
    ]);
  });
});

describe('the fullness of a limit', () => {
  function fullnessOf(requestsPerUnit: number) {
    const { stats, ...rest } = setUp([node('k', limit(requestsPerUnit))]);
    return { ...rest, fullness: () => [...stats.all()].map((one) => one.fullness()) };
  }

  it('is that of the fullest counter, and 1 when a counter is over', () => {
    const { hit, fullness } = fullnessOf(4);
    assert.deepEqual(fullness(), []);
    for (const value of ['a', 'a', 'b']) hit(`k=${value}`);
    assert.deepEqual(fullness(), [0.5]);
    for (const value of ['a', 'a', 'a', 'b']) hit(`k=${value}`);
    assert.deepEqual(fullness(), [1]);
    const closed = fullnessOf(0);
    for (const hitsAddend of [0, 1]) {
      closed.limiter.shouldRateLimit({ domain: 'd', descriptors: [{ ...descriptor('k=a'), hitsAddend }] });
      assert.deepEqual(closed.fullness(), [1], 'a limit of 0');
    }
  });

  it('drops to 0 when the window ends, and then starts over', () => {
    const { hit, fullness, time } = fullnessOf(4);
    for (let sent = 0; sent < 3; sent += 1) hit('k=a');
    time.nowMs = 60_000;
    assert.deepEqual(fullness(), [0]);
    hit('k=b');
    assert.deepEqual(fullness(), [0.25]);
  });
});

describe('the usage of configured limits', () => {
  const [small, large] = [limit(4), limit(8, 'hour', { name: 'large' })];
  const below = { ...node('path=/v1', limit(2)), detailedMetric: true };
  const { hit, stats } = setUp([node('user', [small, large], below), node('free', unlimited)]);

  before(() => {
    for (let sent = 0; sent < 5; sent += 1) hit('user=ann');
    for (const user of ['ann', 'ann', 'ann', 'bob']) hit(`user=${user}`, 'path=/v1');
    hit('free=x');
  });

  const check = (...[of, descriptor, own, expected]: [string, string, Limit, object | undefined]) =>
    assert.deepEqual(stats.usages()(of, descriptor, own), expected);

  it('is reported per limit of a descriptor, summed over the values that detailed_metric separates', () => {
    check('d', 'user', small, { hits: 5, over: 1, fullness: 1 });
    check('d', 'user', large, { hits: 5, over: 0, fullness: 0.5 });
    check('d', 'user › path=/v1', limit(2), { hits: 4, over: 1, fullness: 1 });
  });

  it('is undefined for limits that were never hit or are not counted', () => {
    check('d', 'free', unlimited, undefined);
    check('other', 'user', small, undefined);
  });
});
