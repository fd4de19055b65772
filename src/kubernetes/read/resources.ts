/** The resources that are read: those of Kubernetes itself, and the kinds that the API server says it has. */
import { ambassadorDomain, ownGroup } from '#config';
import { isMap } from '#foundation';
import type { KubernetesApi } from '../api/client.ts';
import { isUnknownResource } from '../api/failure.ts';

export interface Resource {
  /** `mappings.gateway.local`, or `services` for the core. */
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  /** `services` and `ingresses` may have records in an annotation, a `record` is one. */
  readonly use: 'services' | 'ingresses' | 'slices' | 'record';
  /** Whether frontdesk writes the status of its objects. */
  readonly hasStatus: boolean;
}

export interface ResourceOptions {
  readonly gatewayDomain: string;
  /** Whether EndpointSlices are read. @default true */
  readonly readsEndpoints?: boolean | undefined;
}

/** The resources that every cluster has. */
export function builtInResources({ gatewayDomain, readsEndpoints = true }: ResourceOptions): readonly Resource[] {
  return [
    builtIn('services', 'v1', 'Service', 'services'),
    ...(readsEndpoints ? [builtIn('slices', 'discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices')] : []),
    ...(gatewayDomain === ambassadorDomain
      ? [builtIn('ingresses', 'networking.k8s.io/v1', 'Ingress', 'ingresses')]
      : []),
  ];
}

function builtIn(use: Resource['use'], apiVersion: string, kind: string, plural: string): Resource {
  return { name: nameOf(plural, apiVersion), apiVersion, kind, plural, use, hasStatus: false };
}

function nameOf(plural: string, apiVersion: string): string {
  return apiVersion.includes('/') ? `${plural}.${apiVersion.split('/')[0]}` : plural;
}

/** Returns the kinds that are records. Their definitions may be installed at any time. */
export async function discoverKinds(
  api: KubernetesApi,
  { gatewayDomain }: ResourceOptions,
): Promise<readonly Resource[]> {
  const groups = gatewayDomain === ambassadorDomain ? [ownGroup, ambassadorDomain] : [ownGroup];
  return (await Promise.all(groups.map((group) => kindsOfGroup(api, group)))).flat();
}

/** Each kind in the first version that has it. */
async function kindsOfGroup(api: KubernetesApi, group: string): Promise<readonly Resource[]> {
  const found = new Map<string, Resource>();
  for (const version of await versionsOf(api, group)) {
    const apiVersion = `${group}/${version}`;
    for (const { kind, name, namespaced, verbs } of await kindsOf(api, apiVersion)) {
      if (found.has(kind) || !namespaced || !verbs.includes('list') || !verbs.includes('watch')) continue;
      const resource = { name: `${name}.${group}`, apiVersion, kind, plural: name, use: 'record' as const };
      found.set(kind, { ...resource, hasStatus: group === ownGroup });
    }
  }
  return [...found.values()];
}

/** In the order in which they are tried. Empty for a group that is not installed. */
async function versionsOf(api: KubernetesApi, group: string): Promise<readonly string[]> {
  const served = await getOrNothing(api, `/apis/${group}`);
  const versions = isMap(served) && Array.isArray(served['versions']) ? served['versions'].filter(isMap) : [];
  const rankOf = group === ambassadorDomain ? rankOfAmbassador : numberIn;
  return versions.map(({ version }) => String(version)).sort((one, other) => rankOf(other) - rankOf(one));
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
export function listPath({ apiVersion, plural }: Resource, namespace: string | undefined): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === undefined
    ? `${base}/${plural}`
    : `${base}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}
