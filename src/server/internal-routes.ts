/** The server's internal routes: API versions, probes, metrics, problem pages, diagnostics and explain. */
import { packageVersion } from '#config';
import { createDiagnostics, createDiagnosticsEvents, createProblemPages } from '#diag';
import { createExplainEndpoint, explainForm } from '#explain';
import { durationBoundsMs, type GatewayCounts, type InternalRoute, type Traffic } from '#gateway';
import type { ConnectionLimit, Representations } from '#http';
import { createMetrics, createMetricsRoute, type MetricsParts } from '#metrics';
import type { ClusterRegistry } from '#proxy';
import type { CurrentGateway } from './current-gateway.ts';
import type { Setup } from './options.ts';
import { createProbes, type FindFault } from './probes.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { LiveConfiguration } from './reload.ts';
import type { Services } from './services.ts';

export interface InternalRoutesParts {
  readonly configuration: LiveConfiguration;
  readonly services: Pick<Services, 'versions' | 'logins'>;
  readonly rateLimiting: RateLimiting;
  /** Used by check_ready. */
  readonly findFault: FindFault;
  readonly representations: Representations;
  readonly traffic: Traffic;
  readonly clusters: Pick<ClusterRegistry, 'list' | 'snapshot'>;
  readonly counts: GatewayCounts;
  readonly connectionLimit: Pick<ConnectionLimit, 'counts'>;
  readonly gateway: Pick<CurrentGateway, 'snapshot' | 'explain'>;
}

export interface InternalRoutes {
  readonly routes: readonly InternalRoute[];
  /** Closes the event streams. */
  readonly close: () => void;
}

export function createInternalRoutes(
  { logger, clock }: Pick<Setup, 'logger' | 'clock'>,
  parts: InternalRoutesParts,
): InternalRoutes {
  const { configuration, services, rateLimiting, findFault, representations, traffic, clusters, gateway } = parts;
  const startedAtMs = performance.now();
  const diagnostics = {
    version: packageVersion(),
    uptimeMs: () => performance.now() - startedAtMs,
    clock,
    gateway: gateway.snapshot,
    clusters: clusters.list,
    traffic,
    limits: rateLimiting.limits,
    usages: rateLimiting.stats.usages,
    configuration,
  };
  const events = createDiagnosticsEvents(diagnostics);
  const routes = [
    ...Object.entries(services.versions).map(([name, run]) => versionRoute(name, run)),
    ...createProbes(findFault, representations),
    createMetricsRoute(createMetrics(metricsParts(logger, parts))),
    createProblemPages(),
    createDiagnostics(diagnostics, explainForm('../explain')),
    events.endpoint,
    createExplainEndpoint(gateway.explain),
  ];
  return { routes, close: events.close };
}

function versionRoute(name: string, run: InternalRoute['run']): InternalRoute {
  return { name: `api-${name}`, prefix: `/${name}`, forAdmins: false, run };
}

function metricsParts({ droppedLines }: Setup['logger'], parts: InternalRoutesParts): MetricsParts {
  const { configuration, services, rateLimiting, traffic, clusters, counts, connectionLimit } = parts;
  return {
    version: packageVersion(),
    routes: { all: traffic.routes, durationBoundsMs },
    clusters: clusters.snapshot,
    decisions: counts,
    logins: services.logins,
    limits: rateLimiting.stats,
    configuration,
    connections: connectionLimit.counts,
    droppedLogLines: droppedLines,
  };
}
