/** Metrics of the gateway and the rate limiter in the Prometheus text format, computed at each scrape. */

export { createMetrics, createMetricsRoute, type MetricsParts } from './metrics.ts';
export { createRateLimitMetrics } from './rate-limits.ts';
