/** What the gateway believes, as data: the same for the page and for machines. */
import { type ConfigurationError, conceal, concealMessage, type LimitDomain, type Version } from '#config';
import type { GatewaySnapshot, Traffic } from '#gateway';
import type { UsageOf } from '#ratelimit';
import type { Diagnostics, ErrorRow, ServiceRow, VersionRow } from './diagnostics.ts';
import { everything, type Selection } from './selection.ts';
import { type Cluster, clusterRow, type NameClusters } from './snapshot-clusters.ts';
import { countLimits, limitRows } from './snapshot-limits.ts';
import { pick } from './snapshot-picks.ts';
import { routeRow } from './snapshot-routes.ts';
import { failureRow, trafficRow } from './snapshot-traffic.ts';

export interface DiagnosticsParts {
  readonly version: string;
  /** Milliseconds since the process began to serve. */
  readonly uptimeMs: () => number;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly gateway: () => GatewaySnapshot;
  /** All that are held, those of auth services as well. */
  readonly clusters: () => readonly Cluster[];
  readonly nameClusters: NameClusters;
  readonly traffic: Pick<Traffic, 'of' | 'unmatched' | 'failures' | 'nowMs'>;
  readonly limits: () => readonly LimitDomain[];
  /** What came of the limits up to now. */
  readonly usages: () => UsageOf;
  readonly configuration: {
    readonly current: () => { readonly number: number; readonly hash: () => string; readonly appliedAtMs: number };
    /** Why the files as they are now are not what is in force. */
    readonly errors: () => readonly ConfigurationError[];
    readonly notices: () => readonly ConfigurationError[];
  };
}

/** Of 10,000 routes a page of all would take seconds to draw, and as long to send each time. */
export const rowsMax = 1_000;

/** Nothing changes by being looked at. */
export function readDiagnostics(parts: DiagnosticsParts, selection: Selection = everything): Diagnostics {
  const { version, configuration, traffic } = parts;
  const { routes, services, versions, auth, ratelimit, lastUnanswered } = parts.gateway();
  const { filter, offset } = selection;
  const { number: generation, hash, appliedAtMs } = configuration.current();
  const uptimeMs = parts.uptimeMs();
  const time = { nowMs: traffic.nowMs(), uptimeMs };
  const clusters = parts.nameClusters(routes, parts.clusters());
  const picked =
    filter === '' ? { routes, clusters: [...clusters], services } : pick(filter, routes, clusters, services);
  const domains = parts.limits();
  const limits = limitRows(domains, rowsMax, parts.usages());
  const { errors, notices } = configuration;
  return {
    version,
    uptime_seconds: Math.floor(uptimeMs / 1000),
    at: new Date(parts.clock()).toISOString(),
    configuration: { generation, hash: hash(), applied_at: new Date(appliedAtMs).toISOString() },
    ...{ errors: errors().slice(0, rowsMax).map(errorRow), errors_total: errors().length },
    ...{ notices: notices().slice(0, rowsMax).map(errorRow), notices_total: notices().length },
    ...{ filter, offset, rows_max: rowsMax },
    routes: picked.routes
      .slice(offset, offset + rowsMax)
      .map((route) => routeRow(route, { clusters, trafficOf: traffic.of, time })),
    ...{ routes_total: routes.length, routes_matching: picked.routes.length },
    unmatched: trafficRow(traffic.unmatched, false, time),
    clusters: picked.clusters.slice(0, rowsMax).map(([cluster, known]) => clusterRow(cluster, known)),
    clusters_total: clusters.size,
    services: picked.services.slice(0, rowsMax).map(serviceRow),
    services_total: services.length,
    versions: versions.map(versionRow),
    ...{ limits, limits_total: countLimits(domains) },
    failures: traffic.failures().map(failureRow),
    auth: auth && { ...auth, last_error_at: timeOf(lastUnanswered.auth) },
    ratelimit: ratelimit && { ...ratelimit, last_error_at: timeOf(lastUnanswered.ratelimit) },
  };
}

function serviceRow({ role, service, target }: GatewaySnapshot['services'][number]): ServiceRow {
  return { role, service: conceal(service), target: conceal(target()) };
}

function versionRow({ name, prefix, deprecatedAtMs, endsAtMs, successor, source }: Version): VersionRow {
  return {
    name,
    prefix,
    deprecation: timeOf(deprecatedAtMs),
    sunset: timeOf(endsAtMs),
    successor: successor && conceal(successor),
    source: `${source.file}:${source.line}`,
  };
}

function timeOf(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}

function errorRow({ source, record, message, remedy }: ConfigurationError): ErrorRow {
  return {
    source: `${source.file}:${source.line}`,
    record: record && conceal(record),
    message: concealMessage(message),
    remedy: conceal(remedy),
  };
}
