/** How OpenTelemetry calls what is said of HTTP (semantic conventions 1.23 and later). */
import type { Span } from '@opentelemetry/api';

/** Others would let clients make up names of spans. */
const knownMethods = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/** What a span of a request with this method is called. */
export function spanNameOf(method: string, route?: string): string {
  const name = knownMethods.has(method) ? method : 'HTTP';
  return route === undefined ? name : `${name} ${route}`;
}

export function methodAttributes(method: string): Readonly<Record<string, string>> {
  if (knownMethods.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method };
}

/** `failsFrom`: the least status that is an error of this side. */
export function setStatus(span: Span, status: number, failsFrom: number, error: number): void {
  span.setAttribute('http.response.status_code', status);
  if (status < failsFrom) return;
  span.setAttribute('error.type', String(status));
  span.setStatus({ code: error });
}
