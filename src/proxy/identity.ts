/** Identity headers, such as X-Travel-User: removed from clients' requests and recognised in every spelling. */
import type { IncomingMessage } from 'node:http';

/** The headers that only an auth service may set, such as the user. Clients must not send them. */
export interface Identity {
  /** Removes these headers from every representation of the request's headers that Node offers. */
  readonly strip: (request: ReceivedHeaders) => void;
  /** True for the name of such a header, in lower case. */
  readonly has: (name: string) => boolean;
  /**
   * True for another spelling of such a name, or of the name of a header that the records read or remove. `dashed` comes
   * from `dashedName`.
   */
  readonly isAlias: (name: string, dashed: string) => boolean;
}

type ReceivedHeaders = Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'rawHeaders'>;

/** `read`: the names of other headers that the records read or remove. All names are in lower case. */
export function createIdentity(names: readonly string[], read: ReadonlySet<string> = new Set()): Identity {
  const known = new Set(names);
  const aliases = new Set(names.map(dashedName));
  return Object.freeze({
    strip(request: ReceivedHeaders) {
      for (const name of names) if (request.headers[name] !== undefined) removeHeader(request, name);
    },
    has: (name: string) => known.has(name),
    isAlias: (name: string, dashed: string) =>
      aliases.has(dashed) || (dashed !== name && read.has(dashed) && !read.has(name)),
  });
}

/** Node builds `headersDistinct` from `rawHeaders` on the first access, so the order of these lines matters. */
function removeHeader(request: ReceivedHeaders, name: string): void {
  delete request.headers[name];
  delete request.headersDistinct[name];
  const { rawHeaders } = request;
  request.rawHeaders = rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]?.toLowerCase() !== name);
}

/**
 * Returns a lower-case name with a dash for everything but letters and digits. CGI and WSGI do not distinguish `_` from
 * `-`, PHP does not distinguish `.` from them, and lighttpd replaces each of these characters with `_`.
 */
export function dashedName(name: string): string {
  return /[^a-z\d-]/.test(name) ? name.replace(/[^a-z\d]/g, '-') : name;
}
