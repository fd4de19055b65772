/** Strict paths: refuses a path that the service behind a mapping may read as one with other authentication. */
import { compilePattern, mapInParts, type Work } from '#config';
import { lenientReading, problem } from '#http';
import { createTable, firstShare, type RequestAttributes, type Rule } from '#routing';
import type { Route } from './route.ts';

/** Throws `bad-path`. Looks at the attributes of a request and the route that it has met. */
export type CheckReading = (attributes: RequestAttributes, route: Route) => void;

/** Compares the route of a path with the route of its most lenient reading. Undefined: all routes have the same authentication. */
export function* createCheckReading(routes: readonly Route[]): Work<CheckReading | undefined> {
  // Services never answer for the server's own routes.
  const compared = routes.filter(isCompared);
  if (new Set(compared.map(guardOf)).size < 2) return undefined;
  const table = yield* createTable(yield* mapInParts(compared, lenientRule));
  return function checkReading(attributes, route) {
    const path = lenientReading(attributes.path);
    if (path === attributes.path || !isCompared(route)) return;
    // Mappings that share requests by weight have the same authentication.
    const other = table.match(withPath(attributes, path), firstShare)?.route.of;
    if (other === undefined || guardOf(other) === guardOf(route)) return;
    throw problem('bad-path', {
      detail: 'A service may read the path as another one, which has other authentication.',
    });
  };
}

function isCompared({ internal, isBlock }: Route): boolean {
  return internal !== true || isBlock === true;
}

/** The same for routes that ask the same auth service. */
function guardOf({ auth, isBlock }: Route): string {
  if (isBlock === true) return 'block';
  return auth === undefined ? 'open' : `auth ${auth.record.name}`;
}

interface LenientRule extends Rule {
  readonly of: Route;
}

/** The same rule for lenient readings. */
function lenientRule(route: Route): LenientRule {
  const { name, prefix, prefixMatch, host, method, headers, queryParameters, precedence, weight, shadow } = route;
  const match = { name, host, method, headers, queryParameters, precedence, weight, shadow, isBlock: route.isBlock };
  const path = prefixMatch === 'regex' ? anyCase(prefix) : lenientReading(prefix);
  return { ...match, prefixMatch, prefix: path, caseSensitive: false, of: route };
}

/** Returns the pattern as it is where the result would be too large. */
function anyCase(pattern: string): string {
  const folded = `(?i)${pattern}`;
  return compilePattern(folded).ok ? folded : pattern;
}

function withPath(attributes: RequestAttributes, path: string): RequestAttributes {
  return Object.assign(Object.create(attributes), { path });
}
