/** All metrics of a gateway, and the route that serves them. */
import type { Context } from 'koa';
import type { GatewayCounts, InternalRoute } from '#gateway';
import { acceptRead, type CompressionCounts, type ConnectionCounts } from '#http';
import type { ClusterSnapshot } from '#proxy';
import type { LimitStats } from '#ratelimit';
import {
  createClusterFamilies,
  createCompressionFamilies,
  createDecisionFamilies,
  createRouteFamilies,
  type LoginCounts,
  type RouteParts,
} from './gateway.ts';
import { createKubernetesFamilies } from './kubernetes.ts';
import {
  type CertificatesOf,
  type ConfigurationState,
  createCertificateFamily,
  createConfigurationFamilies,
  createConnectionFamilies,
  createLogFamily,
  createProcessFamilies,
} from './process.ts';
import { createRateLimitFamilies } from './rate-limits.ts';
import { createMetricsOf, type Family, gauge, type Metrics, samplesBy } from './registry.ts';
import { createTokenFamilies, type TokenParts } from './tokens.ts';

export interface MetricsParts {
  readonly version: string;
  /** Returns how many threads serve requests. @default 1 */
  readonly threads?: () => number;
  readonly routes: RouteParts;
  readonly clusters: () => readonly ClusterSnapshot[];
  readonly decisions: GatewayCounts;
  readonly compression: CompressionCounts;
  /** The outcomes of password checks. Undefined when another process checks passwords. */
  readonly logins: LoginCounts | undefined;
  readonly tokens: TokenParts;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
  readonly limits: Pick<LimitStats, 'all' | 'removed' | 'failures' | 'evictions' | 'refusals'>;
  readonly configuration: ConfigurationState;
  readonly connections: () => ConnectionCounts;
  /** Returns the certificates of the gateway. Empty without TLS. */
  readonly certificates: CertificatesOf;
  /** Undefined when the logger never drops lines. */
  readonly droppedLogLines: (() => number) | undefined;
}

export function createMetrics(parts: MetricsParts): Metrics {
  return createMetricsOf(familiesOf(parts));
}

type MainThreadParts = Required<Pick<MetricsParts, 'version' | 'threads'>> &
  Pick<MetricsParts, 'clock' | 'configuration' | 'certificates' | 'droppedLogLines'>;

/** Creates the metrics of a main thread, which serves no requests. */
export function createMainThreadMetrics(parts: MainThreadParts): Metrics {
  return createMetricsOf([
    createBuildFamily(parts.version),
    createThreadsFamily(parts.threads),
    ...createConfigurationFamilies(parts.configuration),
    ...createKubernetesFamilies(parts.configuration.kubernetes, parts.clock),
    createCertificateFamily(parts.certificates),
    createLogFamily(parts.droppedLogLines),
    ...createProcessFamilies(),
  ]);
}

function createBuildFamily(version: string): Family {
  return {
    name: 'frontdesk_build_info',
    type: 'gauge',
    labels: ['version'],
    help: 'Always 1.',
    merge: 'first',
    samples: () => samplesBy('version', { [version]: 1 }),
  };
}

function createThreadsFamily(threads: () => number = () => 1): Family {
  return gauge('frontdesk_threads', 'Threads that serve requests.', threads, 'first');
}

/** Exported for tests that compare the documentation and the alerts with these names. */
export function familiesOf(parts: MetricsParts): readonly Family[] {
  return [
    createBuildFamily(parts.version),
    createThreadsFamily(parts.threads),
    ...createRouteFamilies(parts.routes),
    ...createClusterFamilies(parts.clusters),
    ...createDecisionFamilies(parts.decisions, parts.logins),
    ...createTokenFamilies(parts.tokens, parts.clock),
    ...createCompressionFamilies(parts.compression),
    ...createRateLimitFamilies(parts.limits),
    ...createConfigurationFamilies(parts.configuration),
    ...createKubernetesFamilies(parts.configuration.kubernetes, parts.clock),
    ...createConnectionFamilies(parts.connections),
    createCertificateFamily(parts.certificates),
    createLogFamily(parts.droppedLogLines),
    ...createProcessFamilies(),
  ];
}

const path = '/gateway/v0/metrics';

/**
 * Serves the metrics to administrators, always as plain text. Every version of Prometheus accepts that, and a 406 would
 * not help other clients (RFC 9110 section 12.5.1).
 */
export function createMetricsRoute(metrics: Pick<Metrics, 'read'>): InternalRoute {
  return {
    name: 'metrics',
    prefix: path,
    forAdmins: true,
    async run(ctx: Context) {
      if (!acceptRead(ctx, path)) return;
      const { contentType, text } = await metrics.read();
      ctx.set({ 'Content-Type': contentType, 'Cache-Control': 'no-store' });
      ctx.body = text;
    },
  };
}
