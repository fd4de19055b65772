/** What a service sees of a path, and how the paths it answers with are turned back. */

/**
 * `/v1/hotels/bookings/1` with prefix `/v1/hotels` and rewrite `/` is `/bookings/1`, and `/v1/hotels` is `/`. The empty
 * rewrite leaves the path alone. The result starts with exactly one slash: `//host` would be another host to a client
 * that resolves it.
 */
export function rewritePath(path: string, prefix: string, rewrite: string): string {
  if (rewrite === '') return path;
  const rest = prefix === '/' ? path : path.slice(prefix.length);
  const joined = rewrite === '/' ? rest : rewrite.replace(/\/$/, '') + rest;
  if (joined === '') return '/';
  return joined.charCodeAt(1) === slash ? joined.replace(/^\/+/, '/') : joined;
}

const slash = '/'.charCodeAt(0);

export interface PathRestoration {
  /** What stands before the rest of the path where the client is: `''` or `/travel/v1/hotels`. */
  readonly publicPrefix: string;
  /** What stands there at the service: `''` or `/base`. */
  readonly innerPrefix: string;
  /** The service's own origin: what it may call itself in a `Location`. */
  readonly upstreamOrigin: string;
}

/**
 * A `Location` of a service as the client must see it: the service's own origin is dropped and the public prefix put
 * back. Other origins, relative references, and paths that carry the public prefix already stay as they are.
 */
export function restoreLocation(
  location: string,
  { publicPrefix, innerPrefix, upstreamOrigin }: PathRestoration,
): string {
  const path = pathAt(location, upstreamOrigin);
  if (path === undefined) return location;
  const isPublic = publicPrefix !== '' && startsWithSegments(path, publicPrefix);
  if (isPublic || !startsWithSegments(path, innerPrefix)) return withOneSlash(path);
  return withOneSlash(publicPrefix + path.slice(innerPrefix.length));
}

/** The path and what follows it, when the reference leads to this origin; undefined when it leads elsewhere or is relative. */
function pathAt(location: string, origin: string): string | undefined {
  if (/^\/(?!\/)/.test(location)) return location;
  if (!/^(?:https?:)?\/\//i.test(location) || !URL.canParse(location, origin)) return undefined;
  const there = new URL(location, origin);
  return there.origin === new URL(origin).origin ? there.pathname + there.search + there.hash : undefined;
}

function startsWithSegments(path: string, prefix: string): boolean {
  return (
    path.startsWith(prefix) &&
    (prefix === '' || path.length === prefix.length || '/?#'.includes(path.charAt(prefix.length)))
  );
}

/** `//host`, and `/\host` to a browser, would be another host. */
function withOneSlash(path: string): string {
  return `/${path.replace(/^[/\\\t]+/, '')}`;
}
