/** Turns the paths in a service's Location and Set-Cookie back into the paths that its client knows. */

export interface PathRestoration {
  /** Before the rest of the path for the client: `''` or `/travel/v1/hotels`. */
  readonly publicPrefix: string;
  /** Before the rest of the path for the service: `''` or `/base`. */
  readonly innerPrefix: string;
  /** The service's own origin, which it may write in a `Location` or in a cookie's `Domain`. */
  readonly upstreamOrigin: string;
  /** `http` or `https`, as the client sees it. */
  readonly publicScheme: string;
  /** The host, with any port, in the URLs that the client sees. */
  readonly publicHost: string;
  /** The `Host` that the service got; undefined: that of its origin. */
  readonly sentHost: string | undefined;
}

/**
 * A `Location` of a service as the client must see it: without an origin that only the service knows, and with the public
 * prefix. Other origins, relative references, and paths that have the public prefix already stay as they are.
 */
export function restoreLocation(location: string, restoration: PathRestoration): string {
  if (/^\/(?!\/)/.test(location)) return restoredPath(location, restoration);
  const { upstreamOrigin } = restoration;
  const readable = encodeBytes(location);
  if (!/^(?:https?:)?\/\//i.test(location) || !URL.canParse(readable, upstreamOrigin)) return location;
  const there = new URL(readable, upstreamOrigin);
  const path = () => restoredPath(there.pathname + there.search + there.hash, restoration);
  if (isPublic(location, there, restoration)) return there.origin + path();
  return ownOrigins(restoration).includes(there.origin) ? path() : location;
}

/** Each character is a byte of the header, and URL would encode it as two. */
function encodeBytes(location: string): string {
  return location.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/**
 * True for the origin that the client knows, and for a move of it from http to https: a path alone would lead back to
 * http, where the service sends the client to https again.
 */
function isPublic(location: string, there: URL, { publicScheme, publicHost }: PathRestoration): boolean {
  if (location.startsWith('//')) return false;
  const scheme = there.protocol.slice(0, -1);
  return (scheme === publicScheme || scheme === 'https') && there.origin === originOf(scheme, publicHost);
}

/** A service writes the `Host` that it got or X-Forwarded-Host, with the scheme of its own connection or of the client's. */
function ownOrigins({ upstreamOrigin, publicScheme, publicHost, sentHost }: PathRestoration): (string | undefined)[] {
  const { origin, protocol } = new URL(upstreamOrigin);
  const hosts = sentHost === undefined ? [publicHost] : [publicHost, sentHost];
  return [origin, ...hosts.flatMap((host) => [originOf(publicScheme, host), originOf(protocol.slice(0, -1), host)])];
}

/** Undefined for a host that no URL can have. */
export function originOf(scheme: string, host: string): string | undefined {
  const url = `${scheme}://${host}`;
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function restoredPath(path: string, restoration: PathRestoration): string {
  return withOneSlash(restorePath(path, restoration) ?? path);
}

/** Undefined for a path that stays as it is. */
function restorePath(path: string, { publicPrefix, innerPrefix }: PathRestoration): string | undefined {
  if (publicPrefix !== '' && startsWithSegments(path, publicPrefix)) return undefined;
  return startsWithSegments(path, innerPrefix) ? publicPrefix + path.slice(innerPrefix.length) : undefined;
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
 * service's own host or that of `host_rewrite` is dropped, because no client would keep such a cookie. Everything else
 * stays byte for byte, also a `Domain` that is the client's host.
 */
export function restoreCookie(setCookie: string, restoration: PathRestoration): string {
  const [pair = '', ...attributes] = setCookie.split(';');
  const isHostCookie = /^\s*__Host-/i.test(pair);
  const restored = attributes
    .filter((attribute) => !isOwnDomain(attribute, restoration))
    .map((attribute) => (isHostCookie ? attribute : restoreAttribute(attribute, restoration)));
  return [pair, ...restored].join(';');
}

function isOwnDomain(attribute: string, { upstreamOrigin, publicHost, sentHost }: PathRestoration): boolean {
  const { name, value } = splitAttribute(attribute);
  if (name !== 'domain') return false;
  const domain = value.replace(/^\./, '').toLowerCase();
  if (domain === hostnameOf(`http://${publicHost}`)) return false;
  return (
    domain === hostnameOf(upstreamOrigin) || (sentHost !== undefined && domain === hostnameOf(`http://${sentHost}`))
  );
}

/** Undefined for text that is no URL. */
function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** A browser drops a `__Host-` cookie with any `Path` but `/`, and ignores a relative one (RFC 6265 section 5.2.4). */
function restoreAttribute(attribute: string, restoration: PathRestoration): string {
  const { name, value, start } = splitAttribute(attribute);
  if (name !== 'path' || !value.startsWith('/')) return attribute;
  return attribute.slice(0, start) + cookiePath(value, restoration) + attribute.slice(start + value.length);
}

/** Splits by hand: one expression for all of it would be quadratic for a long run of blanks. `start` is where `value` begins. */
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
