/** Reads the objects of one resource: lists them, watches for changes, and lists again whenever a change may be missing. */
import { setTimeout as delay } from 'node:timers/promises';
import { isMap } from '#foundation';
import type { KubernetesApi } from '../api/client.ts';
import { ApiFailure, isExpired, isUnknownResource } from '../api/failure.ts';
import { type Backoff, backoffMs } from '../backoff.ts';
import { listAll } from './list.ts';
import { type KeptObject, keepObject, keptParts, keyOf } from './objects.ts';
import { listPath, type Resource, withQuery } from './resources.ts';
import { readWatch, type WatchEvent } from './watch.ts';

/** Durations in milliseconds. */
export interface ReaderTimes {
  /** How long a watch lasts at least, and at most. */
  readonly watchMs: readonly [number, number];
  /** Everything is listed again after this time, because a version that the server does not know yet gives no events. */
  readonly listAgainMs: number;
  /** After this time without events everything is listed again. The API server sends a bookmark about every minute. */
  readonly silenceMs: number;
  /** The delays after failures. */
  readonly backoffMs: Backoff;
}

export const readerTimes: ReaderTimes = {
  watchMs: [240_000, 480_000],
  listAgainMs: 600_000,
  silenceMs: 120_000,
  backoffMs: [250, 10_000],
};

export interface ReaderOptions {
  readonly api: KubernetesApi;
  /** Undefined for all. */
  readonly namespace: string | undefined;
  readonly gatewayDomain: string;
  readonly times: ReaderTimes;
  /** An object is new, has changed or is gone. Each part that has not changed is the same value. */
  readonly onChange: (before: KeptObject | undefined, now: KeptObject | undefined) => void;
  /** All objects have been listed for the first time. */
  readonly onListed: () => void;
  /** The server has answered. */
  readonly onAnswer: () => void;
  /** The resource cannot be read now. The objects that were read last stay. */
  readonly onFailure: (error: unknown) => void;
  /** The resource is being watched, or is not installed. */
  readonly onRecovery: () => void;
}

export interface Reader {
  /** Of the resource. */
  readonly name: string;
  /** The API server serves the resource in another version now. The objects stay until they are listed in it. */
  readonly readAs: (resource: Resource) => void;
  readonly objects: () => Iterable<KeptObject>;
  readonly isListed: () => boolean;
  /** Resolves when nothing is called any more. */
  readonly close: () => Promise<void>;
}

/** A watch that ends earlier counts as a failure, so that a server that ends each at once is not asked without pause. */
const shortWatchMs = 1000;

/** The longest that the server may ask to wait. */
const retryAfterMsMax = 60_000;

export function openReader(first: Resource, options: ReaderOptions): Reader {
  const { api, namespace, times } = options;
  let resource = first;
  const objects = new Map<string, KeptObject>();
  const closing = new AbortController();
  let version: string | undefined;
  let listedMs: number | undefined;
  let failuresInARow = 0;

  function set(key: string, now: KeptObject | undefined): void {
    const before = objects.get(key);
    if (now === undefined) objects.delete(key);
    else objects.set(key, now);
    if (keptParts.some((part) => before?.[part] !== now?.[part])) options.onChange(before, now);
  }

  function keep(item: unknown): string | undefined {
    const key = keyOf(item);
    const found = keepObject(item, resource, options.gatewayDomain, key === undefined ? undefined : objects.get(key));
    if (found !== undefined) set(found.key, found.kept);
    return found?.key;
  }

  async function list(): Promise<void> {
    const present = new Set<string | undefined>();
    const listed = await listAll(api, listPath(resource, namespace), (item) => present.add(keep(item)));
    for (const key of [...objects.keys()]) if (!present.has(key)) set(key, undefined);
    version = listed;
    noteListed();
  }

  function noteListed(): void {
    options.onAnswer();
    const isFirst = listedMs === undefined;
    listedMs = performance.now();
    if (isFirst) options.onListed();
  }

  function onEvent({ type, object }: WatchEvent): void {
    failuresInARow = 0;
    options.onAnswer();
    const metadata = isMap(object) ? object['metadata'] : undefined;
    const changed = isMap(metadata) ? String(metadata['resourceVersion']) : undefined;
    const key = keyOf(object);
    if (type === 'DELETED' && key !== undefined) set(key, undefined);
    else if (type !== 'BOOKMARK') keep(object);
    if (changed !== undefined) version = changed;
  }

  async function watch(from: string): Promise<void> {
    const untilListMs = times.listAgainMs - (performance.now() - (listedMs ?? 0));
    const [least, most] = times.watchMs;
    const lastsMs = Math.min(least + Math.random() * (most - least), untilListMs);
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${Math.max(1, Math.ceil(lastsMs / 1000))}&resourceVersion=${from}`;
    const path = withQuery(listPath(resource, namespace), query);
    const startMs = performance.now();
    const onOpen = () => {
      options.onAnswer();
      options.onRecovery();
    };
    const { silenceMs } = times;
    const end = await readWatch(api, { path, onOpen, onEvent, silenceMs });
    if (end === 'silent') version = undefined;
    if (performance.now() - startMs > shortWatchMs) failuresInARow = 0;
    else await pause(undefined);
  }

  async function step(): Promise<void> {
    const isOld = listedMs !== undefined && performance.now() - listedMs >= times.listAgainMs;
    if (version === undefined || isOld) await list();
    if (version !== undefined && !closing.signal.aborted) await watch(version);
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await step();
      } catch (error) {
        if (!closing.signal.aborted) await fail(error);
      }
    }
  }

  async function fail(error: unknown): Promise<void> {
    if (isExpired(error)) {
      version = undefined;
      // The first time it is usual: the server has restarted, or the connection was lost for long.
      if (failuresInARow === 0) {
        failuresInARow = 1;
        return;
      }
    }
    if (isUnknownResource(error)) version = undefined;
    if (isUnknownResource(error) && objects.size === 0) {
      noteListed();
      options.onRecovery();
    } else options.onFailure(error);
    await pause(error instanceof ApiFailure ? error.retryAfterMs : undefined);
  }

  async function pause(leastMs = 0): Promise<void> {
    const pauseMs = Math.max(backoffMs(times.backoffMs, failuresInARow), Math.min(leastMs, retryAfterMsMax));
    failuresInARow += 1;
    await delay(pauseMs, undefined, { signal: closing.signal }).catch(() => {});
  }

  const running = run();
  return Object.freeze({
    name: first.name,
    readAs(next: Resource) {
      if (next.apiVersion === resource.apiVersion) return;
      resource = next;
      version = undefined;
    },
    objects: () => objects.values(),
    isListed: () => listedMs !== undefined,
    close() {
      closing.abort();
      return running;
    },
  });
}
