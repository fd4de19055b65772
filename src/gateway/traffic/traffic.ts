/** Counts requests for each route across reloads, and retains the latest failures and the latest unmatched paths. */
import type { Context } from 'koa';
import { createBoundedMap, messageOf, truncate } from '#foundation';
import {
  countedStatus,
  finalGrpcStatus,
  grpcStatusName,
  type Problem,
  pathOf,
  type RequestContext,
  requestContext,
} from '#http';
import { createLeases, type Lease } from '#proxy';
import type { Descriptor, DescriptorStatus } from '#ratelimit';
import { createRouteTraffic, type RouteTraffic } from './route-traffic.ts';

/** A request that is passing through the stages of the gateway. */
export interface InFlightRequest {
  readonly ctx: Context;
  /** The stage that the request has reached, for counting rejections. */
  stage: 'address' | 'auth' | 'limit' | 'service';
  /** The limiter's statuses, and their descriptors in the same order. Undefined for a status without a descriptor. */
  statuses: readonly DescriptorStatus[];
  descriptors: readonly (Descriptor | undefined)[];
}

/** A request that failed with a status of 500 or above. Excludes the query, which may contain secrets. */
export interface FailedRequest {
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** Undefined when no route matched. */
  readonly mapping: string | undefined;
  readonly status: number;
  /** Undefined when the service itself sent the status. */
  readonly problem: string | undefined;
  /** For operators. Never sent to clients. */
  readonly reason: string | undefined;
  /** The address that was tried last. Undefined if none was. */
  readonly upstream: string | undefined;
}

/** Requests with the same method and path that matched no route. */
export interface UnmatchedRequests {
  /** The time of the latest request, in milliseconds since the epoch. */
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly requests: number;
}

export interface Traffic {
  /** Leases the counts of the route with this name. */
  readonly acquire: (name: string) => Lease<RouteTraffic>;
  /** Returns the counts of all acquired routes, and those of unmatched requests under the name `''`. */
  readonly routes: () => readonly RouteTraffic[];
  /** Returns undefined if the route is not acquired. */
  readonly of: (name: string) => RouteTraffic | undefined;
  /** Counts the request when its response has ended. */
  readonly begin: (ctx: Context, route: RouteTraffic) => InFlightRequest;
  /** The counts of requests that matched no route. */
  readonly unmatched: RouteTraffic;
  /**
   * Records a request that matched no route, unless it gets another response than 404, such as the landing page. `path`
   * is the sanitised path.
   */
  readonly addUnmatched: (ctx: Context, path: string) => void;
  /** Latest first, at most a hundred. */
  readonly failures: () => readonly FailedRequest[];
  /** Latest first, at most twenty. The least recent one is evicted together with its count. */
  readonly unmatchedRequests: () => readonly UnmatchedRequests[];
  /** Returns the current time for `RouteTraffic.recent`. */
  readonly nowMs: () => number;
}

export interface TrafficOptions {
  /** Milliseconds since the epoch, for the times of failures. @default Date.now */
  readonly clock?: (() => number) | undefined;
  /** Monotonic milliseconds. @default performance.now */
  readonly stopwatch?: () => number;
}

const none: readonly never[] = Object.freeze([]);

/**
 * How many requests are remembered. The unmatched ones are stored separately, so that a client that probes many paths
 * does not evict failures.
 */
export const trafficBounds = Object.freeze({ failures: 100, unmatched: 20 });
/** Long enough to recognise a path or a reason. */
const textLengthMax = 500;

export function createTraffic({ clock = Date.now, stopwatch = () => performance.now() }: TrafficOptions = {}): Traffic {
  const acquired = createLeases<RouteTraffic>();
  const unmatched = createRouteTraffic('');
  const failed: FailedRequest[] = [];
  const unmatchedByTarget = createBoundedMap<string, UnmatchedRequests>(trafficBounds.unmatched);

  function end(route: RouteTraffic, request: InFlightRequest, startedAtMs: number): void {
    const { ctx } = request;
    const status = countedStatus(ctx.res);
    const nowMs = stopwatch();
    route.inFlight -= 1;
    const grpcStatus = finalGrpcStatus(ctx, status);
    route.count({ status, grpcStatus, durationMs: nowMs - startedAtMs, refusedBy: refusalOf(request, status) }, nowMs);
    if (status < 500) return;
    failed.push(failureOf(ctx, requestContext(ctx), status, clock()));
    if (failed.length > trafficBounds.failures) failed.shift();
  }

  function recordUnmatched(method: string, fullPath: string): void {
    const path = truncate(fullPath, textLengthMax);
    const target = `${method} ${path}`;
    const requests = (unmatchedByTarget.get(target)?.requests ?? 0) + 1;
    unmatchedByTarget.set(target, { atMs: clock(), method, path, requests });
  }

  return Object.freeze({
    acquire: (name: string) => acquired.acquire(name, () => createRouteTraffic(name)),
    routes: () => [...acquired.values(), unmatched],
    of: acquired.get,
    begin(ctx: Context, route: RouteTraffic) {
      const request: InFlightRequest = { ctx, stage: 'service', statuses: none, descriptors: none };
      const startedAtMs = stopwatch();
      route.inFlight += 1;
      // The event fires only once.
      ctx.res.on('close', () => end(route, request, startedAtMs));
      return request;
    },
    unmatched,
    addUnmatched({ method, res }: Context, path: string) {
      res.on('close', () => {
        if (countedStatus(res) === 404) recordUnmatched(method, path);
      });
    },
    failures: () => failed.toReversed(),
    unmatchedRequests: () => [...unmatchedByTarget.values()].reverse(),
    nowMs: stopwatch,
  });
}

/** Counts a status of 500 or above as a failure of the stage, not as its rejection of the request. */
function refusalOf(
  { stage }: InFlightRequest,
  status: number,
): Exclude<InFlightRequest['stage'], 'service'> | undefined {
  return stage === 'service' || status === 499 || status >= 500 ? undefined : stage;
}

function failureOf(
  { method, originalUrl }: Context,
  context: RequestContext,
  status: number,
  atMs: number,
): FailedRequest {
  const { requestId, mapping, problem, upstream, grpcStatus } = context;
  return {
    atMs,
    requestId,
    method,
    path: truncate(pathOf(originalUrl), textLengthMax),
    mapping,
    status,
    problem: problem?.slug,
    reason: problem === undefined ? callReason(grpcStatus) : truncate(reasonOf(problem), textLengthMax),
    upstream,
  };
}

function callReason(grpcStatus: number | undefined): string | undefined {
  if (grpcStatus === undefined) return undefined;
  return `the service ended the call with the gRPC status ${grpcStatusName(grpcStatus) ?? grpcStatus}`;
}

function reasonOf({ cause, message }: Problem): string {
  return cause === undefined ? message : messageOf(cause);
}
