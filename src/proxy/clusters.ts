/** The clusters of one server: equal ones are one, for as long as anybody holds them. */
import type { HealthCheck } from '#config';
import { type Logger, silentLogger } from '#http';
import type { Cluster, ClusterSnapshot, ClusterSpec } from './cluster.ts';
import { deferCluster } from './deferred-cluster.ts';
import type { Untraced } from './lane.ts';
import type { ClusterParts, OpenCluster } from './open-cluster.ts';
import { type Timer, unrefTimer } from './timer.ts';

export interface ClustersOptions {
  readonly logger?: Logger;
  /** Milliseconds. */
  readonly clock?: () => number;
  /** From 0 up to 1. */
  readonly random?: () => number;
  readonly timer?: Timer;
  readonly untraced?: Untraced | undefined;
}

export interface ClusterLease {
  readonly cluster: Cluster;
  /** Once the last holder has released it, health checks stop and its connections end with their exchanges. Again, it does nothing. */
  readonly release: () => void;
}

export interface ClusterRegistry {
  /**
   * Specs that say the same share connections, health and circuit breakers; `origins` is taken to follow from the
   * service, and the first holder's is asked. A new configuration is to acquire before the old one releases.
   */
  readonly acquire: (spec: ClusterSpec) => ClusterLease;
  /** Those that are held. */
  readonly list: () => readonly Cluster[];
  /** Of those that are held. */
  readonly snapshot: () => readonly ClusterSnapshot[];
  /** Ends idle connections at once and waits for the others, which end with their exchanges; again, it waits for the same. */
  readonly close: () => Promise<void>;
}

interface Shared extends OpenCluster {
  readonly key: string;
  holders: number;
}

export function createClusters(options: ClustersOptions = {}): ClusterRegistry {
  const { logger = silentLogger, clock = () => performance.now(), random = Math.random, timer = unrefTimer } = options;
  const parts: ClusterParts = { logger, clock, random, timer, untraced: options.untraced };
  const held = new Map<string, Shared>();
  const leaving = new Set<Promise<void>>();
  let closing: Promise<unknown> | undefined;

  function open(key: string, spec: ClusterSpec): Shared {
    const { cluster, close } = deferCluster(spec, parts);
    const shared = { key, cluster, close, holders: 0 };
    held.set(key, shared);
    return shared;
  }

  function letGo(shared: Shared): void {
    shared.holders -= 1;
    if (shared.holders > 0) return;
    held.delete(shared.key);
    const closed = shared.close().finally(() => leaving.delete(closed));
    leaving.add(closed);
  }

  return Object.freeze({
    acquire(spec: ClusterSpec) {
      const key = keyOf(spec);
      const shared = held.get(key) ?? open(key, spec);
      shared.holders += 1;
      let isHeld = true;
      return Object.freeze({
        cluster: shared.cluster,
        release() {
          if (isHeld) letGo(shared);
          isHeld = false;
        },
      });
    },
    list: () => [...held.values()].map(({ cluster }) => cluster),
    snapshot: () => [...held.values()].map(({ cluster }) => cluster.snapshot()),
    async close() {
      closing ??= Promise.all([...leaving, ...[...held.values()].map((shared) => shared.close())]);
      await closing;
    },
  });
}

/**
 * All that a spec says but for `origins`, in a fixed order: numbers, then names, in which there is no space. Written out,
 * since there may be thousands of mappings to load.
 */
function keyOf(spec: ClusterSpec): string {
  const { service, serverName, connectTimeoutMs, loadBalancer, healthCheck } = spec;
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries } = spec.circuitBreakers;
  const { consecutive5xx, baseEjectionTimeMs, maxEjectionPercent } = spec.outlierDetection;
  const limits = `${maxConnections} ${maxPendingRequests} ${maxRequests} ${maxRetries}`;
  const outliers = `${consecutive5xx} ${baseEjectionTimeMs} ${maxEjectionPercent}`;
  const health = healthCheck === undefined ? '' : JSON.stringify(keyPartsOf(healthCheck));
  return `${connectTimeoutMs} ${loadBalancer} ${limits} ${outliers} ${service} ${serverName ?? ''} ${health}`;
}

function keyPartsOf({ path, hostname, timeoutMs, intervalMs, expectedStatuses, ...thresholds }: HealthCheck) {
  const { unhealthyThreshold, healthyThreshold } = thresholds;
  const statuses = expectedStatuses.flatMap(({ min, max }) => [min, max]);
  return [path, hostname, timeoutMs, intervalMs, unhealthyThreshold, healthyThreshold, statuses];
}
