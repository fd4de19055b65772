/** Watches a configuration directory: every change is read whole, and reported when it says something else than before. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { FSWatcher } from 'chokidar';
import { type LoadedConfiguration, type LoadOptions, loadConfiguration } from './load.ts';

export interface WatchOptions extends LoadOptions {
  readonly directory: string;
  /** What is known already: only what differs from it is reported. */
  readonly initial: LoadedConfiguration;
  /**
   * Gets what the directory says now, errors and all; what to keep of it is the caller's to decide. `startedAtMs`: when
   * the reading of it began, in the terms of `performance.now`.
   */
  readonly onChange: (loaded: LoadedConfiguration, startedAtMs: number) => void;
  /** For what the watching itself runs into, such as too many watched files. */
  readonly onError: (error: unknown) => void;
  /** How long nothing must change before it is read: files are written in parts. @default 100 */
  readonly quietMs?: number;
}

export interface ConfigurationWatch {
  /** Reads the directory now. Resolves when what it says was reported, if it is something else than before. */
  readonly reload: () => Promise<void>;
  /** Reports nothing more. May be called again. */
  readonly close: () => Promise<void>;
}

/**
 * Resolves when every further change will be seen; what changed between `initial` and then is reported as well.
 * A ConfigMap of Kubernetes is replaced by a symbolic link (`..data`) that points elsewhere: the directory's own events tell of it.
 */
export async function watchConfiguration(options: WatchOptions): Promise<ConfigurationWatch> {
  const { directory, onError } = options;
  const reader = createReader(options);
  // Loaded here and not before: who watches nothing need not have it.
  const { watch } = await import('chokidar');
  // The folders one by one and no deeper: the directory may be one with much else in it.
  const paths = [directory, join(directory, 'services'), join(directory, 'ratelimit')];
  // Not persistent: it must not keep a process alive that has nothing else to do.
  const watcher = watch(paths, { depth: 0, ignoreInitial: true, persistent: false });
  // The raw events as well: of two changes in quick succession the others may leave out the second.
  watcher.on('raw', reader.touch).on('all', reader.touch).on('error', onError);
  await ready(watcher);
  await reader.read();
  return Object.freeze({
    reload: reader.read,
    async close() {
      await watcher.close();
      await reader.close();
    },
  });
}

const quietMsDefault = 100;
/** Who writes without a pause is read all the same, after so many quiet times. */
const quietTimesMax = 10;

interface Reader {
  /** Something has changed. */
  readonly touch: () => void;
  readonly read: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** One reading at a time, so that an older one never overtakes a newer. */
function createReader({
  directory,
  initial,
  onChange,
  onError,
  quietMs = quietMsDefault,
  ...load
}: WatchOptions): Reader {
  let known = initial;
  let reading = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let firstTouchMs: number | undefined;
  let closed = false;

  async function readOnce(): Promise<void> {
    const startedAtMs = performance.now();
    const loaded = await loadConfiguration(directory, load);
    if (closed || isDeepStrictEqual(loaded, known)) return;
    known = loaded;
    onChange(loaded, startedAtMs);
  }

  function read(): Promise<void> {
    timer = undefined;
    firstTouchMs = undefined;
    reading = reading.then(readOnce).catch(onError);
    return reading;
  }

  return {
    read,
    touch() {
      if (closed) return;
      const nowMs = performance.now();
      firstTouchMs ??= nowMs;
      if (timer !== undefined && nowMs - firstTouchMs > quietTimesMax * quietMs) return;
      clearTimeout(timer);
      timer = setTimeout(read, quietMs);
    },
    close() {
      closed = true;
      clearTimeout(timer);
      return reading;
    },
  };
}

/** Also when it fails, as where no more can be watched: that is reported, and no reason not to start. */
function ready(watcher: FSWatcher): Promise<void> {
  return new Promise((resolve) => {
    watcher.once('ready', resolve).once('error', () => resolve());
  });
}
