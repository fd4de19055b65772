/** What one gateway holds of the clusters that it shares with others: taken when it is made, given back when it closes. */
import { type AuthService, type Mapping, mappingDefaults } from '#config';
import type { Cluster, ClusterSpec, Clusters } from '#proxy';
import type { Target } from './target.ts';

export type RemoteTarget = Extract<Target, { kind: 'remote' }>;

export interface Holdings {
  readonly ofMapping: (mapping: Mapping, target: RemoteTarget, connectTimeoutMs: number) => Cluster;
  readonly ofAuthService: (record: AuthService, target: RemoteTarget) => Cluster;
  /** Gives all of them back. Again, it does nothing. */
  readonly release: () => void;
}

export function createHoldings(clusters: Clusters): Holdings {
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
    release() {
      for (const release of releases.splice(0)) release();
    },
  });
}
