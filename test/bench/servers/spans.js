/** Sets up OpenTelemetry as in production, but does not send: spans are created, batched and dropped. */
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';

/** @type {import('@opentelemetry/sdk-trace-base').SpanExporter} */
const discardingExporter = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => {} };

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(discardingExporter)] }),
);
