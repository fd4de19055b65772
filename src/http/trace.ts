/** The trace that a request belongs to: the one that it came with, or a new one, under an id of ours for this part of it. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import { exchangeOf } from './exchange.ts';
import { boundTracestate, formatTraceparent, parseTraceparent, type TraceParent } from './trace-context.ts';
import type { TraceIds } from './trace-ids.ts';

/** `spanId` is ours: other servers are told it as their parent. */
export interface Trace extends TraceParent {
  /** As `tracestate` goes on; undefined: nothing does. */
  readonly state: string | undefined;
  /** Somebody traces, and is told of a call to another server, with its method; undefined: nobody does. */
  readonly startCall: ((method: string) => TracedCall) | undefined;
}

export interface TracedCall {
  /** What the other server is told in place of the request's own. */
  readonly trace: Trace;
  /** Either of them ends it. `origin`: scheme, host and port of who answered. */
  readonly answered: (status: number, origin: string) => void;
  readonly failed: (cause: unknown) => void;
}

export function traceOf(ctx: Context): Trace {
  const exchange = exchangeOf(ctx);
  exchange.trace ??= openTrace(ctx.req.headers, exchange.traceIds);
  return exchange.trace;
}

/** The headers that tell it to another server: names and values in turn. */
export function traceHeaders(trace: Trace): string[] {
  const list = ['traceparent', formatTraceparent(trace)];
  if (trace.state !== undefined) list.push('tracestate', trace.state);
  return list;
}

/** Whether it is sampled is said by who began it: what we begin ourselves nobody records. */
function openTrace({ traceparent, tracestate }: IncomingHttpHeaders, ids: TraceIds): Trace {
  const came = parseTraceparent(traceparent);
  return {
    traceId: came?.traceId ?? ids.traceId(),
    spanId: ids.spanId(),
    flags: came?.flags ?? 0,
    state: came && boundTracestate(tracestate),
    startCall: undefined,
  };
}
