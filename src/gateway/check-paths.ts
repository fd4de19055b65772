/** Rejects requests that could bypass the checks of another mapping: by an ambiguous path, or by a WebDAV reference. */
import type { Context } from 'koa';
import { compilePattern, mapInParts, type Work } from '#config';
import { lenientReading, problem } from '#http';
import { referenceBase } from '#proxy';
import {
  createTable,
  editReferences,
  firstShare,
  type Reference,
  type RequestAttributes,
  type Rule,
  readReference,
  type Table,
} from '#routing';
import type { Route } from './route.ts';

export interface PathChecks {
  /** Undefined unless paths are strict and routes differ in their authentication. */
  readonly checkAmbiguity: CheckAmbiguity | undefined;
  readonly checkReferences: CheckReferences;
}

export function* createPathChecks(
  routes: readonly Route[],
  table: Table<Route>,
  strictPaths: boolean,
): Work<PathChecks> {
  const checkAmbiguity = strictPaths ? yield* createCheckAmbiguity(routes) : undefined;
  return { checkAmbiguity, checkReferences: createCheckReferences(table, checkAmbiguity) };
}

/** Throws `bad-path` when the path of a request is ambiguous. `route` is the route that the request matched. */
type CheckAmbiguity = (attributes: RequestAttributes, route: Route) => void;

/**
 * Compares the route of a path with the route of its most lenient interpretation. Undefined when all routes have the
 * same authentication.
 */
function* createCheckAmbiguity(routes: readonly Route[]): Work<CheckAmbiguity | undefined> {
  // The server itself handles its built-in routes and redirects, so no service can misinterpret their paths.
  const compared = routes.filter(isCompared);
  if (new Set(compared.map(authenticationOf)).size < 2) return undefined;
  const table = yield* createTable(yield* mapInParts(compared, lenientRule));
  const arePlain = compared.every(isPlain);
  return function checkAmbiguity(attributes, route) {
    const path = lenientReading(attributes.path);
    if ((arePlain && path === attributes.path) || !isCompared(route)) return;
    rejectDifference(route, routeOf(attributes, path));
    // Many services ignore a slash at the end, and so do all prefixes except exact ones.
    const withoutSlash = path.endsWith('/') ? routeOf(attributes, path.slice(0, -1)) : undefined;
    if (withoutSlash?.prefixMatch === 'exact') rejectDifference(route, withoutSlash);
  };

  /** The first route is enough, because mappings that share requests by weight have the same authentication. */
  function routeOf(attributes: RequestAttributes, path: string): Route | undefined {
    return table.match(withTarget(attributes, { path }), firstShare)?.route.original;
  }
}

function rejectDifference(route: Route, other: Route | undefined): void {
  if (other === undefined || authenticationOf(other) === authenticationOf(route)) return;
  throw problem('bad-path', {
    detail: 'A service could interpret the path as another one, which requires different authentication.',
  });
}

/** Reports whether a path that has only one reading matches a route exactly when it matches its lenient rule. */
function isPlain({ prefix, prefixMatch }: Route): boolean {
  return prefixMatch === 'segments' && lenientReading(prefix) === prefix;
}

function isCompared({ internal, isBlock, mapping }: Route): boolean {
  return isBlock === true || (internal !== true && mapping.redirect === undefined);
}

/** Returns the same text for routes with the same authentication. */
function authenticationOf({ auth, isBlock }: Route): string {
  if (isBlock === true) return 'block';
  return auth === undefined ? 'open' : `auth ${auth.record.name}`;
}

interface LenientRule extends Rule {
  readonly original: Route;
}

/** Converts the rule of a route so that it matches lenient interpretations. */
function lenientRule(route: Route): LenientRule {
  const { name, prefix, prefixMatch, host, method, headers, queryParameters, precedence, weight, shadow } = route;
  const match = { name, host, method, headers, queryParameters, precedence, weight, shadow, isBlock: route.isBlock };
  const path = prefixMatch === 'regex' ? anyCase(prefix) : lenientReading(prefix);
  return { ...match, prefixMatch, prefix: path, caseSensitive: false, original: route };
}

/** Makes a pattern ignore case, or returns it unchanged when the result would exceed the size limit. */
function anyCase(pattern: string): string {
  const folded = `(?i)${pattern}`;
  return compilePattern(folded).ok ? folded : pattern;
}

function withTarget(attributes: RequestAttributes, target: Partial<RequestAttributes>): RequestAttributes {
  return Object.assign(Object.create(attributes), target);
}

/** Throws `bad-path`, `bad-request` or `destination-elsewhere`. `route` is the route that the request matched. */
type CheckReferences = (ctx: Context, attributes: RequestAttributes, route: Route) => void;

/** Bounds the work, because each reference is matched like a request. Clients refer to far fewer resources. */
const referencesMax = 32;

function createCheckReferences({ match }: Table<Route>, checkAmbiguity: CheckAmbiguity | undefined): CheckReferences {
  function checkTarget(found: Reference, attributes: RequestAttributes, route: Route): void {
    const { path, search } = found;
    const target = withTarget(attributes, { path, search });
    if (match(target, firstShare)?.route !== match(attributes, firstShare)?.route)
      throw problem('destination-elsewhere');
    checkAmbiguity?.(target, route);
  }

  return function checkReferences(ctx, attributes, route) {
    const { method, headers } = ctx.req;
    let count = 0;
    editReferences(method, headers, (text, header) => {
      count += 1;
      if (count > referencesMax)
        throw problem('bad-request', {
          detail: `\`Destination\` and \`If\` refer to more than ${referencesMax} resources.`,
        });
      const found = readReference(text, referenceBase(ctx));
      if (found === 'ambiguous')
        throw problem('bad-path', { detail: 'The path in `Destination` or `If` is ambiguous.' });
      if (found !== 'elsewhere') checkTarget(found, attributes, route);
      // Another server is allowed in `If`: see `resourceElsewhere`.
      else if (header === 'destination') throw problem('destination-elsewhere');
      return text;
    });
  };
}
