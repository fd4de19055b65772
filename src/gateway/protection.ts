/** What protects the requests of each route, in a form that the check of ambiguous paths can compare. */
import { type LabelGroup, type Mapping, protectionOf } from '#config';
import type { AuthStage } from './auth/stage.ts';

interface Protected {
  readonly mapping: Omit<Mapping, 'kind' | 'source'>;
  /** Undefined when it is open. */
  readonly auth: AuthStage | undefined;
  readonly labels: readonly LabelGroup[];
}

/**
 * Returns the same text for routes with the same protection. Mappings that share requests by weight are a group and count
 * as one, because no request can choose among them.
 */
export function protectionsOf<R extends { readonly protection: string }>(
  groups: readonly (readonly R[])[],
): ReadonlyMap<R, string> {
  const protections = new Map<R, string>();
  for (const group of groups) {
    const texts = new Set(group.map(({ protection }) => protection));
    for (const route of group) protections.set(route, texts.size === 1 ? route.protection : [...texts].sort().join());
  }
  return protections;
}

export type ProtectionOf = (route: Protected) => string;

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
function ownProtection({ mapping, auth, labels }: Protected): string {
  if (mapping.refusal !== undefined) return 'refused';
  const counted = hasLabel(labels, 'destination_cluster') ? mapping.service : '';
  const effective = { bypassAuth: auth === undefined, authService: auth?.record.name, labels: { counted: labels } };
  return counted + protectionOf({ ...mapping, ...effective });
}

/** Reports whether limits count the requests of each path separately. */
export function limitsByPath({ labels }: Pick<Protected, 'labels'>): boolean {
  return hasLabel(labels, 'path');
}

function hasLabel(groups: readonly LabelGroup[], kind: LabelGroup['labels'][number]['kind']): boolean {
  return groups.some(({ labels }) => labels.some((label) => label.kind === kind));
}
