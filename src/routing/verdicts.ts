/** Explains why each mapping won or lost a request, and lists the mappings in the order in which they are tried. */

import type { HostMatch, Mapping, NamedMatch, TextMatch } from '#config';
import { type Condition, type Part, pathCondition, type RequestView, type Rule } from './conditions.ts';
import {
  type Group,
  groupRules,
  isServed,
  type WeightedRoute,
  type WeightedRoutes,
  weightedRoutesOf,
} from './groups.ts';
import { rankRule, reasonOf } from './order.ts';

export interface RouteVerdict<R> {
  readonly route: R;
  /** `shadow`: receives copies. Several routes are `matched` when a group shares its requests by weight. */
  readonly outcome: 'matched' | 'shadow' | 'lost';
  /** The deciding criterion: a part of the request, the matching order, or the weights of the group. */
  readonly by: Part | 'order' | 'weight';
  /** A clause without a capital letter or a full stop: `the method is POST, not GET`. */
  readonly reason: string;
}

/** Expects `groups` in matching order. Tests every condition, including those that the table's tree covers. */
export function explainGroups<R extends Rule>(
  groups: readonly Group<R>[],
  view: RequestView,
): readonly RouteVerdict<R>[] {
  const winner = groups.find((group) => isServed(group) && failureOf(group, view) === undefined);
  return groups.flatMap((group) => {
    const failure = failureOf(group, view);
    if (failure !== undefined) return lost(group, failure.part, failure.reason(view));
    if (group === winner) return wonBy(group);
    if (winner === undefined || !isServed(group)) return lost(group, 'order', shadowAlone);
    return lost(group, 'order', reasonOf(group.rule, winner.rule));
  });
}

const shadowAlone = 'it is a shadow, and no mapping has the same match';

/** Tests the path first. Groups with a regex prefix already include their path condition. */
function failureOf({ rule, conditions }: Group<Rule>, view: RequestView): Condition | undefined {
  const path = conditions.find(({ part }) => part === 'path') ?? pathCondition(rule);
  return [path, ...conditions].find(({ holds }) => !holds(view));
}

function lost<R extends Rule>(group: Group<R>, by: RouteVerdict<R>['by'], reason: string): readonly RouteVerdict<R>[] {
  return group.routes.map((route) => ({ route, outcome: 'lost', by, reason }));
}

function wonBy<R extends Rule>(group: Group<R>): readonly RouteVerdict<R>[] {
  const weighted = weightedRoutesOf(group.routes);
  return group.routes.map((route) => {
    const member = weighted.routes.find((one) => one.route === route);
    return { route, ...(member === undefined ? shadowVerdict(route, weighted) : weightVerdict(member, weighted)) };
  });
}

type Verdict = Omit<RouteVerdict<never>, 'route'>;

function weightVerdict<R extends Rule>({ route, weight }: WeightedRoute<R>, { routes }: WeightedRoutes<R>): Verdict {
  const isWeighted = routes.some((one) => one.route.weight !== undefined);
  const outcome = weight > 0 ? 'matched' : 'lost';
  if (isWeighted && routes.length > 1)
    return { outcome, by: 'weight', reason: `weight ${rounded(weight)} of 100${stickyText(route, ', ')}` };
  if (outcome === 'matched') return { outcome, by: 'order', reason: 'it is the first match' };
  return {
    outcome,
    by: 'weight',
    reason: `${routes[0]?.route.name} has the same match, and neither has a weight`,
  };
}

function stickyText({ sticky }: Rule, before = ''): string {
  return sticky === undefined ? '' : `${before}sticky by ${sticky.kind} ${sticky.name}`;
}

function shadowVerdict<R extends Rule>(route: R, { shadow, shadowWeight }: WeightedRoutes<R>): Verdict {
  if (route !== shadow)
    return { outcome: 'lost', by: 'weight', reason: `${shadow?.name} is already the shadow of this match` };
  return { outcome: 'shadow', by: 'weight', reason: `it receives copies of ${rounded(shadowWeight)} of 100 requests` };
}

/** Rounds to two decimals: `33.33` for a third. */
function rounded(percentage: number): string {
  return String(Math.round(percentage * 100) / 100);
}

export interface ListedRoute {
  readonly mapping: Mapping;
  /** The conditions besides the prefix, and the share of the requests. */
  readonly conditions: readonly string[];
}

/**
 * Lists the mappings in matching order. Includes the values of header and query conditions, so show it only to the owner
 * of the files.
 */
export function listRoutes(mappings: readonly Mapping[]): readonly ListedRoute[] {
  return groupRules(mappings.map(rankRule)).flatMap((routes) => {
    const shares = weightedRoutesOf(routes).routes;
    return routes.map((mapping) => {
      const share = shares.length < 2 ? undefined : shares.find(({ route }) => route === mapping);
      return {
        mapping,
        conditions: conditionsWith(valueTextOf, { ...mapping, weight: share?.weight ?? mapping.weight }),
      };
    });
  });
}

/**
 * Describes the conditions of a rule besides its prefix, and its share of the requests: `POST`, `host api.*`, `20 %`.
 * Leaves out the values of headers and query parameters, which may be secrets.
 */
export function describeConditions(rule: Rule): readonly string[] {
  return conditionsWith(() => '…', rule);
}

function conditionsWith(textOf: (match: ValueMatch) => string, rule: Rule): readonly string[] {
  const { prefixMatch, caseSensitive, method, host, headers, queryParameters, precedence } = rule;
  const { weight, shadow, sticky, gatewayRoute } = rule;
  return [
    ...(gatewayRoute?.scheme === undefined ? [] : [`over ${gatewayRoute.scheme}`]),
    ...(prefixMatch === 'segments' ? [] : [prefixMatch]),
    ...(caseSensitive ? [] : ['case-insensitive']),
    ...(method === undefined ? [] : [named({ name: '', match: method }, '', valueTextOf).trimStart()]),
    ...(host === undefined ? [] : [hostOf(host)]),
    ...(gatewayRoute === undefined ? [] : otherHostsOf(gatewayRoute)),
    ...headers.map((one) => named(one, ': ', textOf)),
    ...queryParameters.map((one) => `?${named(one, '=', textOf)}`),
    ...(precedence === 0 ? [] : [`precedence ${precedence}`]),
    ...(weight === undefined ? [] : [`${rounded(weight)} %`]),
    ...(shadow ? ['shadow'] : []),
    ...(sticky === undefined ? [] : [stickyText(rule)]),
  ];
}

function otherHostsOf({ otherHosts: [first, ...more] }: NonNullable<Rule['gatewayRoute']>): readonly string[] {
  if (first === undefined) return [];
  return [`not host ${first}${more.length === 0 ? '' : ` and ${more.length} more`}`];
}

type ValueMatch = Exclude<TextMatch, { kind: 'present' }>;

/** Formats a condition: `x-a: 1`, `x-a ~ \d+`, or `x-a` for any value. */
function named({ name, match }: NamedMatch, separator: string, textOf: (match: ValueMatch) => string): string {
  if (match.kind === 'present') return name;
  return name + (match.kind === 'regex' ? ' ~ ' : separator) + textOf(match);
}

function valueTextOf(match: ValueMatch): string {
  return match.kind === 'regex' ? match.pattern : match.value;
}

function hostOf(host: HostMatch): string {
  if (host.kind === 'regex') return `host ~ ${host.pattern}`;
  if (host.kind === 'suffix') return `host *${host.value}`;
  return `host ${host.value}${host.kind === 'prefix' ? '*' : ''}`;
}
