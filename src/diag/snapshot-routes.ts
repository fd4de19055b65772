/** Routes as rows, in the order in which they are tried, each with what came of its requests. */

import { conceal } from '#config';
import type { RouteSnapshot, RouteTraffic } from '#gateway';
import type { RouteRow } from './diagnostics.ts';
import type { TrafficRow } from './diagnostics-traffic.ts';
import { type Cluster, isUnfit, type KnownCluster } from './snapshot-clusters.ts';
import { type TrafficTime, trafficRow } from './snapshot-traffic.ts';

export interface RouteRowParts {
  readonly clusters: ReadonlyMap<Cluster, KnownCluster>;
  readonly trafficOf: (name: string) => RouteTraffic | undefined;
  readonly time: TrafficTime;
}

export function routeRow(route: RouteSnapshot, { clusters, trafficOf, time }: RouteRowParts): RouteRow {
  const { name, prefix, mapping, transport, labels, source } = route;
  const { cluster } = transport;
  const traffic = trafficRow(trafficOf(name), cluster !== undefined, time);
  const known = cluster && clusters.get(cluster);
  return {
    name,
    prefix,
    conditions: route.conditions(),
    rewrite: mapping.rewrite,
    service: conceal(mapping.service),
    target: conceal(transport.describe()),
    authenticated: route.auth !== undefined,
    labels: labels.map((group) => group.labels.map((label) => label.name).join(' + ')),
    timeout_ms: transport.timeouts?.timeoutMs,
    source: source && `${source.file}:${source.line}`,
    internal: route.internal === true,
    cluster: known && conceal(known.name),
    health: healthOf(traffic, cluster),
    traffic,
  };
}

/** Ambassador's: the share of answers below 500. */
function healthOf({ recent }: TrafficRow, cluster: Cluster | undefined): RouteRow['health'] {
  if (cluster !== undefined && isUnfit(cluster)) return 'failing';
  if (recent === undefined) return 'unknown';
  const good = 1 - recent.error_share;
  if (good < 0.7) return 'failing';
  return good < 0.9 ? 'degraded' : 'ok';
}
