/** The server's internal routes: API versions, probes, metrics, problem pages, diagnostics and explain. */
import type { TokenProviders } from '#auth';
import { packageVersion } from '#config';
import { createDiagnostics, createDiagnosticsEvents, createProblemPages, readDiagnostics } from '#diag';
import { createExplainEndpoint, explainForm } from '#explain';
import { durationBoundsMs, type GatewayState, type InternalRoute } from '#gateway';
import { acceptRead, type ConnectionLimit, notReady, type Representations, represent, stopping } from '#http';
import type { KubernetesState } from '#kubernetes';
import { createMetrics, createMetricsOfThreads, createMetricsRoute, type MetricsParts } from '#metrics';
import type { Travel } from '#travel';
import type { CurrentGateway } from './current-gateway.ts';
import { createLimitsEndpoint } from './limits-endpoint.ts';
import type { Setup } from './options.ts';
import { problemTable } from './problems.ts';
import type { RateLimiting } from './rate-limiting.ts';
import { failsClosed } from './record-services.ts';
import type { LiveConfiguration } from './reload.ts';
import type { Services } from './services.ts';
import type { Reports, ThreadParts } from './threads/parts.ts';
import { type CurrentTls, certificatesOf, type LiveCertificates, withCertificates } from './tls/certificates.ts';

export interface InternalRoutesParts {
  readonly configuration: LiveConfiguration;
  readonly services: Pick<Services, 'versions' | 'logins'>;
  readonly rateLimiting: RateLimiting;
  /** Undefined when none of its services run in this process. */
  readonly travel: Pick<Travel, 'findFault'> | undefined;
  /** Aborted when the process starts to close. */
  readonly closing: AbortSignal;
  readonly representations: Representations;
  readonly state: Pick<GatewayState, 'clusters' | 'counts' | 'traffic' | 'compression'>;
  readonly connectionLimit: Pick<ConnectionLimit, 'counts'>;
  readonly gateway: Pick<CurrentGateway, 'snapshot' | 'explain'>;
  readonly tls: CurrentTls;
  readonly tokenProviders: Pick<TokenProviders, 'states' | 'unknown'>;
  readonly certificates: Pick<LiveCertificates, 'refused' | 'notices'>;
  /** Undefined when the process serves with one thread. */
  readonly thread: Pick<ThreadParts, 'count' | 'report' | 'all'> | undefined;
}

export interface InternalRoutes {
  readonly routes: readonly InternalRoute[];
  /** Closes the event streams. */
  readonly close: () => void;
}

export function createInternalRoutes(
  setup: Pick<Setup, 'logger' | 'clock' | 'has' | 'services' | 'settings'>,
  given: InternalRoutesParts,
): InternalRoutes {
  const { clock } = setup;
  const parts = { ...given, configuration: withCertificates(given.configuration, given.certificates) };
  const { configuration, services, rateLimiting, representations, gateway, thread } = parts;
  const { clusters, traffic } = parts.state;
  const startedAtMs = performance.now();
  const diagnosticsParts = {
    version: packageVersion(),
    uptimeMs: () => performance.now() - startedAtMs,
    clock,
    gateway: gateway.snapshot,
    connections: parts.connectionLimit.counts,
    tokenProviders: parts.tokenProviders.states,
    clusters: clusters.list,
    traffic,
    limits: () => configuration.current().configuration.limits,
    usages: rateLimiting.stats.usages,
    lastUncountedAtMs: rateLimiting.lastUncountedAtMs,
    certificates: () => certificatesOf(parts.tls),
    configuration,
  };
  const metrics = createMetrics(metricsParts(setup, parts));
  const own: Omit<Reports, 'limiterMetrics'> = {
    metrics: async () => metrics.snapshot(),
    diagnostics: async (filter) => readDiagnostics(diagnosticsParts, filter),
    fault: createFindFault(setup, parts),
    kubernetes: async () => configuration.kubernetes(),
  };
  thread?.report(own);
  const all = thread?.all ?? own;
  const events = createDiagnosticsEvents(all.diagnostics, {
    generation: () => configuration.current().number,
    threads: thread?.count,
  });
  const routes = [
    ...Object.entries(services.versions).map(([name, run]): InternalRoute => {
      return { name: `api-${name}`, prefix: `/${name}`, forAdmins: false, run };
    }),
    probeRoute('check_alive', representations, async () => ({ status: 'alive' })),
    probeRoute('check_ready', representations, createReadiness(all, configuration)),
    createMetricsRoute(thread === undefined ? metrics : createMetricsOfThreads(thread.all.metrics)),
    createProblemPages(problemTable),
    createDiagnostics(all.diagnostics, explainForm('../explain')),
    events.endpoint,
    createExplainEndpoint(gateway.explain),
    createLimitsEndpoint(rateLimiting.clientLimits),
  ];
  return { routes, close: events.close };
}

/** What a successful probe reports. */
interface ProbeBody {
  readonly status: 'alive' | 'ready';
  /** The parts of the configuration that are refused. Without names and places, because everyone may call the probe. */
  readonly refused?: readonly RefusedPart[];
  /** The resources of the cluster that cannot be read now, and since when. What was read last stays in use. */
  readonly unread?: { readonly resources: number; readonly since: string };
}

interface RefusedPart {
  readonly part: string;
  readonly since: string;
  readonly errors: number;
}

/** Rejects with a Problem that says why the probe fails. */
type Probe = () => Promise<ProbeBody>;

export function probeRoute(name: string, representations: Representations, probe: Probe): InternalRoute {
  const prefix = `/gateway/v0/${name}`;
  return {
    name,
    prefix,
    forAdmins: false,
    async run(ctx) {
      if (!acceptRead(ctx, prefix)) return;
      const body = await probe();
      const title = body.status.charAt(0).toUpperCase() + body.status.slice(1);
      ctx.set('Cache-Control', 'no-store');
      represent(ctx, representations.choose(ctx.req.headers.accept), body, { title });
    },
  };
}

/** A process is ready as long as it can serve requests, with whatever configuration. */
export function createReadiness(
  { fault: findFault, kubernetes }: Pick<Reports, 'fault' | 'kubernetes'>,
  { refused }: Pick<LiveConfiguration, 'refused'>,
): Probe {
  return async function readiness() {
    const fault = await findFault();
    if (fault !== undefined) throw notReady(fault);
    const parts = refusedParts(refused());
    const unread = (await kubernetes())?.unread ?? [];
    return {
      status: 'ready',
      ...(parts.length > 0 && { refused: parts }),
      ...(unread.length > 0 && { unread: { resources: unread.length, since: oldestOf(unread) } }),
    };
  };
}

/** All refused objects of a cluster are one part. */
function refusedParts(refused: ReturnType<LiveConfiguration['refused']>): readonly RefusedPart[] {
  return [...new Set(refused.map(({ part }) => part))].map((part) => {
    const all = refused.filter((one) => one.part === part);
    return { part, since: oldestOf(all), errors: all.reduce((sum, { errors }) => sum + errors.length, 0) };
  });
}

function oldestOf(items: readonly { readonly sinceMs: number }[]): string {
  return new Date(
    items.reduce((oldest, { sinceMs }) => Math.min(oldest, sinceMs), Number.POSITIVE_INFINITY),
  ).toISOString();
}

/** The probe is open to everyone, so it leaves the causes to the log. */
export function unreadFault(state: KubernetesState | undefined): string | undefined {
  if (state === undefined || state.isRead) return undefined;
  if (state.unread.length === 0) return 'The records of the cluster have not been read yet.';
  return 'The records of the cluster cannot be read. The log says why.';
}

type ReadinessSetup = Pick<Setup, 'has' | 'services' | 'settings'>;

/** The returned function never rejects. */
function createFindFault(setup: ReadinessSetup, parts: InternalRoutesParts): Reports['fault'] {
  const { configuration, travel, rateLimiting, closing } = parts;
  /** False for a gateway that fails open: it forwards requests when the limiter is unavailable. */
  function needsLimiter(): boolean {
    const { rateLimitServices } = configuration.current().configuration;
    return !setup.has('gateway') || rateLimitServices.some((record) => failsClosed(setup, record));
  }
  return async function findFault() {
    if (closing.aborted) return stopping;
    if (needsLimiter() && !rateLimiting.isReady()) return 'The rate limiter cannot count in Redis.';
    return unreadFault(configuration.kubernetes()) ?? travel?.findFault();
  };
}

function metricsParts({ logger, clock }: Pick<Setup, 'logger' | 'clock'>, parts: InternalRoutesParts): MetricsParts {
  const { configuration, services, rateLimiting, connectionLimit, tls } = parts;
  const { clusters, counts, traffic, compression } = parts.state;
  return {
    version: packageVersion(),
    routes: { all: traffic.routes, durationBoundsMs },
    clusters: clusters.snapshot,
    decisions: counts,
    compression: compression.counts,
    logins: services.logins,
    tokens: parts.tokenProviders,
    clock,
    limits: rateLimiting.stats,
    configuration,
    connections: connectionLimit.counts,
    certificates: () => certificatesOf(tls),
    droppedLogLines: logger.droppedLines,
  };
}
