/** Detects at start-up whether the process has set up OpenTelemetry, and creates the tracing middleware if so. */
import type { Middleware } from 'koa';
import type { Logger } from '#http';
import { type Api, createServerSpans } from './spans.ts';

export interface TracingOptions {
  /** The version of this package, which spans report as their instrumentation scope. */
  readonly version: string;
  readonly logger: Logger;
  /** @default import('@opentelemetry/api'), an optional dependency */
  readonly load?: () => Promise<Api>;
}

export interface Tracing {
  /** Creates a span for each request. */
  readonly middleware: Middleware;
  /** Runs a function while suppressing the spans of other instrumentations. */
  readonly suppressTracing: (run: () => void) => void;
}

const instrumentationName = 'frontdesk';

/** Resolves to undefined if the process has not registered a tracer provider. */
export async function loadTracing({ version, logger, load = loadApi }: TracingOptions): Promise<Tracing | undefined> {
  let api: Api;
  try {
    api = await load();
  } catch (cause) {
    if (!isPackageMissing(cause)) logger.warn({ err: cause }, 'OpenTelemetry cannot be loaded, so there are no spans');
    return undefined;
  }
  if (!hasProvider(api)) return undefined;
  const tracer = api.trace.getTracer(instrumentationName, version);
  return { middleware: createServerSpans(api, tracer), suppressTracing: createSuppression(api) };
}

function loadApi(): Promise<Api> {
  return import('@opentelemetry/api');
}

/** Reports whether the package itself is missing, rather than one of its dependencies. */
function isPackageMissing(cause: unknown): boolean {
  const { code, message } = Object(cause) as { code?: unknown; message?: unknown };
  return code === 'ERR_MODULE_NOT_FOUND' && String(message).includes("package '@opentelemetry/api'");
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
