/** Exports the spans of this process over OTLP with the SDK of OpenTelemetry, as its environment variables say. */
import type { SpanExporter } from '@opentelemetry/sdk-trace-node';
import { createOutageLog, type Logger, messageOf } from '#foundation';

/** The environment variables of OpenTelemetry, `OTEL_…`. The SDK reads most of them itself. */
export type TraceVariables = Readonly<Record<string, string>>;

export interface TraceExport {
  /** Exports the spans that are left, but no longer than this. */
  readonly close: (withinMs: number) => Promise<void>;
}

interface ExportOptions {
  readonly variables: TraceVariables;
  readonly version: string;
  readonly logger: Logger;
}

/** With the versions of OpenTelemetry that belong together. */
const commonPackages = ['@opentelemetry/api@1.9', '@opentelemetry/resources@2', '@opentelemetry/sdk-trace-node@2'];

const protocols = {
  'http/protobuf': {
    packageName: '@opentelemetry/exporter-trace-otlp-proto@0.223',
    load: () => import('@opentelemetry/exporter-trace-otlp-proto'),
  },
  'http/json': {
    packageName: '@opentelemetry/exporter-trace-otlp-http@0.223',
    load: () => import('@opentelemetry/exporter-trace-otlp-http'),
  },
  grpc: {
    packageName: '@opentelemetry/exporter-trace-otlp-grpc@0.223',
    load: () => import('@opentelemetry/exporter-trace-otlp-grpc'),
  },
} as const;

const endpointNames = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];

/** The variable that asks for an export. Undefined without one, and if another one turns the export off. */
export function exportVariable(variables: TraceVariables): string | undefined {
  const { OTEL_SDK_DISABLED: disabled = '', OTEL_TRACES_EXPORTER: exporters = 'otlp' } = variables;
  if (disabled.trim().toLowerCase() === 'true') return undefined;
  if (!exporters.split(',').some((name) => name.trim() === 'otlp')) return undefined;
  return endpointNames.find((name) => (variables[name] ?? '').trim() !== '');
}

/** Sets up OpenTelemetry for this process. Resolves to undefined, after a warning, if that is not possible. */
export async function startExport(options: ExportOptions): Promise<TraceExport | undefined> {
  const { variables, logger } = options;
  try {
    return await start(options);
  } catch (err) {
    if (isPackageMissing(err)) warnNotInstalled(variables, logger);
    else logger.warn({ err }, `no spans are exported: ${messageOf(err)}`);
    return undefined;
  }
}

export function warnNotInstalled(variables: TraceVariables, logger: Logger): void {
  const packages = [...commonPackages, (protocolIn(variables) ?? protocols['http/protobuf']).packageName];
  const remedy = `npm install ${packages.join(' ')}`;
  logger.warn(
    {},
    `${exportVariable(variables)} is set, but no spans are exported, because OpenTelemetry is not installed: ${remedy}`,
  );
}

/** Reports whether a package of OpenTelemetry itself is missing, rather than one of its dependencies. */
export function isPackageMissing(cause: unknown): boolean {
  const { code, message } = Object(cause) as { code?: unknown; message?: unknown };
  return code === 'ERR_MODULE_NOT_FOUND' && String(message).includes("package '@opentelemetry/");
}

async function start({ variables, version, logger }: ExportOptions): Promise<TraceExport> {
  const protocol = protocolIn(variables);
  if (protocol === undefined)
    throw new Error(`OTEL_EXPORTER_OTLP_PROTOCOL must be one of ${Object.keys(protocols).join(', ')}`);
  const { BatchSpanProcessor, NodeTracerProvider } = await import('@opentelemetry/sdk-trace-node');
  const { OTLPTraceExporter } = await protocol.load();
  const exporter = reportOutages(new OTLPTraceExporter(), logger);
  const provider = new NodeTracerProvider({
    resource: await describeProcess(version),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  // The gateway passes the trace context on itself.
  provider.register({ propagator: null });
  return {
    async close(withinMs) {
      const closed = provider.shutdown().catch(() => {});
      await endWithin(closed, withinMs);
    },
  };
}

function protocolIn(variables: TraceVariables) {
  const { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: own, OTEL_EXPORTER_OTLP_PROTOCOL: common } = variables;
  const name = own || common || 'http/protobuf';
  return Object.hasOwn(protocols, name) ? protocols[name as keyof typeof protocols] : undefined;
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence. */
async function describeProcess(version: string) {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = await import(
    '@opentelemetry/resources'
  );
  const own = resourceFromAttributes({ 'service.name': 'frontdesk', 'service.version': version });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

/** The SDK alone would say nothing, or print, when the collector cannot be reached. */
function reportOutages(exporter: SpanExporter, logger: Logger): SpanExporter {
  const outage = createOutageLog({ logger, ended: 'spans are exported again' });
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code === 0) outage.answered();
        else outage.failed({ err: result.error }, 'the collector did not take spans, which are lost');
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

async function endWithin(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
