/** What the service sees of a path, and where a redirect leads. */
import type { Redirect } from '#config';
import { sanitisePath } from '#http';
import { compiled, type PathRule, type RequestAttributes } from './rule.ts';

/** The path for the service, or undefined when the request must be refused: a service could read the path in two ways. */
export type Rewrite = (path: string) => string | undefined;

/**
 * Throws TypeError for a pattern that does not compile. `regexRewrite` goes before `rewrite`. A regex prefix matches the
 * whole path, of which the default `rewrite` would leave nothing: under such a prefix, as in Ambassador, only
 * `regexRewrite` changes the path.
 */
export function createRewrite({ prefix, prefixMatch, rewrite, regexRewrite }: PathRule): Rewrite {
  if (regexRewrite !== undefined) return createRegexRewrite(regexRewrite);
  if (rewrite === '' || prefixMatch === 'regex') return (path) => path;
  return (path) => rewritePath(path, prefix, rewrite);
}

/** Each of a hundred replacements may search to the end of the path. */
const replacedLengthMax = 2048;

/** The substitution may put pieces of the path next to each other, so the result is checked again. */
function createRegexRewrite({ pattern, substitution }: { pattern: string; substitution: string }): Rewrite {
  const { replace } = compiled(pattern);
  return (path) => (path.length > replacedLengthMax ? undefined : plainPath(replace(path, substitution)));
}

/**
 * `/v1/hotels/bookings/1` with prefix `/v1/hotels` and rewrite `/` is `/bookings/1`, and `/v1/hotels` is `/`. The empty
 * rewrite leaves the path alone. The result starts with exactly one slash: `//host` would be another host to a client
 * that resolves it.
 */
function rewritePath(path: string, prefix: string, rewrite: string): string {
  if (rewrite === '') return path;
  const rest = prefix === '/' ? path : path.slice(prefix.length);
  const joined = rewrite === '/' ? rest : rewrite.replace(/\/$/, '') + rest;
  if (joined === '') return '/';
  return joined.charCodeAt(1) === slash ? joined.replace(/^\/+/, '/') : joined;
}

const slash = '/'.charCodeAt(0);

/**
 * What the rewrite removes from the front of a path, and what it puts there: `/v1/hotels` and `''`. Both are `''` when
 * the service's paths cannot be turned back: under an exact or a regex prefix, and after a `regexRewrite`.
 */
export function rewritePrefixes({ prefix, prefixMatch = 'segments', rewrite, regexRewrite }: PathRule): {
  readonly matchedPrefix: string;
  readonly replacement: string;
} {
  if (rewrite === '' || prefixMatch !== 'segments' || regexRewrite !== undefined)
    return { matchedPrefix: '', replacement: '' };
  return {
    matchedPrefix: prefix === '/' ? '' : prefix,
    replacement: rewrite === '/' ? '' : rewrite.replace(/\/$/, ''),
  };
}

/**
 * The `Location` with the request's query, or undefined when the request must be refused. `origin` is the gateway's
 * for the client, with the path where it is mounted: `https://gw.example` or `https://gw.example/travel`.
 */
export type Redirection = (
  attributes: Pick<RequestAttributes, 'path' | 'search'>,
  origin: string,
) => string | undefined;

/** Throws TypeError for a pattern that does not compile. */
export function createRedirection(redirect: Redirect, rule: Pick<PathRule, 'prefix' | 'prefixMatch'>): Redirection {
  const rewriteTo = redirectPath(redirect.path, rule);
  return function redirectionOf({ path, search }, origin) {
    const target = rewriteTo(path);
    return target === undefined ? undefined : encodeUnsafe(baseOf(redirect.host, origin) + target + search);
  };
}

/** Another host is reached by the client's scheme or by https, and without the path where this gateway is mounted. */
function baseOf(host: string | undefined, origin: string): string {
  if (host === undefined) return origin.replace(/\/+$/, '');
  return host.startsWith('https://') ? host : `${origin.slice(0, origin.indexOf(':'))}://${host}`;
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

/** Encodes what may not be in a URI (RFC 3986 section 2): a line break would begin another header, a backslash another host. */
function encodeUnsafe(location: string): string {
  return location.replace(/[^\x21-\x7e]|[\\"<>^`{|}]/gu, encodeCharacter);
}

/** Node reads a request target as Latin-1, so a character up to U+00FF is the byte that the client sent. */
function encodeCharacter(character: string): string {
  const bytes = Buffer.from(character, character <= '\xff' ? 'latin1' : 'utf8');
  return bytes.toString('hex').toUpperCase().replace(/../g, '%$&');
}

/** With one slash in front; undefined for a path that the gateway would refuse from a client. */
function plainPath(path: string): string | undefined {
  return sanitisePath(`/${path.replace(/^\/+/, '')}`);
}
