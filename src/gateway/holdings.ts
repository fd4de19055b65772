/** What one gateway holds of what it shares with others, clusters and counts: taken when it is made, given back when it closes. */
import { type AuthService, type Mapping, mappingDefaults } from '#config';
import type { Cluster, ClusterRegistry, ClusterSpec } from '#proxy';
import type { RouteTraffic } from './route-traffic.ts';
import type { Target } from './target.ts';
import type { Traffic } from './traffic.ts';

export type RemoteTarget = Extract<Target, { kind: 'remote' }>;

export interface Holdings {
  readonly ofMapping: (mapping: Mapping, target: RemoteTarget, connectTimeoutMs: number) => Cluster;
  readonly ofAuthService: (record: AuthService, target: RemoteTarget) => Cluster;
  /** Of the route of that name. */
  readonly ofTraffic: (name: string) => RouteTraffic;
  /** Gives all of them back. Again, it does nothing. */
  readonly release: () => void;
}

export function createHoldings(clusters: ClusterRegistry, traffic: Traffic): Holdings {
  const releases: (() => void)[] = [];

  function hold(spec: ClusterSpec): Cluster {
    const { cluster, release } = clusters.acquire(spec);
    releases.push(release);
    return cluster;
  }

  return Object.freeze({
    ofMapping(mapping: Mapping, { origins, serverName }: RemoteTarget, connectTimeoutMs: number) {
      const { service, circuitBreakers, healthCheck, outlierDetection, loadBalancer } = mapping;
      return hold({
        service,
        origins,
        serverName,
        connectTimeoutMs,
        circuitBreakers,
        healthCheck,
        outlierDetection,
        loadBalancer,
      });
    },
    ofAuthService({ authService, timeoutMs }: AuthService, { origins, serverName }: RemoteTarget) {
      const { circuitBreakers, healthCheck, outlierDetection, loadBalancer } = mappingDefaults;
      const how = { circuitBreakers, healthCheck, outlierDetection, loadBalancer };
      return hold({ service: authService, origins, serverName, connectTimeoutMs: timeoutMs, ...how });
    },
    ofTraffic(name: string) {
      releases.push(() => traffic.release(name));
      return traffic.hold(name);
    },
    release() {
      for (const release of releases.splice(0)) release();
    },
  });
}
