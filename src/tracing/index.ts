/** OpenTelemetry spans for requests and calls, in processes that have set up OpenTelemetry. */
export { loadTracing, type Tracing, type TracingOptions } from './tracing.ts';
