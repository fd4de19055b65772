/** Which listeners of Gateways a route attaches to, and why not to others. */
import type { ClusterObject } from '../../objects/object.ts';
import { isProgrammed, type Listener } from '../listeners.ts';
import { gatewayApiGroup, type ParentReference, type RouteSpec, specOf } from '../specs.ts';
import type { Problem } from '../status.ts';
import { commonHostnames } from './hostnames.ts';
import { selects } from './label-selectors.ts';

/** One parent of a route that is a Gateway of ours. */
export interface Attachment {
  readonly parentRef: ParentReference;
  /** Those that the route attaches to. */
  readonly listeners: readonly Listener[];
  /** Why it attaches to none. */
  readonly problem: Problem | undefined;
}

/** A Gateway of ours. */
export interface OwnGateway {
  readonly object: ClusterObject;
  readonly listeners: readonly Listener[];
}

export type LabelsOf = (namespace: string) => Readonly<Record<string, string>>;

export function attachmentsOf(
  route: ClusterObject,
  gatewayOf: (namespace: string, name: string) => OwnGateway | undefined,
  labelsOf: LabelsOf,
): readonly Attachment[] {
  return (specOf<RouteSpec>(route).parentRefs ?? []).flatMap((parentRef) => {
    const { group = gatewayApiGroup, kind = 'Gateway', name, namespace = route.namespace } = parentRef;
    const gateway = group === gatewayApiGroup && kind === 'Gateway' ? gatewayOf(namespace, name) : undefined;
    return gateway === undefined ? [] : [attach(route, parentRef, { gateway, labelsOf })];
  });
}

function attach(
  route: ClusterObject,
  parentRef: ParentReference,
  { gateway, labelsOf }: { readonly gateway: OwnGateway; readonly labelsOf: LabelsOf },
): Attachment {
  const named = gateway.listeners.filter(({ spec }) => isMeant(parentRef, spec));
  const allowed = named.filter((listener) => isAllowed(route, listener, labelsOf));
  const { hostnames } = specOf<RouteSpec>(route);
  const sharing = allowed.filter(({ spec }) => commonHostnames(spec.hostname, hostnames).length > 0);
  const listeners = sharing.filter(({ refusal }) => refusal === undefined);
  return { parentRef, listeners, problem: problemOf([named, allowed, sharing, listeners], parentRef) };
}

function isMeant({ sectionName, port }: ParentReference, listener: Listener['spec']): boolean {
  return (sectionName === undefined || sectionName === listener.name) && (port === undefined || port === listener.port);
}

function isAllowed(route: ClusterObject, { gateway, spec, kinds }: Listener, labelsOf: LabelsOf): boolean {
  if (!kinds.some((kind) => kind === route.kind)) return false;
  const { from = 'Same', selector } = spec.allowedRoutes?.namespaces ?? {};
  if (from === 'All') return true;
  if (from === 'Same') return route.namespace === gateway.namespace;
  return from === 'Selector' && selector !== undefined && selects(selector, labelsOf(route.namespace));
}

type Steps = readonly [
  named: readonly Listener[],
  allowed: readonly Listener[],
  sharing: readonly Listener[],
  usable: readonly Listener[],
];

function problemOf([named, allowed, sharing, usable]: Steps, { sectionName }: ParentReference): Problem | undefined {
  if (usable.length > 0) return undefined;
  if (named.length === 0) {
    const message = `the Gateway has no listener ${sectionName ?? 'at this port'}`;
    return { reason: 'NoMatchingParent', message, remedy: 'Correct sectionName and port, or add the listener.' };
  }
  if (allowed.length === 0) {
    const message = 'allowedRoutes of the listeners permits neither this namespace nor this kind';
    return { reason: 'NotAllowedByListeners', message, remedy: 'Move the route, or let the listeners allow it.' };
  }
  if (sharing.length === 0) {
    const message = 'no hostname of the route is one of the hostnames of the listeners';
    return {
      reason: 'NoMatchingListenerHostname',
      message,
      remedy: 'Correct hostnames here, or those of the listeners.',
    };
  }
  const [refused] = sharing.flatMap(({ spec, refusal }) => (refusal === undefined ? [] : [{ spec, refusal }]));
  const message = `the listener ${refused?.spec.name} is not served: ${refused?.refusal.message}`;
  return { reason: 'NoMatchingParent', message, remedy: refused?.refusal.remedy ?? '' };
}

/** The requests that reach a route: those for a hostname, or for all, over HTTP, HTTPS or both. */
export interface Reach {
  readonly hostname: string | undefined;
  /** Undefined for both. */
  readonly scheme: 'http' | 'https' | undefined;
  /** That of the listener, unless it is the usual one of its scheme, or there are several. */
  readonly port: number | undefined;
}

const usualPorts = { http: 80, https: 443 };

export function reachOf(route: ClusterObject, attachments: readonly Attachment[]): readonly Reach[] {
  const found = new Map<string | undefined, Listener[]>();
  const { hostnames } = specOf<RouteSpec>(route);
  for (const listener of attachments.flatMap(({ listeners }) => listeners.filter(isProgrammed))) {
    for (const hostname of commonHostnames(listener.spec.hostname, hostnames))
      found.set(hostname, [...(found.get(hostname) ?? []), listener]);
  }
  return Array.from(found, ([hostname, listeners]) => ({
    hostname,
    scheme: onlyOne(listeners.map(({ scheme }) => scheme)),
    port: onlyOne(listeners.map(({ scheme, spec }) => (spec.port === usualPorts[scheme] ? undefined : spec.port))),
  }));
}

function onlyOne<T>(values: readonly T[]): T | undefined {
  return new Set(values).size === 1 ? values[0] : undefined;
}
