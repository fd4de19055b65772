/** OpenTelemetry spans for requests and calls, in processes that have set up OpenTelemetry or export them over OTLP. */
export type { TraceVariables } from './export.ts';
export { loadTracing, type Tracing, type TracingOptions } from './tracing.ts';
