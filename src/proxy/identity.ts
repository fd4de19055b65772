/** Headers that say who the caller is: only the auth service may set them. */
import type { IncomingHttpHeaders } from 'node:http';

export interface Identity {
  /** Takes what the client sent under these names off the request, before anything else reads it. */
  readonly strip: (headers: IncomingHttpHeaders) => void;
  /** Copies from the auth service's answer what it is allowed to set. */
  readonly set: (headers: IncomingHttpHeaders, answered: Readonly<Record<string, string>>) => void;
  /** Who the request is by, for the log: the first of these headers. */
  readonly userOf: (headers: IncomingHttpHeaders) => string | undefined;
  /** True for one of these names, in lower case: what it holds after `strip` is the auth service's word. */
  readonly has: (name: string) => boolean;
  /** True for what CGI and WSGI cannot tell from one of these names; `name` with `-` for each `_`. */
  readonly isReadAs: (name: string) => boolean;
}

/**
 * `names`: in lower case, as `allowed_authorization_headers` lists them. `reserved`: names that services of this process
 * believe, and that no client may send even where no auth service sets them.
 */
export function createIdentity(names: readonly string[], reserved: readonly string[] = []): Identity {
  const [userHeader] = names;
  const known = new Set([...names, ...reserved]);
  const stripped = [...known];
  const spelt = new Set(stripped.map((name) => name.replaceAll('_', '-')));
  return Object.freeze({
    strip(headers: IncomingHttpHeaders) {
      for (const name of stripped) if (headers[name] !== undefined) delete headers[name];
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
