/** Spans for requests and for calls to services (OpenTelemetry semantic conventions 1.23 and later), if it is set up. */
import type { Attributes, Span, Context as SpanContext, Tracer } from '@opentelemetry/api';
import type { Context, Middleware, Next } from 'koa';
import type { Logger } from '#foundation';
import {
  boundTracestate,
  countedStatus,
  type Problem,
  parseTraceparent,
  pathOf,
  type RequestContext,
  requestContext,
  type Trace,
  type TracedCall,
} from '#http';
import { exportVariable, isPackageMissing, startExport, type TraceVariables, warnNotInstalled } from './export.ts';

type Api = typeof import('@opentelemetry/api');

export interface TracingOptions {
  /** The version of this package, which spans report as their instrumentation scope. */
  readonly version: string;
  readonly logger: Logger;
  /** If they ask for an export, it is set up, unless a provider is registered. @default none */
  readonly variables?: TraceVariables | undefined;
  /** @default import('@opentelemetry/api'), an optional dependency */
  readonly load?: () => Promise<Api>;
}

export interface Tracing {
  /** Creates a span for each request. */
  readonly middleware: Middleware;
  /** Runs a function while suppressing the spans of other instrumentations. */
  readonly suppressTracing: (run: () => void) => void;
  /** Exports the spans that are left, if this process exports them itself, but no longer than this. */
  readonly close: (withinMs: number) => Promise<void>;
}

const instrumentationName = 'frontdesk';

/** Resolves to undefined if the process has not registered a tracer provider. */
export async function loadTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const { version, logger, variables = {}, load = loadApi } = options;
  const isExportWanted = exportVariable(variables) !== undefined;
  let api: Api;
  try {
    api = await load();
  } catch (cause) {
    if (!isPackageMissing(cause)) logger.warn({ err: cause }, 'OpenTelemetry cannot be loaded, so there are no spans');
    else if (isExportWanted) warnNotInstalled(variables, logger);
    return undefined;
  }
  const exporting = isExportWanted && !hasProvider(api) ? await startExport({ variables, version, logger }) : undefined;
  if (!hasProvider(api)) return undefined;
  const tracer = api.trace.getTracer(instrumentationName, version);
  return {
    middleware: createServerSpans(api, tracer),
    suppressTracing: createSuppression(api),
    async close(withinMs) {
      await exporting?.close(Math.min(withinMs, flushMsMax));
    },
  };
}

/** A collector that is away must not prolong every shutdown. */
const flushMsMax = 2_000;

function loadApi(): Promise<Api> {
  return import('@opentelemetry/api');
}

/** Until a provider is registered, OpenTelemetry returns a proxy without a delegate. */
function hasProvider({ trace }: Api): boolean {
  const provider: object = trace.getTracerProvider();
  if (!('getDelegateTracer' in provider) || typeof provider.getDelegateTracer !== 'function') return true;
  return provider.getDelegateTracer(instrumentationName) !== undefined;
}

/** The context key that the SDK and instrumentations check (see `suppressTracing` in @opentelemetry/core). */
const suppression = 'OpenTelemetry SDK Context Key SUPPRESS_TRACING';

function createSuppression({ context, createContextKey }: Api): Tracing['suppressTracing'] {
  const key = createContextKey(suppression);
  return (run) => context.with(context.active().setValue(key, true), run);
}

/** Creates the middleware for request spans. It runs right after the request context, and its span is active inside. */
function createServerSpans(api: Api, tracer: Tracer): Middleware {
  const { context, trace, SpanKind, SpanStatusCode } = api;

  return function serverSpan(ctx: Context, next: Next) {
    const request = requestContext(ctx);
    const outer = context.active();
    const isNested = hasSpan(api, outer);
    const parent = isNested ? outer : withRemoteParent(api, outer, ctx);
    // Inside a span of the host app, a second SERVER span would count the request twice.
    const kind = isNested ? SpanKind.INTERNAL : SpanKind.SERVER;
    const span = tracer.startSpan(spanNameOf(ctx.method), { kind, attributes: attributesOf(ctx, request) }, parent);
    if (!isNewSpan(api, span, parent)) return next();
    const spanContext = trace.setSpan(parent, span);
    request.trace = traceOfSpan(api, tracer, span, spanContext);
    if (span.isRecording()) {
      const { basePath } = request;
      ctx.res.once('close', () => endSpan(span, ctx, request, basePath, SpanStatusCode.ERROR));
    }
    return context.with(spanContext, next);
  };
}

function hasSpan({ trace, isSpanContextValid }: Api, outer: SpanContext): boolean {
  const found = trace.getSpanContext(outer);
  return found !== undefined && isSpanContextValid(found);
}

function withRemoteParent({ trace, createTraceState }: Api, outer: SpanContext, { req }: Context): SpanContext {
  const { traceparent, tracestate } = req.headers;
  const remote = parseTraceparent(traceparent);
  if (remote === undefined) return outer;
  const { traceId, spanId, flags } = remote;
  const state = boundTracestate(tracestate);
  return trace.setSpanContext(outer, {
    traceId,
    spanId,
    traceFlags: flags,
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  });
}

/** A disabled tracer returns a span without ids, or with those of the parent. */
function isNewSpan({ trace, isSpanContextValid }: Api, span: Span, parent: SpanContext): boolean {
  const own = span.spanContext();
  return isSpanContextValid(own) && own.spanId !== trace.getSpanContext(parent)?.spanId;
}

/** Returns the attributes of a request. The path excludes the query, which may contain secrets. */
function attributesOf(ctx: Context, { addresses, basePath }: RequestContext): Attributes {
  const host = addresses.host(ctx.req);
  return {
    ...methodAttributes(ctx.method),
    'url.scheme': addresses.scheme(ctx.req),
    'url.path': basePath + pathOf(ctx.url),
    ...(host !== '' && { 'server.address': host }),
  };
}

/** `basePath` is that of the start of the request. It has changed if the client disconnects inside a service. */
function endSpan(span: Span, ctx: Context, request: RequestContext, basePath: string, error: number): void {
  const { route, problem, grpcStatus } = request;
  if (route !== undefined) {
    span.setAttribute('http.route', basePath + route);
    span.updateName(spanNameOf(ctx.method, basePath + route));
  }
  if (ctx.res.headersSent) setStatus(span, ctx.res.statusCode, 500, error);
  if (grpcStatus !== undefined) setGrpcStatus(span, grpcStatus, countedStatus(ctx.res), error);
  if (problem !== undefined && problem.status >= 500) span.recordException(exceptionOf(problem));
  span.end();
}

function exceptionOf(problem: Problem): Error | string {
  const { cause = problem } = problem;
  return cause instanceof Error ? cause : String(cause);
}

/** Returns the trace for calls of the request to other servers. `spanContext` contains the span of the request. */
function traceOfSpan(api: Api, tracer: Tracer, span: Span, spanContext: SpanContext): Trace {
  return { ...idsOf(span), startCall: (method) => startCall(api, tracer, method, spanContext) };
}

function idsOf(span: Span): Omit<Trace, 'startCall'> {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  return { traceId, spanId, flags: traceFlags, state: traceState?.serialize() || undefined };
}

function startCall(api: Api, tracer: Tracer, method: string, spanContext: SpanContext): TracedCall {
  const { SpanKind, SpanStatusCode } = api;
  const options = { kind: SpanKind.CLIENT, attributes: methodAttributes(method) };
  const span = tracer.startSpan(spanNameOf(method), options, spanContext);
  return {
    trace: { ...idsOf(span), startCall: undefined },
    responded(status, origin) {
      if (span.isRecording()) span.setAttributes(addressOf(origin));
      setStatus(span, status, 400, SpanStatusCode.ERROR);
      span.end();
    },
    failed(cause) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.setAttribute('error.type', errorTypeOf(cause));
      span.recordException(cause instanceof Error ? cause : String(cause));
      span.end();
    },
  };
}

/** Prefers the error code, for example `ECONNREFUSED`, to the name. */
function errorTypeOf(cause: unknown): string {
  const { code, name } = Object(cause) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

function addressOf(origin: string): Readonly<Record<string, string | number>> {
  const { protocol, hostname, port } = new URL(origin);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? defaultPort : Number(port) };
}

/** The methods known to OpenTelemetry. Others are replaced, so that clients cannot make up span names. */
const knownMethods = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

function spanNameOf(method: string, route?: string): string {
  const name = knownMethods.has(method) ? method : 'HTTP';
  return route === undefined ? name : `${name} ${route}`;
}

function methodAttributes(method: string): Readonly<Record<string, string>> {
  if (knownMethods.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method };
}

/** `failsFrom` is the lowest status that counts as an error for this kind of span. */
function setStatus(span: Span, status: number, failsFrom: number, error: number): void {
  span.setAttribute('http.response.status_code', status);
  if (status < failsFrom) return;
  span.setAttribute('error.type', String(status));
  span.setStatus({ code: error });
}

/** `counted` is the status of HTTP that says the same. */
function setGrpcStatus(span: Span, status: number, counted: number, error: number): void {
  span.setAttribute('rpc.grpc.status_code', status);
  if (counted < 500) return;
  span.setAttribute('error.type', String(status));
  span.setStatus({ code: error });
}
