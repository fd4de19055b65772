/** The routes that the server brings itself: the versions of the API, the probes, the pages about problems, and what the gateway believes. */
import { namesSecret, packageVersion } from '#config';
import {
  createDiagnostics,
  createDiagnosticsEvents,
  createNameClusters,
  createProbes,
  createProblemPages,
} from '#diag';
import { createExplainEndpoint, explainForm } from '#explain';
import { durationBoundsMs, type Forward, type GatewayCounts, type InternalRoute, type Traffic } from '#gateway';
import type { Representations } from '#http';
import { createMetrics, createMetricsRoute, type MetricsParts } from '#metrics';
import type { ClusterRegistry } from '#proxy';
import { limitMetrics } from '#ratelimit';
import type { Database } from '#storage';
import type { Edges } from './gateway-host.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { Generations } from './reload.ts';
import { createReloads } from './reloads.ts';

export interface OwnRoutesParts {
  /** Their names: `v1`. */
  readonly versions: readonly string[];
  /** The versions dispatcher. */
  readonly api: Forward;
  /** Undefined: nothing in this process needs one. */
  readonly database: Database | undefined;
  readonly rateLimiting: Pick<RateLimiting, 'limits' | 'stats' | 'isReady'>;
  readonly representations: Representations;
  readonly traffic: Traffic;
  readonly clusters: Pick<ClusterRegistry, 'list' | 'snapshot'>;
  readonly counts: GatewayCounts;
  /** Whether the gateway runs in this process. */
  readonly hasGateway: boolean;
  /** True from when it is asked to stop. */
  readonly isClosing: () => boolean;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Asked for at each request, since the gateway is made of these routes. */
  readonly edges: () => Edges;
}

export interface OwnRoutes {
  readonly routes: readonly InternalRoute[];
  /** Ends what is told for as long as somebody looks on. */
  readonly close: () => void;
}

export function createOwnRoutes(generations: Generations, parts: OwnRoutesParts): OwnRoutes {
  const { versions, api, rateLimiting, representations, traffic, clusters, clock, edges } = parts;
  const startedAtMs = performance.now();
  const diagnostics = {
    version: packageVersion(),
    uptimeMs: () => performance.now() - startedAtMs,
    clock,
    gateway: () => edges().snapshot(),
    clusters: clusters.list,
    nameClusters: createNameClusters(),
    traffic,
    limits: rateLimiting.limits,
    usages: rateLimiting.stats.usages,
    configuration: generations,
    namesSecret,
  };
  const events = createDiagnosticsEvents(diagnostics);
  const routes = [
    ...versions.map((name) => ({
      name: `api-${name}`,
      prefix: `/${name}`,
      rewrite: '',
      authenticated: false,
      run: api,
    })),
    ...createProbes(readinessOf(generations, parts), representations),
    createMetricsRoute(createMetrics(metricsOf(generations, parts))),
    createProblemPages(),
    createDiagnostics(diagnostics, explainForm('../explain')),
    events.endpoint,
    createExplainEndpoint((request) => edges().explain(request)),
  ];
  return { routes, close: events.close };
}

function readinessOf({ current }: Generations, parts: OwnRoutesParts): () => Promise<boolean> {
  const { database, rateLimiting, hasGateway, isClosing } = parts;
  /** A gateway that lets requests pass without a decision is of use without its limiter. */
  const needsLimiter = () =>
    !hasGateway || current().configuration.rateLimitServices.some(({ failureModeDeny }) => failureModeDeny);
  return async () =>
    !isClosing() && (rateLimiting.isReady() || !needsLimiter()) && ((await database?.isReady()) ?? true);
}

function metricsOf(configuration: Generations, parts: OwnRoutesParts): MetricsParts {
  const { rateLimiting, traffic, clusters, counts } = parts;
  return {
    version: packageVersion(),
    routes: { all: traffic.routes, durationBoundsMs },
    clusters: { all: clusters.snapshot },
    answers: counts,
    limits: { table: limitMetrics, stats: rateLimiting.stats },
    configuration: { ...configuration, reloads: createReloads(configuration) },
  };
}
