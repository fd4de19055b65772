/** Counts requests route by route, across configurations, and keeps the last failures with their reasons and the last paths without a route. */
import type { Context } from 'koa';
import { endedStatus, type Problem, pathOf, type RequestContext, requestContext } from '#http';
import type { Descriptor, DescriptorStatus } from '#ratelimit';
import { createRouteTraffic, type RouteTraffic } from './route-traffic.ts';

/** A request on its way through the stages of the gateway. */
export interface InFlightRequest {
  readonly ctx: Context;
  /** The stage that it has reached, for the count of refusals. */
  stage: 'auth' | 'limit' | 'service';
  /** The limiter's decisions about it, and the descriptors that they are about, in the same order; undefined for a status too many. */
  statuses: readonly DescriptorStatus[];
  descriptors: readonly (Descriptor | undefined)[];
}

/** A request that was answered with 500 or more. Without its query, which may hold secrets. */
export interface FailedRequest {
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** Undefined: no route matched. */
  readonly mapping: string | undefined;
  readonly status: number;
  /** Undefined: the status is the service's own. */
  readonly problem: string | undefined;
  /** For operators, never for clients. */
  readonly reason: string | undefined;
}

/** Requests of one method and path that met no route. */
export interface UnmatchedRequests {
  /** Of the last one, in milliseconds since the epoch. */
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly requests: number;
}

export interface Traffic {
  /** The counts of the route of that name, which last until each holder has released them. */
  readonly hold: (name: string) => RouteTraffic;
  /** Once for each `hold`. */
  readonly release: (name: string) => void;
  /** Those of all held routes, and those of requests without a route, under the name `''`. */
  readonly routes: () => readonly RouteTraffic[];
  /** Undefined: the route is not held. */
  readonly of: (name: string) => RouteTraffic | undefined;
  /** Counts the request when its response has ended. */
  readonly begin: (ctx: Context, route: RouteTraffic) => InFlightRequest;
  readonly unmatched: RouteTraffic;
  /** A request that no route meets, with the path that routes were compared with. */
  readonly addUnmatched: (method: string, path: string) => void;
  /** The latest first, at most a hundred. */
  readonly failures: () => readonly FailedRequest[];
  /** The latest first, at most twenty; what has not come for the longest time is forgotten, with its count. */
  readonly unmatchedRequests: () => readonly UnmatchedRequests[];
  /** The clock of `RouteTraffic.recent`. */
  readonly nowMs: () => number;
}

export interface TrafficOptions {
  /** Milliseconds since the epoch, for the times of failures. @default Date.now */
  readonly clock?: () => number;
  /** Monotonic milliseconds. @default performance.now */
  readonly stopwatch?: () => number;
}

const none: readonly never[] = Object.freeze([]);

const failuresMax = 100;
/** Apart from the failures, so that a client that tries many paths pushes out none of them. */
const unmatchedMax = 20;
/** Enough to recognise a path or a reason. */
const textLengthMax = 500;

interface Counted {
  readonly traffic: RouteTraffic;
  holders: number;
}

export function createTraffic({ clock = Date.now, stopwatch = now }: TrafficOptions = {}): Traffic {
  const held = new Map<string, Counted>();
  const unmatched = createRouteTraffic('');
  const failed: FailedRequest[] = [];
  const unmatchedByTarget = new Map<string, UnmatchedRequests>();

  function end(route: RouteTraffic, request: InFlightRequest, startedAtMs: number): void {
    const { ctx } = request;
    const status = endedStatus(ctx.res);
    const nowMs = stopwatch();
    route.inFlight -= 1;
    route.count({ status, durationMs: nowMs - startedAtMs, refusedBy: refusalOf(request, status) }, nowMs);
    if (status < 500) return;
    failed.push(failureOf(ctx, requestContext(ctx), clock()));
    if (failed.length > failuresMax) failed.shift();
  }

  /** Moves the target behind the others, so that the first is the one that has not come for the longest time. */
  function addUnmatched(method: string, fullPath: string): void {
    const path = truncate(fullPath);
    const target = `${method} ${path}`;
    const requests = (unmatchedByTarget.get(target)?.requests ?? 0) + 1;
    unmatchedByTarget.delete(target);
    unmatchedByTarget.set(target, { atMs: clock(), method, path, requests });
    const [oldest] = unmatchedByTarget.keys();
    if (oldest !== undefined && unmatchedByTarget.size > unmatchedMax) unmatchedByTarget.delete(oldest);
  }

  return Object.freeze({
    hold(name: string) {
      const known = held.get(name) ?? { traffic: createRouteTraffic(name), holders: 0 };
      known.holders += 1;
      held.set(name, known);
      return known.traffic;
    },
    release(name: string) {
      const known = held.get(name);
      if (known === undefined) return;
      known.holders -= 1;
      if (known.holders === 0) held.delete(name);
    },
    routes: () => [...[...held.values()].map(({ traffic }) => traffic), unmatched],
    of: (name: string) => held.get(name)?.traffic,
    begin(ctx: Context, route: RouteTraffic) {
      const request: InFlightRequest = { ctx, stage: 'service', statuses: none, descriptors: none };
      const startedAtMs = stopwatch();
      route.inFlight += 1;
      // Comes once; `once` would cost a wrapper and its removal.
      ctx.res.on('close', () => end(route, request, startedAtMs));
      return request;
    },
    unmatched,
    addUnmatched,
    failures: () => failed.toReversed(),
    unmatchedRequests: () => [...unmatchedByTarget.values()].reverse(),
    nowMs: stopwatch,
  });
}

/** A stage that got no answer did not refuse. */
function refusalOf({ stage }: InFlightRequest, status: number): 'auth' | 'limit' | undefined {
  return stage === 'service' || status === 499 || status >= 500 ? undefined : stage;
}

function failureOf({ method, originalUrl, res }: Context, context: RequestContext, atMs: number): FailedRequest {
  const { requestId, mapping, problem } = context;
  return {
    atMs,
    requestId,
    method,
    path: truncate(pathOf(originalUrl)),
    mapping,
    status: res.statusCode,
    problem: problem?.slug,
    reason: problem && truncate(reasonOf(problem)),
  };
}

function reasonOf({ cause, message }: Problem): string {
  return cause === undefined ? message : cause instanceof Error ? cause.message : String(cause);
}

/** With a mark where it is truncated. */
function truncate(text: string): string {
  return text.length > textLengthMax ? `${text.slice(0, textLengthMax)}…` : text;
}

function now(): number {
  return performance.now();
}
