/** Mappings with the same match: they share its requests by weight, and one of them may get copies. */
import { foldsCase } from '#config';
import { type Condition, conditionsOf, pathCondition } from './conditions.ts';
import type { Placed } from './order.ts';
import type { Rule } from './rule.ts';
import { createPick, type Match, sharesOf } from './shares.ts';
import type { View } from './view.ts';

/** There may be 10,000 of them: what only `explain` asks for is not kept. */
export interface Group<R extends Rule> {
  /** Its place in the order of trial, from 0. */
  readonly rank: number;
  /** In the order of trial. */
  readonly routes: readonly R[];
  /** One of them: as far as matching goes they are all alike. */
  readonly rule: R;
  readonly prefixMatch: Rule['prefixMatch'];
  /** True: in lower case, and so must be the path that is looked up. */
  readonly folds: boolean;
  /** As a tree compares it. */
  readonly prefix: string;
  /** Undefined where any host, or more than one, will do. */
  readonly host: string | undefined;
  /** What the tree does not know; dear ones last. */
  readonly conditions: readonly Condition[];
  /** The match, where there is no choice. */
  readonly only: Match<R> | undefined;
  /** Where there is one; `random` gives numbers from 0 to below 1. */
  readonly pick: ((random: () => number) => Match<R>) | undefined;
}

/** `placed` is in the order of trial, so that the members of a group follow each other. */
export function groupRules<R extends Rule>(placed: readonly Placed<R>[]): readonly Group<R>[] {
  const groups: Group<R>[] = [];
  let routes: R[] = [];
  for (const [index, { rule, key }] of placed.entries()) {
    if (key === placed[index - 1]?.key) routes.push(rule);
    else routes = [rule];
    if (key !== placed[index + 1]?.key) groups.push(createGroup(rule, routes, groups.length));
  }
  return groups;
}

/** False: there is nobody whose requests the shadow could copy. */
export function isServed({ only, pick }: Group<Rule>): boolean {
  return only !== undefined || pick !== undefined;
}

/** The first that takes the request and goes before `limit`. `isWhole`: the prefix is the whole path. */
export function firstOf<R extends Rule>(
  groups: readonly Group<R>[],
  view: View,
  isWhole: boolean,
  limit: number,
): Group<R> | undefined {
  for (const group of groups) {
    if (group.rank >= limit) return undefined;
    if ((isWhole || group.prefixMatch !== 'exact') && takes(group, view)) return group;
  }
  return undefined;
}

function takes({ conditions }: Group<Rule>, view: View): boolean {
  for (const condition of conditions) if (!condition.holds(view)) return false;
  return true;
}

function createGroup<R extends Rule>(rule: R, routes: readonly R[], rank: number): Group<R> {
  const { prefix, prefixMatch, host, shadow } = rule;
  const folds = foldsCase(rule);
  const isAlone = routes.length === 1 && !shadow;
  return {
    rank,
    routes,
    rule,
    prefixMatch,
    folds,
    prefix: folds ? prefix.toLowerCase() : prefix,
    host: host?.kind === 'exact' ? host.value : undefined,
    conditions: prefixMatch === 'regex' ? [...conditionsOf(rule), pathCondition(rule)] : conditionsOf(rule),
    only: isAlone ? Object.freeze({ route: rule, shadow: undefined }) : undefined,
    pick: isAlone ? undefined : createPick(sharesOf(routes)),
  };
}
