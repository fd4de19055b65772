/**
 * The URLs in headers: Location, Content-Location, Link and Set-Cookie, as the client sees them, and Destination and If,
 * from WebDAV clients.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Mapping } from '#config';
import { sanitisePath } from '#http';

export interface PathRestoration {
  /** The prefix of the client's paths: `''` or `/shop/v1/orders`. */
  readonly publicPrefix: string;
  /** The prefix of the service's paths that replaces the public prefix: `''` or `/base`. */
  readonly innerPrefix: string;
  /** The origin of the service, which may occur in a `Location` or in the `Domain` of a cookie. */
  readonly upstreamOrigin: string;
  /** `http` or `https`, as the client sees it. */
  readonly publicScheme: string;
  /** The host, with its port if it has one, in the URLs that the client sees. */
  readonly publicHost: string;
  /** The `Host` header that the service received. Undefined when it is the host of `upstreamOrigin`. */
  readonly sentHost: string | undefined;
  /** @default 'rewrite' */
  readonly cookiePath?: Mapping['cookiePath'];
  /** Whether the targets of `Link` are translated too. @default false */
  readonly rewriteLinks?: boolean;
}

/** Translates a header of a service that contains references, by its lower-case name. Returns all others unchanged. */
export function restoreHeader(name: string, value: string, restoration: PathRestoration): string {
  if (name === 'location' || name === 'content-location') return restoreLocation(value, restoration);
  return name === 'link' && restoration.rewriteLinks === true ? restoreLinks(value, restoration) : value;
}

/** Translates the targets of links (RFC 8288 section 3), and skips quoted parameters. */
function restoreLinks(links: string, restoration: PathRestoration): string {
  return links.replace(/"(?:[^"\\]|\\.)*(?:"|\\?$)|<([^<>]*)>/g, (found, target: string | undefined) =>
    target === undefined ? found : `<${restoreLocation(target, restoration)}>`,
  );
}

/**
 * Translates the `Location` of a service for the client: removes an origin that only the service knows, and adds the
 * public prefix. Other origins, relative references, and paths that already have the public prefix are left unchanged.
 */
export function restoreLocation(location: string, restoration: PathRestoration): string {
  if (/^\/(?!\/)/.test(location)) return restoredPath(location, restoration);
  const { upstreamOrigin } = restoration;
  const readable = encodeBytes(location);
  if (!/^(?:https?:)?\/\//i.test(location) || !URL.canParse(readable, upstreamOrigin)) return location;
  const target = new URL(readable, upstreamOrigin);
  const path = () => restoredPath(pathAsSent(location, target), restoration);
  if (isPublic(location, target, restoration)) return target.origin + path();
  return ownOrigins(restoration).includes(target.origin) ? path() : location;
}

/** The path, the query and the fragment. Their bytes above 0x7F stay as they are, unless URL changes something else. */
function pathAsSent(location: string, { pathname, search, hash }: URL): string {
  const path = location.replace(/^(?:https?:)?\/\/[^/?#]*/i, '');
  const parsed = pathname + search + hash;
  return encodeBytes(path) === parsed ? path : parsed;
}

/** Percent-encodes bytes above 0x7F: each character is one byte of the header, but URL would encode it as two. */
function encodeBytes(location: string): string {
  return location.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/**
 * True for the public origin, and for a redirect from http to https on the public host. There a path alone would send
 * the client back to http, and the service would redirect it again in an endless loop.
 */
function isPublic(location: string, target: URL, { publicScheme, publicHost }: PathRestoration): boolean {
  if (location.startsWith('//')) return false;
  const scheme = target.protocol.slice(0, -1);
  return (scheme === publicScheme || scheme === 'https') && target.origin === originOf(scheme, publicHost);
}

/** Services build URLs from the `Host` or `X-Forwarded-Host` they receive, with their own scheme or the client's. */
function ownOrigins({ upstreamOrigin, publicScheme, publicHost, sentHost }: PathRestoration): (string | undefined)[] {
  const { origin, protocol } = new URL(upstreamOrigin);
  const hosts = sentHost === undefined ? [publicHost] : [publicHost, sentHost];
  return [origin, ...hosts.flatMap((host) => [originOf(publicScheme, host), originOf(protocol.slice(0, -1), host)])];
}

/** Undefined for a host that is invalid in a URL. */
function originOf(scheme: string, host: string): string | undefined {
  const url = `${scheme}://${host}`;
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function restoredPath(path: string, restoration: PathRestoration): string {
  return withOneSlash(restorePath(path, restoration) ?? path);
}

/** Undefined for a path that needs no change. */
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

/** Collapses leading slashes: a client would read `//host`, and a browser also `/\host`, as another host. */
function withOneSlash(path: string): string {
  return `/${path.replace(/^[/\\\t]+/, '')}`;
}

/**
 * Translates a `Set-Cookie` of a service for the client. `Path` gets the public prefix, unless the mapping keeps it. A `Domain` that names the
 * service's own host or that of `host_rewrite` is removed, because clients reject such a cookie. Everything else stays
 * byte for byte, including a `Domain` that names the public host.
 */
export function restoreCookie(setCookie: string, restoration: PathRestoration): string {
  const [pair = '', ...attributes] = setCookie.split(';');
  // Browsers reject a `__Host-` cookie with any `Path` other than `/`.
  const keepsPath = restoration.cookiePath === 'keep' || /^\s*__Host-/i.test(pair);
  const restored = attributes
    .filter((attribute) => !isOwnDomain(attribute, restoration))
    .map((attribute) => (keepsPath ? attribute : restoreAttribute(attribute, restoration)));
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

/** Undefined for text that is not a URL. */
function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** Skips a relative `Path`, which browsers ignore (RFC 6265 section 5.2.4). */
function restoreAttribute(attribute: string, restoration: PathRestoration): string {
  const { name, value, start } = splitAttribute(attribute);
  if (name !== 'path' || !value.startsWith('/')) return attribute;
  return attribute.slice(0, start) + cookiePath(value, restoration) + attribute.slice(start + value.length);
}

/** Avoids a regular expression, which would be quadratic for long runs of blanks. `start` is the index of `value`. */
function splitAttribute(attribute: string) {
  const equals = attribute.indexOf('=');
  const text = attribute.slice(equals + 1);
  const start = attribute.length - text.trimStart().length;
  return { name: attribute.slice(0, Math.max(equals, 0)).trim().toLowerCase(), value: text.trim(), start };
}

/**
 * A path above the inner prefix covers everything that the client can reach, so it becomes the public prefix. The
 * result has no trailing slash, because `/v1/orders/` would not match `/v1/orders` itself (RFC 6265 section 5.1.4).
 */
function cookiePath(path: string, restoration: PathRestoration): string {
  const { publicPrefix, innerPrefix } = restoration;
  const bare = path.replace(/\/$/, '');
  if (startsWithSegments(innerPrefix, bare)) return publicPrefix || '/';
  return restorePath(path, restoration) ?? path;
}

/** A reference to a resource behind this gateway, from a `Destination` or `If` header (RFC 4918 sections 10.3 and 10.4). */
export interface Reference {
  /** The sanitised path, which mappings match. */
  readonly path: string;
  /** `''`, or starts with `?`. */
  readonly search: string;
  /** True when the reference has a scheme and a host. */
  readonly isAbsolute: boolean;
}

/** The public address of the gateway. */
export interface ReferenceBase {
  /** The hosts that clients may use, each with its port if it has one. */
  readonly hosts: readonly string[];
  /** The path where the gateway is mounted: `''` or `/shop`. */
  readonly path: string;
}

/**
 * Returns `elsewhere` for another server or a path outside the base, and `ambiguous` for a path that the gateway would
 * also reject as a request target.
 */
export function readReference(text: string, base: ReferenceBase): Reference | 'elsewhere' | 'ambiguous' {
  if (/^(?!https?:)[a-z][a-z\d+.-]*:/i.test(text)) return 'elsewhere';
  const found = /^(?:(https?):\/\/([^/?#]*))?(\/[^?#]*)?(\?[^#\s]*)?$/i.exec(text);
  if (found === null) return 'ambiguous';
  const [, scheme, authority = '', path = '/', search = ''] = found;
  // Some parsers take the text after two leading slashes for a host.
  if (scheme === undefined && !/^\/(?!\/)/.test(text)) return 'ambiguous';
  if (scheme !== undefined && !isHere(scheme, authority, base)) return 'elsewhere';
  const plain = sanitisePath(path);
  if (plain === undefined) return 'ambiguous';
  if (plain !== base.path && !plain.startsWith(`${base.path}/`)) return 'elsewhere';
  return { path: plain.slice(base.path.length) || '/', search, isAbsolute: scheme !== undefined };
}

/** Accepts both schemes: TLS is often terminated in front of the gateway, which then sees http. */
function isHere(scheme: string, authority: string, { hosts }: ReferenceBase): boolean {
  if (/[@\\]/.test(authority)) return false;
  const origin = originOf(scheme, authority);
  return origin !== undefined && hosts.some((host) => originOf(scheme, host) === origin);
}

type EditReference = (reference: string, header: 'destination' | 'if') => string;

/**
 * Stands for each resource of another server in `If`. The service must evaluate its conditions as those of a resource
 * without the state (RFC 4918 section 10.4.4), but many services ignore the host and would look at a path of their own.
 */
export const resourceElsewhere = 'http://elsewhere.invalid/';

/**
 * Replaces each reference with the result of `edit`, and returns the new header values by name. Returns undefined for a
 * request without these headers, which is nearly every request.
 */
export function editReferences(
  method: string | undefined,
  { destination, if: condition }: IncomingHttpHeaders,
  edit: EditReference,
): Readonly<Record<string, string>> | undefined {
  if (destination === undefined && condition === undefined) return undefined;
  const edited: Record<string, string> = {};
  if (destination !== undefined && (method === 'MOVE' || method === 'COPY'))
    edited['destination'] = edit(String(destination), 'destination');
  if (condition !== undefined) edited['if'] = editTags(String(condition), (tag) => edit(tag, 'if'));
  return edited;
}

/** Skips the parenthesised lists of an `If` header, which contain lock tokens and entity tags. */
function editTags(condition: string, edit: (reference: string) => string): string {
  return condition.replace(/\((?:[^)"]|"[^"]*(?:"|$))*(?:\)|$)|<([^<>]*)>/g, (found, tag: string | undefined) =>
    tag === undefined ? found : `<${edit(tag)}>`,
  );
}
