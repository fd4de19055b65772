/** What protects the requests of each route, in a form that the check of ambiguous paths can compare. */
import { matchKey, protectionOf } from '#config';
import type { Route } from './route.ts';

export type Protections = ReadonlyMap<Route, string>;

/**
 * Returns the same text for routes with the same protection. Mappings that share requests by weight count as one, because
 * no request can choose among them.
 */
export function protectionsOf(routes: readonly Route[]): Protections {
  const groups = new Map<string, Route[]>();
  for (const route of routes) {
    const key = matchKey(route);
    groups.set(key, [...(groups.get(key) ?? []), route]);
  }
  const protections = new Map<Route, string>();
  for (const group of groups.values()) {
    const protection = [...new Set(group.map(ownProtection))].sort().join();
    for (const route of group) protections.set(route, protection);
  }
  return protections;
}

/** Only the labels of the limiter's domain count. A label with the service separates the limits of services. */
function ownProtection({ mapping, auth, labels }: Route): string {
  const counted = hasLabel(labels, 'destination_cluster') ? mapping.service : '';
  const effective = { bypassAuth: auth === undefined, authService: auth?.record.name, labels: { counted: labels } };
  return counted + protectionOf({ ...mapping, ...effective });
}

/** Reports whether limits count the requests of each path separately. */
export function limitsByPath({ labels }: Route): boolean {
  return hasLabel(labels, 'path');
}

function hasLabel(groups: Route['labels'], kind: Route['labels'][number]['labels'][number]['kind']): boolean {
  return groups.some(({ labels }) => labels.some((label) => label.kind === kind));
}
