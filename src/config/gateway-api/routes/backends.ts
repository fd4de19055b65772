/** The Services that a route sends requests to, and why some of them cannot be used. */
import type { ClusterObject } from '../../objects/object.ts';
import { referenceToService } from '../../objects/references.ts';
import { type Grants, notPermitted, wholeReference } from '../grants.ts';
import { type BackendSpec, type ServiceSpec, specOf } from '../specs.ts';
import type { Problem } from '../status.ts';

/** The fields of a Mapping that call a Service, or why it cannot be called. */
export type Backend =
  | { readonly fields: Readonly<Record<string, unknown>>; readonly problem?: undefined }
  | { readonly problem: Problem };

export interface BackendParts {
  readonly grants: Grants;
  readonly serviceOf: (namespace: string, name: string) => ClusterObject | undefined;
}

export function readBackend(route: ClusterObject, spec: BackendSpec, { grants, serviceOf }: BackendParts): Backend {
  const target = wholeReference(spec, { group: '', kind: 'Service', namespace: route.namespace });
  const { group, kind, namespace, name } = target;
  const label = `${kind} ${namespace}/${name}`;
  if (group !== '' || kind !== 'Service')
    return broken('InvalidKind', `${label} of the group "${group}" is no Service`);
  if (!grants.permits(route, target)) return { problem: notPermitted(label, target) };
  const service = serviceOf(namespace, name);
  if (service === undefined) return broken('BackendNotFound', `there is no ${label}`);
  const { type, ports = [] } = specOf<ServiceSpec>(service);
  // The name outside of the cluster could be one of this machine.
  if (type === 'ExternalName') return broken('BackendNotFound', `${label} is an ExternalName, which is not supported`);
  const port = ports.find((one) => one.port === spec.port && (one.protocol ?? 'TCP') === 'TCP');
  if (port === undefined) return wrongPort(`${label} has no port ${spec.port ?? 'that is named here'}`, ports);
  const reference = referenceToService(namespace, name, port.port);
  return { fields: { service: reference, ...protocolFields(route, port.appProtocol) } };
}

function broken(reason: string, message: string): Backend {
  return { problem: { reason, message, remedy: 'Name a port of a Service of the cluster.' } };
}

function wrongPort(message: string, ports: NonNullable<ServiceSpec['ports']>): Backend {
  const known = ports.flatMap(({ port, protocol = 'TCP' }) => (protocol === 'TCP' ? port : [])).join(', ');
  return { problem: { reason: 'BackendNotFound', message, remedy: `Name one of its ports for TCP: ${known}.` } };
}

/** How to speak to the port (https://kubernetes.io/docs/concepts/services-networking/service/#application-protocol). */
function protocolFields(route: ClusterObject, appProtocol: string | undefined): Readonly<Record<string, unknown>> {
  if (route.kind === 'GRPCRoute') return { grpc: true };
  if (appProtocol === 'kubernetes.io/h2c') return { http2: true };
  return { allow_upgrade: ['websocket'] };
}
