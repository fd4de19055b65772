/** The order in which mappings are tried, which is total and does not depend on the order of the files; and why the later one loses. */
import { foldsCase, type HostMatch, matchKey, type NamedMatch } from '#config';
import type { Rule } from './rule.ts';

/** A rule with its ranks computed, which are compared many times. */
export interface RankedRule<R extends Rule> {
  readonly rule: R;
  /** One for each criterion. */
  readonly ranks: readonly number[];
  /** Equal for rules that match the same requests by the same words; these are a group. */
  readonly key: string;
}

export function rankRule<R extends Rule>(rule: R): RankedRule<R> {
  return { rule, ranks: criteria.map(({ rank }) => rank(rule)), key: groupKey(rule) };
}

/** Negative when `a` is tried first. The members of a group follow each other, whatever their names. */
export function compareRanked(a: RankedRule<Rule>, b: RankedRule<Rule>): number {
  return compareRanks(a.ranks, b.ranks) || compareText(a.key, b.key) || compareText(a.rule.name, b.rule.name);
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < a.length; index += 1) {
    const [one = 0, other = 0] = [a[index], b[index]];
    if (one !== other) return one > other ? -1 : 1;
  }
  return 0;
}

/** Why the later of two rules of different groups loses where both match. */
export function reasonOf(later: Rule, earlier: Rule): string {
  const decisive = criteria.find(({ rank }) => rank(later) !== rank(earlier));
  return decisive?.loses(later, earlier) ?? `it asks for as much as ${earlier.name}, which the alphabet puts first`;
}

/** A route of the server is never in a group with a mapping: it has no weight. */
function groupKey(rule: Rule): string {
  return `${rule.internal ?? false} ${rule.isBlock ?? false} ${matchKey(rule)}`;
}

/** By code unit, so that no locale changes it. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

interface Criterion {
  /** The larger is tried first. */
  readonly rank: (rule: Rule) => number;
  /** Why the later of two that differ in this loses. */
  readonly loses: (later: Rule, earlier: Rule) => string;
}

/**
 * The first one in which two rules differ decides. The longer of two literal prefixes of one path has more segments, so
 * the length in characters is enough. The length of a regex is that of its source, as in Ambassador, whose records are
 * written with that order in mind.
 */
const criteria: readonly Criterion[] = [
  {
    rank: ({ precedence }) => precedence,
    loses: (later, earlier) => `its precedence is ${later.precedence}, not ${earlier.precedence}`,
  },
  {
    rank: ({ prefix }) => prefix.length,
    loses: (later, earlier) => `its prefix ${later.prefix} is shorter than ${earlier.prefix}`,
  },
  {
    rank: ({ internal, isBlock }) => (internal && !isBlock ? 0 : 1),
    loses: () => 'a mapping goes before a route of the server',
  },
  {
    rank: ({ prefixMatch }) => prefixRanks[prefixMatch],
    loses: (_, earlier) => `its prefix is not ${earlier.prefixMatch === 'exact' ? 'exact' : 'for the whole path'}`,
  },
  {
    rank: (rule) => (foldsCase(rule) ? 0 : 1),
    loses: () => 'its prefix is not case-sensitive',
  },
  {
    rank: ({ host }) => hostRank(host),
    loses: ({ host }) => (host === undefined ? 'it names no host' : 'the host that it names is less exact'),
  },
  {
    rank: ({ method }) => (method === undefined ? 0 : textRanks[method.kind]),
    loses: ({ method }) => (method === undefined ? 'it names no method' : 'the method that it names is less exact'),
  },
  {
    rank: ({ headers }) => headers.length,
    loses: () => 'it asks for fewer headers',
  },
  {
    rank: ({ headers }) => exactnessOf(headers),
    loses: () => 'the headers that it asks for are less exact',
  },
  {
    rank: ({ queryParameters }) => queryParameters.length,
    loses: () => 'it asks for fewer query parameters',
  },
  {
    rank: ({ queryParameters }) => exactnessOf(queryParameters),
    loses: () => 'the query parameters that it asks for are less exact',
  },
  {
    rank: ({ isBlock }) => (isBlock ? 1 : 0),
    loses: (_, earlier) => `its requests may be those of ${earlier.name}, which is broken`,
  },
];

/** The first two match whole paths. */
const prefixRanks = { exact: 2, regex: 1, segments: 0 } as const;
const textRanks = { exact: 3, regex: 2, present: 1 } as const;

/** A wildcard with more characters is more exact, and any wildcard is more exact than a regex. */
function hostRank(host: HostMatch | undefined): number {
  if (host === undefined) return 0;
  if (host.kind === 'regex') return 1;
  return host.kind === 'exact' ? Number.POSITIVE_INFINITY : 2 + host.value.length;
}

function exactnessOf(matches: readonly NamedMatch[]): number {
  return matches.reduce((sum, { match }) => sum + textRanks[match.kind], 0);
}
