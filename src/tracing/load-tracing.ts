/** Whether anybody traces: decided once, so that a request of a process without traces meets nothing of it. */
import type { Middleware } from 'koa';
import type { Logger } from '#http';
import { createServerSpans } from './server-spans.ts';
import type { Api } from './span-trace.ts';

export interface TracingOptions {
  /** For the version of what makes the spans. */
  readonly version: string;
  readonly logger: Logger;
  /** @default the package beside us, which is optional */
  readonly load?: () => Promise<Api>;
}

export interface Tracing {
  /** Makes a span of each request. */
  readonly middleware: Middleware;
  /** Runs what no instrumentation is to make spans of. */
  readonly untraced: (run: () => void) => void;
}

const instrumentationName = 'frontdesk';

/** Undefined when nobody has registered a provider of tracers. */
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
  return { middleware: createServerSpans(api, tracer), untraced: createUntraced(api) };
}

function loadApi(): Promise<Api> {
  return import('@opentelemetry/api');
}

/** Of that package, and not of something that it needs. */
function isAbsence(cause: unknown): boolean {
  const { code, message } = Object(cause) as { code?: unknown; message?: unknown };
  return code === 'ERR_MODULE_NOT_FOUND' && String(message).includes("package '@opentelemetry/api'");
}

/** Until somebody registers one there is a stand-in, which has no tracer of its own to give. */
function hasProvider({ trace }: Api): boolean {
  const provider: object = trace.getTracerProvider();
  if (!('getDelegateTracer' in provider) || typeof provider.getDelegateTracer !== 'function') return true;
  return provider.getDelegateTracer(instrumentationName) !== undefined;
}

/** The name under which the SDK and the instrumentations look (`suppressTracing` of @opentelemetry/core). */
const suppression = 'OpenTelemetry SDK Context Key SUPPRESS_TRACING';

function createUntraced({ context, createContextKey }: Api): Tracing['untraced'] {
  const key = createContextKey(suppression);
  return (run) => context.with(context.active().setValue(key, true), run);
}
