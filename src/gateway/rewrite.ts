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
  readonly prefix: string;
  readonly rewrite: string;
  /** Where this gateway is mounted, without a slash at the end. */
  readonly basePath: string;
  /** The service's own origin: what it may call itself in a `Location`. */
  readonly upstreamOrigin: string;
}

/**
 * A `Location` of a service as the client must see it: the service's own origin is dropped and the prefix put back.
 * Other origins, relative references, and paths that carry the public prefix already stay as they are.
 */
export function restoreLocation(
  location: string,
  { prefix, rewrite, basePath, upstreamOrigin }: PathRestoration,
): string {
  const path = location.startsWith(`${upstreamOrigin}/`) ? location.slice(upstreamOrigin.length) : location;
  if (!path.startsWith('/') || path.startsWith('//')) return location;
  const publicPrefix = basePath + (prefix === '/' ? '' : prefix);
  if (publicPrefix === '' || startsWithSegments(path, publicPrefix)) return path;
  if (rewrite === '') return basePath + path;
  const inner = rewrite.replace(/\/$/, '');
  return startsWithSegments(path, inner) ? publicPrefix + path.slice(inner.length) : path;
}

function startsWithSegments(path: string, prefix: string): boolean {
  return (
    path.startsWith(prefix) &&
    (prefix === '' || path.length === prefix.length || '/?#'.includes(path.charAt(prefix.length)))
  );
}
