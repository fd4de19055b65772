/** The routes that the server brings itself: the versions of the API, the probes, the pages about problems, and what the gateway believes. */
import { packageVersion } from '#config';
import { createDiagnostics, createExplanations, createProbes, createProblemPages } from '#diag';
import { durationBoundsMs, type Forward, type GatewayCounts, type InternalRoute, type Traffic } from '#gateway';
import type { Representations } from '#http';
import { createMetrics, createMetricsRoute, type MetricsParts } from '#metrics';
import type { Clusters } from '#proxy';
import { limitMetrics } from '#ratelimit';
import type { Database } from '#storage';
import type { Edges } from './edges.ts';
import type { Generations } from './generations.ts';
import type { RateLimiting } from './rate-limiting.ts';
import { createReloads } from './reloads.ts';

export interface OwnRoutesParts {
  /** Their names: `v1`. */
  readonly versions: readonly string[];
  /** The versions dispatcher. */
  readonly api: Forward;
  /** Undefined: nothing in this process needs one. */
  readonly database: Database | undefined;
  readonly rateLimiting: Pick<RateLimiting, 'limits' | 'tallied' | 'callErrors'>;
  readonly representations: Representations;
  readonly traffic: Traffic;
  readonly clusters: Pick<Clusters, 'snapshot'>;
  readonly counts: GatewayCounts;
  /** True from when it is asked to stop. */
  readonly isClosing: () => boolean;
  /** Asked for at each request, since the gateway is made of these routes. */
  readonly edges: () => Edges;
}

export function createOwnRoutes(generations: Generations, parts: OwnRoutesParts): readonly InternalRoute[] {
  const { versions, api, database, rateLimiting, representations, edges } = parts;
  const startedAtMs = performance.now();
  return [
    ...versions.map((name) => ({ name: 'api', prefix: `/${name}`, rewrite: '', authenticated: false, run: api })),
    ...createProbes(async () => !parts.isClosing() && ((await database?.isReady()) ?? true), representations),
    createMetricsRoute(createMetrics(metricsOf(generations, parts))),
    createProblemPages(),
    createDiagnostics({
      version: packageVersion(),
      uptimeMs: () => performance.now() - startedAtMs,
      gateway: () => edges().snapshot(),
      limits: rateLimiting.limits,
      configuration: generations,
    }),
    createExplanations((question) => edges().explain(question)),
  ];
}

function metricsOf(configuration: Generations, parts: OwnRoutesParts): MetricsParts {
  const { rateLimiting, traffic, clusters, counts } = parts;
  return {
    version: packageVersion(),
    routes: { all: traffic.routes, durationBoundsMs },
    clusters: { all: clusters.snapshot },
    answers: counts,
    limits: { table: limitMetrics, tallied: rateLimiting.tallied, callErrors: rateLimiting.callErrors },
    configuration: { ...configuration, reloads: createReloads(configuration) },
  };
}
