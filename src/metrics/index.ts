/** What the desk has counted, as Prometheus reads it: put together when somebody asks, and at no other time. */

export { createMetrics, type Metrics, type MetricsParts } from './metrics.ts';
export { createMetricsRoute } from './metrics-route.ts';
