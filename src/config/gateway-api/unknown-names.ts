/** Finds names of Gateways and GatewayClasses that nothing has, so that no controller says in a status what is wrong. */
import { type ConfigurationError, fileError, valueAt } from '../errors.ts';
import { type ClusterObject, nameOfObject } from '../objects/object.ts';
import { isOwnClass } from './gateways.ts';
import { controllerName, gatewayApiGroup, isRoute } from './specs.ts';

interface Known {
  readonly find: (kind: string, namespace: string, name: string) => ClusterObject | undefined;
  /** Whether a Gateway is frontdesk's, so that its own status says what is wrong. */
  readonly isOurs: (gateway: ClusterObject) => boolean;
}

/** The objects may have a form that cannot be read. */
export function unknownClasses(objects: readonly ClusterObject[], known: Known): readonly ConfigurationError[] {
  const ofClass = objects.some(isOwnClass) ? [] : [noClass()];
  const gateways = objects.filter((object) => object.kind === 'Gateway' && !known.isOurs(object));
  return [...ofClass, ...gateways.flatMap((gateway) => unknownClass(gateway, known))];
}

/** Such a Gateway may be in a namespace that is not read. */
export function unknownGateways(
  objects: readonly ClusterObject[],
  known: Pick<Known, 'find'>,
): readonly ConfigurationError[] {
  return objects.filter(isRoute).flatMap((route) => unknownParents(route, known));
}

function noClass(): ConfigurationError {
  const message = `no GatewayClass has the controllerName ${controllerName}, so no Gateway is served`;
  const file = 'config/deploy/kubernetes/components/gateway-api/gateway-class.yaml';
  return fileError('the cluster', message, `Apply ${file}, after the definitions of the Gateway API.`);
}

function unknownClass(gateway: ClusterObject, { find }: Known): readonly ConfigurationError[] {
  const name = valueAt(gateway.value, ['spec', 'gatewayClassName']);
  if (typeof name !== 'string' || find('GatewayClass', '', name) !== undefined) return [];
  const remedy = 'Correct gatewayClassName, or create the GatewayClass.';
  return [fileError(nameOfObject(gateway), `there is no GatewayClass ${name}`, remedy)];
}

function unknownParents(route: ClusterObject, { find }: Pick<Known, 'find'>): readonly ConfigurationError[] {
  const parents = valueAt(route.value, ['spec', 'parentRefs']);
  return (Array.isArray(parents) ? parents : []).flatMap((parent: unknown) => {
    const { group = gatewayApiGroup, kind = 'Gateway', name, namespace = route.namespace } = Object(parent);
    if (group !== gatewayApiGroup || kind !== 'Gateway' || find('Gateway', namespace, name) !== undefined) return [];
    const message = `frontdesk finds no Gateway ${namespace}/${name}`;
    const remedy = 'Correct name and namespace in parentRefs, or create the Gateway.';
    return [fileError(nameOfObject(route), message, remedy)];
  });
}
