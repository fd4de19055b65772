/** The resources that are read: those of Kubernetes itself, and the kinds that the API server says it has. */
import { ambassadorDomain, gatewayApiGroup, ownGroup } from '#config';
import { isMap } from '#foundation';
import type { KubernetesApi } from '../api/client.ts';
import { isUnknownResource } from '../api/failure.ts';
import { gatewayApiPlurals, gatewayApiVersions } from '../gateway-api.ts';

export interface Resource {
  /** `mappings.gateway.local`, or `services` for the core. */
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  /** `services` and `ingresses` may have records in an annotation, a `record` is one. */
  readonly use: 'services' | 'ingresses' | 'slices' | 'record' | 'gateway-api' | 'namespaces' | 'secrets';
  /** Whether frontdesk writes the status of its objects. */
  readonly hasStatus: boolean;
  /** Whether the Gateway API needs its objects, for what else they may be used. */
  readonly isForGatewayApi: boolean;
  /** False for a kind whose objects belong to the whole cluster. */
  readonly isNamespaced: boolean;
  /** Only these objects are read: `type=kubernetes.io/tls`. Undefined for all. */
  readonly fieldSelector: string | undefined;
}

export interface ResourceOptions {
  readonly gatewayDomain: string;
  /** Whether EndpointSlices are read. @default true */
  readonly readsEndpoints?: boolean | undefined;
  /** Whether the kinds of the Gateway API are read, and what they refer to. @default false */
  readonly readsGatewayApi?: boolean | undefined;
}

/** The resources that every cluster has. */
export function builtInResources(options: ResourceOptions): readonly Resource[] {
  const { gatewayDomain, readsEndpoints = true, readsGatewayApi = false } = options;
  return [
    { ...builtIn('services', 'v1', 'Service', 'services'), isForGatewayApi: readsGatewayApi },
    ...(readsEndpoints ? [builtIn('slices', 'discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices')] : []),
    ...(gatewayDomain === ambassadorDomain
      ? [builtIn('ingresses', 'networking.k8s.io/v1', 'Ingress', 'ingresses')]
      : []),
    ...(readsGatewayApi ? resourcesOfGatewayApi : []),
  ];
}

function builtIn(use: Resource['use'], apiVersion: string, kind: string, plural: string): Resource {
  return { name: nameOf(plural, apiVersion), apiVersion, kind, plural, use, ...usual };
}

const usual = { hasStatus: false, isForGatewayApi: false, isNamespaced: true, fieldSelector: undefined } as const;

/** Which namespaces a Gateway lets attach routes, and its certificates. */
const resourcesOfGatewayApi: readonly Resource[] = [
  { ...builtIn('namespaces', 'v1', 'Namespace', 'namespaces'), isForGatewayApi: true, isNamespaced: false },
  {
    ...builtIn('secrets', 'v1', 'Secret', 'secrets'),
    isForGatewayApi: true,
    fieldSelector: 'type=kubernetes.io/tls',
  },
];

function nameOf(plural: string, apiVersion: string): string {
  return apiVersion.includes('/') ? `${plural}.${apiVersion.split('/')[0]}` : plural;
}

/** Returns the kinds that are records or of the Gateway API. Their definitions may be installed at any time. */
export async function discoverKinds(
  api: KubernetesApi,
  { gatewayDomain, readsGatewayApi = false }: ResourceOptions,
): Promise<readonly Resource[]> {
  const groups = [
    ownGroup,
    ...(gatewayDomain === ambassadorDomain ? [ambassadorDomain] : []),
    ...(readsGatewayApi ? [gatewayApiGroup] : []),
  ];
  return (await Promise.all(groups.map((group) => kindsOfGroup(api, group)))).flat();
}

/** Each kind in the first version that has it. */
async function kindsOfGroup(api: KubernetesApi, group: string): Promise<readonly Resource[]> {
  const found = new Map<string, Resource>();
  for (const version of await versionsOf(api, group)) {
    for (const served of await kindsOf(api, `${group}/${version}`)) {
      const resource = resourceOf(served, group, version);
      if (resource !== undefined && !found.has(served.kind)) found.set(served.kind, resource);
    }
  }
  return [...found.values()];
}

/** Undefined for a kind that is not read. */
function resourceOf(
  { kind, name, namespaced, verbs }: ApiResource,
  group: string,
  version: string,
): Resource | undefined {
  if (!verbs.includes('list') || !verbs.includes('watch')) return undefined;
  const head = { name: `${name}.${group}`, apiVersion: `${group}/${version}`, kind, plural: name, ...usual };
  if (group === gatewayApiGroup) {
    if (gatewayApiPlurals[kind] === undefined) return undefined;
    return { ...head, use: 'gateway-api', hasStatus: true, isForGatewayApi: true, isNamespaced: namespaced };
  }
  return namespaced ? { ...head, use: 'record', hasStatus: group === ownGroup } : undefined;
}

/** In the order in which they are tried. Empty for a group that is not installed. */
async function versionsOf(api: KubernetesApi, group: string): Promise<readonly string[]> {
  const served = await getOrNothing(api, `/apis/${group}`);
  const list = isMap(served) && Array.isArray(served['versions']) ? served['versions'].filter(isMap) : [];
  const versions = list.map(({ version }) => String(version));
  if (group === gatewayApiGroup) return gatewayApiVersions.filter((version) => versions.includes(version));
  const rankOf = group === ambassadorDomain ? rankOfAmbassador : numberIn;
  return versions.sort((one, other) => rankOf(other) - rankOf(one));
}

/**
 * A cluster that has `v2` stores it, and without loss. For any other version, the API server would ask Emissary's webhook
 * to convert each object, or, without the webhook, drop the fields that this version does not have.
 */
function rankOfAmbassador(version: string): number {
  return version === 'v2' ? Infinity : numberIn(version);
}

function numberIn(version: string): number {
  return Number(/\d+/.exec(version)?.[0] ?? 0);
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

/** Without sub-resources, such as `mappings/status`. */
async function kindsOf(api: KubernetesApi, apiVersion: string): Promise<readonly ApiResource[]> {
  const list = await getOrNothing(api, `/apis/${apiVersion}`);
  const resources = isMap(list) && Array.isArray(list['resources']) ? (list['resources'] as ApiResource[]) : [];
  return resources.filter(({ name }) => !name.includes('/'));
}

async function getOrNothing(api: KubernetesApi, path: string): Promise<unknown> {
  try {
    return await api.get(path);
  } catch (error) {
    if (isUnknownResource(error)) return undefined;
    throw error;
  }
}

/** The path of the list of a resource, in one namespace or in all. */
export function listPath({ apiVersion, plural, fieldSelector }: Resource, namespace: string | undefined): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const path = `${base}${place}/${plural}`;
  return fieldSelector === undefined ? path : withQuery(path, `fieldSelector=${encodeURIComponent(fieldSelector)}`);
}

/** Adds to the query of a path, which may have one. */
export function withQuery(path: string, query: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/**
 * Once in each of these namespaces, or once in all, which is the only way to read what belongs to the whole cluster.
 * `namespaces` is empty for all.
 */
export function placesOf({ isNamespaced }: Resource, namespaces: readonly string[]): readonly (string | undefined)[] {
  return isNamespaced && namespaces.length > 0 ? namespaces : [undefined];
}
