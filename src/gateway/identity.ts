/** Headers that say who the caller is: removed from what clients send, set from an auth service's answer. */
import type { IncomingHttpHeaders } from 'node:http';
import type { IdentityNames } from '#proxy';

export interface Identity extends IdentityNames {
  /** Removes the client's headers of these names, before anything else reads them. */
  readonly strip: (headers: IncomingHttpHeaders) => void;
  /** Copies the headers of these names from an auth service's answer. */
  readonly set: (headers: IncomingHttpHeaders, answered: Readonly<Record<string, string>>) => void;
  /** The user, for the log: the value of the first of these headers. */
  readonly userOf: (headers: IncomingHttpHeaders) => string | undefined;
}

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
