/** A span for each request: below the host's own where there is one, otherwise below what the client's headers name. */
import type { Attributes, Span, Context as SpanContext, Tracer } from '@opentelemetry/api';
import type { Context, Middleware, Next } from 'koa';
import { boundTracestate, type Problem, parseTraceparent, pathOf, type RequestContext, requestContext } from '#http';
import { methodAttributes, setStatus, spanNameOf } from './conventions.ts';
import { type Api, traceOfSpan } from './span-trace.ts';

/** Stands behind `createExchange` and before everything else. What runs inside finds the span as the active one. */
export function createServerSpans(api: Api, tracer: Tracer): Middleware {
  const { context, trace, SpanKind, SpanStatusCode } = api;

  return function serverSpan(ctx: Context, next: Next) {
    const exchange = requestContext(ctx);
    const outer = context.active();
    const isInside = hasSpan(api, outer);
    const parent = isInside ? outer : withRemoteParent(api, outer, ctx);
    // Whoever counts the spans of servers would count a request twice, the host's and ours.
    const kind = isInside ? SpanKind.INTERNAL : SpanKind.SERVER;
    const span = tracer.startSpan(spanNameOf(ctx.method), { kind, attributes: attributesOf(ctx, exchange) }, parent);
    if (!isOurs(api, span, parent)) return next();
    const around = trace.setSpan(parent, span);
    exchange.trace = traceOfSpan(api, tracer, span, around);
    if (span.isRecording()) {
      const { basePath } = exchange;
      ctx.res.once('close', () => endSpan(span, ctx, exchange, basePath, SpanStatusCode.ERROR));
    }
    return context.with(around, next);
  };
}

function hasSpan({ trace, isSpanContextValid }: Api, outer: SpanContext): boolean {
  const found = trace.getSpanContext(outer);
  return found !== undefined && isSpanContextValid(found);
}

function withRemoteParent({ trace, createTraceState }: Api, outer: SpanContext, { req }: Context): SpanContext {
  const { traceparent, tracestate } = req.headers;
  const came = parseTraceparent(traceparent);
  if (came === undefined) return outer;
  const { traceId, spanId, flags } = came;
  const state = boundTracestate(tracestate);
  return trace.setSpanContext(outer, {
    ...{ traceId, spanId, traceFlags: flags, isRemote: true },
    ...(state !== undefined && { traceState: createTraceState(state) }),
  });
}

/** A tracer that is off gives a span without ids, or its parent's. */
function isOurs({ trace, isSpanContextValid }: Api, span: Span, parent: SpanContext): boolean {
  const own = span.spanContext();
  return isSpanContextValid(own) && own.spanId !== trace.getSpanContext(parent)?.spanId;
}

/** Without the query, which may hold secrets. */
function attributesOf(ctx: Context, { addresses, basePath }: RequestContext): Attributes {
  const host = addresses.host(ctx.req);
  return {
    ...methodAttributes(ctx.method),
    'url.scheme': addresses.scheme(ctx.req),
    'url.path': basePath + pathOf(ctx.url),
    ...(host !== '' && { 'server.address': host }),
  };
}

/** `basePath`: as it was at the beginning, since a service that the client left in the middle has another. */
function endSpan(span: Span, ctx: Context, { route, problem }: RequestContext, basePath: string, error: number): void {
  if (route !== undefined) {
    span.setAttribute('http.route', basePath + route);
    span.updateName(spanNameOf(ctx.method, basePath + route));
  }
  if (ctx.res.headersSent) setStatus(span, ctx.res.statusCode, 500, error);
  if (problem !== undefined && problem.status >= 500) span.recordException(exceptionOf(problem));
  span.end();
}

function exceptionOf(problem: Problem): Error | string {
  const { cause = problem } = problem;
  return cause instanceof Error ? cause : String(cause);
}
