/** Why a request meets the route that it meets, and why every other one lost: for people. */
import { type Condition, type Part, pathCondition } from './conditions.ts';
import { type Group, isServed } from './group.ts';
import { reasonOf } from './order.ts';
import type { Rule } from './rule.ts';
import { type Member, type Shares, sharesOf } from './shares.ts';
import type { View } from './view.ts';

export interface RouteVerdict<R> {
  readonly route: R;
  /** `shadow`: it gets copies. More than one is `matched` where a group shares its requests by weight. */
  readonly outcome: 'matched' | 'shadow' | 'lost';
  /** What decided: a part of the request, the order of trial, or the weights of the group. */
  readonly by: Part | 'order' | 'weight';
  /** A clause without a capital or a full stop: `the method is POST, not GET`. */
  readonly reason: string;
}

/** `groups` are in the order of trial. The conditions are those of the table; only the tree is left out. */
export function explain<R extends Rule>(groups: readonly Group<R>[], view: View): readonly RouteVerdict<R>[] {
  const winner = groups.find((group) => isServed(group) && failureOf(group, view) === undefined);
  return groups.flatMap((group) => {
    const failure = failureOf(group, view);
    if (failure !== undefined) return lost(group, failure.part, failure.reason(view));
    if (group === winner) return shares(group);
    if (winner === undefined || !isServed(group)) return lost(group, 'order', lonely);
    return lost(group, 'order', reasonOf(group.rule, winner.rule));
  });
}

const lonely = 'it is a shadow, and no mapping has the same match';

/** The path first; that of a pattern is compiled already. */
function failureOf({ rule, conditions }: Group<Rule>, view: View): Condition | undefined {
  const path = conditions.find(({ part }) => part === 'path') ?? pathCondition(rule);
  return [path, ...conditions].find(({ holds }) => !holds(view));
}

function lost<R extends Rule>(group: Group<R>, by: RouteVerdict<R>['by'], reason: string): readonly RouteVerdict<R>[] {
  return group.routes.map((route) => ({ route, outcome: 'lost', by, reason }));
}

function shares<R extends Rule>(group: Group<R>): readonly RouteVerdict<R>[] {
  const shared = sharesOf(group.routes);
  return group.routes.map((route) => {
    const member = shared.members.find((one) => one.route === route);
    return { route, ...(member === undefined ? shadowVerdict(route, shared) : memberVerdict(member, shared)) };
  });
}

type Judgement = Omit<RouteVerdict<never>, 'route'>;

function memberVerdict<R extends Rule>({ weight }: Member<R>, { members }: Shares<R>): Judgement {
  const isWeighted = members.some((one) => one.route.weight !== undefined);
  const outcome = weight > 0 ? 'matched' : 'lost';
  if (isWeighted && members.length > 1) return { outcome, by: 'weight', reason: `weight ${inWords(weight)} of 100` };
  if (outcome === 'matched') return { outcome, by: 'order', reason: 'it is the first that matches' };
  return {
    outcome,
    by: 'weight',
    reason: `${members[0]?.route.name} has the same match, and neither of them a weight`,
  };
}

function shadowVerdict<R extends Rule>(route: R, { shadow, shadowWeight }: Shares<R>): Judgement {
  if (route !== shadow) return { outcome: 'lost', by: 'weight', reason: `${shadow?.name} is the shadow of this match` };
  return { outcome: 'shadow', by: 'weight', reason: `a copy of ${inWords(shadowWeight)} of 100 requests` };
}

/** A third is 33.33. */
function inWords(percent: number): string {
  return String(Math.round(percent * 100) / 100);
}
