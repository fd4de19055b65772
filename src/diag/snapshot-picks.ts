/** What a filter picks: routes, their clusters and services, and others that hold it themselves. */

import { conceal } from '#config';
import type { GatewaySnapshot, RouteSnapshot } from '#gateway';
import type { Cluster, KnownCluster } from './snapshot-clusters.ts';

export interface Picks {
  readonly routes: readonly RouteSnapshot[];
  readonly clusters: readonly (readonly [Cluster, KnownCluster])[];
  readonly services: GatewaySnapshot['services'];
}

/** `filter` must not be empty. */
export function pick(
  filter: string,
  routes: readonly RouteSnapshot[],
  clusters: ReadonlyMap<Cluster, KnownCluster>,
  services: GatewaySnapshot['services'],
): Picks {
  const holds = holding(filter.toLowerCase());
  const picked = routes.filter(({ name, prefix, mapping, transport }) =>
    holds(name, prefix, mapping.service, transport.describe()),
  );
  const led = new Set(picked.map(({ transport }) => transport.cluster));
  const roles = new Set(picked.map(({ name }) => `Mapping ${name}`));
  return {
    routes: picked,
    clusters: [...clusters].filter(
      ([cluster, { name, mappings }]) =>
        led.has(cluster) || (mappings.length === 0 && holds(name, ...originsOf(cluster))),
    ),
    services: services.filter(({ role, service, target }) => roles.has(role) || holds(role, service, target())),
  };
}

/** It looks through no more than what is shown, or it would tell what is not. What is shown is only worked out where it may hold it. */
function holding(wanted: string): (...texts: readonly string[]) => boolean {
  const isShown = wanted.includes('…');
  return (...texts) =>
    texts.some(
      (text) => (isShown || text.toLowerCase().includes(wanted)) && conceal(text).toLowerCase().includes(wanted),
    );
}

function originsOf(cluster: Cluster): readonly string[] {
  return cluster.snapshot().addresses.map(({ origin }) => origin);
}
