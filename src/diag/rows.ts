/** Reads routes, clusters, limits and failed requests as rows. */

import type { TokenProviderState } from '#auth';
import { type LimitDescriptor, type LimitDomain, reachedLimits, withoutSecrets } from '#config';
import { formatSource, messageOf, truncate } from '#foundation';
import type { FailedRequest, Figures, RecentTraffic, RouteSnapshot, RouteTraffic, UnmatchedRequests } from '#gateway';
import { type ConnectionCounts, describeAddressLists } from '#http';
import type { KubernetesState } from '#kubernetes';
import type { UsageOf } from '#ratelimit';
import { formatWindow, type Limit, redactedEntry } from '#ratelimit/limit';
import { isUnhealthy } from './browser/verdict.js';
import type {
  ClusterRow,
  ConnectionsRow,
  FailureRow,
  KubernetesRow,
  LimitRow,
  RecentRow,
  RouteRow,
  ThreadsRow,
  TokenProviderRow,
  TrafficRow,
  UnmatchedRow,
} from './diagnostics.ts';

export interface RouteRowParts {
  readonly clusters: ReadonlyMap<Cluster, KnownCluster>;
  readonly trafficOf: (name: string) => RouteTraffic | undefined;
  readonly time: TrafficTime;
  /** The limits of the gateway's domain. */
  readonly limits: LimitDomain | undefined;
}

export function routeRow(route: RouteSnapshot, { clusters, trafficOf, time, limits }: RouteRowParts): RouteRow {
  const { name, prefix, mapping, transport, labels, source, auth } = route;
  const { cluster } = transport;
  const traffic = trafficRow(trafficOf(name), cluster !== undefined, time);
  const known = cluster && clusters.get(cluster);
  return {
    name,
    prefix,
    conditions: route.conditions(),
    rewrite: mapping.gatewayRoute?.fullPath ?? mapping.rewrite,
    service: mapping.service,
    target: transport.describe(),
    authenticated: auth !== undefined,
    addresses: describeAddressLists(mapping),
    auth: auth?.record.name,
    admins_only: route.internal === true && auth !== undefined,
    labels: labels.map((group) => group.labels.map((label) => label.name).join(' + ')),
    ...routeLimits(route, limits),
    timeout_ms: transport.timeouts?.timeoutMs,
    compressed: route.compression !== undefined,
    source: source && formatSource(source),
    internal: route.internal === true,
    cluster: known?.name,
    refusal: mapping.refusal,
    fault: mapping.gatewayRoute?.fault,
    health: cluster !== undefined && isUnusable(cluster) ? 'failing' : healthOf(traffic),
    traffic,
  };
}

type RouteLimits = Pick<RouteRow, 'limits' | 'limits_total'>;

/** The limits of each route. Finding them takes long with many limits, and they change only with the configuration. */
const foundLimits = new WeakMap<RouteSnapshot, { readonly domain: LimitDomain; readonly found: RouteLimits }>();

function routeLimits(route: RouteSnapshot, domain: LimitDomain | undefined): RouteLimits {
  if (domain === undefined || route.labels.length === 0) return noLimits;
  const known = foundLimits.get(route);
  if (known?.domain === domain) return known.found;
  const found = findLimits(route, domain);
  foundLimits.set(route, { domain, found });
  return found;
}

const noLimits: RouteLimits = Object.freeze({ limits: [], limits_total: 0 });
const routeLimitsMax = 10;

/** Counts limits that differ only in values once, because values are not shown. */
function findLimits({ labels, mapping }: RouteSnapshot, { descriptors }: LimitDomain): RouteLimits {
  const reached = reachedLimits(labels, mapping.service, descriptors);
  const shown = reached.map(({ descriptor, limit }) => ({ descriptor, limit: limitText(limit) }));
  const found = new Map(shown.map((one) => [`${one.limit} ${one.descriptor}`, one]));
  return { limits: [...found.values()].slice(0, routeLimitsMax), limits_total: found.size };
}

/** Uses the thresholds of Ambassador for the share of responses below 500. */
export function healthOf({ recent }: TrafficRow): RouteRow['health'] {
  if (recent === undefined) return 'unknown';
  const good = 1 - recent.error_share;
  if (good < 0.7) return 'failing';
  return good < 0.9 ? 'degraded' : 'ok';
}

export interface TrafficTime {
  /** The current time on the clock of `RouteTraffic`. */
  readonly nowMs: number;
  /** The time since the process began to serve. */
  readonly uptimeMs: number;
}

/** `traffic` is undefined when nothing is counted. */
export function trafficRow(traffic: RouteTraffic | undefined, isRemote: boolean, time: TrafficTime): TrafficRow {
  const totals = traffic?.totals;
  return {
    requests: totals?.requests ?? 0,
    in_flight: traffic?.inFlight ?? 0,
    errors: totals?.errors ?? 0,
    refused_by_address: totals?.refusedByAddress ?? 0,
    refused_by_auth: totals?.refusedByAuth ?? 0,
    refused_by_limit: totals?.refusedByLimit ?? 0,
    abandoned: totals?.abandoned ?? 0,
    upstream: isRemote && traffic ? { ...traffic.upstream } : undefined,
    recent: totals && traffic && recentRow(traffic.recent(time.nowMs), time),
  };
}

function recentRow({ slotMs, slots, p50Ms, p99Ms }: RecentTraffic, time: TrafficTime): RecentRow | undefined {
  const requests = sumOf(slots, 'requests');
  if (requests === 0) return undefined;
  return {
    slot_seconds: slotMs / 1000,
    requests: slots.map((slot) => slot.requests),
    errors: slots.map((slot) => slot.errors),
    requests_per_second: rateOf(slots, slotMs, time),
    error_share: rounded(sumOf(slots, 'errors') / requests),
    refused_by_address: sumOf(slots, 'refusedByAddress'),
    refused_by_auth: sumOf(slots, 'refusedByAuth'),
    refused_by_limit: sumOf(slots, 'refusedByLimit'),
    p50_ms: p50Ms && rounded(p50Ms),
    p99_ms: p99Ms && rounded(p99Ms),
  };
}

const minuteMs = 60_000;

/** Allows for the last slot, of which only a part has passed, and for a process that has not run for a minute yet. */
function rateOf(slots: RecentTraffic['slots'], slotMs: number, { nowMs, uptimeMs }: TrafficTime): number {
  const count = minuteMs / slotMs;
  const passedMs = (count - 1) * slotMs + (nowMs % slotMs);
  return rounded(sumOf(slots.slice(-count), 'requests') / (Math.min(passedMs, Math.max(uptimeMs, 1000)) / 1000));
}

function sumOf(slots: readonly Readonly<Figures>[], name: keyof Figures): number {
  return slots.reduce((sum, slot) => sum + slot[name], 0);
}

/** Three decimals are precise enough, and keep events short. */
export function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

export type Cluster = NonNullable<RouteSnapshot['transport']['cluster']>;

export interface KnownCluster {
  /** The name of the service. ` #2` is appended for its second cluster, and so on. */
  readonly name: string;
  readonly service: string;
  readonly mappings: readonly string[];
}

/** Names the clusters in the order of the routes that use them, followed by `others` such as auth services. */
export function nameClusters(
  routes: readonly RouteSnapshot[],
  others: readonly Cluster[],
): ReadonlyMap<Cluster, KnownCluster> {
  const known = new Map<Cluster, KnownCluster & { readonly mappings: string[] }>();
  const counts = new Map<string, number>();

  function add(cluster: Cluster, service: string) {
    const count = (counts.get(service) ?? 0) + 1;
    counts.set(service, count);
    const added = { name: count === 1 ? service : `${service} #${count}`, service, mappings: [] };
    known.set(cluster, added);
    return added;
  }

  for (const { transport, mapping } of routes) {
    const { cluster } = transport;
    if (cluster !== undefined) (known.get(cluster) ?? add(cluster, mapping.service)).mappings.push(mapping.name);
  }
  for (const cluster of others) if (!known.has(cluster)) add(cluster, cluster.snapshot().service);
  return known;
}

const mappingsMax = 100;

export function clusterRow(cluster: Cluster, { name, service, mappings }: KnownCluster): ClusterRow {
  const { addresses, isUsed, circuit, activeRequests, activeUpgrades, overflows } = cluster.snapshot();
  return {
    name,
    service,
    addresses: addresses.map((address) => ({
      origin: address.origin,
      health: address.health,
      active_requests: address.activeRequests,
    })),
    used: isUsed,
    circuit,
    active_requests: activeRequests,
    active_upgrades: activeUpgrades,
    overflows,
    mappings: mappings.slice(0, mappingsMax),
    mappings_total: mappings.length,
  };
}

/** Whether all addresses are unhealthy or ejected. */
function isUnusable(cluster: Cluster): boolean {
  const { addresses } = cluster.snapshot();
  return addresses.every(({ health }) => isUnhealthy(health));
}

/** Formats milliseconds since the epoch in RFC 3339. */
export function timeOf(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}

export function tokenProviderRow({ record, counts, keySet, lastRejected }: TokenProviderState): TokenProviderRow {
  const { name, issuer, jwksUri, source } = record;
  const { valid, remembered, invalid, unknownKey, unavailable } = counts;
  const { keys, readAtMs, failures, lastError } = keySet;
  return {
    name,
    issuer: conceal(issuer),
    keys_from: jwksUri === undefined ? 'the record' : withoutSecrets(jwksUri),
    keys,
    keys_read_at: timeOf(readAtMs),
    failures,
    last_error: lastError && conceal(lastError.message),
    last_error_at: timeOf(lastError?.atMs),
    valid,
    remembered,
    invalid,
    unknown_key: unknownKey,
    unchecked: unavailable,
    last_rejection: lastRejected?.reason,
    last_rejection_at: timeOf(lastRejected?.atMs),
    source: formatSource(source),
  };
}

/** Returns the first `rowsMax` limits, outermost descriptor first. */
export function limitRows(domains: readonly LimitDomain[], rowsMax: number, usageOf: UsageOf): LimitRow[] {
  const rows: LimitRow[] = [];
  for (const { domain, descriptors } of domains) {
    for (const row of limitRowsOf({ domain, path: '', shown: '' }, descriptors, usageOf)) {
      if (rows.length === rowsMax) return rows;
      rows.push(row);
    }
  }
  return rows;
}

export function countLimits(domains: readonly LimitDomain[]): number {
  return domains.reduce((sum, { descriptors }) => sum + countLimitsBelow(descriptors), 0);
}

function countLimitsBelow(descriptors: readonly LimitDescriptor[]): number {
  return descriptors.reduce(
    (sum, { limits, descriptors: children }) => sum + limits.length + countLimitsBelow(children),
    0,
  );
}

interface ParentDescriptor {
  readonly domain: string;
  /** The entries of the parent descriptors, ending with a separator. `shown` omits the values that are secret. */
  readonly path: string;
  readonly shown: string;
}

/** A generator, so that only the first of many limits are read. */
function* limitRowsOf(
  parent: ParentDescriptor,
  descriptors: readonly LimitDescriptor[],
  usageOf: UsageOf,
): Generator<LimitRow> {
  const { domain } = parent;
  for (const { key, value, limits, descriptors: children, source } of descriptors) {
    const path = parent.path + (value === undefined ? key : `${key}=${value}`);
    const shown = parent.shown + redactedEntry(key, value);
    for (const limit of limits) {
      const usage = usageOf(domain, path, limit);
      yield {
        domain,
        descriptor: shown,
        limit: limitText(limit),
        source: formatSource(source),
        hits: usage?.hits ?? 0,
        over: usage?.over ?? 0,
        fullness: usage?.fullness,
      };
    }
    yield* limitRowsOf({ domain, path: `${path} › `, shown: `${shown} › ` }, children, usageOf);
  }
}

/** `10 per minute`, `5 per 30 seconds (token bucket)`. */
function limitText(limit: Limit): string {
  const { requestsPerUnit, unlimited, algorithm, shadowMode } = limit;
  if (unlimited) return 'unlimited';
  const options = [algorithm === 'fixed_window' ? '' : algorithm.replace('_', ' '), shadowMode ? 'shadow' : ''];
  const note = options.filter(Boolean).join(', ');
  return `${requestsPerUnit} per ${formatWindow(limit)}${note && ` (${note})`}`;
}

export interface ThreadCounts {
  readonly configured: number;
  readonly serving: number;
  readonly ended: {
    readonly latest: readonly { readonly number: number; readonly atMs: number; readonly cause: unknown }[];
    readonly total: number;
  };
}

const endReasonMax = 200;

export function connectionsRow({ open, max, http2, http2Requests }: ConnectionCounts): ConnectionsRow {
  return { open, max, http2, http2_requests: http2Requests };
}

export function threadsRow({ configured, serving, ended }: ThreadCounts): ThreadsRow {
  return {
    configured,
    serving,
    ended: ended.latest.map(({ number, atMs, cause }) => ({
      number,
      at: new Date(atMs).toISOString(),
      reason: conceal(truncate(messageOf(cause), endReasonMax)),
    })),
    ended_total: ended.total,
  };
}

export function kubernetesRow(state: KubernetesState | undefined): KubernetesRow | undefined {
  if (state === undefined) return undefined;
  const { namespace, namespaces, resources, isRead, answeredAtMs, deliveries, readFailures, unread, objects } = state;
  const { statuses, events, waiting } = state.writes;
  return {
    namespace,
    namespaces,
    resources,
    read: isRead,
    answered_at: timeOf(answeredAtMs),
    deliveries,
    read_failures: readFailures,
    unread: unread.map(({ resource, sinceMs, message }) => {
      return { resource, since: new Date(sinceMs).toISOString(), message };
    }),
    objects: { accepted: objects.accepted, last_valid: objects.lastValid, refused: objects.refused },
    writes: {
      succeeded: statuses.succeeded + events.succeeded,
      failed: statuses.failed + events.failed,
      waiting,
    },
  };
}

export function unmatchedRow({ atMs, method, path, requests }: UnmatchedRequests): UnmatchedRow {
  return { at: new Date(atMs).toISOString(), method, path: conceal(path), requests };
}

export function failureRow(failure: FailedRequest): FailureRow {
  const { atMs, requestId, method, path, mapping, status, problem, reason, upstream } = failure;
  return {
    at: new Date(atMs).toISOString(),
    request_id: requestId,
    method,
    path: conceal(path),
    mapping,
    status,
    problem,
    reason: reason && conceal(reason),
    upstream,
  };
}

/**
 * Replaces user and password in URLs, including percent-encoded URLs: `postgres://…@host`. An unencoded password may
 * contain any character, and a truncated text may end within a password, so it is better to remove too much.
 */
export function conceal(text: string): string {
  return mayContainUserinfo(text) ? text.replace(userinfo, '$1$2…@') : text;
}

/** A cheap test that avoids the regular expression for most texts. */
function mayContainUserinfo(text: string): boolean {
  return text.includes('@') || text.includes('%40') || text.endsWith('…');
}

const [slash, colon, at] = ['(?:\\/|%2f)', '(?::|%3a)', '(?:@|%40)'];
const start = `(${colon}${slash}|${slash}{2})(${slash}?)`;
const userAndPassword = `(?:(?!${slash}|${colon}|${at})\\S)*${colon}\\S*`;
const userOnly = `(?:(?!${slash}|${at})\\S)*`;
const userinfo = new RegExp(`${start}(?:${userAndPassword}|${userOnly})(?:${at}|…$)`, 'gi');
