/** Turns the paths in a service's Location and Set-Cookie back into the paths that its client knows. */

export interface PathRestoration {
  /** Before the rest of the path for the client: `''` or `/travel/v1/hotels`. */
  readonly publicPrefix: string;
  /** Before the rest of the path for the service: `''` or `/base`. */
  readonly innerPrefix: string;
  /** The service's own origin, which it may write in a `Location` or in a cookie's `Domain`. */
  readonly upstreamOrigin: string;
}

/**
 * A `Location` of a service as the client must see it: without the service's own origin and with the public prefix.
 * Other origins, relative references, and paths that have the public prefix already stay as they are.
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
  const { name, value } = splitAttribute(attribute);
  return name === 'domain' && value.replace(/^\./, '').toLowerCase() === new URL(upstreamOrigin).hostname;
}

/** A browser drops a `__Host-` cookie with any `Path` but `/`, and ignores a relative one (RFC 6265 section 5.2.4). */
function restoreAttribute(attribute: string, restoration: PathRestoration): string {
  const { name, value, start } = splitAttribute(attribute);
  if (name !== 'path' || !value.startsWith('/')) return attribute;
  return attribute.slice(0, start) + cookiePath(value, restoration) + attribute.slice(start + value.length);
}

/** Without one expression for all of it, which would be quadratic for a long run of blanks. `start` is where `value` begins. */
function splitAttribute(attribute: string) {
  const equals = attribute.indexOf('=');
  const text = attribute.slice(equals + 1);
  const start = attribute.length - text.trimStart().length;
  return { name: attribute.slice(0, Math.max(equals, 0)).trim().toLowerCase(), value: text.trim(), start };
}

/**
 * A path above the inner prefix covers all that the client can reach, which is the public prefix. It gets no slash at the
 * end: `/v1/hotels/` would not match `/v1/hotels` itself (RFC 6265 section 5.1.4).
 */
function cookiePath(path: string, restoration: PathRestoration): string {
  const { publicPrefix, innerPrefix } = restoration;
  const bare = path.replace(/\/$/, '');
  if (startsWithSegments(innerPrefix, bare)) return publicPrefix || '/';
  return restorePath(path, restoration) ?? path;
}
