/** A cluster that a test follows: what it has handed over, and ways to wait for more. */
import assert from 'node:assert/strict';
import type { ClusterObject } from '#config';
import { type AddressChanges, type Cluster, type ClusterObjects, type ClusterOptions, openCluster } from '#kubernetes';
import type { TestServers } from '../serve.ts';
import { eventually } from '../waiting.ts';

export interface FollowedCluster extends Cluster {
  /** The records that each delivery had, as `Service shop/orders`. */
  readonly deliveries: readonly (readonly string[])[];
  readonly addressChanges: readonly AddressChanges[];
  /** The records of the last delivery. */
  readonly objects: () => readonly ClusterObject[];
  /** What the last delivery had for the Gateway API. */
  readonly gatewayApi: () => readonly ClusterObject[];
  /** Waits until the last delivery has exactly these objects, in any order. */
  readonly waitFor: (...names: readonly string[]) => Promise<void>;
  /** Waits until a fault matches. */
  readonly waitForFault: (pattern: RegExp) => Promise<void>;
  readonly log: readonly string[];
}

/** Closes it at the end. */
export async function followCluster(
  servers: TestServers,
  kubeconfig: string,
  options: Partial<ClusterOptions> = {},
): Promise<FollowedCluster> {
  const deliveries: string[][] = [];
  const addressChanges: AddressChanges[] = [];
  const log: string[] = [];
  let last: ClusterObjects = { records: [], gatewayApi: [] };
  const line = (fields: object, message = '') => void log.push(`${message} ${JSON.stringify(fields)}`);
  const cluster = await openCluster({
    environment: { KUBECONFIG: kubeconfig },
    gatewayDomain: 'gateway.local',
    namespaces: [],
    logger: { info: line, warn: line, error: line },
    onObjects(all) {
      last = all;
      deliveries.push(all.records.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`));
    },
    onAddresses: (changes) => void addressChanges.push(changes),
    ...options,
  });
  servers.later(cluster.close);
  return {
    ...cluster,
    deliveries,
    addressChanges,
    log,
    objects: () => last.records,
    gatewayApi: () => last.gatewayApi,
    waitFor: (...names) => eventually(() => assert.deepEqual([...(deliveries.at(-1) ?? [])].sort(), [...names].sort())),
    waitForFault: (pattern) =>
      eventually(() =>
        assert.match(
          cluster
            .faults()
            .map(({ resource, message }) => `${resource}: ${message}`)
            .join('\n'),
          pattern,
        ),
      ),
  };
}
