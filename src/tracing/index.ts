/** OpenTelemetry spans of what the gateway does, only in a process that has set up OpenTelemetry. */
export { loadTracing, type Tracing, type TracingOptions } from './tracing.ts';
