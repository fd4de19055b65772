/** Reads the state of the gateway as data, without changing it. */
import { type ConfigurationError, formatSource, type LimitDomain, type Version } from '#config';
import type { GatewaySnapshot, Traffic } from '#gateway';
import type { UsageOf } from '#ratelimit';
import type { Diagnostics, ErrorRow, VersionRow } from '../diagnostics.ts';
import { type Cluster, clusterRow, nameClusters } from './clusters.ts';
import { noFilter, type RowFilter, selectRows } from './filter.ts';
import { countLimits, limitRows } from './limits.ts';
import { failureRow, routeRow, trafficRow, unmatchedRow } from './routes.ts';

export interface DiagnosticsParts {
  readonly version: string;
  /** Returns milliseconds since the process began to serve. */
  readonly uptimeMs: () => number;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
  readonly gateway: () => GatewaySnapshot;
  /** Returns all clusters, including those of auth services. */
  readonly clusters: () => readonly Cluster[];
  readonly traffic: Pick<Traffic, 'of' | 'unmatched' | 'unmatchedRequests' | 'failures' | 'nowMs'>;
  readonly limits: () => readonly LimitDomain[];
  /** Returns a function that looks up the hits and the fullness of a limit. */
  readonly usages: () => UsageOf;
  /** Returns when this process could last not count a decision, in milliseconds since the epoch. */
  readonly lastUncountedAtMs: () => number | undefined;
  readonly configuration: {
    readonly current: () => { readonly number: number; readonly hash: () => string; readonly appliedAtMs: number };
    /** The errors in the current files. The faulty versions of records are not used. */
    readonly errors: () => readonly ConfigurationError[];
    readonly notices: () => readonly ConfigurationError[];
  };
}

/** Bounds the time for a page or an event, which would take seconds with 10,000 routes. */
export const rowsMax = 1_000;

export function readDiagnostics(parts: DiagnosticsParts, rowFilter: RowFilter = noFilter): Diagnostics {
  const { version, configuration, traffic } = parts;
  const { routes, services, versions, auth, ratelimit, lastUnanswered } = parts.gateway();
  const { filter, offset } = rowFilter;
  const { number: generation, hash, appliedAtMs } = configuration.current();
  const uptimeMs = parts.uptimeMs();
  const time = { nowMs: traffic.nowMs(), uptimeMs };
  const clusters = nameClusters(routes, parts.clusters());
  const selected = selectRows(filter, { routes, clusters: [...clusters], services });
  const domains = parts.limits();
  const limits = limitRows(domains, rowsMax, parts.usages());
  const limitErrorAtMs = Math.max(lastUnanswered.ratelimit ?? 0, parts.lastUncountedAtMs() ?? 0) || undefined;
  const { errors, notices } = configuration;
  return {
    version,
    uptime_seconds: Math.floor(uptimeMs / 1000),
    at: new Date(parts.clock()).toISOString(),
    configuration: { generation, hash: hash(), applied_at: new Date(appliedAtMs).toISOString() },
    ...{ errors: errors().slice(0, rowsMax).map(errorRow), errors_total: errors().length },
    ...{ notices: notices().slice(0, rowsMax).map(errorRow), notices_total: notices().length },
    ...{ filter, offset, rows_max: rowsMax },
    routes: selected.routes
      .slice(offset, offset + rowsMax)
      .map((route) => routeRow(route, { clusters, trafficOf: traffic.of, time })),
    ...{ routes_total: routes.length, routes_matching: selected.routes.length },
    unmatched: trafficRow(traffic.unmatched, false, time),
    unmatched_requests: traffic.unmatchedRequests().map(unmatchedRow),
    clusters: selected.clusters.slice(0, rowsMax).map(([cluster, known]) => clusterRow(cluster, known)),
    clusters_total: clusters.size,
    services: selected.services.slice(0, rowsMax).map(({ target, ...service }) => ({ ...service, target: target() })),
    services_total: services.length,
    versions: versions.map(versionRow),
    ...{ limits, limits_total: countLimits(domains) },
    failures: traffic.failures().map(failureRow),
    auth: auth && { ...auth, last_error_at: timeOf(lastUnanswered.auth) },
    ratelimit: ratelimit && { ...ratelimit, last_error_at: timeOf(limitErrorAtMs) },
  };
}

function versionRow({ name, prefix, deprecatedAtMs, endsAtMs, successor, source }: Version): VersionRow {
  return {
    name,
    prefix,
    deprecation: timeOf(deprecatedAtMs),
    sunset: timeOf(endsAtMs),
    successor,
    source: formatSource(source),
  };
}

function timeOf(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}

function errorRow({ source, record, message, remedy }: ConfigurationError): ErrorRow {
  return { source: formatSource(source), record, message, remedy };
}
