/** Finds out once whether this process traces, and makes the middleware: without a provider of tracers nothing is loaded. */
import type { Middleware } from 'koa';
import type { Logger } from '#http';
import { type Api, createServerSpans } from './spans.ts';

export interface TracingOptions {
  /** Of this package, which spans name as their instrumentation. */
  readonly version: string;
  readonly logger: Logger;
  /** @default import('@opentelemetry/api'), an optional dependency */
  readonly load?: () => Promise<Api>;
}

export interface Tracing {
  /** Makes a span of each request. */
  readonly middleware: Middleware;
  /** Runs a function for which no instrumentation makes spans. */
  readonly suppressTracing: (run: () => void) => void;
}

const instrumentationName = 'frontdesk';

/** Undefined when the process has registered no provider of tracers. */
export async function loadTracing({ version, logger, load = loadApi }: TracingOptions): Promise<Tracing | undefined> {
  let api: Api;
  try {
    api = await load();
  } catch (cause) {
    if (!isAbsence(cause)) logger.warn({ err: cause }, 'OpenTelemetry cannot be loaded: there are no spans');
    return undefined;
  }
  if (!hasProvider(api)) return undefined;
  const tracer = api.trace.getTracer(instrumentationName, version);
  return { middleware: createServerSpans(api, tracer), suppressTracing: createSuppression(api) };
}

function loadApi(): Promise<Api> {
  return import('@opentelemetry/api');
}

/** Whether this package is missing, and not one that it needs. */
function isAbsence(cause: unknown): boolean {
  const { code, message } = Object(cause) as { code?: unknown; message?: unknown };
  return code === 'ERR_MODULE_NOT_FOUND' && String(message).includes("package '@opentelemetry/api'");
}

/** Until a provider is registered there is a proxy, which has no delegate. */
function hasProvider({ trace }: Api): boolean {
  const provider: object = trace.getTracerProvider();
  if (!('getDelegateTracer' in provider) || typeof provider.getDelegateTracer !== 'function') return true;
  return provider.getDelegateTracer(instrumentationName) !== undefined;
}

/** The key that the SDK and the instrumentations read (`suppressTracing` of @opentelemetry/core). */
const suppression = 'OpenTelemetry SDK Context Key SUPPRESS_TRACING';

function createSuppression({ context, createContextKey }: Api): Tracing['suppressTracing'] {
  const key = createContextKey(suppression);
  return (run) => context.with(context.active().setValue(key, true), run);
}
