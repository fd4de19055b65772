/** Metrics of the gateway and the rate limiter in the Prometheus text format, computed at each scrape. */

export { createMainThreadMetrics, createMetrics, createMetricsRoute, type MetricsParts } from './metrics.ts';
export { createRateLimitMetrics } from './rate-limits.ts';
export type { FamilySnapshot, Metrics } from './registry.ts';
export { countedIn, createMetricsOfThreads, mergeSnapshots } from './threads.ts';
