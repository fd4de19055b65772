/** Groups of mappings with the same match: they split the requests by weight, and a shadow receives copies. */
import { foldsCase } from '#config';
import {
  type Condition,
  conditionsOf,
  pathCondition,
  type RequestAttributes,
  type RequestView,
  type Rule,
} from './conditions.ts';
import { compareRanked, type RankedRule } from './order.ts';
import { createClientOf, createStickyChoice, newClient } from './sticky.ts';

export interface Group<R extends Rule> {
  /** The index of the group in the order in which groups are tried (the matching order). */
  readonly rank: number;
  /** In matching order. */
  readonly routes: readonly R[];
  /** Any one of the routes: all of them match the same requests. */
  readonly rule: R;
  readonly prefixMatch: Rule['prefixMatch'];
  /** When true, `prefix` is in lower case, and the path to look up must be too. */
  readonly ignoresCase: boolean;
  /** The prefix in the form that the tree compares. */
  readonly prefix: string;
  /** Undefined when the rule has no host condition, or one that can match several hosts. */
  readonly host: string | undefined;
  /** The conditions that the tree does not check, the most expensive last. */
  readonly conditions: readonly Condition[];
  /** The match of a group with a single route and no shadow. */
  readonly only: Match<R> | undefined;
  /** Chooses among the routes of any other group. `random` returns numbers in [0, 1). */
  readonly pick: Pick<R> | undefined;
}

type Pick<R> = (random: () => number, attributes: RequestAttributes) => Match<R>;

/** Puts the rules of each group together. Groups and their members are in matching order. */
export function groupRules<R extends Rule>(ranked: readonly RankedRule<R>[]): readonly Members<R>[] {
  const groups: [R, ...R[]][] = [];
  let lastKey: string | undefined;
  for (const { rule, key } of ranked.toSorted(compareRanked)) {
    if (key === lastKey) groups.at(-1)?.push(rule);
    else groups.push([rule]);
    lastKey = key;
  }
  return groups;
}

/** The rules of a group, in matching order. */
export type Members<R extends Rule> = readonly [R, ...R[]];

/** False for a group that consists of shadows only: it has no requests to copy. */
export function isServed({ only, pick }: Group<Rule>): boolean {
  return only !== undefined || pick !== undefined;
}

/** Finds the first group that matches the request and ranks before `limit`. `isWhole`: the prefix is the whole path. */
export function firstOf<R extends Rule>(
  groups: readonly Group<R>[],
  view: RequestView,
  isWhole: boolean,
  limit: number,
): Group<R> | undefined {
  for (const group of groups) {
    if (group.rank >= limit) return undefined;
    if ((isWhole || group.prefixMatch !== 'exact') && meetsConditions(group, view)) return group;
  }
  return undefined;
}

function meetsConditions({ conditions }: Group<Rule>, view: RequestView): boolean {
  for (const condition of conditions) if (!condition.holds(view)) return false;
  return true;
}

/** `rank`: the index of the group in matching order. Throws TypeError for a pattern that does not compile. */
export function createGroup<R extends Rule>(routes: Members<R>, rank: number): Group<R> {
  const [rule] = routes;
  const { prefix, prefixMatch, host, shadow } = rule;
  const ignoresCase = foldsCase(rule);
  const isAlone = routes.length === 1 && !shadow;
  return {
    rank,
    routes,
    rule,
    prefixMatch,
    ignoresCase,
    prefix: ignoresCase ? prefix.toLowerCase() : prefix,
    host: host?.kind === 'exact' ? host.value : undefined,
    conditions: prefixMatch === 'regex' ? [...conditionsOf(rule), pathCondition(rule)] : conditionsOf(rule),
    only: isAlone ? Object.freeze({ route: rule, shadow: undefined }) : undefined,
    pick: isAlone ? undefined : createPick(weightedRoutesOf(routes)),
  };
}

export interface Match<R> {
  readonly route: R;
  /** Receives a copy of this request. Undefined when no copy is made. */
  readonly shadow: R | undefined;
  /** The value of the cookie that keeps a new client on this route. Undefined for every other request. */
  readonly newClient?: string;
}

export interface WeightedRoute<R> {
  readonly route: R;
  /** Percentage of the group's requests. The weights of a group add up to 100. */
  readonly weight: number;
}

/** The split of a group's requests. A group that consists of shadows only has no routes here. */
export interface WeightedRoutes<R> {
  readonly routes: readonly WeightedRoute<R>[];
  readonly shadow: R | undefined;
  /** Percentage of the group's requests that are copied to the shadow. */
  readonly shadowWeight: number;
}

/** `routes`: the routes of one group, in matching order. */
export function weightedRoutesOf<R extends Rule>(routes: readonly R[]): WeightedRoutes<R> {
  const shadow = routes.find((route) => route.shadow);
  return {
    routes: withWeights(routes.filter((route) => !route.shadow)),
    shadow,
    shadowWeight: shadow === undefined ? 0 : (shadow.weight ?? 100),
  };
}

/**
 * Routes without a weight share the remaining percentage equally. When no route has a weight, the first one gets every
 * request: two mappings that have the same match by accident must not split their requests. Weights that do not add up
 * to 100 are scaled.
 */
function withWeights<R extends Rule>(rules: readonly R[]): readonly WeightedRoute<R>[] {
  if (rules.every(({ weight }) => weight === undefined))
    return rules.map((route, index) => ({ route, weight: index === 0 ? 100 : 0 }));
  const given = sum(rules.map(({ weight }) => weight ?? 0));
  const rest = Math.max(0, 100 - given) / rules.filter(({ weight }) => weight === undefined).length;
  const weights = rules.map(({ weight }) => weight ?? rest);
  const scale = 100 / sum(weights);
  return rules.map((route, index) => ({
    route,
    weight: scale === Number.POSITIVE_INFINITY ? 100 / rules.length : (weights[index] ?? 0) * scale,
  }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Creates all possible matches up front, so that picking one allocates nothing. Undefined when there are no routes. */
function createPick<R extends Rule>(weighted: WeightedRoutes<R>): Pick<R> | undefined {
  const { routes, shadow, shadowWeight } = weighted;
  if (routes.length === 0) return undefined;
  const copied = shadowWeight / 100;
  const plain = routes.map(({ route }) => Object.freeze({ route, shadow: undefined }));
  const withCopy = routes.map(({ route }) => Object.freeze({ route, shadow }));
  const choose = createChoice(routes.map(({ weight }) => weight));
  const matchAt = (index: number, random: () => number) => {
    const isCopied = copied > 0 && (copied >= 1 || random() < copied);
    return (isCopied ? withCopy : plain)[index] as Match<R>;
  };
  return createStickyPick(routes, matchAt) ?? ((random) => matchAt(choose(random), random));
}

type MatchAt<R> = (index: number, random: () => number) => Match<R>;

/** Undefined if the routes are not sticky, or if there is no choice among them. */
function createStickyPick<R extends Rule>(
  routes: readonly WeightedRoute<R>[],
  matchAt: MatchAt<R>,
): Pick<R> | undefined {
  const sticky = routes[0]?.route.sticky;
  if (sticky === undefined || routes.filter(({ weight }) => weight > 0).length < 2) return undefined;
  const clientOf = createClientOf(sticky);
  const choose = createStickyChoice(routes.map(({ route: { name }, weight }) => ({ name, weight })));
  return function pick(random, attributes) {
    const known = clientOf(attributes);
    if (known !== undefined) return matchAt(choose(known), random);
    const client = newClient(random);
    const match = matchAt(choose(client), random);
    return sticky.kind === 'cookie' ? { ...match, newClient: client } : match;
  };
}

/** Maps a random number to an index, with probabilities in proportion to the weights. */
function createChoice(weights: readonly number[]): (random: () => number) => number {
  const chosen = weights.flatMap((weight, index) => (weight > 0 ? [index] : []));
  const last = chosen.pop() ?? 0;
  if (chosen.length === 0) return () => last;
  const bounds = chosen.map((index) => ({ index, below: sum(weights.slice(0, index + 1)) / 100 }));
  return function choose(random) {
    const number = random();
    return bounds.find(({ below }) => number < below)?.index ?? last;
  };
}
