/** Which listeners of Gateways a route attaches to, and why not to others. */
import { isDeepStrictEqual } from 'node:util';
import type { ClusterObject } from '../../objects/object.ts';
import { isProgrammed, type Listener } from '../listeners.ts';
import { gatewayApiGroup, type ParentReference, type RouteSpec, specOf } from '../specs.ts';
import type { Problem } from '../status.ts';
import { commonHostnames, includesHosts } from './hostnames.ts';
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

/** Undefined for a namespace that has not been read. */
export type LabelsOf = (namespace: string) => Readonly<Record<string, string>> | undefined;

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
  const problem = named.length === 0 ? noListener(parentRef, gateway) : problemOf([allowed, sharing, listeners]);
  return { parentRef, listeners, problem };
}

function isMeant({ sectionName, port }: ParentReference, listener: Listener['spec']): boolean {
  return (sectionName === undefined || sectionName === listener.name) && (port === undefined || port === listener.port);
}

function isAllowed(route: ClusterObject, { gateway, spec, kinds }: Listener, labelsOf: LabelsOf): boolean {
  if (!kinds.some((kind) => kind === route.kind)) return false;
  const { from = 'Same', selector } = spec.allowedRoutes?.namespaces ?? {};
  if (from === 'All') return true;
  if (from === 'Same') return route.namespace === gateway.namespace;
  const labels = from === 'Selector' ? labelsOf(route.namespace) : undefined;
  return labels !== undefined && selector !== undefined && selects(selector, labels);
}

type Steps = readonly [allowed: readonly Listener[], sharing: readonly Listener[], usable: readonly Listener[]];

function noListener({ sectionName, port }: ParentReference, { listeners }: OwnGateway): Problem {
  const wanted = [
    sectionName === undefined ? [] : ` ${sectionName}`,
    port === undefined ? [] : ` with the port ${port}`,
  ];
  const known = listeners.map(({ spec }) => `${spec.name} (${spec.port})`).join(', ');
  return {
    reason: 'NoMatchingParent',
    message: `the Gateway has no listener${wanted.flat().join('')}, but ${known}`,
    remedy: 'Correct sectionName and port, or add the listener.',
  };
}

function problemOf([allowed, sharing, usable]: Steps): Problem | undefined {
  if (usable.length > 0) return undefined;
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
  /** The hosts among them that belong to other listeners of the Gateway. */
  readonly otherHosts: readonly string[];
  /** Undefined for both. */
  readonly scheme: 'http' | 'https' | undefined;
  /** That of the listener, unless it is the usual one of its scheme, or there are several. */
  readonly port: number | undefined;
}

/** A hostname of a route at a listener. */
interface Place {
  readonly listener: Listener;
  readonly hostname: string | undefined;
  readonly otherHosts: readonly string[];
}

const defaultPorts = { http: 80, https: 443 };

/**
 * A request belongs to the listener with the most specific hostname, and reaches only what is attached there: who may attach
 * to `*.example` must not get the requests of `admin.example`. All Gateways share the ports, so `all` are their listeners.
 */
export function reachOf(
  route: ClusterObject,
  attachments: readonly Attachment[],
  all: readonly Listener[],
): readonly Reach[] {
  const { hostnames } = specOf<RouteSpec>(route);
  const places = attachments.flatMap(({ listeners }) =>
    listeners.filter(isProgrammed).flatMap((listener) => placesAt(listener, all, hostnames)),
  );
  return [...new Set(places.map(({ hostname }) => hostname))].flatMap((hostname) => {
    const found = places.filter((place) => place.hostname === hostname);
    const [http, https] = (['http', 'https'] as const).map((scheme) =>
      found.filter(({ listener }) => listener.scheme === scheme),
    );
    const isSame = isDeepStrictEqual(commonHosts(http ?? []), commonHosts(https ?? []));
    return (isSame ? [found] : [http ?? [], https ?? []]).flatMap(joinedPlaces);
  });
}

function placesAt(listener: Listener, all: readonly Listener[], hostnames?: readonly string[]): readonly Place[] {
  const rivals = all
    .filter(({ scheme, refusal }) => scheme === listener.scheme && refusal === undefined)
    .map(({ spec }) => spec.hostname);
  const isTaken = (hostname: string | undefined) =>
    rivals.some((rival) => lengthOf(rival) > lengthOf(listener.spec.hostname) && includesHosts(rival, hostname));
  return commonHostnames(listener.spec.hostname, hostnames)
    .filter((hostname) => !isTaken(hostname))
    .map((hostname) => {
      const within = rivals.flatMap((rival) =>
        rival && rival !== hostname && includesHosts(hostname, rival) ? rival : [],
      );
      return { listener, hostname, otherHosts: [...new Set(within)].sort() };
    });
}

/** The longer of two hostnames for the same host is more specific. */
function lengthOf(hostname = ''): number {
  return hostname.replace('*', '').length;
}

/** Empty for no places. What one listener leaves to others may be reached through another one. */
function joinedPlaces(places: readonly Place[]): readonly Reach[] {
  const [first] = places;
  if (first === undefined) return [];
  const listeners = places.map(({ listener }) => listener);
  return [
    {
      hostname: first.hostname,
      otherHosts: commonHosts(places),
      scheme: onlyOne(listeners.map(({ scheme }) => scheme)),
      port: onlyOne(listeners.map(({ scheme, spec }) => (spec.port === defaultPorts[scheme] ? undefined : spec.port))),
    },
  ];
}

function commonHosts([first, ...more]: readonly Place[]): readonly string[] {
  return first?.otherHosts.filter((host) => more.every(({ otherHosts }) => otherHosts.includes(host))) ?? [];
}

function onlyOne<T>(values: readonly T[]): T | undefined {
  return new Set(values).size === 1 ? values[0] : undefined;
}
