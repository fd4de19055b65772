/** A cluster with a Gateway for HTTP, whose objects are resolved and accepted as the server does it. */
import assert from 'node:assert/strict';
import {
  byAge,
  type ClusterObject,
  createGatewayApi,
  createObjectAcceptance,
  type Mapping,
  type ServedCertificate,
} from '#config';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import {
  conditionsIn,
  gateway,
  gatewayClass,
  grant,
  httpListener,
  httpRoute,
  serviceObject,
} from '../../support/kubernetes/gateway-objects.ts';

type GatewayApiOptions = Parameters<typeof createGatewayApi>[0] & {
  readonly mappingsMax?: number;
};

const usualOptions: GatewayApiOptions = {
  trusted: ['default'],
  addresses: ['192.0.2.1'],
  ports: { http: [80, 8080], https: [443, 8443] },
};

export interface Resolved {
  readonly mappings: readonly Mapping[];
  readonly routes: readonly ClusterObject[];
  readonly certificates: readonly ServedCertificate[];
  /** `HTTPRoute default/shop: there is no Service default/orders`. */
  readonly notices: readonly string[];
  /** What the acceptance refuses. */
  readonly errors: readonly string[];
  /** The conditions in the status of an object, as `conditionsIn` writes them. Undefined without a status. */
  readonly conditionsOf: (object: KubernetesObject) => readonly string[] | undefined;
  readonly statusOf: (object: KubernetesObject) => unknown;
}

/** Returns a function that resolves and accepts all objects of the cluster, again and again, as the server does it. */
export function createGateways(options: Partial<GatewayApiOptions> = {}) {
  const whole = { ...usualOptions, ...options };
  const gatewayApi = createGatewayApi(whole);
  const acceptance = createObjectAcceptance({
    gatewayDomain: 'gateway.local',
    directory: '.',
    strictPaths: true,
    findUnservable: () => [],
    trusted: whole.trusted,
    mappingsMax: whole.mappingsMax,
    renewRoute: gatewayApi.renew,
  });

  return async function resolve(objects: readonly ClusterObject[], records: readonly ClusterObject[] = []) {
    const { statusesWith, ...resolved } = await gatewayApi.resolve(objects, records);
    const accepted = await acceptance.accept([...records, ...resolved.routes].sort(byAge));
    return { ...resolved, accepted, statuses: statusesWith(accepted.verdicts) };
  };
}

/** Like `createGateways`, for objects as a manifest has them. Each is as old as its first appearance. */
export function createCluster(options: Partial<GatewayApiOptions> = {}) {
  const resolveAll = createGateways(options);
  const createdAt = new Map<string, string>();

  function objectOf({ apiVersion, kind, metadata, ...rest }: KubernetesObject): ClusterObject {
    const { name, namespace = '' } = metadata;
    const uid = uidOf({ kind, metadata });
    if (!createdAt.has(uid)) createdAt.set(uid, new Date(createdAt.size * 1000).toISOString());
    const value = { metadata, ...rest };
    return { apiVersion, kind, namespace, name, uid, createdAt: createdAt.get(uid) ?? '', value };
  }

  return async function resolve(...objects: readonly KubernetesObject[]): Promise<Resolved> {
    const all = objects.map(objectOf);
    const isRecord = ({ apiVersion }: ClusterObject) => apiVersion === 'gateway.local/v1';
    const records = all.filter(isRecord);
    const others = all.filter((object) => !isRecord(object));
    const { routes, certificates, notices, accepted, statuses } = await resolveAll(others, records);
    const statusOf = (object: KubernetesObject) => statuses.find((one) => one.object.uid === uidOf(object))?.status;
    return {
      mappings: accepted.records.mappings,
      routes,
      certificates,
      notices: notices.map(({ source, message }) => `${source.file}: ${message}`),
      errors: accepted.verdicts.flatMap(({ errors }) => errors.map(({ message }) => message)),
      conditionsOf: (object) => {
        const status = statusOf(object);
        return status && conditionsIn({ ...object, status });
      },
      statusOf,
    };
  };
}

function uidOf({ kind, metadata: { namespace = '', name } }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  return `${kind} ${namespace}/${name}`;
}

export const orders = { name: 'orders', port: 80 };

/** A class with the Gateway `edge` for HTTP, and the Services `orders` and `cars`. */
export const edge: readonly KubernetesObject[] = [
  gatewayClass,
  gateway('edge', [httpListener]),
  serviceObject('orders'),
  serviceObject('cars'),
];

/** A ReferenceGrant of a namespace for objects of the Gateway API in another one. */
export function grantIn(namespace: string, from: object, to: object): KubernetesObject {
  return grant('grant', [{ group: 'gateway.networking.k8s.io', ...from }], [to], namespace);
}

/** The Mappings of a valid route with these rules, which call `orders` unless they say otherwise. */
export async function mappingsOf(
  rules: readonly object[],
  { routeOf = httpRoute, others = edge }: { routeOf?: typeof httpRoute; others?: readonly KubernetesObject[] } = {},
): Promise<readonly Mapping[]> {
  const route = routeOf(
    'shop',
    rules.map((rule) => ({ backendRefs: [orders], ...rule })),
  );
  const { mappings, errors } = await createCluster()(...others, route);
  assert.deepEqual(errors, []);
  return mappings;
}
