/** Rewrites request paths for services, and computes the Location of redirects. */

import type { GatewayRoute, Mapping, Redirect, RegexRewrite } from '#config';
import { hexOfCharacter } from '#foundation';
import { sanitisePath } from '#http';
import { compileOrThrow, type RequestAttributes } from './conditions.ts';

/** The fields of a mapping that a rewrite reads. */
export interface PathRule {
  readonly prefix: string;
  /** @default 'segments' */
  readonly prefixMatch?: Mapping['prefixMatch'] | undefined;
  readonly rewrite: string;
  /** Takes precedence over `rewrite`. */
  readonly regexRewrite?: RegexRewrite | undefined;
  /** Its `fullPath` takes precedence over both. */
  readonly gatewayRoute?: Pick<GatewayRoute, 'fullPath'> | undefined;
}

/** Returns the path for the service, or undefined when the result is ambiguous and the request must be rejected. */
export type Rewrite = (path: string) => string | undefined;

/**
 * Throws TypeError for a pattern that does not compile. An empty `rewrite` leaves the path unchanged. A regex prefix
 * matches the whole path, so the default `rewrite` would remove all of it. As in Ambassador, only `regexRewrite`
 * changes the path under such a prefix.
 */
export function createRewrite(rule: PathRule): Rewrite {
  const { prefix, rewrite, regexRewrite, gatewayRoute } = rule;
  if (keepsPath(rule)) return (path) => path;
  if (gatewayRoute?.fullPath !== undefined) return toPath(gatewayRoute.fullPath);
  if (regexRewrite !== undefined) return createRegexRewrite(regexRewrite);
  return (path) => rewritePath(path, prefix, rewrite);
}

/** Reports whether the service gets the path of the request. */
export function keepsPath({ prefixMatch, rewrite, regexRewrite, gatewayRoute }: PathRule): boolean {
  if (gatewayRoute?.fullPath !== undefined || regexRewrite !== undefined) return false;
  return rewrite === '' || prefixMatch === 'regex';
}

function toPath(path: string): Rewrite {
  const plain = plainPath(path);
  return () => plain;
}

/** Bounds the work of a regex rewrite: each of up to 100 replacements may scan to the end of the path. */
const regexPathLengthMax = 2048;

/** Sanitises the result again, because a substitution can join parts of the path into something unsafe. */
function createRegexRewrite({ pattern, substitution }: { pattern: string; substitution: string }): Rewrite {
  const { replace } = compileOrThrow(pattern);
  return (path) => (path.length > regexPathLengthMax ? undefined : plainPath(replace(path, substitution)));
}

/**
 * Replaces the prefix. With prefix `/v1/orders` and rewrite `/`, `/v1/orders/items/1` becomes `/items/1`, and
 * `/v1/orders` becomes `/`. The result starts with exactly one slash, because a client that resolves `//host` would
 * connect to another host.
 */
function rewritePath(path: string, prefix: string, rewrite: string): string {
  const rest = prefix === '/' ? path : path.slice(prefix.length);
  const joined = rewrite === '/' ? rest : rewrite.replace(/\/$/, '') + rest;
  if (joined === '') return '/';
  return joined.charCodeAt(1) === slash ? joined.replace(/^\/+/, '/') : joined;
}

const slash = '/'.charCodeAt(0);

/**
 * Returns the prefix that the rewrite replaces, its replacement, and the part that it removes: `/eu/v1`, `/v1` and `/eu`.
 * A service's paths are correct for clients after the removed part. If `/eu` becomes `/v1`, no part makes them correct.
 * All are `''` when the rewrite cannot be reversed: for an exact or regex prefix, with `regexRewrite`, and for a whole path.
 */
export function rewritePrefixes(rule: PathRule): {
  readonly matchedPrefix: string;
  readonly replacement: string;
  readonly removedPrefix: string;
} {
  const { prefix, prefixMatch = 'segments', rewrite, regexRewrite, gatewayRoute } = rule;
  const isWhole = regexRewrite !== undefined || gatewayRoute?.fullPath !== undefined;
  if (rewrite === '' || prefixMatch !== 'segments' || isWhole)
    return { matchedPrefix: '', replacement: '', removedPrefix: '' };
  const matchedPrefix = prefix === '/' ? '' : prefix;
  const replacement = rewrite.replace(/\/$/, '');
  const keptLength = matchedPrefix.endsWith(replacement) ? replacement.length : 0;
  return { matchedPrefix, replacement, removedPrefix: matchedPrefix.slice(0, matchedPrefix.length - keptLength) };
}

/**
 * Returns the `Location` with the request's query, or undefined when the request must be rejected. `origin` is the
 * public origin of the gateway followed by its mount path: `https://gw.example` or `https://gw.example/shop`.
 */
export type Redirection = (
  attributes: Pick<RequestAttributes, 'path' | 'search'>,
  origin: string,
) => string | undefined;

/** Throws TypeError for a pattern that does not compile. */
export function createRedirection(redirect: Redirect, rule: Pick<PathRule, 'prefix' | 'prefixMatch'>): Redirection {
  const rewriteTo = redirectPath(redirect.path, rule);
  const baseOf = createBaseOf(redirect);
  return function redirectionOf({ path, search }, origin) {
    const target = rewriteTo(path);
    return target === undefined ? undefined : encodeUnsafe(baseOf(origin) + target + search);
  };
}

/** Captures the scheme, the host without its port, and the mount path. */
const originForm = /^(\w+):\/\/(\[[^\]]*\]|[^:/]*)(?::\d+)?(.*)$/s;

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 };

/**
 * Returns the part of the `Location` before the path, with the parts of the client's origin that the redirect keeps. Our
 * mount path does not exist on another host. A scheme or a host without a port means its default port, which is left out.
 */
function createBaseOf({ scheme, host, port }: Redirect): (origin: string) => string {
  if (scheme === undefined && host === undefined && port === undefined) return (origin) => origin;
  return function baseOf(origin) {
    const [, ownScheme = '', ownHost = '', mountPath = ''] = originForm.exec(origin) ?? [];
    const to = scheme ?? ownScheme;
    const shownPort = port === undefined || port === defaultPorts[to] ? '' : `:${port}`;
    return `${to}://${host ?? ownHost}${shownPort}${host === undefined ? mountPath : ''}`;
  };
}

/** A regex prefix matches the whole path, so a prefix redirect replaces all of it. */
function redirectPath(
  given: Redirect['path'],
  { prefix, prefixMatch }: Pick<PathRule, 'prefix' | 'prefixMatch'>,
): Rewrite {
  if (given === undefined) return plainPath;
  if (given.kind === 'regex') return createRegexRewrite(given);
  const { kind, value } = given;
  const rooted = `/${value.replace(/^[/\\]+/, '')}`;
  if (kind === 'path' || prefixMatch === 'regex') return () => rooted;
  return (path) => plainPath(rewritePath(path, prefix, rooted));
}

/**
 * Percent-encodes characters that a URI must not contain (RFC 3986 section 2). A line break would start another header,
 * and a backslash could start another host.
 */
function encodeUnsafe(location: string): string {
  return location.replace(/[^\x21-\x7e]|[\\"<>^`{|}]/gu, encodeCharacter);
}

/** Node decodes a request target as Latin-1, so a character up to U+00FF is a byte that the client sent. */
function encodeCharacter(character: string): string {
  return hexOfCharacter(character).toUpperCase().replace(/../g, '%$&');
}

/** Returns the path sanitised, with one leading slash, or undefined if the gateway would reject it in a request. */
function plainPath(path: string): string | undefined {
  return sanitisePath(`/${path.replace(/^\/+/, '')}`);
}
