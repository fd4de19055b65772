/** Reads the state of the gateway as data, without changing it, and filters its rows. */

import type { TokenProviderState } from '#auth';
import type { ConfigurationError, LimitDomain, Refusal, Version } from '#config';
import { formatSource } from '#foundation';
import type { GatewaySnapshot, RouteSnapshot, Traffic } from '#gateway';
import { type ConnectionCounts, type Fault, longQueryFault, problem, queryFault } from '#http';
import type { KubernetesState } from '#kubernetes';
import type { UsageOf } from '#ratelimit';
import type { Diagnostics, ErrorRow, VersionRow } from './diagnostics.ts';
import {
  type Cluster,
  clusterRow,
  connectionsRow,
  countLimits,
  failureRow,
  type KnownCluster,
  kubernetesRow,
  limitRows,
  nameClusters,
  routeRow,
  timeOf,
  tokenProviderRow,
  trafficRow,
  unmatchedRow,
} from './rows.ts';

export interface DiagnosticsParts {
  readonly version: string;
  /** Returns milliseconds since the process began to serve. */
  readonly uptimeMs: () => number;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
  readonly gateway: () => GatewaySnapshot;
  readonly connections: () => ConnectionCounts;
  readonly tokenProviders: () => readonly TokenProviderState[];
  /** Returns all clusters, including those of auth services. */
  readonly clusters: () => readonly Cluster[];
  readonly traffic: Pick<Traffic, 'of' | 'unmatched' | 'unmatchedRequests' | 'failures' | 'nowMs'>;
  readonly limits: () => readonly LimitDomain[];
  /** Returns a function that looks up the hits and the fullness of a limit. */
  readonly usages: () => UsageOf;
  /** Returns when this process could last not count a decision, in milliseconds since the epoch. */
  readonly lastUncountedAtMs: () => number | undefined;
  /** Returns the certificates of the gateway, and when each expires, in milliseconds since the epoch. */
  readonly certificates: () => readonly Certificate[];
  readonly configuration: {
    readonly current: () => { readonly number: number; readonly hash: string; readonly appliedAtMs: number };
    /** The parts of the current files that are not in use, or not all of it. */
    readonly refused: () => readonly (Refusal & { readonly sinceMs: number })[];
    /** The errors of all refused parts. */
    readonly errors: () => readonly ConfigurationError[];
    readonly notices: () => readonly ConfigurationError[];
    /** Returns undefined if the records come from files. */
    readonly kubernetes: () => KubernetesState | undefined;
  };
}

/** Reads the diagnostics of a process, which may have several threads. */
export type ReadDiagnostics = (filter: RowFilter) => Diagnostics | Promise<Diagnostics>;

/** Bounds the time for a page or an event, which would take seconds with 10,000 routes. */
export const rowsMax = 1_000;

export function readDiagnostics(
  parts: DiagnosticsParts,
  rowFilter: RowFilter = { filter: '', offset: 0 },
): Diagnostics {
  const { version, configuration, traffic } = parts;
  const { routes, services, versions, auth, ratelimit, domain, lastUnanswered } = parts.gateway();
  const { filter, offset } = rowFilter;
  const { number: generation, hash, appliedAtMs } = configuration.current();
  const uptimeMs = parts.uptimeMs();
  const time = { nowMs: traffic.nowMs(), uptimeMs };
  const clusters = nameClusters(routes, parts.clusters());
  const selected = selectRows(filter, { routes, clusters: [...clusters], services });
  const domains = parts.limits();
  const limits = domains.find((one) => one.domain === domain);
  const limitErrorAtMs = Math.max(lastUnanswered.ratelimit ?? 0, parts.lastUncountedAtMs() ?? 0) || undefined;
  return {
    version,
    uptime_seconds: Math.floor(uptimeMs / 1000),
    at: new Date(parts.clock()).toISOString(),
    threads: { configured: 1, serving: 1, ended: [], ended_total: 0 },
    connections: connectionsRow(parts.connections()),
    configuration: { generation, hash, applied_at: new Date(appliedAtMs).toISOString() },
    kubernetes: kubernetesRow(configuration.kubernetes()),
    ...refusedRows(configuration.refused()),
    ...faultRows(configuration.errors(), configuration.notices()),
    filter,
    offset,
    rows_max: rowsMax,
    routes: selected.routes
      .slice(offset, offset + rowsMax)
      .map((route) => routeRow(route, { clusters, trafficOf: traffic.of, time, limits })),
    routes_total: routes.length,
    routes_matching: selected.routes.length,
    unmatched: trafficRow(traffic.unmatched, false, time),
    unmatched_requests: traffic.unmatchedRequests().map(unmatchedRow),
    clusters: selected.clusters.slice(0, rowsMax).map(([cluster, known]) => clusterRow(cluster, known)),
    clusters_total: clusters.size,
    services: selected.services.slice(0, rowsMax).map(({ target, ...service }) => ({ ...service, target: target() })),
    services_total: services.length,
    versions: versions.map(versionRow),
    token_providers: parts.tokenProviders().map(tokenProviderRow),
    ...certificateRows(parts.certificates()),
    limits: limitRows(domains, rowsMax, parts.usages()),
    limits_total: countLimits(domains),
    failures: traffic.failures().map(failureRow),
    auth: auth && { ...auth, last_error_at: timeOf(lastUnanswered.auth) },
    ratelimit: ratelimit && { ...ratelimit, last_error_at: timeOf(limitErrorAtMs) },
  };
}

function refusedRows(
  refused: ReturnType<DiagnosticsParts['configuration']['refused']>,
): Pick<Diagnostics, 'refused' | 'refused_total'> {
  const rows = refused.slice(0, rowsMax).map(({ part, object, sinceMs, consequence }) => {
    return { part, object, since: new Date(sinceMs).toISOString(), consequence };
  });
  return { refused: rows, refused_total: refused.length };
}

type FaultRows = Pick<Diagnostics, 'errors' | 'errors_total' | 'notices' | 'notices_total'>;

function faultRows(errors: readonly ConfigurationError[], notices: readonly ConfigurationError[]): FaultRows {
  return {
    errors: errors.slice(0, rowsMax).map(errorRow),
    errors_total: errors.length,
    notices: notices.slice(0, rowsMax).map(errorRow),
    notices_total: notices.length,
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

interface Certificate {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly validToMs: number;
}

const hostsMax = 100;

function certificateRows(all: readonly Certificate[]): Pick<Diagnostics, 'certificates' | 'certificates_total'> {
  const rows = all.slice(0, rowsMax).map(({ name, hosts, validToMs }) => {
    return { name, hosts: hosts.slice(0, hostsMax), expires_at: new Date(validToMs).toISOString() };
  });
  return { certificates: rows, certificates_total: all.length };
}

function errorRow({ source, record, message, remedy }: ConfigurationError): ErrorRow {
  return { source: formatSource(source), record, message, remedy };
}

export interface RowFilter {
  /** The text that a row must contain, ignoring case. Empty to select all rows. */
  readonly filter: string;
  /** How many of the selected routes are skipped. */
  readonly offset: number;
}

const names: readonly string[] = ['filter', 'offset'];
const searchLengthMax = 2048;
const filterLengthMax = 200;

/** Parses a query, with or without its question mark. Throws `bad-argument`. */
export function parseFilter(search: string): RowFilter {
  if (search.length > searchLengthMax) throw problem('bad-argument', { errors: [longQueryFault(searchLengthMax)] });
  const given = new URLSearchParams(search);
  const filter = (given.get('filter') ?? '').trim();
  const offset = given.get('offset') || '0';
  const faults = [
    ...[...new Set(given.keys())].flatMap((name) => nameFaults(name, given)),
    ...(filter.length > filterLengthMax ? [queryFault('filter', `has more than ${filterLengthMax} characters`)] : []),
    ...(/^\d{1,9}$/.test(offset) ? [] : [queryFault('offset', 'is not a whole number')]),
  ];
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
  return { filter, offset: Number(offset) };
}

function nameFaults(name: string, given: URLSearchParams): readonly Fault[] {
  if (!names.includes(name)) return [queryFault(name, `is not an argument here; known: ${names.join(', ')}`)];
  return given.getAll(name).length > 1 ? [queryFault(name, 'is given more than once')] : [];
}

interface Rows {
  readonly routes: readonly RouteSnapshot[];
  readonly clusters: readonly (readonly [Cluster, KnownCluster])[];
  readonly services: GatewaySnapshot['services'];
}

/**
 * Selects routes that contain the text, their clusters and services, and other clusters and services that contain it.
 */
function selectRows(filter: string, rows: Rows): Rows {
  if (filter === '') return rows;
  const { routes, clusters, services } = rows;
  const text = filter.toLowerCase();
  const contains = (...cells: readonly string[]) => cells.some((cell) => cell.toLowerCase().includes(text));
  const containsOrigin = (cluster: Cluster) => cluster.snapshot().addresses.some(({ origin }) => contains(origin));
  const selected = routes.filter(({ name, prefix, mapping, transport }) =>
    contains(name, prefix, mapping.service, transport.describe()),
  );
  const reached = new Set(selected.map(({ transport }) => transport.cluster));
  const roles = new Set(selected.map(({ name }) => `Mapping ${name}`));
  return {
    routes: selected,
    clusters: clusters.filter(
      ([cluster, { name, mappings }]) =>
        reached.has(cluster) || (mappings.length === 0 && (contains(name) || containsOrigin(cluster))),
    ),
    services: services.filter(({ role, service, target }) => roles.has(role) || contains(role, service, target())),
  };
}
