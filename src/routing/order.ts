/** The order in which mappings are tried. It is total, independent of the order of the files, and can be explained. */
import { foldsCase, groupOf, type HostMatch, type NamedMatch } from '#config';
import type { Rule } from './conditions.ts';

/** A rule with its ranks, which are computed once because sorting compares them many times. */
export interface RankedRule<R extends Rule> {
  readonly rule: R;
  /** One rank for each criterion. */
  readonly ranks: readonly number[];
  /** Identifies the group: rules with equivalent conditions have the same key. */
  readonly key: string;
}

export function rankRule<R extends Rule>(rule: R): RankedRule<R> {
  return { rule, ranks: criteria.map(({ rank }) => rank(rule)), key: groupKey(rule) };
}

/** Negative when `a` is tried first. Comparing keys before names keeps the members of a group, which have one place, adjacent. */
export function compareRanked(a: RankedRule<Rule>, b: RankedRule<Rule>): number {
  return (
    compareRanks(a.ranks, b.ranks) ||
    compareText(placeOf(a.rule), placeOf(b.rule)) ||
    compareText(a.key, b.key) ||
    compareText(a.rule.name, b.rule.name)
  );
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < a.length; index += 1) {
    const [one = 0, other = 0] = [a[index], b[index]];
    if (one !== other) return one > other ? -1 : 1;
  }
  return 0;
}

/** Explains why the later of two rules from different groups loses when both match. */
export function reasonOf(later: Rule, earlier: Rule): string {
  const decisive = criteria.find(({ rank }) => rank(later) !== rank(earlier));
  return decisive?.loses(later, earlier) ?? `it is as specific as ${whatComesFirst(later, earlier)}`;
}

function whatComesFirst(later: Rule, earlier: Rule): string {
  const isSameRoute = later.gatewayRoute !== undefined && routeOf(later) === routeOf(earlier);
  return isSameRoute ? 'an earlier match of its route' : `${earlier.name}, which comes first alphabetically`;
}

/** Empty for a rule that is not of a route of the Gateway API. */
function placeOf({ gatewayRoute }: Rule): string {
  return gatewayRoute?.place ?? '';
}

/** The namespace and name in a place. */
function routeOf(rule: Rule): string {
  return placeOf(rule).replace(/ .*/s, '');
}

/** Keeps built-in routes out of the groups of mappings, because a built-in route cannot share requests by weight. */
function groupKey(rule: Rule): string {
  return `${rule.internal ?? false} ${groupOf(rule)}`;
}

/** Compares by code unit, independently of the locale. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

interface Criterion {
  /** The rule with the larger rank is tried first. */
  readonly rank: (rule: Rule) => number;
  /** Explains why `later` loses when this criterion decides. */
  readonly loses: (later: Rule, earlier: Rule) => string;
}

/**
 * The first criterion in which two rules differ decides. Two of them are for routes of the Gateway API alone, and all other
 * rules are equal in them: its order begins with the host, and ends with the age of the route. For literal prefixes it is enough to compare the length in
 * characters, because the longer of two prefixes of the same path also has more segments. The length of a regex is the
 * length of its source, as in Ambassador, so that Ambassador's records keep their order. Its prefixes end with a slash.
 */
const criteria: readonly Criterion[] = [
  {
    rank: ({ precedence }) => precedence,
    loses: (later, earlier) => `its precedence is ${later.precedence}, not ${earlier.precedence}`,
  },
  {
    rank: ({ gatewayRoute, host }) => (gatewayRoute === undefined ? 0 : hostRank(host)),
    loses: (later, earlier) =>
      later.gatewayRoute === undefined
        ? `${earlier.name} is a route of the Gateway API with a host, and those come first`
        : hostReason(later),
  },
  {
    rank: ({ gatewayRoute, prefixMatch }) => (gatewayRoute !== undefined && prefixMatch === 'exact' ? 1 : 0),
    loses: (later, earlier) =>
      later.gatewayRoute === undefined
        ? `${earlier.name} is a route of the Gateway API with an exact path, and those come first`
        : 'its path is not exact',
  },
  {
    rank: (rule) => comparedPrefix(rule).length,
    loses: (later, earlier) =>
      `its prefix ${later.prefix} is shorter than ${later.prefixMatch === 'regex' ? comparedPrefix(earlier) : earlier.prefix}`,
  },
  {
    rank: ({ internal }) => (internal ? 0 : 1),
    loses: () => 'mappings take precedence over built-in routes',
  },
  {
    rank: ({ prefixMatch }) => (prefixMatch === 'exact' ? 1 : 0),
    loses: () => 'its prefix is not exact',
  },
  {
    rank: ({ host }) => hostRank(host),
    loses: hostReason,
  },
  {
    rank: ({ method }) => (method === undefined ? 0 : textRanks[method.kind]),
    loses: ({ method }) => (method === undefined ? 'it does not specify a method' : 'its method is less specific'),
  },
  {
    rank: ({ headers }) => headers.length,
    loses: () => 'it requires fewer headers',
  },
  {
    rank: ({ headers, gatewayRoute }) => exactnessOf(headers, gatewayRoute),
    loses: () => 'its headers are less specific',
  },
  {
    rank: ({ queryParameters }) => queryParameters.length,
    loses: () => 'it requires fewer query parameters',
  },
  {
    rank: ({ queryParameters, gatewayRoute }) => exactnessOf(queryParameters, gatewayRoute),
    loses: () => 'its query parameters are less specific',
  },
  {
    rank: (rule) => (rule.prefixMatch === 'regex' ? 0 : foldsCase(rule) ? 1 : 2),
    loses: ({ prefixMatch }) =>
      prefixMatch === 'regex' ? 'its prefix is a regular expression' : 'its prefix is not case-sensitive',
  },
  {
    rank: ({ gatewayRoute }) => (gatewayRoute === undefined ? 0 : -gatewayRoute.createdAtS),
    loses: (_, earlier) =>
      earlier.gatewayRoute === undefined
        ? `it is as specific as ${earlier.name}, and routes of the Gateway API come last`
        : `it is as specific as ${earlier.name}, whose route is older`,
  },
];

function hostReason({ host }: Rule): string {
  return host === undefined ? 'it does not specify a host' : 'its host is less specific';
}

function comparedPrefix({ prefix, prefixMatch }: Rule): string {
  return prefixMatch === 'regex' || prefix === '/' ? prefix : `${prefix}/`;
}

const textRanks = { exact: 3, regex: 2, present: 1 } as const;

/** The longer of two wildcards is more specific, and any wildcard is more specific than a regex. */
function hostRank(host: HostMatch | undefined): number {
  if (host === undefined) return 0;
  if (host.kind === 'regex') return 1;
  return host.kind === 'exact' ? Number.POSITIVE_INFINITY : 2 + host.value.length;
}

/** The Gateway API only counts the conditions, so they are all equal in its routes. */
function exactnessOf(matches: readonly NamedMatch[], gatewayRoute: Rule['gatewayRoute']): number {
  if (gatewayRoute !== undefined) return matches.length * textRanks.exact;
  return matches.reduce((sum, { match }) => sum + textRanks[match.kind], 0);
}
