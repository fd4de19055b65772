/** What decides which of two rules is tried first. */
import { foldsCase, type HostMatch, type NamedMatch } from '#config';
import type { Rule } from './rule.ts';

interface Criterion {
  /** The larger goes first. */
  readonly rank: (rule: Rule) => number;
  /** Why the later of two that differ in this loses. */
  readonly loses: (later: Rule, earlier: Rule) => string;
}

/**
 * The first in which two rules differ decides. Of two literal prefixes of one path the longer has more segments, so
 * their length in characters is enough; that of a regex is its source's, as Ambassador has it, whose records come
 * with that order in mind.
 */
export const criteria: readonly Criterion[] = [
  {
    rank: ({ precedence }) => precedence,
    loses: (later, earlier) => `its precedence is ${later.precedence}, not ${earlier.precedence}`,
  },
  {
    rank: ({ prefix }) => prefix.length,
    loses: (later, earlier) => `its prefix ${later.prefix} is shorter than ${earlier.prefix}`,
  },
  {
    rank: ({ internal }) => (internal ? 0 : 1),
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
];

/** Whether it asks of a request for no more than a path, as most rules do: those are alike in all but the first two. */
export function isOrdinary(rule: Rule): boolean {
  const { prefixMatch, caseSensitive, internal, host, method, headers, queryParameters } = rule;
  const asksMore = host !== undefined || method !== undefined || headers.length > 0 || queryParameters.length > 0;
  return prefixMatch === 'segments' && caseSensitive && !internal && !asksMore;
}

/** Both of the first two stand for whole paths. */
const prefixRanks = { exact: 2, regex: 1, segments: 0 } as const;
const textRanks = { exact: 3, regex: 2, present: 1 } as const;

/** Of wildcards the one with more characters; any of them is more exact than a regex. */
function hostRank(host: HostMatch | undefined): number {
  if (host === undefined) return 0;
  if (host.kind === 'regex') return 1;
  return host.kind === 'exact' ? Number.POSITIVE_INFINITY : 2 + host.value.length;
}

function exactnessOf(matches: readonly NamedMatch[]): number {
  return matches.reduce((sum, { match }) => sum + textRanks[match.kind], 0);
}
