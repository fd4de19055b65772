/** The order in which rules are tried: total, and the same whatever the order of the files. */
import { mappingDefaults, matchKey } from '#config';
import { criteria, isOrdinary } from './criteria.ts';
import type { Rule } from './rule.ts';

/** A rule with what decides its place, worked out once however often it is compared. */
export interface Placed<R extends Rule> {
  readonly rule: R;
  readonly precedence: number;
  readonly prefixLength: number;
  /** By the criteria after these two. */
  readonly ranks: readonly number[];
  /** The same text for rules that match the same requests by the same words: these make up a group. */
  readonly key: string;
}

export function placeRule<R extends Rule>(rule: R): Placed<R> {
  return {
    rule,
    precedence: rule.precedence,
    prefixLength: rule.prefix.length,
    ranks: isOrdinary(rule) ? ordinaryRanks : finerRanks(rule),
    key: groupKey(rule),
  };
}

function finerRanks(rule: Rule): readonly number[] {
  return criteria.slice(2).map(({ rank }) => rank(rule));
}

/** One list for most rules: there may be 10,000 of them. */
const ordinaryRanks = finerRanks({ ...mappingDefaults, name: '', prefix: '/' });

/** Negative when `a` is tried first. Members of a group stand together, whatever they are called. */
export function comparePlaces(a: Placed<Rule>, b: Placed<Rule>): number {
  return (
    b.precedence - a.precedence ||
    b.prefixLength - a.prefixLength ||
    compareRanks(a.ranks, b.ranks) ||
    compareText(a.key, b.key) ||
    compareText(a.rule.name, b.rule.name)
  );
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  if (a === b) return 0;
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

/** What the server brings itself is never of one group with a mapping: it has no weight to share by. */
function groupKey(rule: Rule): string {
  return `${rule.internal ?? false} ${matchKey(rule)}`;
}

/** By code unit, so that no locale changes it. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
