/** The paths that a service answers with, turned back into those that its client knows. */

export interface PathRestoration {
  /** What stands before the rest of the path where the client is: `''` or `/travel/v1/hotels`. */
  readonly publicPrefix: string;
  /** What stands there at the service: `''` or `/base`. */
  readonly innerPrefix: string;
  /** The service's own origin: what it may call itself in a `Location` or in a cookie's `Domain`. */
  readonly upstreamOrigin: string;
}

/**
 * A `Location` of a service as the client must see it: the service's own origin is dropped and the public prefix put
 * back. Other origins, relative references, and paths that carry the public prefix already stay as they are.
 */
export function restoreLocation(location: string, restoration: PathRestoration): string {
  const path = pathAt(location, restoration.upstreamOrigin);
  return path === undefined ? location : withOneSlash(restorePath(path, restoration) ?? path);
}

/** Undefined for a path that stays as it is. */
function restorePath(path: string, { publicPrefix, innerPrefix }: PathRestoration): string | undefined {
  if (publicPrefix !== '' && startsWithSegments(path, publicPrefix)) return undefined;
  return startsWithSegments(path, innerPrefix) ? publicPrefix + path.slice(innerPrefix.length) : undefined;
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

/**
 * A `Set-Cookie` of a service as the client must see it: `Path` gets the public prefix back, and a `Domain` that is the
 * service's own host is dropped, because no client would keep such a cookie. Everything else stays byte for byte.
 */
export function restoreCookie(setCookie: string, restoration: PathRestoration): string {
  const [pair = '', ...attributes] = setCookie.split(';');
  const isHostCookie = /^\s*__Host-/i.test(pair);
  const restored = attributes
    .filter((attribute) => !isOwnDomain(attribute, restoration.upstreamOrigin))
    .map((attribute) => (isHostCookie ? attribute : restoreAttribute(attribute, restoration)));
  return [pair, ...restored].join(';');
}

function isOwnDomain(attribute: string, upstreamOrigin: string): boolean {
  const domain = /^\s*domain\s*=\s*\.?(.*?)\s*$/i.exec(attribute)?.[1];
  return domain !== undefined && domain.toLowerCase() === new URL(upstreamOrigin).hostname;
}

/** A browser drops a `__Host-` cookie with any `Path` but `/`, and takes a relative one for none (RFC 6265 section 5.2.4). */
function restoreAttribute(attribute: string, restoration: PathRestoration): string {
  const [, name, path, end] = /^(\s*path\s*=\s*)(\/.*?)(\s*)$/i.exec(attribute) ?? [];
  if (name === undefined || path === undefined) return attribute;
  return name + cookiePath(path, restoration) + end;
}

/**
 * A path above the inner prefix covers all that the client can reach, which is the public prefix. That has no slash at
 * the end: `/v1/hotels/` would not match `/v1/hotels` itself (RFC 6265 section 5.1.4).
 */
function cookiePath(path: string, restoration: PathRestoration): string {
  const { publicPrefix, innerPrefix } = restoration;
  const bare = path.replace(/\/$/, '');
  if (startsWithSegments(innerPrefix, bare)) return publicPrefix || '/';
  return restorePath(path, restoration) ?? path;
}
