/** The metrics of the HTTP interface of the rate-limit service. */
import assert from 'node:assert/strict';
import { createRateLimitMetrics } from '#metrics';
import { createLimiter, createLimitStats } from '#ratelimit';
import { descriptor, domain, limit, node } from '../support/limits.ts';
import { seriesOf } from '../support/scrape.ts';

describe('the metrics of the rate-limit service', () => {
  const notReloaded = { errors: () => [], reloads: () => ({ succeeded: 0, failed: 0, lastDurationMs: 0 }) };

  it('include sums for each limit, failed decisions, and the state of the configuration', async () => {
    const stats = createLimitStats();
    const errors = [{}];
    const reloads = { succeeded: 2, failed: 1, lastDurationMs: 0 };
    const configuration = { errors: () => errors as never, reloads: () => reloads };
    const metrics = createRateLimitMetrics({ stats, configuration });
    const limiter = createLimiter({ limits: [domain('d', node('k', limit(1)))], stats });
    for (let hit = 0; hit < 3; hit += 1)
      await limiter.shouldRateLimit({ domain: 'd', descriptors: [descriptor('k=v')] });
    const returned = { ...descriptor('k=v'), hitsAddend: 2, isNegativeHits: true };
    await limiter.shouldRateLimit({ domain: 'd', descriptors: [returned] });
    stats.failed();
    stats.evicted();
    stats.refused('silent');
    assert.deepEqual(seriesOf((await metrics.read()).text), {
      'frontdesk_ratelimit_hits_total d k 1/60s': 3,
      'frontdesk_ratelimit_within_limit_total d k 1/60s': 1,
      'frontdesk_ratelimit_near_limit_total d k 1/60s': 1,
      'frontdesk_ratelimit_over_limit_total d k 1/60s': 2,
      'frontdesk_ratelimit_over_limit_from_memory_total d k 1/60s': 0,
      'frontdesk_ratelimit_shadow_mode_total d k 1/60s': 0,
      'frontdesk_ratelimit_given_back_total d k 1/60s': 2,
      frontdesk_ratelimit_call_errors_total: 1,
      frontdesk_ratelimit_evicted_counters_total: 1,
      'frontdesk_ratelimit_port_refusals_total too_many': 0,
      'frontdesk_ratelimit_port_refusals_total silent': 1,
      'frontdesk_ratelimit_port_refusals_total unfinished': 0,
      'frontdesk_ratelimit_port_refusals_total invalid': 0,
      'frontdesk_ratelimit_port_refusals_total exhausted': 0,
      'frontdesk_ratelimit_port_refusals_total unimplemented': 0,
      'frontdesk_ratelimit_port_refusals_total unreadable': 0,
      frontdesk_ratelimit_config_loads_total: 2,
      frontdesk_ratelimit_config_load_errors_total: 1,
      frontdesk_ratelimit_config_current: 0,
    });
    errors.length = 0;
    assert.equal(seriesOf((await metrics.read()).text)['frontdesk_ratelimit_config_current'], 1);
  });

  it('merge limits whose descriptors differ only in values, and reveal no values except of generic_key', async () => {
    const stats = createLimitStats();
    const metrics = createRateLimitMetrics({ stats, configuration: notReloaded });
    const named = ['x-plan=s3cr3t-1', 'x-plan=s3cr3t-2', 'generic_key=gold'];
    const limiter = createLimiter({ limits: [domain('d', ...named.map((name) => node(name, limit(10))))], stats });
    await limiter.shouldRateLimit({ domain: 'd', descriptors: named.map((name) => descriptor(name)) });
    const { text } = await metrics.read();
    assert.doesNotMatch(text, /s3cr3t/);
    const series = seriesOf(text);
    assert.equal(series['frontdesk_ratelimit_hits_total d x-plan=… 10/60s'], 2);
    assert.equal(series['frontdesk_ratelimit_hits_total d generic_key=gold 10/60s'], 1);
  });

  it('never decrease while a series exists, when a reload removes one of the limits that share it', async () => {
    const stats = createLimitStats();
    const metrics = createRateLimitMetrics({ stats, configuration: notReloaded });
    const limitsOf = (...plans: readonly string[]) => [domain('d', ...plans.map((plan) => node(plan, limit(10))))];
    const limiter = createLimiter({ limits: limitsOf('plan=a', 'plan=b', 'plan=c'), stats });
    const hit = (plan: string) => void limiter.shouldRateLimit({ domain: 'd', descriptors: [descriptor(plan)] });
    const hits = async () => {
      const series = seriesOf((await metrics.read()).text);
      return series['frontdesk_ratelimit_hits_total d plan=… 10/60s'];
    };
    for (const plan of ['plan=a', 'plan=b', 'plan=c']) hit(plan);
    for (const plans of [['plan=a', 'plan=b'], ['plan=a'], ['plan=a', 'plan=b']]) {
      limiter.reload(limitsOf(...plans));
      assert.equal(await hits(), 3);
    }
    hit('plan=b');
    assert.equal(await hits(), 4);
    limiter.reload([]);
    assert.equal(await hits(), undefined);
    limiter.reload(limitsOf('plan=a'));
    hit('plan=a');
    assert.equal(await hits(), 1);
  });
});
