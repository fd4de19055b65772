/** What protects the requests of each route, in a form that the check of ambiguous paths can compare. */
import { protectionOf } from '#config';
import type { Route } from './route.ts';

export type Protections = ReadonlyMap<Route, string>;

/**
 * Returns the same text for routes with the same protection. Mappings that share requests by weight are a group and count
 * as one, because no request can choose among them.
 */
export function protectionsOf(groups: readonly (readonly Route[])[]): Protections {
  const protections = new Map<Route, string>();
  for (const group of groups) {
    const texts = new Set(group.map(({ protection }) => protection));
    for (const route of group) protections.set(route, texts.size === 1 ? route.protection : [...texts].sort().join());
  }
  return protections;
}

export type ProtectionOf = (route: Pick<Route, 'mapping' | 'auth' | 'labels'>) => string;

/** Keeps one copy of each text, because few routes differ in their protection. */
export function createProtectionOf(): ProtectionOf {
  const texts = new Map<string, string>();
  return function sharedProtection(route) {
    const text = ownProtection(route);
    const known = texts.get(text);
    if (known === undefined) texts.set(text, text);
    return known ?? text;
  };
}

/** Only the labels of the limiter's domain count. A label with the service separates the limits of services. */
function ownProtection({ mapping, auth, labels }: Parameters<ProtectionOf>[0]): string {
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
