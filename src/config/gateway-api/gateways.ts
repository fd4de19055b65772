/** The Gateways of frontdesk's GatewayClasses, with their listeners and what their status says. */
import { isIP } from 'node:net';
import { messageOf } from '#foundation';
import type { Fault } from '../errors.ts';
import type { ClusterObject } from '../objects/object.ts';
import { isProgrammed, type Listener, type ListenerParts, notTrusted, readListener } from './listeners.ts';
import type { OwnGateway } from './routes/attachments.ts';
import { controllerName, type GatewayClassSpec, type GatewaySpec, gatewayApiGroup, specOf } from './specs.ts';
import { type Condition, conditionOf, type DesiredStatus, type ListenerStatus, type Problem } from './status.ts';

export interface GatewayOptions {
  /** Where clients reach them. */
  readonly addresses: readonly string[];
  /** The namespaces whose Gateways count. */
  readonly trusted: readonly string[];
}

export interface ReadGateway extends OwnGateway {
  /** Why none of its listeners is served. */
  readonly refusal: Problem | undefined;
}

export function isOwnClass({ kind, value }: ClusterObject): boolean {
  return (
    kind === 'GatewayClass' && (value as { readonly spec?: GatewayClassSpec }).spec?.controllerName === controllerName
  );
}

/** One that another version of the definitions has let through may throw. It stops no other. */
export function readGateway(
  object: ClusterObject,
  options: GatewayOptions & { readonly hasClass: boolean },
  parts: Omit<ListenerParts, 'refusal'>,
): ReadGateway {
  try {
    const spec = specOf<GatewaySpec>(object);
    const refusal = refusalOf(object, spec, options);
    const listeners = spec.listeners.map((one) => readListener(object, one, { ...parts, refusal }));
    return { object, refusal, listeners };
  } catch (cause) {
    const message = `the Gateway cannot be read: ${messageOf(cause)}`;
    return { object, listeners: [], refusal: { reason: 'Invalid', message, remedy: definedOtherwise } };
  }
}

/** What to do about an object that is not as the definitions of the Gateway API say. */
export const definedOtherwise = 'Correct it, and define the kinds of the Gateway API as its release 1.6 does.';

function refusalOf(
  { namespace }: ClusterObject,
  { gatewayClassName, infrastructure, tls, addresses = [] }: GatewaySpec,
  options: Parameters<typeof readGateway>[1],
): Problem | undefined {
  if (!options.hasClass) {
    const message = `there is no GatewayClass ${gatewayClassName} any more`;
    return { reason: 'Pending', message, remedy: 'Create it again, or delete the Gateway.' };
  }
  if (!options.trusted.includes(namespace)) {
    const message = 'a Gateway does not count from this namespace, because it would decide for all of them';
    const remedy = `Create it in ${options.trusted[0]}, or add this namespace to KUBERNETES_TRUSTED_NAMESPACES.`;
    return { reason: notTrusted, message, remedy };
  }
  if (infrastructure?.parametersRef !== undefined)
    return {
      reason: 'InvalidParameters',
      message: 'infrastructure.parametersRef is not supported',
      remedy: 'Remove it.',
    };
  // To leave out that clients need a certificate would let everybody in.
  if (tls !== undefined) {
    const message = 'spec.tls is not supported';
    const remedy = 'Remove it. TLS_CLIENT_CA asks all clients for certificates.';
    return { reason: 'UnsupportedValue', message, remedy };
  }
  const other = addresses.find(({ value = '' }) => value !== '' && !options.addresses.includes(value));
  if (other === undefined) return undefined;
  const message = `this frontdesk does not have the address ${other.value}`;
  return { reason: 'UnsupportedAddress', message, remedy: 'Remove it, or add it to KUBERNETES_GATEWAY_ADDRESSES.' };
}

export function classStatus(object: ClusterObject, supportedFeatures: readonly string[]): DesiredStatus {
  const { parametersRef } = specOf<GatewayClassSpec>(object);
  const problem: Problem | undefined = parametersRef && {
    reason: 'InvalidParameters',
    message: 'parametersRef is not supported',
    remedy: 'Remove it.',
  };
  return {
    object,
    status: {
      kind: 'GatewayClass',
      conditions: [conditionOf(object, 'Accepted', problem)],
      supportedFeatures: supportedFeatures.map((name) => ({ name })),
    },
  };
}

export function gatewayStatus(
  { object, listeners, refusal }: ReadGateway,
  attachedRoutesOf: (listener: Listener) => number,
  { addresses }: GatewayOptions,
): DesiredStatus {
  return {
    object,
    status: {
      kind: 'Gateway',
      addresses: addresses.map((value) => ({ type: isIP(value) === 0 ? 'Hostname' : 'IPAddress', value })),
      conditions: [acceptedOf(object, listeners, refusal), programmedOf(object, listeners)],
      listeners: listeners.map((listener) => listenerStatus(listener, attachedRoutesOf(listener))),
    },
  };
}

/** A Gateway with an invalid listener is accepted as long as another one is valid. */
function acceptedOf(object: ClusterObject, listeners: readonly Listener[], refusal: Problem | undefined): Condition {
  const invalid = listeners.filter((one) => one.refusal !== undefined || one.unresolved !== undefined);
  if (refusal !== undefined || invalid.length === 0) return conditionOf(object, 'Accepted', refusal);
  const names = invalid.map(({ spec }) => spec.name).join(', ');
  const problem = {
    reason: 'ListenersNotValid',
    message: `listeners are not valid: ${names}`,
    remedy: 'Their own conditions say why.',
  };
  const areAll = listeners.every((one) => one.refusal !== undefined);
  const accepted = conditionOf(object, 'Accepted', problem);
  return areAll ? accepted : { ...accepted, status: 'True' };
}

function programmedOf(object: ClusterObject, listeners: readonly Listener[]): Condition {
  if (listeners.some(isProgrammed)) return conditionOf(object, 'Programmed', undefined);
  const message = 'none of the listeners can be served';
  return conditionOf(object, 'Programmed', { reason: 'Invalid', message, remedy: 'Their own conditions say why.' });
}

function listenerStatus(listener: Listener, attachedRoutes: number): ListenerStatus {
  const { gateway, spec, refusal, unresolved, kinds } = listener;
  const cause = refusal ?? unresolved;
  const routes = refusal?.reason === 'UnsupportedProtocol' ? [] : kinds;
  const invalid = { reason: 'Invalid', message: cause?.message ?? '', remedy: cause?.remedy ?? '' };
  return {
    name: spec.name,
    supportedKinds: routes.map((kind) => ({ group: gatewayApiGroup, kind })),
    attachedRoutes,
    conditions: [
      conditionOf(gateway, 'Accepted', refusal),
      conditionOf(gateway, 'ResolvedRefs', unresolved),
      conditionOf(gateway, 'Programmed', isProgrammed(listener) ? undefined : invalid),
    ],
  };
}

/** What is wrong with a Gateway that is served in part or not at all. */
export function gatewayFaults({ refusal, listeners }: ReadGateway): readonly Fault[] {
  if (refusal !== undefined) return [refusal];
  return listeners.flatMap(({ spec, refusal: own, unresolved }) =>
    [own, unresolved].flatMap((problem) =>
      problem === undefined ? [] : { message: `listener ${spec.name}: ${problem.message}`, remedy: problem.remedy },
    ),
  );
}
