/** Reads routes, their traffic and failed requests as rows. */
import { formatSource } from '#config';
import type { FailedRequest, Figures, RecentTraffic, RouteSnapshot, RouteTraffic, UnmatchedRequests } from '#gateway';
import type { FailureRow, RecentRow, RouteRow, TrafficRow, UnmatchedRow } from '../diagnostics.ts';
import { type Cluster, isUnusable, type KnownCluster } from './clusters.ts';
import { conceal } from './conceal.ts';

export interface RouteRowParts {
  readonly clusters: ReadonlyMap<Cluster, KnownCluster>;
  readonly trafficOf: (name: string) => RouteTraffic | undefined;
  readonly time: TrafficTime;
}

export function routeRow(route: RouteSnapshot, { clusters, trafficOf, time }: RouteRowParts): RouteRow {
  const { name, prefix, mapping, transport, labels, source } = route;
  const { cluster } = transport;
  const traffic = trafficRow(trafficOf(name), cluster !== undefined, time);
  const known = cluster && clusters.get(cluster);
  return {
    name,
    prefix,
    conditions: route.conditions(),
    rewrite: mapping.rewrite,
    service: mapping.service,
    target: transport.describe(),
    authenticated: route.auth !== undefined,
    labels: labels.map((group) => group.labels.map((label) => label.name).join(' + ')),
    timeout_ms: transport.timeouts?.timeoutMs,
    source: source && formatSource(source),
    internal: route.internal === true,
    cluster: known?.name,
    health: healthOf(traffic, cluster),
    traffic,
  };
}

/** Uses the thresholds of Ambassador for the share of responses below 500. */
function healthOf({ recent }: TrafficRow, cluster: Cluster | undefined): RouteRow['health'] {
  if (cluster !== undefined && isUnusable(cluster)) return 'failing';
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
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
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
