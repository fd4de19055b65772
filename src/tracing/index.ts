/** Spans of what the gateway does, for OpenTelemetry: only where somebody has set it up, and at no cost elsewhere. */
export { loadTracing, type Tracing, type TracingOptions } from './load-tracing.ts';
