/** The metrics of the rate-limit service on its HTTP port. */
import assert from 'node:assert/strict';
import { createLimiter, createLimitStats, openRateLimitMetrics } from '#ratelimit';
import { descriptor, domain, limit, node } from '../support/limits.ts';

describe('the metrics of the rate-limit service', () => {
  it('have a series for each limit and sum, read at the scrape', async () => {
    const stats = createLimitStats();
    const metrics = await openRateLimitMetrics({ stats });
    const limiter = createLimiter({ limits: [domain('d', node('k', limit(10)))], stats });
    limiter.shouldRateLimit({ domain: 'd', descriptors: [descriptor('k=v')] });
    stats.failed();
    const labels = '{domain="d",descriptor="k",limit="10/60s"}';
    for (const _again of [1, 2])
      for (const line of [`hits_total${labels} 1`, `within_limit_total${labels} 1`, 'call_errors_total 1'])
        assert.match(await metrics.text(), new RegExp(`^frontdesk_ratelimit_${line.replace(/[{}]/g, '\\$&')}$`, 'm'));
  });

  it('say whether the files are in force', async () => {
    const metrics = await openRateLimitMetrics({ stats: createLimitStats() });
    metrics.loaded(true);
    metrics.loaded(false);
    for (const line of ['config_loads_total 1', 'config_load_errors_total 1', 'config_current 0'])
      assert.match(await metrics.text(), new RegExp(`^frontdesk_ratelimit_${line}$`, 'm'));
  });
});
