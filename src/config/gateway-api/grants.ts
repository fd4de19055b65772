/** References to other namespaces, which a ReferenceGrant in the other namespace has to permit. */
import { isMap } from '#foundation';
import type { ClusterObject } from '../objects/object.ts';
import { type GrantSpec, gatewayApiGroup, type ObjectReference, specOf } from './specs.ts';
import type { Problem } from './status.ts';

export interface Grants {
  /** Whether an object may refer to this one. It always may in its own namespace. */
  readonly permits: (from: ClusterObject, to: Required<ObjectReference>) => boolean;
}

export function createGrants(objects: readonly ClusterObject[]): Grants {
  const byNamespace = new Map<string, GrantSpec[]>();
  for (const object of objects) {
    const spec = specOf(object);
    if (object.kind !== 'ReferenceGrant' || !isGrant(spec)) continue;
    const known = byNamespace.get(object.namespace);
    if (known === undefined) byNamespace.set(object.namespace, [spec]);
    else known.push(spec);
  }

  return {
    permits(from, to) {
      if (from.namespace === to.namespace) return true;
      const isFrom = ({ group, kind, namespace }: GrantSpec['from'][number]) =>
        group === gatewayApiGroup && kind === from.kind && namespace === from.namespace;
      const isTo = ({ group, kind, name }: GrantSpec['to'][number]) =>
        group === to.group && kind === to.kind && (name === undefined || name === '' || name === to.name);
      return (byNamespace.get(to.namespace) ?? []).some((grant) => grant.from.some(isFrom) && grant.to.some(isTo));
    },
  };
}

/** One that cannot be read permits nothing. */
function isGrant(spec: unknown): spec is GrantSpec {
  return isMap(spec) && [spec['from'], spec['to']].every((list) => Array.isArray(list) && list.every(isMap));
}

/** Returns the reference with the group, kind and namespace that it leaves out. */
export function wholeReference(
  { group, kind, name, namespace }: ObjectReference,
  defaults: Required<Omit<ObjectReference, 'name'>>,
): Required<ObjectReference> {
  return {
    name,
    group: group ?? defaults.group,
    kind: kind ?? defaults.kind,
    namespace: namespace ?? defaults.namespace,
  };
}

export function notPermitted(label: string, { namespace }: Required<ObjectReference>): Problem {
  const message = `no ReferenceGrant in the namespace ${namespace} permits the use of ${label}`;
  return { reason: 'RefNotPermitted', message, remedy: 'Create one there, or name an object of this namespace.' };
}
