/** Reads everything of a cluster once, for commands that check or explain it. */
import type { EndpointSliceObject, ServiceObject } from './addresses.ts';
import { type KubernetesApi, openApi } from './api/client.ts';
import type { Connection } from './api/connection.ts';
import { describeFailure } from './api/failure.ts';
import { findConnection } from './api/find-connection.ts';
import { type ClusterSource, namespacesOf } from './cluster.ts';
import { type ClusterObjects, clusterObjects } from './handover.ts';
import { listAll } from './read/list.ts';
import { isService, isSlice, type KeptObject, keepObject } from './read/objects.ts';
import { builtInResources, discoverKinds, listPath, placesOf, type Resource } from './read/resources.ts';

export interface ClusterContents {
  /** The namespace of frontdesk itself: that of its pod, or of the context. */
  readonly namespace: string;
  readonly objects: ClusterObjects;
  readonly services: readonly ServiceObject[];
  readonly slices: readonly EndpointSliceObject[];
}

/** Rejects with a message for the user if anything cannot be read. */
export async function readClusterOnce(source: ClusterSource): Promise<ClusterContents> {
  const connection = await findConnection(source);
  const api = await openApi(connection);
  try {
    const kept = await readAll(api, connection, source);
    const addresses = kept.flatMap(({ address }) => address ?? []);
    return {
      namespace: connection.namespace,
      objects: clusterObjects(kept),
      services: addresses.filter(isService),
      slices: addresses.filter(isSlice),
    };
  } finally {
    api.close();
  }
}

async function readAll(api: KubernetesApi, connection: Connection, source: ClusterSource): Promise<KeptObject[]> {
  const kinds = await described(discoverKinds(api, source), 'the kinds of the API server', undefined, connection);
  const resources = [...builtInResources(source), ...kinds];
  const reads = resources.flatMap((resource) =>
    placesOf(resource, namespacesOf(source, connection)).map((namespace) =>
      described(readOne(api, resource, namespace, source.gatewayDomain), resource.name, namespace, connection),
    ),
  );
  const results = await Promise.allSettled(reads);
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason.message)] : []));
  if (failures.length > 0) throw new Error([...new Set(failures)].join('\n'));
  return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
}

async function readOne(
  api: KubernetesApi,
  resource: Resource,
  namespace: string | undefined,
  gatewayDomain: string,
): Promise<KeptObject[]> {
  const kept: KeptObject[] = [];
  await listAll(api, listPath(resource, namespace), (item) => {
    const found = keepObject(item, resource, gatewayDomain, undefined);
    if (found !== undefined) kept.push(found.kept);
  });
  return kept;
}

async function described<T>(
  read: Promise<T>,
  resource: string,
  namespace: string | undefined,
  connection: Connection,
): Promise<T> {
  try {
    return await read;
  } catch (cause) {
    const message = describeFailure(cause, { resource, namespace }, connection);
    throw new Error(`${resource} cannot be read: ${message}`, { cause });
  }
}
