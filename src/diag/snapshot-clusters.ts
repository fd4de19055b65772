/** Services across HTTP as rows, each with the routes whose requests go there. */
import type { Route } from '#gateway';
import { concealText } from './conceal-text.ts';
import type { ClusterRow } from './diagnostics.ts';

export type Cluster = NonNullable<Route['cluster']>;

export interface KnownCluster {
  /** As the service; the second for the same service has ` #2` behind it. */
  readonly name: string;
  readonly service: string;
  readonly mappings: readonly string[];
}

/** In the order in which routes lead to them; then those that no route leads to, such as auth services. */
export function knownClusters(
  routes: readonly Route[],
  others: readonly Cluster[],
): ReadonlyMap<Cluster, KnownCluster> {
  const known = new Map<Cluster, KnownCluster & { readonly mappings: string[] }>();
  const counts = new Map<string, number>();

  function meet(cluster: Cluster, service: string) {
    const count = (counts.get(service) ?? 0) + 1;
    counts.set(service, count);
    const met = { name: count === 1 ? service : `${service} #${count}`, service, mappings: [] };
    known.set(cluster, met);
    return met;
  }

  for (const { cluster, mapping } of routes) {
    if (cluster === undefined) continue;
    const { mappings } = known.get(cluster) ?? meet(cluster, mapping.service);
    mappings.push(mapping.name);
  }
  for (const cluster of others) if (!known.has(cluster)) meet(cluster, cluster.snapshot().service);
  return known;
}

const mappingsMax = 100;

export function clusterRow(cluster: Cluster, { name, service, mappings }: KnownCluster): ClusterRow {
  const { addresses, isUsed, circuit, activeRequests, overflows } = cluster.snapshot();
  return {
    name: concealText(name),
    service: concealText(service),
    addresses: addresses.map((address) => ({
      origin: concealText(address.origin),
      health: address.health,
      active_requests: address.activeRequests,
    })),
    used: isUsed,
    circuit,
    active_requests: activeRequests,
    overflows,
    mappings: mappings.slice(0, mappingsMax),
    mappings_total: mappings.length,
  };
}

/** No address that a request should be sent to. */
export function isUnfit(cluster: Cluster): boolean {
  const { addresses } = cluster.snapshot();
  return addresses.every(({ health }) => health === 'unhealthy' || health === 'ejected');
}
