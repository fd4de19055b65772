/** Spans as traces in the gateway's own terms: what goes on to other servers, and a span for each call to one. */
import type { Span, Context as SpanContext, Tracer } from '@opentelemetry/api';
import type { Trace, TracedCall } from '#http';
import { methodAttributes, setStatus, spanNameOf } from './conventions.ts';

export type Api = typeof import('@opentelemetry/api');

/** `around`: the context with this span in it. */
export function traceOfSpan(api: Api, tracer: Tracer, span: Span, around: SpanContext): Trace {
  return { ...idsOf(span), startCall: (method) => startCall(api, tracer, method, around) };
}

function idsOf(span: Span): Omit<Trace, 'startCall'> {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  return { traceId, spanId, flags: traceFlags, state: traceState?.serialize() || undefined };
}

function startCall(api: Api, tracer: Tracer, method: string, around: SpanContext): TracedCall {
  const { SpanKind, SpanStatusCode } = api;
  const options = { kind: SpanKind.CLIENT, attributes: methodAttributes(method) };
  const span = tracer.startSpan(spanNameOf(method), options, around);
  return {
    trace: { ...idsOf(span), startCall: undefined },
    answered(status, origin) {
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

/** A code where there is one: `ECONNREFUSED`. */
function errorTypeOf(cause: unknown): string {
  const { code, name } = Object(cause) as { code?: unknown; name?: unknown };
  return String(code ?? name ?? '_OTHER');
}

function addressOf(origin: string): Readonly<Record<string, string | number>> {
  const { protocol, hostname, port } = new URL(origin);
  const usual = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? usual : Number(port) };
}
