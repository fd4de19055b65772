/** Reads remote services as rows, with the routes that use them. */
import type { RouteSnapshot } from '#gateway';
import { isUnhealthy } from '../browser/verdict.js';
import type { ClusterRow } from '../diagnostics.ts';

export type Cluster = NonNullable<RouteSnapshot['transport']['cluster']>;

export interface KnownCluster {
  /** The name of the service. ` #2` is appended for its second cluster, and so on. */
  readonly name: string;
  readonly service: string;
  readonly mappings: readonly string[];
}

/** Names the clusters in the order of the routes that use them, followed by `others` such as auth services. */
export function nameClusters(
  routes: readonly RouteSnapshot[],
  others: readonly Cluster[],
): ReadonlyMap<Cluster, KnownCluster> {
  const known = new Map<Cluster, KnownCluster & { readonly mappings: string[] }>();
  const counts = new Map<string, number>();

  function add(cluster: Cluster, service: string) {
    const count = (counts.get(service) ?? 0) + 1;
    counts.set(service, count);
    const added = { name: count === 1 ? service : `${service} #${count}`, service, mappings: [] };
    known.set(cluster, added);
    return added;
  }

  for (const { transport, mapping } of routes) {
    const { cluster } = transport;
    if (cluster !== undefined) (known.get(cluster) ?? add(cluster, mapping.service)).mappings.push(mapping.name);
  }
  for (const cluster of others) if (!known.has(cluster)) add(cluster, cluster.snapshot().service);
  return known;
}

const mappingsMax = 100;

export function clusterRow(cluster: Cluster, { name, service, mappings }: KnownCluster): ClusterRow {
  const { addresses, isUsed, circuit, activeRequests, activeUpgrades, overflows } = cluster.snapshot();
  return {
    name,
    service,
    addresses: addresses.map((address) => ({
      origin: address.origin,
      health: address.health,
      active_requests: address.activeRequests,
    })),
    used: isUsed,
    circuit,
    active_requests: activeRequests,
    active_upgrades: activeUpgrades,
    overflows,
    mappings: mappings.slice(0, mappingsMax),
    mappings_total: mappings.length,
  };
}

/** Whether all addresses are unhealthy or ejected. */
export function isUnusable(cluster: Cluster): boolean {
  const { addresses } = cluster.snapshot();
  return addresses.every(({ health }) => isUnhealthy(health));
}
