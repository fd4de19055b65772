/** Identity headers, which name the caller: stripped from client requests, and set from the auth service's response. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { dashedName, type IdentityNames } from '#proxy';

export interface Identity extends IdentityNames {
  /** Removes the identity headers that a client sent, from every representation of the headers that Node offers. */
  readonly strip: (request: RequestHeaders) => void;
  /** Copies the identity headers from an auth service's response. */
  readonly set: (headers: IncomingHttpHeaders, values: Readonly<Record<string, string>>) => void;
  /** Returns the user for the log: the value of the first identity header. */
  readonly userOf: (headers: IncomingHttpHeaders) => string | undefined;
}

type RequestHeaders = Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'rawHeaders'>;

/**
 * `names`: the lower-case names in `allowed_authorization_headers`. `reserved`: further names that services in this
 * process trust, which clients must not send even if no auth service sets them. `read`: the lower-case names of other
 * headers that the records read or remove.
 */
export function createIdentity(
  names: readonly string[],
  reserved: readonly string[] = [],
  read: ReadonlySet<string> = new Set(),
): Identity {
  const [userHeader] = names;
  const known = new Set([...names, ...reserved]);
  const stripped = [...known];
  const aliases = new Set(stripped.map(dashedName));
  return Object.freeze({
    strip(request: RequestHeaders) {
      for (const name of stripped) if (request.headers[name] !== undefined) removeHeader(request, name);
    },
    set(headers: IncomingHttpHeaders, values: Readonly<Record<string, string>>) {
      for (const name of names) {
        const value = values[name];
        if (value !== undefined) headers[name] = value;
      }
    },
    userOf(headers: IncomingHttpHeaders) {
      const user = userHeader === undefined ? undefined : headers[userHeader];
      return typeof user === 'string' ? user : undefined;
    },
    has: (name: string) => known.has(name),
    isAlias: (name: string, dashed: string) =>
      aliases.has(dashed) || (dashed !== name && read.has(dashed) && !read.has(name)),
  });
}

/** Node builds `headersDistinct` from `rawHeaders` on the first access, so the order of these lines matters. */
function removeHeader(request: RequestHeaders, name: string): void {
  delete request.headers[name];
  delete request.headersDistinct[name];
  const { rawHeaders } = request;
  request.rawHeaders = rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]?.toLowerCase() !== name);
}
