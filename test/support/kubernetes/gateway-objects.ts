/** Objects of the Gateway API, and what their statuses say. */
import type { ClusterObject } from '#config';
import type { KubernetesObject } from './client.ts';
import { clusterObject } from './cluster-objects.ts';

export const gatewayApiVersion = 'gateway.networking.k8s.io/v1';

export const gatewayClass: KubernetesObject = {
  apiVersion: gatewayApiVersion,
  kind: 'GatewayClass',
  metadata: { name: 'frontdesk' },
  spec: { controllerName: 'gateway.local/gateway-controller' },
};

export function gateway(name: string, listeners: readonly object[], namespace = 'default'): KubernetesObject {
  const spec = { gatewayClassName: 'frontdesk', listeners };
  return { apiVersion: gatewayApiVersion, kind: 'Gateway', metadata: { name, namespace }, spec };
}

export const httpListener = { name: 'http', port: 80, protocol: 'HTTP' };

/** A route of the Gateway `edge`, for the host `<name>.example`. */
export function httpRoute(name: string, rules: readonly object[], namespace = 'default'): KubernetesObject {
  const parentRefs = [{ name: 'edge', namespace: 'default' }];
  const spec = { parentRefs, hostnames: [`${name}.example`], rules };
  return { apiVersion: gatewayApiVersion, kind: 'HTTPRoute', metadata: { name, namespace }, spec };
}

export function grant(
  name: string,
  from: readonly object[],
  to: readonly object[],
  namespace = 'default',
): KubernetesObject {
  return { apiVersion: gatewayApiVersion, kind: 'ReferenceGrant', metadata: { name, namespace }, spec: { from, to } };
}

/** An object as the reader of the cluster hands it over. */
export function objectOf({ kind, metadata: { name, namespace = '' }, ...rest }: KubernetesObject): ClusterObject {
  return clusterObject(kind, `${namespace}/${name}`, rest, gatewayApiVersion);
}

/** Like `httpRoute`, for calls of gRPC. */
export function grpcRoute(name: string, rules: readonly object[], namespace = 'default'): KubernetesObject {
  return { ...httpRoute(name, rules, namespace), kind: 'GRPCRoute' };
}

/** The same object with other members in its spec. */
export function withSpec(object: KubernetesObject, fields: object): KubernetesObject {
  return { ...object, spec: { ...Object(object['spec']), ...fields } };
}

export function serviceObject(
  name: string,
  ports: readonly object[] = [{ port: 80 }],
  { namespace = 'default', ...spec }: { readonly namespace?: string; readonly [member: string]: unknown } = {},
): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports, ...spec } };
}

/** A Secret with a certificate and its key in PEM format. */
export function tlsSecret(
  name: string,
  { cert, key }: { readonly cert: string; readonly key: string },
  namespace = 'default',
): KubernetesObject {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(cert), 'tls.key': base64(key) },
  };
}

/** The filter of a rule that names a RoutePolicy. */
export function policyFilter(name: string): object {
  return { type: 'ExtensionRef', extensionRef: { group: 'gateway.local', kind: 'RoutePolicy', name } };
}

interface Status {
  readonly conditions?: readonly Condition[];
  readonly listeners?: readonly (Conditions & { readonly name: string; readonly attachedRoutes: number })[];
  readonly parents?: readonly (Conditions & { readonly parentRef: { readonly name: string } })[];
}

interface Conditions {
  readonly conditions: readonly Condition[];
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

/** The conditions of an object, its listeners and its parents in one line each: `http: Accepted=True, 1 attached`. */
export function conditionsIn(object: KubernetesObject): readonly string[] {
  const { conditions = [], listeners = [], parents = [] } = (object['status'] ?? {}) as Status;
  return [
    ...(conditions.length > 0 ? [textOf(conditions)] : []),
    ...listeners.map(
      ({ name, attachedRoutes, conditions: own }) => `${name}: ${textOf(own)}, ${attachedRoutes} attached`,
    ),
    ...parents.map(({ parentRef, conditions: own }) => `${parentRef.name}: ${textOf(own)}`),
  ];
}

/** A condition that does not hold has its reason. */
function textOf(conditions: readonly Condition[]): string {
  return conditions
    .map(({ type, status, reason }) => (status === 'True' ? type : `${type}=${status} (${reason})`))
    .join(' ');
}
