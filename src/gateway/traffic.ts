/** What comes of requests, route by route, from one configuration to the next; and the last that failed, with the reason. */
import type { Context } from 'koa';
import { endedStatus, type Problem, pathOf, type RequestContext, requestContext } from '#http';
import { createRouteTraffic, type RouteTraffic } from './route-traffic.ts';

/** How far a request has come. */
export type Stage = 'auth' | 'limit' | 'service';

/** A request under way. Whoever takes it on says where it has got to. */
export interface Passage {
  stage: Stage;
}

/** A request that was answered with 500 or more. Without its query, which may hold secrets. */
export interface FailedRequest {
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** Undefined: no route met it. */
  readonly mapping: string | undefined;
  readonly status: number;
  /** Undefined: the service itself said so. */
  readonly problem: string | undefined;
  /** For operators, never for clients. */
  readonly reason: string | undefined;
}

export interface Traffic {
  /** Of the route of that name, which is kept for as long as anybody holds it. */
  readonly hold: (name: string) => RouteTraffic;
  /** Once for each `hold`. */
  readonly release: (name: string) => void;
  /** Those that are held, and that of requests which no route meets, under the name `''`. */
  readonly routes: () => readonly RouteTraffic[];
  /** Undefined: nobody holds it. */
  readonly of: (name: string) => RouteTraffic | undefined;
  /** Counts the request when its answer has ended. */
  readonly begin: (route: RouteTraffic, ctx: Context, stage: Stage) => Passage;
  readonly unmatched: RouteTraffic;
  /** The newest first, a hundred at most. */
  readonly failures: () => readonly FailedRequest[];
  /** In the terms of `recent`. */
  readonly nowMs: () => number;
}

export interface TrafficOptions {
  /** Milliseconds since the epoch, for people. @default Date.now */
  readonly clock?: () => number;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly stopwatch?: () => number;
}

const failuresMax = 100;
/** Of what a client sent, or a service said: enough to know it again. */
const textLengthMax = 500;

interface Held {
  readonly traffic: RouteTraffic;
  holders: number;
}

export function createTraffic({ clock = Date.now, stopwatch = now }: TrafficOptions = {}): Traffic {
  const held = new Map<string, Held>();
  const unmatched = createRouteTraffic('');
  const failed: FailedRequest[] = [];

  function end(route: RouteTraffic, ctx: Context, passage: Passage, startedAtMs: number): void {
    const { res } = ctx;
    const status = endedStatus(res);
    const nowMs = stopwatch();
    route.inFlight -= 1;
    route.count({ status, durationMs: nowMs - startedAtMs, refusedBy: refusalOf(passage, status) }, nowMs);
    if (status < 500) return;
    failed.push(failureOf(ctx, requestContext(ctx), clock()));
    if (failed.length > failuresMax) failed.shift();
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
    begin(route: RouteTraffic, ctx: Context, stage: Stage) {
      const passage = { stage };
      const startedAtMs = stopwatch();
      route.inFlight += 1;
      ctx.res.once('close', () => end(route, ctx, passage, startedAtMs));
      return passage;
    },
    unmatched,
    failures: () => failed.toReversed(),
    nowMs: stopwatch,
  });
}

/** A stage that could not ask did not refuse. */
function refusalOf({ stage }: Passage, status: number): 'auth' | 'limit' | undefined {
  return stage === 'service' || status === 499 || status >= 500 ? undefined : stage;
}

function failureOf({ method, originalUrl, res }: Context, exchange: RequestContext, atMs: number): FailedRequest {
  const { requestId, mapping, problem } = exchange;
  return {
    atMs,
    requestId,
    method,
    path: cut(pathOf(originalUrl)),
    mapping,
    status: res.statusCode,
    problem: problem?.slug,
    reason: problem && cut(reasonOf(problem)),
  };
}

function reasonOf({ cause, message }: Problem): string {
  return cause === undefined ? message : cause instanceof Error ? cause.message : String(cause);
}

/** That it was cut is to be seen. */
function cut(text: string): string {
  return text.length > textLengthMax ? `${text.slice(0, textLengthMax)}…` : text;
}

function now(): number {
  return performance.now();
}
