/** A route with what it attaches to and what its rules say, and what becomes known of it. */
import { messageOf } from '#foundation';
import { type ConfigurationError, fileError, valueAt } from '../../errors.ts';
import { type ClusterObject, nameOfObject, type ObjectVerdict } from '../../objects/object.ts';
import { definedOtherwise } from '../gateways.ts';
import type { Listener } from '../listeners.ts';
import { controllerName } from '../specs.ts';
import { conditionOf, type DesiredStatus, type Problem } from '../status.ts';
import type { Attachment } from './attachments.ts';
import { type RouteRules, unreadRules } from './rules.ts';

export interface ResolvedRoute {
  readonly object: ClusterObject;
  readonly attachments: readonly Attachment[];
  readonly rules: RouteRules;
}

export interface RouteParts {
  readonly attachmentsOf: () => readonly Attachment[];
  readonly rulesOf: (attachments: readonly Attachment[]) => RouteRules;
}

/** Like a Gateway, a route may throw. It is refused if it is or may be one of ours. */
export function resolveRoute(object: ClusterObject, parts: RouteParts): ResolvedRoute {
  let attachments: readonly Attachment[] | undefined;
  try {
    attachments = parts.attachmentsOf();
    return { object, attachments, rules: parts.rulesOf(attachments) };
  } catch (cause) {
    const message = `the route cannot be read (${messageOf(cause)}). ${definedOtherwise}`;
    return { object, attachments: attachments ?? [], rules: unreadRules(message, attachments?.length !== 0) };
  }
}

/** Returns how many routes are attached to a listener. */
export function countAttached(routes: readonly ResolvedRoute[]): (listener: Listener) => number {
  const counts = new Map<Listener, number>();
  for (const { attachments } of routes) {
    const attached = new Set(attachments.flatMap(({ listeners }) => listeners));
    for (const listener of attached) counts.set(listener, (counts.get(listener) ?? 0) + 1);
  }
  return (listener) => counts.get(listener) ?? 0;
}

export function routeStatuses(
  routes: readonly ResolvedRoute[],
  verdicts: readonly ObjectVerdict[],
): readonly DesiredStatus[] {
  const verdictsByUid = new Map(verdicts.map((verdict) => [verdict.object.uid, verdict]));
  return routes.map(({ object, attachments, rules: { unresolved } }) => {
    const refusal = refusalIn(verdictsByUid.get(object.uid));
    const parents = attachments.map(({ parentRef, problem }) => ({
      parentRef,
      controllerName,
      conditions: [
        conditionOf(object, 'Accepted', problem ?? refusal),
        conditionOf(object, 'ResolvedRefs', unresolved),
      ],
    }));
    return { object, status: { kind: 'Route', parents } };
  });
}

/** Whether a route has a parent of ours, or its status had one when it was read. */
export function hasParents({ object, attachments }: ResolvedRoute): boolean {
  const before = valueAt(object.value, ['status', 'parents']);
  const isOurs = (parent: unknown) => valueAt(parent, ['controllerName']) === controllerName;
  return attachments.length > 0 || (Array.isArray(before) && before.some(isOurs));
}

function refusalIn(verdict: ObjectVerdict | undefined): Problem | undefined {
  const [first] = verdict?.errors ?? [];
  return first && { reason: 'UnsupportedValue', message: first.message, remedy: first.remedy };
}

/** What `check` and the log say about a route that is served in part or not at all. */
export function routeNotices({ object, attachments, rules }: ResolvedRoute): readonly ConfigurationError[] {
  const problems = [
    ...attachments.map(({ problem }) => problem),
    attachments.length > 0 ? rules.unresolved : undefined,
  ];
  return problems.flatMap((problem) =>
    problem === undefined ? [] : fileError(nameOfObject(object), problem.message, problem.remedy),
  );
}
