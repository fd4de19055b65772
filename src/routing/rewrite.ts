/** What a service sees of a path. */
import { compiled } from './compiled.ts';
import { plainPath } from './plain-path.ts';
import type { PathRule } from './rule.ts';

/** The path for the service, or undefined when the request must be refused: a service could read it in two ways. */
export type Rewrite = (path: string) => string | undefined;

/**
 * Made once for each mapping; throws TypeError for a pattern that does not compile. `regexRewrite` goes before
 * `rewrite`. The match of a regex prefix is the whole path, and the default `rewrite` would leave nothing of it: under
 * such a prefix, as in Ambassador, only `regexRewrite` changes the path.
 */
export function createRewrite({ prefix, prefixMatch, rewrite, regexRewrite }: PathRule): Rewrite {
  if (regexRewrite !== undefined) return createRegexRewrite(regexRewrite);
  if (rewrite === '' || prefixMatch === 'regex') return (path) => path;
  return (path) => rewritePath(path, prefix, rewrite);
}

/** The substitution may put pieces of the path next to each other, so what comes out is judged anew. */
export function createRegexRewrite({ pattern, substitution }: { pattern: string; substitution: string }): Rewrite {
  const { replace } = compiled(pattern);
  return (path) => plainPath(replace(path, substitution));
}

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

/**
 * What the rewrite takes from the front of a path and what it puts there: `/v1/hotels` and `''`. Both are `''` where the
 * service's paths cannot be turned back: under an exact or a regex prefix, and after a `regexRewrite`.
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
