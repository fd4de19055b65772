/** Follows a cluster: hands over its records and its addresses whenever they change, and says what cannot be read. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '#foundation';
import { type KubernetesApi, openApi } from './api/client.ts';
import type { Connection } from './api/connection.ts';
import { describeFailure, type FailedResource } from './api/failure.ts';
import { type ConnectionOptions, findConnection } from './api/find-connection.ts';
import { backoffMs } from './backoff.ts';
import { createFaults, type ReadFault } from './faults.ts';
import { createHandover, type Listeners } from './handover.ts';
import { openReader, type Reader, type ReaderTimes, readerTimes } from './read/reader.ts';
import { builtInResources, discoverKinds, placesOf, type Resource } from './read/resources.ts';

export interface ClusterSource extends ConnectionOptions {
  /** Services and Ingresses have records in the annotation `<gatewayDomain>/config`. */
  readonly gatewayDomain: string;
  /** The namespaces that are read besides frontdesk's own, which decides who is authenticated. Empty for all. */
  readonly namespaces: readonly string[];
  /** Whether EndpointSlices are read. @default true */
  readonly readsEndpoints?: boolean | undefined;
  /** Whether the kinds of the Gateway API are read, and the Namespaces and Secrets that they need. @default false */
  readonly readsGatewayApi?: boolean | undefined;
}

export interface ClusterOptions extends ClusterSource, Listeners {
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Milliseconds since 1970. @default Date.now */
  readonly clock?: (() => number) | undefined;
  /** @default for an API server that keeps its own times */
  readonly times?: Partial<ClusterTimes> | undefined;
}

/** Durations in milliseconds. */
export interface ClusterTimes extends ReaderTimes {
  /** How often the API server is asked for new kinds. */
  readonly discoveryMs: number;
  /** How long the API server may take for a response. */
  readonly timeoutMs: number;
}

export interface Cluster {
  /** The namespace of frontdesk itself: that of its pod, or of the context. */
  readonly namespace: string;
  /** Resolves when everything was listed and handed over once. */
  readonly ready: Promise<void>;
  /** What cannot be read now. */
  readonly faults: () => readonly ReadFault[];
  /** The names of the resources that are read: `services`, `mappings.gateway.local`. */
  readonly resources: () => readonly string[];
  /** When the API server has answered last, in milliseconds since 1970. */
  readonly answeredAtMs: () => number | undefined;
  /** How many lists and watches have failed since the start. */
  readonly failures: () => number;
  /** For writes. */
  readonly api: Pick<KubernetesApi, 'request'>;
  readonly close: () => Promise<void>;
}

const clusterTimes: ClusterTimes = { ...readerTimes, discoveryMs: 5000, timeoutMs: 30_000 };

/**
 * Rejects with a message for the user if the pod or the kubeconfig has no usable credentials. An API server that is away
 * is tried again until it answers.
 */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const connection = await findConnection(options);
  const times = { ...clusterTimes, ...options.times };
  const api = await openApi(connection, times);
  const { logger, clock = Date.now } = options;
  const faults = createFaults({
    logger,
    clock,
    describe: (error, failed) => describeFailure(error, failed, connection),
    isRead: () => isRead,
  });
  let isRead = false;
  const closing = new AbortController();
  const readers = new Map<string, Reader>();
  let isDiscovered = false;
  const handover = createHandover({
    ...options,
    objects: () => [...readers.values()].flatMap((reader) => [...reader.objects()]),
    isComplete: () => isDiscovered && [...readers.values()].every((reader) => reader.isListed()),
  });
  void handover.ready.then(() => {
    isRead = true;
  });

  function read(resource: Resource): void {
    for (const namespace of placesOf(resource, namespacesOf(options, connection))) {
      const key = `${resource.name} ${namespace}`;
      const reader = readers.get(key);
      if (reader === undefined) readers.set(key, open(resource, namespace));
      else reader.readAs(resource);
    }
  }

  function open(resource: Resource, namespace: string | undefined): Reader {
    const failed = { resource: resource.name, namespace };
    return openReader(resource, {
      api,
      namespace,
      times,
      gatewayDomain: options.gatewayDomain,
      onChange: handover.changed,
      onListed: handover.listed,
      onAnswer: faults.answered,
      onFailure: (error) => faults.failed(failed, error),
      onRecovery: () => faults.recovered(failed),
    });
  }

  async function discover(): Promise<void> {
    for (const kind of await discoverKinds(api, options)) if (!closing.signal.aborted) read(kind);
    isDiscovered = true;
    handover.listed();
  }

  async function keepDiscovering(): Promise<void> {
    for (let failuresInARow = 0; !closing.signal.aborted; ) {
      try {
        await discover();
        faults.recovered(discovery);
        failuresInARow = 0;
      } catch (error) {
        if (!closing.signal.aborted) faults.failed(discovery, error);
        failuresInARow += 1;
      }
      const pauseMs = failuresInARow === 0 ? times.discoveryMs : backoffMs(times.backoffMs, failuresInARow);
      await delay(pauseMs, undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  builtInResources(options).forEach(read);
  const discovering = keepDiscovering();
  return Object.freeze({
    namespace: connection.namespace,
    ready: handover.ready,
    faults: faults.current,
    resources: () => [...readers.values()].map(({ name }) => name),
    answeredAtMs: faults.answeredAtMs,
    failures: faults.failures,
    api: { request: api.request },
    async close() {
      closing.abort();
      const closed = [...readers.values()].map((reader) => reader.close());
      api.close();
      await Promise.all([discovering, ...closed]);
      await handover.close();
    },
  });
}

const discovery: FailedResource = { resource: 'the kinds of the API server', namespace: undefined };

/** Those that are read. Empty for all. */
export function namespacesOf({ namespaces }: ClusterSource, { namespace }: Connection): readonly string[] {
  return namespaces.length > 0 ? [...new Set([namespace, ...namespaces])] : [];
}
