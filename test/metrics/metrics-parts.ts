/** The sources of a gateway's metrics, as they are before its first request. */
import { durationBoundsMs } from '#gateway';
import type { MetricsParts } from '#metrics';
import { createLimitStats } from '#ratelimit';
import { createGatewayCounts } from '../../src/gateway/gateway.ts';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';

export const parts: MetricsParts = {
  version: '1.2.3',
  routes: { all: createTraffic().routes, durationBoundsMs },
  clusters: () => [],
  decisions: createGatewayCounts(),
  tokens: { states: () => [], unknown: () => 0 },
  clock: () => 1_700_000_600_000,
  compression: { responses: { zstd: 0, br: 0, gzip: 0 }, savedBytes: 0 },
  logins: { right: 0, wrong: 0, throttled: 0, busy: 0 },
  limits: createLimitStats(),
  configuration: {
    refused: () => [],
    current: () => ({ number: 1, appliedAtMs: 1_700_000_000_000 }),
    errors: () => [],
    notices: () => [],
    kubernetes: () => undefined,
    reloads: () => ({ succeeded: 0, failed: 0, lastDurationMs: 0 }),
  },
  droppedLogLines: undefined,
  certificates: () => [],
  connections: () => ({ open: 0, max: 1000, refused: 0, idleClosed: 0, http2: 0, http2Requests: 0 }),
};
