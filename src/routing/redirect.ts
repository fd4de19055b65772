/** Where a mapping that is a redirect sends its clients. */
import type { Redirect } from '#config';
import { plainPath } from './plain-path.ts';
import { createRegexRewrite, type Rewrite, rewritePath } from './rewrite.ts';
import type { PathRule, RequestAttributes } from './rule.ts';

/**
 * The `Location` with the request's query, or undefined when the request must be refused. `origin` is what the client
 * calls the gateway, with the path under which it is mounted: `https://gw.example` or `https://gw.example/travel`.
 */
export type Redirection = (facts: Pick<RequestAttributes, 'path' | 'search'>, origin: string) => string | undefined;

/** Made once for each mapping; throws TypeError for a pattern that does not compile. */
export function createRedirection(redirect: Redirect, rule: Pick<PathRule, 'prefix' | 'prefixMatch'>): Redirection {
  const redirectPath = pathOf(redirect.path, rule);
  return function redirectionOf({ path, search }, origin) {
    const there = redirectPath(path);
    if (there === undefined) return undefined;
    return encodeUnsafe(baseOf(redirect.host, origin) + there + search);
  };
}

/** Another host is reached by the client's own scheme, and knows nothing of where this gateway is mounted. */
function baseOf(host: string | undefined, origin: string): string {
  return host === undefined ? origin.replace(/\/+$/, '') : `${origin.slice(0, origin.indexOf(':'))}://${host}`;
}

/** The match of a regex prefix is the whole path, and so is what a prefix redirect replaces. */
function pathOf(path: Redirect['path'], { prefix, prefixMatch }: Pick<PathRule, 'prefix' | 'prefixMatch'>): Rewrite {
  if (path === undefined) return plainPath;
  if (path.kind === 'regex') return createRegexRewrite(path);
  const { kind, value } = path;
  const rooted = `/${value.replace(/^[/\\]+/, '')}`;
  if (kind === 'path' || prefixMatch === 'regex') return () => rooted;
  return (asked) => plainPath(rewritePath(asked, prefix, rooted));
}

/** What is no character of a URI is encoded (RFC 3986 section 2): a line break would be another header, a backslash another host. */
function encodeUnsafe(location: string): string {
  return location.replace(/[^\x21-\x7e]|[\\"<>^`{|}]/gu, encodeCharacter);
}

/** Node reads the bytes of a request target as Latin-1, so up to U+00FF a character is the byte that the client sent. */
function encodeCharacter(character: string): string {
  const bytes = Buffer.from(character, character <= '\xff' ? 'latin1' : 'utf8');
  return bytes.toString('hex').toUpperCase().replace(/../g, '%$&');
}
