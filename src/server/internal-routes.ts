/** The server's internal routes: API versions, probes, metrics, problem pages, diagnostics and explain. */
import { X509Certificate } from 'node:crypto';
import { packageVersion } from '#config';
import { createDiagnostics, createDiagnosticsEvents, createProblemPages } from '#diag';
import { createExplainEndpoint, explainForm } from '#explain';
import { durationBoundsMs, type GatewayState, type InternalRoute } from '#gateway';
import { acceptRead, type ConnectionLimit, notReady, type Representations, represent, stopping } from '#http';
import { createMetrics, createMetricsRoute, type MetricsParts } from '#metrics';
import type { Database } from '#storage';
import type { CurrentGateway } from './current-gateway.ts';
import { createLimitsEndpoint } from './limits-endpoint.ts';
import type { CurrentTls } from './listeners.ts';
import type { Setup } from './options.ts';
import type { RateLimiting } from './rate-limiting.ts';
import { failsClosed } from './record-services.ts';
import type { LiveConfiguration } from './reload.ts';
import type { Services } from './services.ts';

export interface InternalRoutesParts {
  readonly configuration: LiveConfiguration;
  readonly services: Pick<Services, 'versions' | 'logins'>;
  readonly rateLimiting: RateLimiting;
  /** Undefined when no module of this process needs a database. */
  readonly storage: { readonly database: Pick<Database, 'findFault'> } | undefined;
  /** Aborted when the process starts to close. */
  readonly closing: AbortSignal;
  readonly representations: Representations;
  readonly state: Pick<GatewayState, 'clusters' | 'counts' | 'traffic'>;
  readonly connectionLimit: Pick<ConnectionLimit, 'counts'>;
  readonly gateway: Pick<CurrentGateway, 'snapshot' | 'explain'>;
  readonly tls: CurrentTls;
}

export interface InternalRoutes {
  readonly routes: readonly InternalRoute[];
  /** Closes the event streams. */
  readonly close: () => void;
}

export function createInternalRoutes(
  setup: Pick<Setup, 'logger' | 'clock' | 'has' | 'services' | 'settings'>,
  parts: InternalRoutesParts,
): InternalRoutes {
  const { logger, clock } = setup;
  const { configuration, services, rateLimiting, representations, gateway } = parts;
  const { clusters, traffic } = parts.state;
  const startedAtMs = performance.now();
  const diagnostics = {
    version: packageVersion(),
    uptimeMs: () => performance.now() - startedAtMs,
    clock,
    gateway: gateway.snapshot,
    clusters: clusters.list,
    traffic,
    limits: () => configuration.current().configuration.limits,
    usages: rateLimiting.stats.usages,
    lastUncountedAtMs: rateLimiting.lastUncountedAtMs,
    configuration,
  };
  const events = createDiagnosticsEvents(diagnostics);
  const routes = [
    ...Object.entries(services.versions).map(([name, run]): InternalRoute => {
      return { name: `api-${name}`, prefix: `/${name}`, forAdmins: false, run };
    }),
    probeRoute('check_alive', 'alive', representations, async () => undefined),
    probeRoute('check_ready', 'ready', representations, createFindFault(setup, parts)),
    createMetricsRoute(createMetrics(metricsParts(logger, parts))),
    createProblemPages(),
    createDiagnostics(diagnostics, explainForm('../explain')),
    events.endpoint,
    createExplainEndpoint(gateway.explain),
    createLimitsEndpoint(rateLimiting.clientLimits),
  ];
  return { routes, close: events.close };
}

/** Resolves to a sentence that says why a probe fails, or to undefined if it succeeds. Never rejects. */
type FindFault = () => Promise<string | undefined>;

/** `status` is what a successful probe reports. */
function probeRoute(
  name: string,
  status: string,
  representations: Representations,
  findFault: FindFault,
): InternalRoute {
  const prefix = `/gateway/v0/${name}`;
  const title = status.charAt(0).toUpperCase() + status.slice(1);
  return {
    ...{ name, prefix, forAdmins: false },
    async run(ctx) {
      if (!acceptRead(ctx, prefix)) return;
      const detail = await findFault();
      if (detail !== undefined) throw notReady(detail);
      ctx.set('Cache-Control', 'no-store');
      represent(ctx, representations.choose(ctx.req.headers.accept), { status }, { title });
    },
  };
}

/** Defines when the process is ready: as long as it can serve requests. */
function createFindFault(setup: Pick<Setup, 'has' | 'services' | 'settings'>, parts: InternalRoutesParts): FindFault {
  const { configuration, storage, rateLimiting, closing } = parts;
  /** False for a gateway that fails open: it forwards requests when the limiter is unavailable. */
  function needsLimiter(): boolean {
    const { rateLimitServices } = configuration.current().configuration;
    return !setup.has('gateway') || rateLimitServices.some((record) => failsClosed(setup, record));
  }
  return async function findFault() {
    if (closing.aborted) return stopping;
    if (needsLimiter() && !rateLimiting.isReady()) return 'The rate limiter cannot count in Redis.';
    return storage?.database.findFault();
  };
}

function metricsParts({ droppedLines }: Setup['logger'], parts: InternalRoutesParts): MetricsParts {
  const { configuration, services, rateLimiting, connectionLimit, tls } = parts;
  const { clusters, counts, traffic } = parts.state;
  return {
    version: packageVersion(),
    routes: { all: traffic.routes, durationBoundsMs },
    clusters: clusters.snapshot,
    decisions: counts,
    logins: services.logins,
    limits: rateLimiting.stats,
    configuration,
    connections: connectionLimit.counts,
    certificateExpiresAtMs: () => tls.current && new X509Certificate(tls.current.cert).validToDate.getTime(),
    droppedLogLines: droppedLines,
  };
}
