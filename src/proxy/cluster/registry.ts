/** The clusters of one server: equal ones are shared, for as long as a gateway holds them. */
import { type Logger, silentLogger } from '#http';
import {
  type Cluster,
  type ClusterParts,
  type ClusterSnapshot,
  type ClusterSpec,
  type OpenCluster,
  openCluster,
} from './cluster.ts';
import type { WithoutTracing } from './connection.ts';
import type { Timer } from './health-check.ts';

export interface ClusterRegistryOptions {
  readonly logger?: Logger;
  /** Milliseconds. */
  readonly clock?: () => number;
  /** From 0 up to 1. */
  readonly random?: () => number;
  readonly timer?: Timer;
  readonly withoutTracing?: WithoutTracing | undefined;
}

export interface ClusterLease {
  readonly cluster: Cluster;
  /** After the last release health checks stop and the connections end with their requests. A second call does nothing. */
  readonly release: () => void;
}

export interface ClusterRegistry {
  /**
   * Equal specs share connections, health and circuit breakers; `origins` is taken to follow from the service, and the
   * first one is used. A new configuration must acquire before the old one releases.
   */
  readonly acquire: (spec: ClusterSpec) => ClusterLease;
  /** Those that are in use. */
  readonly list: () => readonly Cluster[];
  /** Of those that are in use. */
  readonly snapshot: () => readonly ClusterSnapshot[];
  /** Ends idle connections at once, and the others with their requests or after `deadlineMs`. @default waits without end */
  readonly close: (deadlineMs?: number) => Promise<void>;
}

interface SharedCluster extends OpenCluster {
  readonly key: string;
  leases: number;
}

export function createClusters(options: ClusterRegistryOptions = {}): ClusterRegistry {
  const { logger = silentLogger, clock = () => performance.now(), random = Math.random, timer = unrefTimer } = options;
  const parts: ClusterParts = { logger, clock, random, timer, withoutTracing: options.withoutTracing };
  const clusters = new Map<string, SharedCluster>();
  const leaving = new Set<SharedCluster>();
  let closing: Promise<void> | undefined;

  function open(key: string, spec: ClusterSpec): SharedCluster {
    const shared = { key, ...openCluster(spec, parts), leases: 0 };
    clusters.set(key, shared);
    return shared;
  }

  function release(shared: SharedCluster): void {
    shared.leases -= 1;
    if (shared.leases > 0) return;
    clusters.delete(shared.key);
    leaving.add(shared);
    void shared.close().finally(() => leaving.delete(shared));
  }

  async function closeAll(deadlineMs: number | undefined): Promise<void> {
    const left = [...leaving, ...clusters.values()];
    const destroy = () => {
      for (const shared of left) shared.destroy();
    };
    const deadline = deadlineMs === undefined ? undefined : setTimeout(destroy, deadlineMs);
    try {
      await Promise.all(left.map(({ close }) => close()));
    } finally {
      clearTimeout(deadline);
    }
  }

  return Object.freeze({
    acquire(spec: ClusterSpec) {
      const key = keyOf(spec);
      const shared = clusters.get(key) ?? open(key, spec);
      shared.leases += 1;
      let isReleased = false;
      return Object.freeze({
        cluster: shared.cluster,
        release() {
          if (!isReleased) release(shared);
          isReleased = true;
        },
      });
    },
    list: () => [...clusters.values()].map(({ cluster }) => cluster),
    snapshot: () => [...clusters.values()].map(({ cluster }) => cluster.snapshot()),
    close(deadlineMs?: number) {
      closing ??= closeAll(deadlineMs);
      return closing;
    },
  });
}

/** Keeps no process alive. */
const unrefTimer: Timer = (run, delayMs) => {
  const timeout = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timeout);
};

/** Everything in a spec but `origins`, in a fixed order. */
function keyOf({ origins: _, ...spec }: ClusterSpec): string {
  const fields = Object.entries(spec).sort(byName);
  return fields.map(([name, value]) => `${name}=${textOf(value)}`).join();
}

/** Mappings without rules of their own share the defaults, whose text is made once. */
const texts = new WeakMap<object, string>();

function textOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const known = texts.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value, withSortedKeys);
  if (Object.isFrozen(value)) texts.set(value, text);
  return text;
}

function withSortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(byName));
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}
