/** A desk in which nothing has happened yet, for its metrics. */
import { createGatewayCounts, createTraffic, durationBoundsMs } from '#gateway';
import type { MetricsParts } from '#metrics';
import { createLimitStats, limitMetrics } from '#ratelimit';

export const parts: MetricsParts = {
  version: '1.2.3',
  routes: { all: createTraffic().routes, durationBoundsMs },
  clusters: { all: () => [] },
  answers: createGatewayCounts(),
  limits: { table: limitMetrics, stats: createLimitStats() },
  configuration: {
    current: () => ({ number: 1, appliedAtMs: 1_700_000_000_000 }),
    errors: () => [],
    notices: () => [],
    reloads: () => ({ succeeded: 0, failed: 0, lastDurationMs: 0 }),
  },
};
