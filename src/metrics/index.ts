/** What the gateway has counted, as Prometheus text: read at a scrape, and at no other time. */

export { createMetrics, createMetricsRoute, type MetricsParts } from './metrics.ts';
export { createRateLimitMetrics } from './rate-limits.ts';
