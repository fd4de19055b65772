/** Headers that concern one connection, and how to remove those that the client nominates in `Connection`. */
import type { IncomingMessage } from 'node:http';
import { problem } from '../problem.ts';

/**
 * They concern one connection of HTTP/1.1 (RFC 9110 section 7.6.1). HTTP/2 does not allow them, except for `te: trailers`
 * in a request (RFC 9113 section 8.2.2).
 */
export const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

export type ReceivedHeaders = Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'rawHeaders'>;

/**
 * Removes headers, by their names in lower case, from every representation that Node offers. Node builds
 * `headersDistinct` from `rawHeaders` on the first access, so the order of these lines matters.
 */
export function removeHeaders(request: ReceivedHeaders, names: ReadonlySet<string>): void {
  for (const name of names) {
    delete request.headers[name];
    delete request.headersDistinct[name];
  }
  const { rawHeaders } = request;
  request.rawHeaders = rawHeaders.filter(
    (_, index) => !names.has(rawHeaders[index - (index % 2)]?.toLowerCase() ?? ''),
  );
}

/**
 * Returns a lower-case name with a dash for everything but letters and digits. CGI and WSGI do not distinguish `_` from
 * `-`, PHP does not distinguish `.` from them, and lighttpd replaces each of these characters with `_`.
 */
export function dashedName(name: string): string {
  return /[^a-z\d-]/.test(name) ? name.replace(/[^a-z\d]/g, '-') : name;
}

/** Returns the header names that a `Connection` header lists, in lower case. */
export function nominatedBy(connection: string | readonly string[] | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none;
  const names = String(connection).toLowerCase().split(',');
  return new Set(names.map((name) => name.trim()));
}

const none: ReadonlySet<string> = new Set();

/** Needed to read the rest of the message, which nothing but the client's connection uses. */
const framing: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Removes the headers that the client nominates in `Connection`, in every spelling (RFC 9110 section 7.6.1), and returns
 * the nominated names. A service must not lack a header that a stage before it has read. Those that frame the message
 * remain, and so do those that `rejectNomination` rejects.
 */
export function removeNominated(request: ReceivedHeaders): ReadonlySet<string> {
  const { headers } = request;
  const nominated = nominatedBy(headers.connection);
  if (nominated.size === 0) return nominated;
  const removed = new Set<string>();
  for (const name in headers) {
    const dashed = dashedName(name);
    if ((nominated.has(name) || nominated.has(dashed)) && !framing.has(dashed) && !isAddress(dashed)) removed.add(name);
  }
  if (removed.size > 0) removeHeaders(request, removed);
  return nominated;
}

/** True for a header that says who the client is or where it wants to go. `dashed` comes from `dashedName`. */
function isAddress(dashed: string): boolean {
  return dashed === 'host' || dashed === 'forwarded' || dashed.startsWith('x-forwarded-');
}

/**
 * Throws `bad-request` if the client nominates a header that says who it is or where it wants to go, in any spelling:
 * without the header, limits would count another address. Envoy responds in the same way. `isIdentity` gets names from
 * `dashedName`.
 */
export function rejectNomination(
  nominated: ReadonlySet<string>,
  isIdentity: (dashed: string) => boolean = () => false,
): void {
  for (const name of nominated) {
    const dashed = dashedName(name);
    if (isAddress(dashed) || isIdentity(dashed)) throw problem('bad-request', { detail });
  }
}

const detail = 'Connection must not list a header that says who the client is or which host it wants.';
