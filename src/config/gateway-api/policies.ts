/** Finds the RoutePolicies that rules of routes name. */
import type { ClusterObject } from '../objects/object.ts';
import { ownGroup } from '../objects/own-kinds.ts';
import { mapInTurns } from '../turns.ts';
import { isPolicy, readPolicy, routePolicyKind } from './route-policy.ts';
import type { Policy } from './routes/rules.ts';
import type { ObjectReference } from './specs.ts';

/** Finds a policy in the namespace of a route. */
type PolicyIn = (namespace: string, reference: ObjectReference) => Policy;

/** Returns a function that takes all objects, of which a broken policy keeps its last valid version. */
export function createPolicies(): (records: readonly ClusterObject[]) => Promise<PolicyIn> {
  let valid: ReadonlyMap<string, Policy['fields']> = new Map();
  let read: ReadonlyMap<unknown, Policy['fields'] | undefined> = new Map();

  /** Undefined for a broken policy. The acceptance says what is wrong with it, also if it makes reading fail. */
  function fieldsOf(object: ClusterObject): Policy['fields'] | undefined {
    if (read.has(object.value)) return read.get(object.value);
    try {
      const { fields, errors } = readPolicy(object);
      return errors.length === 0 ? fields : undefined;
    } catch {
      return undefined;
    }
  }

  return async function policiesAmong(records: readonly ClusterObject[]) {
    const objects = records.filter(isPolicy);
    read = new Map(await mapInTurns(objects, (object) => [object.value, fieldsOf(object)] as const));
    valid = new Map(
      objects.flatMap(({ uid, value }) => {
        const last = read.get(value) ?? valid.get(uid);
        return last === undefined ? [] : [[uid, last] as const];
      }),
    );
    const byName = new Map(objects.map((object) => [`${object.namespace}/${object.name}`, object]));

    return function policyIn(namespace: string, { group, kind, name }) {
      const label = `${kind} ${namespace}/${name}`;
      if (group !== ownGroup || kind !== routePolicyKind)
        return withoutPolicy(label, 'InvalidKind', `${label} of the group "${group}" is no filter of frontdesk`);
      const object = byName.get(`${namespace}/${name}`);
      if (object === undefined) return withoutPolicy(label, 'FilterNotFound', `there is no ${label}`);
      const fields = valid.get(object.uid);
      return fields === undefined
        ? withoutPolicy(label, 'FilterNotFound', `${label} is refused`)
        : { name: label, fields, problem: undefined };
    };
  };
}

function withoutPolicy(name: string, reason: string, message: string): Policy {
  const remedy = `Name a valid ${routePolicyKind} of the group ${ownGroup} in this namespace.`;
  return { name, fields: {}, problem: { reason, message, remedy } };
}
