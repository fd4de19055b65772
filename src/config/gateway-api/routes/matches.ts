/** The conditions of a rule of an HTTPRoute or a GRPCRoute, as fields of a Mapping. */
import { withoutTrailingSlash } from '../../fields/paths.ts';
import type { GrpcMethodSpec, MatchSpec, RouteKind, ValueMatchSpec } from '../specs.ts';

export interface ReadMatch {
  readonly fields: Readonly<Record<string, unknown>>;
  /** Whether its path is a prefix, which a filter can replace. */
  readonly isPrefix: boolean;
  /** Whether its path is exact and ends with a slash, which a record cannot say. */
  readonly hasFinalSlash: boolean;
}

/** A rule without matches has one for all requests. */
export function readMatches(kind: RouteKind, matches: readonly MatchSpec[] = []): readonly ReadMatch[] {
  const all = matches.length === 0 ? [{}] : matches;
  return all.map(kind === 'GRPCRoute' ? grpcMatch : httpMatch);
}

function httpMatch({ path, method, headers, queryParams }: MatchSpec): ReadMatch {
  const { type = 'PathPrefix', value = '/' } = path ?? {};
  return {
    fields: {
      ...pathFields(type, value),
      ...(typeof method === 'string' && { method }),
      ...valueFields(headers, ['headers', 'regex_headers'], (name) => name.toLowerCase()),
      ...valueFields(queryParams, ['query_parameters', 'regex_query_parameters'], (name) => name),
    },
    isPrefix: type === 'PathPrefix',
    hasFinalSlash: type === 'Exact' && value !== withoutTrailingSlash(value),
  };
}

function pathFields(type: string, value: string): Readonly<Record<string, unknown>> {
  if (type === 'RegularExpression') return { prefix: value, prefix_regex: true };
  return type === 'PathPrefix' ? { prefix: value } : { prefix: withoutTrailingSlash(value), prefix_exact: true };
}

/** Of several conditions on one name, the first counts. */
function valueFields(
  matches: readonly ValueMatchSpec[] = [],
  [exactName, regexName]: readonly [string, string],
  keyOf: (name: string) => string,
): Readonly<Record<string, unknown>> {
  const first = new Map(matches.toReversed().map((match) => [keyOf(match.name), match]));
  const ofType = (isRegex: boolean) =>
    [...first]
      .filter(([, { type }]) => (type === 'RegularExpression') === isRegex)
      .map(([name, { value }]) => [name, value]);
  const [exact, regex] = [ofType(false), ofType(true)];
  return {
    ...(exact.length > 0 && { [exactName]: Object.fromEntries(exact) }),
    ...(regex.length > 0 && { [regexName]: Object.fromEntries(regex) }),
  };
}

function grpcMatch({ method, headers }: MatchSpec): ReadMatch {
  return {
    fields: {
      ...grpcPathFields(typeof method === 'object' ? method : {}),
      ...valueFields(headers, ['headers', 'regex_headers'], (name) => name.toLowerCase()),
    },
    isPrefix: false,
    hasFinalSlash: false,
  };
}

/**
 * The path of a call is `/package.Service/Method` (gRPC over HTTP2, Requests). Unless the type says so, the API server has
 * checked that the two names have no characters with a meaning in regular expressions but the dot of packages.
 */
function grpcPathFields({
  type = 'Exact',
  service = '',
  method = '',
}: GrpcMethodSpec): Readonly<Record<string, unknown>> {
  if (type === 'RegularExpression') {
    const [one, other] = [service, method].map((pattern) => (pattern === '' ? '[^/]+' : `(?:${pattern})`));
    return { prefix: `/${one}/${other}`, prefix_regex: true };
  }
  if (service === '') return method === '' ? { prefix: '/' } : { prefix: `/[^/]+/${method}`, prefix_regex: true };
  return method === '' ? { prefix: `/${service}` } : { prefix: `/${service}/${method}`, prefix_exact: true };
}
