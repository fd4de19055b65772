/** Service references: `hotel`, `hotel:9001`, `https://hotel.example:8443/base`. */
import { isHost } from './addresses.ts';

/** A reference with neither scheme nor port names a module of this process first. */
export interface ServiceReference {
  readonly scheme: 'http' | 'https' | 'grpc' | undefined;
  /** As a URL has it: an IPv6 address keeps its brackets. */
  readonly host: string;
  readonly port: number | undefined;
  /** Begins with a slash and does not end with one; undefined when there is none. */
  readonly path: string | undefined;
}

/** Scheme, host, port and path: by number, since of thousands of mappings a map of names for each takes its time. */
const grammar = /^(?:(http|https|grpc):\/\/)?(\[[\da-fA-F:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?(\/[^\s?#\\]*)?$/;

/** Undefined when the text is none: an unknown scheme, credentials, a query, a port outside 1–65535, or a path without a scheme. */
export function parseServiceReference(text: string): ServiceReference | undefined {
  const [, scheme, host = '', port, path] = grammar.exec(text) ?? [];
  const number = port === undefined ? undefined : Number(port);
  if (
    !isHost(host.startsWith('[') ? host.slice(1, -1) : host) ||
    (number !== undefined && (number < 1 || number > 65535))
  )
    return undefined;
  if (path !== undefined && scheme === undefined) return undefined;
  return Object.freeze({
    scheme: schemeOf(scheme),
    host,
    port: number,
    path: path?.replace(/\/+$/, '') || undefined,
  });
}

function schemeOf(text: string | undefined): ServiceReference['scheme'] {
  return text === 'http' || text === 'https' || text === 'grpc' ? text : undefined;
}

/** The reference as text; `parseServiceReference` reads it back to the same. */
export function formatServiceReference({ scheme, host, port, path }: ServiceReference): string {
  return `${scheme === undefined ? '' : `${scheme}://`}${host}${port === undefined ? '' : `:${port}`}${path ?? ''}`;
}
