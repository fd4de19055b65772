/** What came of requests, as rows: of a route, of those that no route met, and of each that failed. */

import { conceal } from '#config';
import type { FailedRequest, Figures, RecentTraffic, RouteTraffic } from '#gateway';
import type { FailureRow } from './diagnostics.ts';
import type { RecentRow, TrafficRow } from './diagnostics-traffic.ts';

export interface TrafficTime {
  /** In the terms of `RouteTraffic`. */
  readonly nowMs: number;
  /** Since the process began to serve. */
  readonly uptimeMs: number;
}

/** `traffic` undefined: nothing is counted. */
export function trafficRow(traffic: RouteTraffic | undefined, isAcross: boolean, time: TrafficTime): TrafficRow {
  const totals = traffic?.totals;
  return {
    requests: totals?.requests ?? 0,
    in_flight: traffic?.inFlight ?? 0,
    errors: totals?.errors ?? 0,
    refused_by_auth: totals?.refusedByAuth ?? 0,
    refused_by_limit: totals?.refusedByLimit ?? 0,
    abandoned: totals?.abandoned ?? 0,
    upstream: isAcross && traffic ? { ...traffic.upstream } : undefined,
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

/** Of the last slot only a part has passed, and a process that began a moment ago has no minute behind it. */
function rateOf(slots: RecentTraffic['slots'], slotMs: number, { nowMs, uptimeMs }: TrafficTime): number {
  const count = minuteMs / slotMs;
  const passedMs = (count - 1) * slotMs + (nowMs % slotMs);
  return rounded(sumOf(slots.slice(-count), 'requests') / (Math.min(passedMs, Math.max(uptimeMs, 1000)) / 1000));
}

function sumOf(slots: readonly Readonly<Figures>[], name: keyof Figures): number {
  return slots.reduce((sum, slot) => sum + slot[name], 0);
}

/** People read it every two seconds: three digits behind the point will do. */
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

export function failureRow(failure: FailedRequest): FailureRow {
  const { atMs, requestId, method, path, mapping, status, problem, reason } = failure;
  return {
    at: new Date(atMs).toISOString(),
    request_id: requestId,
    method,
    path: conceal(path),
    mapping,
    status,
    problem,
    reason: reason && conceal(reason),
  };
}
