/** Identity headers, such as X-Travel-User: removed from clients' requests and recognised in every spelling. */
import { dashedName, type ReceivedHeaders, rejectNomination, removeHeaders } from '#http';

/** The headers that only an auth service may set, such as the user. Clients must not send them. */
export interface Identity {
  /** Removes these headers from every representation of the request's headers that Node offers. */
  readonly strip: (request: ReceivedHeaders, isFromTrustedProxy: boolean) => void;
  /** Throws `bad-request` if the client nominates such a header, its address or the host in `Connection`. */
  readonly rejectNomination: (nominated: ReadonlySet<string>) => void;
  /** True for the name of such a header, in lower case. */
  readonly has: (name: string) => boolean;
  /**
   * True for another spelling of such a name, or of the name of a header that the records read or remove. `dashed` comes
   * from `dashedName`.
   */
  readonly isAlias: (name: string, dashed: string) => boolean;
}

/**
 * `read`: the names of other headers that the records read or remove. All names are in lower case. With `believesProxies`,
 * trusted proxies are gateways, which may send these headers.
 */
export function createIdentity(
  names: readonly string[],
  read: ReadonlySet<string> = new Set(),
  believesProxies = false,
): Identity {
  const known = new Set(names);
  const aliases = new Set(names.map(dashedName));
  return Object.freeze({
    strip(request: ReceivedHeaders, isFromTrustedProxy: boolean) {
      if (believesProxies && isFromTrustedProxy) return;
      for (const name of names) if (request.headers[name] !== undefined) removeHeaders(request, new Set([name]));
    },
    rejectNomination: (nominated: ReadonlySet<string>) => rejectNomination(nominated, (name) => aliases.has(name)),
    has: (name: string) => known.has(name),
    isAlias: (name: string, dashed: string) =>
      aliases.has(dashed) || (dashed !== name && read.has(dashed) && !read.has(name)),
  });
}
