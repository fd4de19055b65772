/** What successive gateways share by name: the registry of clusters, and the leases that it is made of. */
import { equalPart, type Logger, silentLogger, sortedJson } from '#foundation';
import { createMachineGuard } from '#http';
import {
  type Cluster,
  type ClusterParts,
  type ClusterSnapshot,
  type ClusterSpec,
  type OpenCluster,
  openCluster,
} from './cluster.ts';
import type { Timer } from './health.ts';
import type { WithoutTracing } from './pool.ts';

export interface ClusterRegistryOptions {
  readonly logger?: Logger;
  /** Returns the time in milliseconds. */
  readonly clock?: () => number;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random?: () => number;
  readonly timer?: Timer;
  readonly withoutTracing?: WithoutTracing | undefined;
  /** The largest status line and headers of a response, in bytes. @default Node's limit, usually 16 KiB */
  readonly headerBytesMax?: number | undefined;
  /** How many threads have such a registry. Each gets an equal part of the circuit breakers' slots. @default 1 */
  readonly threads?: number | undefined;
}

export interface ClusterLease {
  readonly cluster: Cluster;
  /** Ends the lease. The last release closes the cluster after its current requests. A second call does nothing. */
  readonly release: () => void;
}

export interface ClusterRegistry {
  /**
   * Returns a lease of the cluster for a spec. Equal specs share connections, health and circuit breakers. Functions are
   * not compared: they depend only on the service, and the first ones are used. A new configuration must acquire its
   * clusters before the old one releases them.
   */
  readonly acquire: (spec: ClusterSpec) => ClusterLease;
  /** Returns the clusters that are in use. */
  readonly list: () => readonly Cluster[];
  /** Returns snapshots of the clusters that are in use. */
  readonly snapshot: () => readonly ClusterSnapshot[];
  /** Closes connections as they become idle, and the rest after `deadlineMs`. @default no deadline */
  readonly close: (deadlineMs?: number) => Promise<void>;
}

export function createClusters(options: ClusterRegistryOptions = {}): ClusterRegistry {
  const { logger = silentLogger, clock = () => performance.now(), random = Math.random, timer = unrefTimer } = options;
  const { withoutTracing, headerBytesMax, threads = 1 } = options;
  const machineGuard = createMachineGuard(clock);
  const parts: ClusterParts = { logger, clock, random, timer, withoutTracing, headerBytesMax, machineGuard };
  const released = new Set<OpenCluster>();
  const clusters = createLeases<OpenCluster>((open) => {
    released.add(open);
    void open.close().finally(() => released.delete(open));
  });
  let closing: Promise<void> | undefined;

  async function closeAll(deadlineMs: number | undefined): Promise<void> {
    const left = [...released, ...clusters.values()];
    const destroy = () => {
      for (const open of left) open.destroy();
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
      const { value, release } = clusters.acquire(keyOf(spec), () => openCluster(specOfThread(spec, threads), parts));
      return { cluster: value.cluster, release };
    },
    list: () => clusters.values().map(({ cluster }) => cluster),
    snapshot: () => clusters.values().map(({ cluster }) => cluster.snapshot()),
    close(deadlineMs?: number) {
      closing ??= closeAll(deadlineMs);
      return closing;
    },
  });
}

function specOfThread(spec: ClusterSpec, threads: number): ClusterSpec {
  if (threads === 1) return spec;
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries, maxUpgrades } = spec.circuitBreakers;
  const part = (bound: number) => equalPart(bound, threads);
  return {
    ...spec,
    circuitBreakers: {
      maxConnections: part(maxConnections),
      maxPendingRequests: part(maxPendingRequests),
      maxRequests: part(maxRequests),
      maxRetries: part(maxRetries),
      maxUpgrades: part(maxUpgrades),
    },
  };
}

/** Does not keep the process alive. */
const unrefTimer: Timer = (run, delayMs) => {
  const timeout = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timeout);
};

/** Serialises a spec without its functions, in a fixed order. */
function keyOf({ origins: _, whyEmpty: __, haveStrangersChosen: ___, ...spec }: ClusterSpec): string {
  const fields = Object.entries(spec).map(([name, value]) => `${name}=${textOf(value)}`);
  return fields.sort().join();
}

/** Caches the text of frozen objects, such as the defaults that most mappings share. */
const texts = new WeakMap<object, string>();

function textOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const known = texts.get(value);
  if (known !== undefined) return known;
  const text = sortedJson(value);
  if (Object.isFrozen(value)) texts.set(value, text);
  return text;
}

/** Values that several holders share by name. Each lives until its last holder releases it. */
export interface Leases<Value> {
  /** All holders of a name share one value, which is dropped when the last one releases it. */
  readonly acquire: (name: string, create: () => Value) => Lease<Value>;
  readonly get: (name: string) => Value | undefined;
  readonly values: () => readonly Value[];
}

export interface Lease<Value> {
  readonly value: Value;
  /** A second call does nothing. */
  readonly release: () => void;
}

/** Calls `onUnused` with each value that its last holder has released. */
export function createLeases<Value>(onUnused: (value: Value) => void = ignore): Leases<Value> {
  const shared = new Map<string, { readonly value: Value; holders: number }>();
  return Object.freeze({
    acquire(name: string, create: () => Value) {
      const entry = shared.get(name) ?? { value: create(), holders: 0 };
      entry.holders += 1;
      shared.set(name, entry);
      let isReleased = false;
      return {
        value: entry.value,
        release() {
          if (isReleased) return;
          isReleased = true;
          entry.holders -= 1;
          if (entry.holders > 0) return;
          shared.delete(name);
          onUnused(entry.value);
        },
      };
    },
    get: (name: string) => shared.get(name)?.value,
    values: () => Array.from(shared.values(), ({ value }) => value),
  });
}

function ignore(): void {}
