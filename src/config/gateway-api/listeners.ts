/** Which listeners of Gateways can be served at the ports of this process, with which certificates, and which cannot. */
import type { ClusterObject } from '../objects/object.ts';
import type { ServedCertificate } from '../tls/served-certificates.ts';
import { type Grants, notPermitted, wholeReference } from './grants.ts';
import type { KeyPairs } from './key-pairs.ts';
import { gatewayApiGroup, type ListenerSpec, type RouteKind, routeKinds } from './specs.ts';
import type { Problem } from './status.ts';

/** The ports of Gateways that this process serves. */
export interface ServedPorts {
  readonly http: readonly number[];
  /** Empty if the process has no port for HTTPS. */
  readonly https: readonly number[];
}

export interface Listener {
  readonly gateway: ClusterObject;
  readonly spec: ListenerSpec;
  readonly scheme: 'http' | 'https';
  /** Why it is not served at all. */
  readonly refusal: Problem | undefined;
  /** What it refers to that does not exist, or may not be used. */
  readonly unresolved: Problem | undefined;
  /** The kinds of routes that may attach. */
  readonly kinds: readonly RouteKind[];
  readonly certificate: ServedCertificate | undefined;
}

/** Requests can reach it. */
export function isProgrammed({ refusal, unresolved, scheme, certificate }: Listener): boolean {
  const isUsable = scheme === 'http' || certificate !== undefined;
  return refusal === undefined && isUsable && unresolved?.reason !== 'InvalidRouteKinds';
}

export interface ListenerParts {
  readonly ports: ServedPorts;
  readonly grants: Grants;
  readonly secretOf: (namespace: string, name: string) => ClusterObject | undefined;
  readonly pairOf: KeyPairs['pairOf'];
  /** Why no listener of this Gateway is served. */
  readonly refusal: Problem | undefined;
}

/** The reason of Gateways in namespaces that are not trusted. */
export const notTrusted = 'NotTrusted';

export function readListener(gateway: ClusterObject, spec: ListenerSpec, parts: ListenerParts): Listener {
  const scheme = spec.protocol === 'HTTPS' ? 'https' : 'http';
  const { kinds, unknown } = allowedKinds(spec);
  // Nobody's Secret is read for a Gateway of anybody.
  const mayUse = scheme === 'https' && parts.refusal?.reason !== notTrusted;
  const { certificate, problem } = mayUse ? findCertificate(gateway, spec, parts) : noCertificate;
  return {
    gateway,
    spec,
    scheme,
    refusal: parts.refusal ?? refusalOf(spec, parts.ports),
    unresolved: unknown ?? problem,
    kinds,
    certificate,
  };
}

/** `options` are those of other implementations. */
const tlsMembers: readonly string[] = ['mode', 'certificateRefs', 'options'];

function refusalOf({ protocol, port, tls }: ListenerSpec, ports: ServedPorts): Problem | undefined {
  if (protocol !== 'HTTP' && protocol !== 'HTTPS') {
    const message = `the protocol ${protocol} is not supported`;
    return { reason: 'UnsupportedProtocol', message, remedy: 'Use HTTP or HTTPS.' };
  }
  if (protocol === 'HTTPS' && tls?.mode === 'Passthrough')
    return { reason: 'UnsupportedValue', message: 'tls.mode Passthrough is not supported', remedy: 'Use Terminate.' };
  // Older definitions let a listener ask clients for certificates here. To leave that out would let everybody in.
  const foreign = Object.keys(tls ?? {}).find((name) => !tlsMembers.includes(name));
  if (foreign !== undefined) {
    const remedy = 'Remove it. TLS_CLIENT_CA asks all clients for certificates.';
    return { reason: 'UnsupportedValue', message: `tls.${foreign} is not supported`, remedy };
  }
  const served = protocol === 'HTTP' ? ports.http : ports.https;
  if (served.includes(port)) return undefined;
  const message = `this frontdesk does not serve ${protocol} at the port ${port}`;
  const remedy =
    served.length === 0 ? 'Set TLS_PORT, so that it serves HTTPS.' : `Use the port ${served.join(' or ')}.`;
  return { reason: 'PortUnavailable', message, remedy };
}

function allowedKinds({ allowedRoutes }: ListenerSpec): {
  readonly kinds: readonly RouteKind[];
  readonly unknown: Problem | undefined;
} {
  const wanted = allowedRoutes?.kinds ?? [];
  if (wanted.length === 0) return { kinds: routeKinds, unknown: undefined };
  const isKnown = ({ group = gatewayApiGroup, kind }: (typeof wanted)[number], one: RouteKind) =>
    group === gatewayApiGroup && kind === one;
  const kinds = routeKinds.filter((one) => wanted.some((each) => isKnown(each, one)));
  const unknown = wanted.filter((each) => !routeKinds.some((one) => isKnown(each, one)));
  if (unknown.length === 0) return { kinds, unknown: undefined };
  const names = unknown.map(({ kind }) => kind).join(', ');
  const message = `routes of the kind ${names} are not supported`;
  return { kinds, unknown: { reason: 'InvalidRouteKinds', message, remedy: `Use ${routeKinds.join(' and ')}.` } };
}

function findCertificate(
  gateway: ClusterObject,
  { tls, hostname }: ListenerSpec,
  { grants, secretOf, pairOf }: ListenerParts,
): FoundCertificate {
  const [reference, ...more] = tls?.certificateRefs ?? [];
  if (reference === undefined) return invalid('tls.certificateRefs is empty');
  if (more.length > 0) return invalid('tls.certificateRefs names several certificates, and one is supported');
  const target = wholeReference(reference, { group: '', kind: 'Secret', namespace: gateway.namespace });
  const name = `${target.kind} ${target.namespace}/${target.name}`;
  if (target.group !== '' || target.kind !== 'Secret')
    return invalid(`${name} of the group "${target.group}" is no Secret`);
  if (!grants.permits(gateway, target)) return { certificate: undefined, problem: notPermitted(name, target) };
  const secret = secretOf(target.namespace, target.name);
  if (secret === undefined) return invalid(`there is no ${name} of the type kubernetes.io/tls`);
  const { pair, fault } = pairOf(secret);
  const problem =
    fault === undefined ? undefined : invalidReference(`${name} has no usable certificate and key (${fault})`);
  return { certificate: pair && { ...pair, name, hosts: hostname ? [hostname] : undefined }, problem };
}

interface FoundCertificate {
  /** With a problem, the last valid one. */
  readonly certificate: ServedCertificate | undefined;
  readonly problem: Problem | undefined;
}

const noCertificate: FoundCertificate = { certificate: undefined, problem: undefined };

function invalid(message: string): FoundCertificate {
  return { certificate: undefined, problem: invalidReference(message) };
}

function invalidReference(message: string): Problem {
  const remedy = 'Name one Secret with a certificate and its key: kubectl create secret tls.';
  return { reason: 'InvalidCertificateRef', message, remedy };
}
