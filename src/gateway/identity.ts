/** Headers that say who the caller is: removed from what clients send, set from an auth service's answer. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { IdentityNames } from '#proxy';

export interface Identity extends IdentityNames {
  /** Removes the client's headers of these names in every form that Node has of them, before anything else reads them. */
  readonly strip: (request: RequestHeaders) => void;
  /** Copies the headers of these names from an auth service's answer. */
  readonly set: (headers: IncomingHttpHeaders, answered: Readonly<Record<string, string>>) => void;
  /** The user, for the log: the value of the first of these headers. */
  readonly userOf: (headers: IncomingHttpHeaders) => string | undefined;
}

type RequestHeaders = Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'rawHeaders'>;

/**
 * `names`: in lower case, as `allowed_authorization_headers` lists them. `reserved`: names that services of this process
 * trust, and that no client may send even where no auth service sets them.
 */
export function createIdentity(names: readonly string[], reserved: readonly string[] = []): Identity {
  const [userHeader] = names;
  const known = new Set([...names, ...reserved]);
  const stripped = [...known];
  const spelt = new Set(stripped.map((name) => name.replaceAll('_', '-')));
  return Object.freeze({
    strip(request: RequestHeaders) {
      for (const name of stripped) if (request.headers[name] !== undefined) removeHeader(request, name);
    },
    set(headers: IncomingHttpHeaders, answered: Readonly<Record<string, string>>) {
      for (const name of names) {
        const value = answered[name];
        if (value !== undefined) headers[name] = value;
      }
    },
    userOf(headers: IncomingHttpHeaders) {
      const user = userHeader === undefined ? undefined : headers[userHeader];
      return typeof user === 'string' ? user : undefined;
    },
    has: (name: string) => known.has(name),
    isReadAs: (name: string) => spelt.has(name),
  });
}

/** Node makes `headersDistinct` of the raw headers when it is first read, which must be before these are fewer. */
function removeHeader(request: RequestHeaders, name: string): void {
  delete request.headers[name];
  delete request.headersDistinct[name];
  const { rawHeaders } = request;
  request.rawHeaders = rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]?.toLowerCase() !== name);
}
