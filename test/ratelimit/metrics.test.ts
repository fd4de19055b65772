/** What Prometheus reads of the rate-limit service: which sums there are, and how many at most. */
import assert from 'node:assert/strict';
import {
  type Count,
  type Counters,
  createLimiter,
  createMemoryCounters,
  createTallies,
  openRateLimitMetrics,
} from '#ratelimit';
import { descriptor, domain, limit, node } from '../support/limits.ts';

const ask = (...entries: string[]) => ({ domain: 'd', descriptors: [descriptor(...entries)] });

describe('the metrics of the rate-limit service', () => {
  /** The samples that are not 0, by what stands before their value. */
  async function samples(metrics: { readonly text: () => Promise<string> }): Promise<Record<string, number>> {
    const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const pairs = lines.map(
      (line) =>
        [line.replace(/ \S+$/, '').replace('frontdesk_ratelimit_', ''), Number(line.split(' ').at(-1))] as const,
    );
    return Object.fromEntries(pairs.filter(([, value]) => value !== 0));
  }

  const counters = () => createMemoryCounters({ clock: () => 0 });

  /** What a limiter counts into, and the metrics that read it. */
  async function openSums() {
    const tallies = createTallies();
    let failures = 0;
    const failed = () => {
      failures += 1;
    };
    const metrics = await openRateLimitMetrics({ tallies, callErrors: () => failures });
    return { metrics, observer: { counted: tallies.count, failed } };
  }

  it('sum the hits of each limit: all, within, near from 80 % on, over', async () => {
    const { metrics, observer } = await openSums();
    const limits = [domain('d', node('k', limit(10)), node('x', limit(1)))];
    const limiter = createLimiter({ limits, counters: counters(), observer });
    for (let sent = 0; sent < 12; sent += 1) limiter.shouldRateLimit(ask('k=v'));
    const labels = '{domain="d",descriptor="k",limit="10/60s"}';
    assert.deepEqual(await samples(metrics), {
      [`hits_total${labels}`]: 12,
      [`within_limit_total${labels}`]: 10,
      [`near_limit_total${labels}`]: 3,
      [`over_limit_total${labels}`]: 2,
      config_current: 1,
    });
  });

  it('tell the limits of a descriptor apart, by name where they have one, and shadow from denial', async () => {
    const { metrics, observer } = await openSums();
    const both = { ...node('k'), limits: [limit(1, 'minute', { shadowMode: true, name: 'try' }), limit(5)] };
    const limiter = createLimiter({ limits: [domain('d', both)], counters: counters(), observer });
    limiter.shouldRateLimit(ask('k=v'));
    limiter.shouldRateLimit(ask('k=v'));
    const found = await samples(metrics);
    assert.equal(found['shadow_mode_total{domain="d",descriptor="k",limit="try"}'], 1);
    assert.equal(found['over_limit_total{domain="d",descriptor="k",limit="try"}'], 1);
    assert.equal(found['within_limit_total{domain="d",descriptor="k",limit="5/60s"}'], 2);
  });

  it('count what local memory knew to be over, and what got no answer', async () => {
    const { metrics, observer } = await openSums();
    const over: Count = { over: true, remaining: 0, resetSeconds: 1, fromMemory: true };
    const remembering: Counters = { take: (hits) => hits.map(() => over) };
    const failing: Counters = { take: () => Promise.reject(new Error('down')) };
    const limits = [domain('d', node('k', limit(1)))];
    createLimiter({ limits, counters: remembering, observer }).shouldRateLimit(ask('k=v'));
    await assert.rejects(async () =>
      createLimiter({ limits, counters: failing, observer }).shouldRateLimit(ask('k=v')),
    );
    const found = await samples(metrics);
    assert.equal(found['over_limit_from_memory_total{domain="d",descriptor="k",limit="1/60s"}'], 1);
    assert.equal(found['call_errors_total'], 1);
    // Read, not added to: asking again changes nothing.
    assert.equal((await samples(metrics))['call_errors_total'], 1);
  });

  it('say whether the files are what is in force', async () => {
    const { metrics } = await openSums();
    metrics.loaded(true);
    metrics.loaded(false);
    assert.deepEqual(await samples(metrics), { config_loads_total: 1, config_load_errors_total: 1 });
    metrics.loaded(true);
    assert.equal((await samples(metrics))['config_current'], 1);
  });

  it('go on over a reload where they were', async () => {
    const { metrics, observer } = await openSums();
    for (const _reload of [1, 2]) {
      const limits = [domain('d', node('k', limit(10)))];
      createLimiter({ limits, counters: counters(), observer }).shouldRateLimit(ask('k=v'));
    }
    assert.equal((await samples(metrics))['hits_total{domain="d",descriptor="k",limit="10/60s"}'], 2);
  });

  it('have no series for values, domains and limits that clients make up', async () => {
    const tallies = createTallies();
    const observer = { counted: tallies.count, failed() {} };
    const limiter = createLimiter({ limits: [domain('d', node('k', limit(10)))], counters: counters(), observer });
    for (let value = 0; value < 50; value += 1) {
      limiter.shouldRateLimit(ask(`k=${value}`));
      const own = { ...descriptor('k=v'), limit: { requestsPerUnit: value, unit: 'hour' as const } };
      limiter.shouldRateLimit({ domain: `domain ${value}`, descriptors: [own] });
    }
    assert.deepEqual(
      [...tallies.all()].map(({ labels, tally }) => [labels.domain, labels.descriptor, tally.total]),
      [
        ['d', 'k', 50],
        ['*', '*', 50],
      ],
    );
  });

  it('tell values apart with detailed_metric, up to a bound, and sum the rest', () => {
    const tallies = createTallies({ detailsMax: 2 });
    const observer = { counted: tallies.count, failed() {} };
    const limits = [domain('d', { ...node('k', limit(10)), detailedMetric: true })];
    const limiter = createLimiter({ limits, counters: counters(), observer });
    for (const value of ['a', 'b', 'c', 'a', 'd']) limiter.shouldRateLimit(ask(`k=${value}`));
    assert.deepEqual(
      [...tallies.all()].map(({ labels, tally }) => [labels.descriptor, tally.total]),
      [
        ['k=a', 2],
        ['k=b', 1],
        ['k', 2],
      ],
    );
  });

  it('belong to one desk', async () => {
    const [first, second] = [(await openSums()).metrics, (await openSums()).metrics];
    first.loaded(true);
    assert.deepEqual(await samples(second), { config_current: 1 });
  });
});
