/** Services across HTTP as rows, each with the routes whose requests go there. */

import { conceal } from '#config';
import type { RouteSnapshot } from '#gateway';
import type { ClusterRow } from './diagnostics.ts';

export type Cluster = NonNullable<RouteSnapshot['transport']['cluster']>;

export interface KnownCluster {
  /** As the service; the second for the same service has ` #2` behind it. */
  readonly name: string;
  readonly service: string;
  readonly mappings: readonly string[];
}

/** In the order in which routes lead to them; then those that no route leads to, such as auth services. */
export type NameClusters = (
  routes: readonly RouteSnapshot[],
  others: readonly Cluster[],
) => ReadonlyMap<Cluster, KnownCluster>;

/** The routes of a configuration are one list for as long as it is in force: they are gone through when it is first seen. */
export function createNameClusters(): NameClusters {
  const namings = new WeakMap<readonly RouteSnapshot[], Naming>();
  return (routes, others) => {
    const naming = namings.get(routes) ?? namingOf(routes);
    namings.set(routes, naming);
    const unknown = others.filter((cluster) => !naming.known.has(cluster));
    return unknown.length === 0 ? naming.known : withOthers(naming, unknown);
  };
}

type Met = KnownCluster & { readonly mappings: string[] };

interface Naming {
  readonly known: Map<Cluster, Met>;
  /** How many there are for each service. */
  readonly counts: Map<string, number>;
}

function namingOf(routes: readonly RouteSnapshot[]): Naming {
  const naming: Naming = { known: new Map(), counts: new Map() };
  for (const {
    transport: { cluster },
    mapping,
  } of routes) {
    if (cluster === undefined) continue;
    const { mappings } = naming.known.get(cluster) ?? meet(naming, cluster, mapping.service);
    mappings.push(mapping.name);
  }
  return naming;
}

function withOthers({ known, counts }: Naming, others: readonly Cluster[]): Naming['known'] {
  const naming = { known: new Map(known), counts: new Map(counts) };
  for (const cluster of others) meet(naming, cluster, cluster.snapshot().service);
  return naming.known;
}

function meet({ known, counts }: Naming, cluster: Cluster, service: string): Met {
  const count = (counts.get(service) ?? 0) + 1;
  counts.set(service, count);
  const met = { name: count === 1 ? service : `${service} #${count}`, service, mappings: [] };
  known.set(cluster, met);
  return met;
}

const mappingsMax = 100;

export function clusterRow(cluster: Cluster, { name, service, mappings }: KnownCluster): ClusterRow {
  const { addresses, isUsed, circuit, activeRequests, overflows } = cluster.snapshot();
  return {
    name: conceal(name),
    service: conceal(service),
    addresses: addresses.map((address) => ({
      origin: conceal(address.origin),
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
